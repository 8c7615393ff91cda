"""Provenance of a run: sources, libraries, threads and machine. Without it numbers cannot be compared."""

from __future__ import annotations

import hashlib
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
from cbo_gym.evaluation.runs.machine import describe_machine
from cbo_gym.evaluation.runs.typed_code import module_of, typed_stamp
from cbo_gym.labels import Spec
from cbo_gym.problems.build import is_yaml_file
from cbo_gym.registry import registry_path
from cbo_gym.version import __version__

LIBRARIES = ("gymnasium", "numpy", "scipy", "torch", "gpytorch", "botorch", "scikit-learn", "stable-baselines3")
OWN = ("cbo_gym", "cbo_gym.agents")  # sources
#: top-level modules whose versions say enough
KNOWN_BY_VERSION = {
    *sys.stdlib_module_names, "gymnasium", "numpy", "scipy", "torch", "gpytorch", "botorch", "sklearn",
    "stable_baselines3",
}  # fmt: skip
DIGITS = 12  # of a hash


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


def sources(modules: Iterable[str], problem: object) -> dict[str, str]:
    """The code that a run is played with: name -> version and fingerprint, ``"0.3.0+5f2c1e0b9a77"``.

    These are ``cbo_gym`` and ``cbo_gym.agents``; of somebody else's agent or problem the packages, or the modules, that
    they are defined in; and a problem's YAML file. Code that lies in no file is ``"unreleased+interactive"``, with a
    hash of its text where Python keeps it, see :func:`cbo_gym.evaluation.runs.typed_code.typed_stamp`.

    Args:
        modules: those of the agent.
        problem: what the environment was made with: an import path, the path of a YAML file, or anything else.
    """
    files, named = [], set(modules)
    if isinstance(problem, str) and is_yaml_file(problem):
        files.append(problem)
    elif isinstance(problem, str):
        named.add(problem.partition(":")[0])
    return {name: _stamp_of(name) for name in (*OWN, *files)} | stamps_of(named)


def stamps_of(modules: Iterable[str]) -> dict[str, str]:
    """The part of :func:`sources` that somebody else's modules are."""
    others = {module.partition(".")[0] for module in modules} - {"cbo_gym", *KNOWN_BY_VERSION}
    return {name: _stamp_of(name) for name in sorted(others)}


def sources_now(names: Iterable[str]) -> dict[str, str | None]:
    """The answer of :func:`sources` in this process for the code of some names; None for what is not there."""
    forget_sources()
    return {name: _stamp_of(name) if _is_there(name) else None for name in names}


def _is_there(name: str) -> bool:
    return Path(name).is_file() if is_yaml_file(name) else find_spec(name) is not None


def _stamp_of(name: str) -> str:
    if is_yaml_file(name):
        return _hash({name: Path(name)})
    release = __version__ if name in OWN else _version_of(name)
    return f"{release}+{_hash_of_module(name) or typed_stamp(name)}"


def is_our_own(problem: object) -> bool:
    """Whether a problem, as an environment was made with it, is one of this package."""
    return isinstance(problem, str) and problem.partition(":")[0].partition(".")[0] == "cbo_gym"


def forget_sources() -> None:
    """Read sources anew when they are asked for next: those that were edited since lead to another fingerprint.

    Otherwise they are read once a process, for so are modules.
    """
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
    found = {
        path.relative_to(folder).as_posix(): path
        for folder in folders
        for path in folder.rglob("*.py")
        if path.is_file() and not path.name.startswith(".")  # editors leave links to nothing
    }
    if module == "cbo_gym":  # the agents' room is stamped apart, and the registry lies elsewhere in a checkout
        found = {name: path for name, path in found.items() if not name.startswith("agents/")}
        found["envs_registry.yaml"] = registry_path()
    return found


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
