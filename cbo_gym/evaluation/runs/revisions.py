"""The code of a run: revisions of this package's agents and environments, and stamps of third-party code.

Runs with the same code are interchangeable; a sweep plays a run again if its code has changed. An agent's class and an
environment's registry entry declare ``revision``, 1 by default, which must be raised when their behaviour changes;
``tests/record.py`` fails otherwise. Third-party code has a *stamp* instead, its version and a hash of its files. The
version of this package and its commit are recorded, but not compared.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from copy import deepcopy
from functools import cache, lru_cache
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from cbo_gym.agent_registry.finding import find_agent
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.envs.making import make_env
from cbo_gym.envs.registry import find_entry, registry_path
from cbo_gym.errors import CBOGymError
from cbo_gym.evaluation.runs.interactive_code import HASH_DIGITS, INTERACTIVE, interactive_stamp, module_of
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.problems.build import is_yaml_file

PACKAGE = "cbo_gym"
DEFAULT_REVISION = "1"
# Number of rounds by which an environment with objects among its parameters is recognised.
ROUNDS = 16
# Top-level modules without stamps, because runs record the versions of libraries.
KNOWN_BY_VERSION = {
    *sys.stdlib_module_names, "gymnasium", "numpy", "scipy", "torch", "gpytorch", "botorch", "sklearn",
    "stable_baselines3",
}  # fmt: skip


def modules_of(agent: Any, spec: Spec | None) -> frozenset[str]:
    """Return the modules outside this package that define an agent, its base classes and its factory.

    For an agent of the zoo, or a class derived from one, the zoo's import path is included.

    Args:
        agent: The agent.
        spec: Label of the agent, if it has one; it may name a function in another module.
    """
    classes = type(agent).__mro__
    zoo_paths = [path for cls in classes if (path := f"{cls.__module__}:{cls.__qualname__}") in zoo().values()]
    modules = {module for cls in classes if (module := module_of(cls)).partition(".")[0] != PACKAGE}
    if spec is not None:
        modules.add(getattr(find_agent(spec.name), "__module__", "builtins"))
    return frozenset({*modules, *zoo_paths[:1]})


def sources(modules: Iterable[str], problem: object, env: Spec | None = None) -> dict[str, str]:
    """Return the code of a run: name -> revision or stamp, ``{"CBO/Dropwave-v0": "1", "MCBO": "2"}``.

    A registered environment has the revision of its entry, an agent of the zoo that of its class. For a third-party
    agent or problem there is a stamp of each package or module that defines it, ``"0.3.0+5f2c1e0b9a77"``; the hash of a
    problem's YAML file; and the revision of an agent of the zoo from which the agent is derived. Code without a file
    has the stamp ``"unreleased+interactive"``, see :func:`.interactive_code.interactive_stamp`. An environment with
    objects among its parameters, such as a problem or a function, has a hash of some rounds that are played on it.

    Args:
        modules: Modules of the agent.
        problem: Import path, or path of a YAML file, of the environment's problem; any other object is ignored.
        env: Id and parameters of the environment.
    """
    defining = set(modules)
    names = [name for name, path in zoo().items() if not defining.isdisjoint((path, path.partition(":")[0]))]
    names += [env.name] if env is not None and find_entry(env.name) else []
    if isinstance(problem, str) and is_yaml_file(problem):
        names.append(problem)
    elif isinstance(problem, str):
        defining.add(problem)
    played = {} if env is None or env.is_literal else {str(env): _stamp_of_rounds(env)}
    return {name: _stamp_of(name) for name in names} | stamps_of(defining) | played


def stamps_of(modules: Iterable[str]) -> dict[str, str]:
    """Return name -> stamp of the third-party packages and modules among ``modules``."""
    others = {module.partition(":")[0].partition(".")[0] for module in modules} - {PACKAGE, *KNOWN_BY_VERSION}
    return {name: _stamp_of(name) for name in sorted(others)}


def package_stamp() -> dict[str, str]:
    """Return the stamp of this package, by which the code of cluster workers is compared."""
    return {PACKAGE: _stamp_of(PACKAGE)}


def sources_now(names: Iterable[str]) -> dict[str, str | None]:
    """Return the current stamps of some names in this process; None for missing code."""
    forget_sources()
    return {name: _stamp_now(name) for name in names}


def forget_sources() -> None:
    """Let source files be read again; otherwise they are read once per process, as modules are."""
    _hash_of_module.cache_clear()
    _stamp_of_rounds.cache_clear()


@lru_cache(maxsize=2**14)
def is_of_package(name: str) -> bool:
    """Return whether a name is an agent of the zoo or a registered environment."""
    return name in zoo() or find_entry(name) is not None


def is_package_problem(problem: object) -> bool:
    """Return whether the problem of an environment is one of this package."""
    return isinstance(problem, str) and problem.partition(":")[0].partition(".")[0] == PACKAGE


def code_of(run: Run) -> Mapping[str, str]:
    """Return the code of a run for comparison with that of others, see :func:`sources`.

    Runs of older versions have hashes of this package's modules instead of revisions; they count as revision 1.
    """
    if not any(map(_is_package_module, run.sources)):
        return run.sources
    names = names_of(run)
    others = {name: stamp for name, stamp in run.sources.items() if not (_is_package_module(name) or name in names)}
    return {name: DEFAULT_REVISION for name in names if is_of_package(name)} | others


def names_of(run: Run) -> tuple[str, str]:
    """Return the names of a run's environment and agent, without parameters."""
    return _name_of(run.env), _name_of(run.agent)


@lru_cache(maxsize=2**14)
def _name_of(label: str) -> str:
    return Spec.from_label(label).name


def _is_package_module(module: str) -> bool:
    return module == PACKAGE or module.startswith(f"{PACKAGE}.")


def revisions_of(run: Run) -> tuple[int, ...]:
    """Return the revisions of a run's environment and agent; 1 if they declare none."""
    code = code_of(run)
    return tuple(int(stamp) if (stamp := code.get(name, "")).isdigit() else 1 for name in names_of(run))


def parts_of(run: Run) -> dict[tuple[str, str], str]:
    """Return a run's stamps by kind and name: ``("environment", id)``, ``("agent", name)``, ``("package", name)``."""

    def kind_of(name: str) -> str:
        if name in zoo():
            return "agent"
        return "environment" if is_of_package(name) or name == run.env else "package"

    return {(kind_of(name), name): stamp for name, stamp in code_of(run).items()}


def is_current(run: Run) -> bool:
    """Return whether a run was played with the current code, as far as is known without importing it."""
    code = code_of(run)
    return bool(code) and all(_stamp_now(name) == stamp for name, stamp in code.items())


def _stamp_now(name: str) -> str | None:
    # The spec of a dotted name is not looked up, because that imports the parent.
    is_module = name.isidentifier() and import_spec(name) is not None
    is_file = is_yaml_file(name) and Path(name).is_file()
    return _stamp_of(name) if is_of_package(name) or is_module or is_file else None


def _stamp_of(name: str) -> str:
    if name in zoo():
        return str(getattr(find_agent(name), "revision", DEFAULT_REVISION))
    if (entry := find_entry(name)) is not None:
        return str(entry.revision)
    if is_yaml_file(name):
        return _hash({name: Path(name)})
    return f"{_version_of(name)}+{_hash_of_module(name) or interactive_stamp(name)}"


@lru_cache
def _stamp_of_rounds(env: Spec) -> str:
    """Return a hash of random rounds, which differ if mechanisms, noise, domains or costs do."""
    digest = hashlib.sha256()
    with closing(make_env(env).unwrapped) as instance:
        space = deepcopy(instance.action_space)
        space.seed(0)
        instance.reset(seed=0)
        for _ in range(ROUNDS):
            try:
                observation, reward, _, _, info = instance.step(space.sample())
                values = [*observation.values(), reward, info.get("cost", 0.0)]
                # Last digits depend on the processor.
                numbers = [f"{number:.8g}" for value in values for number in np.ravel(value).astype(float)]
                digest.update(" ".join(numbers).encode())
            # A mechanism may be undefined for an action.
            except CBOGymError as error:
                digest.update(str(error).encode())
    return f"{INTERACTIVE}+{digest.hexdigest()[:HASH_DIGITS]}"


@cache
def _hash_of_module(module: str) -> str:
    """Return the hash of a module's source files; empty if it has none."""
    files = _files(module)
    return _hash(files) if files else ""


def _files(module: str) -> dict[str, Path]:
    """Return source files of a package or a module, by the names under which they are hashed."""
    spec = import_spec(module)
    if spec is None:
        # Standard input has no file.
        path = Path(getattr(sys.modules.get(module), "__file__", None) or "")
        return {module: path} if path.is_file() else {}
    if not spec.submodule_search_locations:
        return {module: Path(spec.origin)} if spec.has_location and spec.origin else {}
    paths = {}
    for folder in map(Path, spec.submodule_search_locations):
        # In a checkout of this package, ``agents`` is a symbolic link, which rglob skips.
        for path in (*folder.rglob("*.py"), *(folder / "agents").rglob("*.py")):
            # Editors leave dangling links.
            if path.is_file() and not path.name.startswith("."):
                paths[path.relative_to(folder).as_posix()] = path
    if module == PACKAGE:
        paths["registry"] = registry_path()
    return paths


def _hash(files: Mapping[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:HASH_DIGITS]


@cache
def _version_of(module: str) -> str:
    """Return the version of the distribution of a top-level module; ``unreleased`` if there is none."""
    for distribution in distributions():
        top_level = (distribution.read_text("top_level.txt") or "").split()
        if module in top_level or (not top_level and _has_file_of(distribution, module)):
            return distribution.version
    return "unreleased"


def _has_file_of(distribution: Distribution, module: str) -> bool:
    """Return whether a distribution lists a file of a module, and is installed in the module's folder.

    The folder is compared first, because reading the list takes long.
    """
    if Path(str(distribution.locate_file(""))) not in _folders(module):
        return False
    return any(path.parts[0].partition(".")[0] == module for path in distribution.files or ())


@cache
def _folders(module: str) -> frozenset[Path]:
    """Return the folders from which a top-level module is imported; none for a script."""
    spec = import_spec(module)
    origins = [] if spec is None else spec.submodule_search_locations or [spec.origin or ""]
    return frozenset(Path(origin).parent for origin in origins)


def import_spec(module: str) -> ModuleSpec | None:
    """Return the import spec of a module; None if it has none, such as a script or a module created in memory."""
    try:
        return find_spec(module)
    except (ImportError, ValueError):
        return None
