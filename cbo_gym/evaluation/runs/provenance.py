"""Provenance of a run: sources, libraries, threads and machine. Without it numbers cannot be compared."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from cbo_gym.agent_finder import find_agent
from cbo_gym.evaluation.runs.closure import PACKAGE, PLAYS, ROOM, at_play, forget_texts, modules, stamp_at_play
from cbo_gym.evaluation.runs.machine import describe_machine
from cbo_gym.evaluation.runs.meaning import DIGITS
from cbo_gym.evaluation.runs.typed_code import module_of, typed_stamp
from cbo_gym.labels import Spec
from cbo_gym.problems.build import is_yaml_file
from cbo_gym.registry import find_entry
from cbo_gym.version import __version__

LIBRARIES = ("gymnasium", "numpy", "scipy", "torch", "gpytorch", "botorch", "scikit-learn", "stable-baselines3")
BY_TREE = "tree"  # stands before the fingerprint of this package's code, which is of syntax trees
NOT_IN_STAMP = {"paper", "section", "tags", "optimum"}  # of a registry's entry
NOT_OF_OPTIMUM = {"command"}
#: top-level modules whose versions say enough
KNOWN_BY_VERSION = {
    *sys.stdlib_module_names, "gymnasium", "numpy", "scipy", "torch", "gpytorch", "botorch", "sklearn",
    "stable_baselines3",
}  # fmt: skip


def played_with() -> dict[str, Any]:
    """The fields of a Run that say when, on what and with which libraries it was played."""
    return {
        "version": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "libraries": library_versions(),
        "threads": _threads(),
    }


def modules_of(agent: Any, spec: Spec | None) -> frozenset[str]:
    """The modules that an agent, its base classes and what made it are defined in.

    Args:
        agent: the agent itself.
        spec: how it was named, if it was; the name may be that of a function of another module.
    """
    modules = {module_of(kind) for kind in type(agent).__mro__}
    if spec is not None:
        modules.add(getattr(find_agent(spec.name), "__module__", "builtins"))
    return frozenset(modules)


def sources(modules: Iterable[str], problem: object, env: Spec | None = None) -> dict[str, str]:
    """The code that a run is played with: name -> fingerprint, ``{"CBO/Dropwave-v0": "tree+5f2c1e0b9a77"}``.

    Of this package only what can change the run counts, by what it means, see
    :mod:`cbo_gym.evaluation.runs.closure`: of a registered environment, under its id, its entry and what plays and
    scores it; of an agent of the zoo, under its module's name, what that imports. Of somebody else's environment
    everything counts that any environment is made of, as ``"cbo_gym"``, of somebody else's agent the whole zoo, as
    ``"cbo_gym.agents"``, and the packages, or the modules, that they are defined in, with their versions,
    ``"0.3.0+5f2c1e0b9a77"``; and a problem's YAML file. Code that lies in no file is ``"unreleased+interactive"``, with
    a hash of its text where Python keeps it, see :func:`cbo_gym.evaluation.runs.typed_code.typed_stamp`.

    Args:
        modules: those of the agent.
        problem: what the environment was made with: an import path, the path of a YAML file, or anything else.
        env: id and parameters of the environment.
    """
    files, named = [], set(modules)
    if isinstance(problem, str) and is_yaml_file(problem):
        files.append(problem)
    elif isinstance(problem, str):
        named.add(problem.partition(":")[0])
    own = (_name_of_env(problem, env), *_names_of_agent(modules), *files)
    return {name: _stamp_of(name) for name in own} | stamps_of(named)


def _name_of_env(problem: object, env: Spec | None) -> str:
    """Its id, if it is played as it is registered, but for parameters of its problem and its mode."""
    entry = find_entry(env.name) if env is not None else None
    if env is None or entry is None or problem != entry.problem or "mode" in env.keywords:
        return PACKAGE
    return env.name


def _names_of_agent(modules: Iterable[str]) -> list[str]:
    """The module of an agent of the zoo, which those of its base classes are imported by; the zoo for any other one."""
    own = {name for name in modules if name.startswith(f"{ROOM}.")}
    if not own or stamps_of(modules):
        return [ROOM]
    return sorted(own - {other for name in own for other in at_play([name]) if other != name})


def stamps_of(modules: Iterable[str]) -> dict[str, str]:
    """The part of :func:`sources` that somebody else's modules are."""
    others = {module.partition(".")[0] for module in modules} - {"cbo_gym", *KNOWN_BY_VERSION}
    return {name: _stamp_of(name) for name in sorted(others)}


def stamps_here(names: Iterable[str]) -> dict[str, str]:
    """The stamps of parts of this package, or of packages, that are there."""
    return {name: _stamp_of(name) for name in names}


def sources_now(names: Iterable[str]) -> dict[str, str | None]:
    """The answer of :func:`sources` in this process for the code of some names; None for what is not there."""
    forget_sources()
    return {name: _stamp_of(name) if _is_there(name) else None for name in names}


def _is_there(name: str) -> bool:
    if is_yaml_file(name):
        return Path(name).is_file()
    return is_of_package(name) or (not is_id(name) and find_spec(name) is not None)


def is_of_package(name: str) -> bool:
    """Whether the code of a name is this package's: its agents, and the environments that are registered."""
    return name in modules() or find_entry(name) is not None


def is_id(name: str) -> bool:
    """Whether the code of a name is that of an environment, registered here or not."""
    return "/" in name and not is_yaml_file(name)


def _stamp_of(name: str) -> str:
    if is_yaml_file(name):
        return _hash({name: Path(name)})
    if is_of_package(name):
        return f"{BY_TREE}+{_hash_of_own(name)}"
    return f"{_version_of(name)}+{_hash_of_module(name) or typed_stamp(name)}"


@cache
def _hash_of_own(name: str) -> str:
    """Of a part of this package, and of what the registry says of an environment."""
    digest = stamp_at_play(roots_of(name))
    entry = find_entry(name)
    if entry is None:
        return digest
    told = entry.model_dump(mode="json", exclude=NOT_IN_STAMP)
    if entry.optimum is not None:
        told["optimum"] = entry.optimum.model_dump(mode="json", exclude=NOT_OF_OPTIMUM)
    return hashlib.sha256(f"{digest}{json.dumps(told, sort_keys=True)}".encode()).hexdigest()[:DIGITS]


def roots_of(name: str) -> list[str]:
    """The modules in which what a name stands for begins."""
    if name == ROOM:
        return [module for module in modules() if module.startswith(f"{ROOM}.")]
    if name == PACKAGE:
        parts = (f"{PACKAGE}.problems.", f"{PACKAGE}.feedback.")
        return [*PLAYS, *(module for module in modules() if module.startswith(parts))]
    if (entry := find_entry(name)) is not None:
        return [*PLAYS, entry.problem.partition(":")[0], f"{PACKAGE}.feedback.{entry.mode.value}"]
    return [name]


def is_our_own(problem: object) -> bool:
    """Whether a problem, as an environment was made with it, is one of this package."""
    return isinstance(problem, str) and problem.partition(":")[0].partition(".")[0] == "cbo_gym"


def forget_sources() -> None:
    """Read sources anew when they are asked for next: those that were edited since lead to another fingerprint.

    Otherwise they are read once a process, for so are modules.
    """
    forget_texts()
    _hash_of_own.cache_clear()
    _hash_of_module.cache_clear()


@cache
def _hash_of_module(module: str) -> str:
    """Empty for one that lies in no file."""
    files = _files(module)
    return _hash(files) if files else ""


def _files(module: str) -> dict[str, Path]:
    """The source files of a package or a module, by the names under which they are hashed."""
    try:
        spec = find_spec(module)
    except ValueError:  # a script, or a module that was put together in memory: no finder found it
        path = Path(getattr(sys.modules.get(module), "__file__", None) or "")  # for standard input it names no file
        return {module: path} if path.is_file() else {}
    if spec is None:
        return {}
    if not spec.submodule_search_locations:
        return {module: Path(spec.origin)} if spec.has_location and spec.origin else {}
    folders = map(Path, spec.submodule_search_locations)
    return {
        path.relative_to(folder).as_posix(): path
        for folder in folders
        for path in folder.rglob("*.py")
        if path.is_file() and not path.name.startswith(".")  # editors leave links to nothing
    }


def _hash(files: Mapping[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:DIGITS]


@cache
def _version_of(module: str) -> str:
    """The version of the distribution that a top-level module belongs to; ``unreleased`` where there is none."""
    for name in packages_distributions().get(module, []):
        return version(name)
    return "unreleased"


@cache
def library_versions() -> dict[str, str]:
    """Name -> version of what runs are played with, Python and the linear algebra library included."""
    found = {"python": platform.python_version(), "blas": _linear_algebra()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _linear_algebra() -> str:
    """NumPy's library of linear algebra, and the processors whose kernels it runs, on which the last digits depend."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    kernels = {pool["architecture"] for pool in threadpool_info() if "architecture" in pool}
    return " ".join([blas["name"], blas["version"], *sorted(kernels)])


def _threads() -> dict[str, int]:
    """Threads of each of the libraries that are loaded."""
    threads: dict[str, int] = {}
    for pool in threadpool_info():
        name = str(pool["internal_api"])
        threads[name] = max(int(pool["num_threads"]), threads.get(name, 0))
    if torch := sys.modules.get("torch"):
        threads["torch"] = torch.get_num_threads()
    return threads
