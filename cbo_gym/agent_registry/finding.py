"""Find and create agents: by their names in this and other installed packages, or by an import path.

Other packages publish agents as entry points of the group ``cbo_gym.agents``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Collection, Iterable
from functools import lru_cache
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from sysconfig import get_path
from traceback import extract_tb
from typing import Any

from cbo_gym.agent_registry.labels import AGENTS_LISTED_BY, Spec, is_import_path
from cbo_gym.agent_registry.zoo import DISTRIBUTION, GROUP, zoo
from cbo_gym.errors import (
    ArgumentError,
    ArgumentTypeError,
    CBOGymError,
    did_you_mean,
    import_hint,
    message_of,
    name_hint,
    naming_the_extra,
    short_repr,
    shorten,
)
from cbo_gym.task import Mode

# Name of a package whose metadata gives none.
NAMELESS = "without a name"
AGENT_METHODS = ("reset", "act", "update", "recommend")
# Start of Python's own suggestion in the TypeError of an unknown parameter, since Python 3.13; ours replaces it.
PYTHON_SUGGESTION = ". Did you mean "


def known_agents() -> tuple[str, ...]:
    """Return the names of the agents of this package and of other packages' entry points, sorted."""
    return tuple(sorted({*zoo(), *(point.name for point in _other_entry_points())}))


def _other_entry_points() -> tuple[EntryPoint, ...]:
    """Return the entry points of other packages, including any with the name of an agent of this package."""
    # An installation changes the time of a folder, and so the key of the cache.
    return _read_entry_points(tuple((str(folder), _last_change(folder)) for folder in sys.path))


# Reading the metadata of all packages takes as long as a short run.
@lru_cache(maxsize=1)
def _read_entry_points(folders: object) -> tuple[EntryPoint, ...]:
    """Read the entry points of other packages; ``folders`` is only the key of the cache."""
    points = entry_points(group=GROUP)
    # Metadata is parsed once per package, not once per entry point.
    packages = {id(point.dist): point.dist for point in points if point.dist}
    own_ids = [key for key, package in packages.items() if _distribution_name(package) == DISTRIBUTION]
    return tuple(point for point in points if id(point.dist) not in own_ids)


def _last_change(folder: str) -> int:
    """Return when a folder of ``sys.path`` last changed, in nanoseconds; 0 if it does not exist."""
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0


def _package_name(point: EntryPoint) -> str:
    return _distribution_name(point.dist) if point.dist else NAMELESS


def _distribution_name(package: Distribution) -> str:
    try:
        return package.name or NAMELESS
    except Exception:
        # METADATA is missing or damaged; which error this raises depends on the version of Python.
        return NAMELESS


def create_agent(spec: Spec | str) -> Any:
    """Create an agent from the name of an installed agent or the import path ``package.module:Class``.

    An import path runs the code of that module, so only pass paths that you trust.

    Args:
        spec: name or import path, with parameters, as a Spec or as a label such as ``"GP-UCB(beta=0.5)"``.

    Raises:
        ArgumentError: if there is no such agent, it refuses the parameters, or a library that it needs is missing.
        ArgumentTypeError: if the result lacks a method of the Agent interface.
    """
    spec = Spec.parse(spec) if isinstance(spec, str) else spec
    factory = find_agent(spec.name)
    hints = _hints(factory, spec.keywords)
    try:
        agent = factory(**spec.keywords)
    except (TypeError, ValueError, ImportError) as error:
        # A parameter is wrong or a library is missing.
        reason = str(error).partition(PYTHON_SUGGESTION)[0] if hints else error
        raise ArgumentError(f"cannot create {spec.short_label}: {reason}{hints}") from error
    except (Exception, SystemExit) as error:
        # The agent's code must not end this process.
        raise ArgumentError(f"cannot create {spec.short_label}: {_reason(error)}") from error
    return require_agent(agent)


def agent_of(source: Any) -> Any:
    """Return an agent, given an instance, a name, a Spec, a class, or a function that returns an agent.

    Raises:
        ArgumentError: if there is no such agent, or it cannot be created without parameters.
        ArgumentTypeError: if the result lacks a method of the Agent interface.
    """
    if isinstance(source, str | Spec):
        return create_agent(source)
    if not isinstance(source, type) and (hasattr(source, "act") or not callable(source)):
        return require_agent(source)
    name = getattr(source, "__name__", type(source).__name__)
    try:
        agent = source()
    except (Exception, SystemExit) as error:
        raise ArgumentError(
            f"cannot make an agent by {name}(): {_reason(error)}; give an instance or a function without parameters "
            "that makes the agent"
        ) from error
    return require_agent(agent)


def _hints(factory: Any, names: Iterable[str]) -> str:
    """Suggest parameters of ``factory`` that are close to those of ``names`` that it does not take."""
    try:
        known = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        # Some callables have no signature.
        return ""
    return "".join(did_you_mean(name, known) for name in names if name not in known)


def require_agent(agent: Any) -> Any:
    """Return ``agent``; raise ArgumentTypeError if it is a class, or lacks methods of the Agent interface."""
    if isinstance(agent, type):
        raise ArgumentTypeError(f"give an instance of {agent.__name__}, not the class")
    missing = [name for name in AGENT_METHODS if not callable(getattr(agent, name, None))]
    if missing:
        hint = "; cbo_gym.sweep plays several agents" if isinstance(agent, list | tuple) else ""
        if hasattr(agent, "predict"):
            hint = "; cbo_gym.integrations.sb3.Policy(model) makes an agent of a model of Stable-Baselines3"
        raise ArgumentTypeError(
            f"{type(agent).__name__} is not an agent: it lacks {missing}; agents have the methods {list(AGENT_METHODS)}"
            + hint
        )
    return agent


def find_agent(name: str) -> Any:
    """Return the class or function that creates the agent of a name or an import path."""
    if name in zoo():
        require_unshared(name)
        return _load(zoo()[name], f"the agent {name!r}")
    others = [point for point in _other_entry_points() if point.name == name]
    if len(others) > 1:
        raise ArgumentError(
            f"more than one package has an agent {name!r}: {' and '.join(map(_package_name, others))}; keep one, "
            f"or use the import path of the agent, {' or '.join(point.value for point in others)}"
        )
    if others:
        return _load(others[0].value, display_name(name))
    if not is_import_path(name):
        raise ArgumentError(
            f"no agent is called {name!r}{name_hint(name, known_agents(), AGENTS_LISTED_BY)}"
            "; for an agent that is not installed, write 'package.module:Class'"
        )
    return _load(name, f"the agent {name!r}")


def require_unshared(name: str) -> None:
    """Raise ArgumentError if another package has an agent ``name``, which is the name of an agent of this package."""
    for point in _other_entry_points():
        if point.name == name:
            raise ArgumentError(
                f"the package {_package_name(point)} also has an agent {name!r}, {point.value}, but this name is that "
                f"of an agent of cbo-gym; remove that package, or use its agent by the import path {point.value}"
            )


def display_name(name: str) -> str:
    """Return the name of an agent for messages, with its package if it is another than this one."""
    packages = [_package_name(point) for point in _other_entry_points() if point.name == name]
    return f"the agent {short_repr(name)}" + (f" of the package {' and '.join(packages)}" if packages else "")


def modes_of(factory: Any) -> tuple[str, ...]:
    """Return the feedback modes in the attribute ``modes`` of an agent's class; empty without that attribute."""
    modes = getattr(factory, "modes", ())
    return tuple(mode.value for mode in Mode if isinstance(modes, Collection) and mode in modes)


def _load(path: str, description: str) -> Any:
    """Import the object at ``package.module:Class``; ``description`` describes it in errors."""
    module, _, attribute = path.partition(":")
    try:
        with naming_the_extra(description):
            target = import_module(module)
        for name in attribute.split("."):
            target = getattr(target, name)
        return target
    except CBOGymError:
        raise
    except (Exception, SystemExit) as error:
        # A third-party module may raise anything, and must not end this process.
        reason = f"{_reason(error)}{_name_clash(module)}{import_hint(error)}"
        origin = "" if repr(path) in description else f" from {path!r}"
        raise ArgumentError(f"cannot import {description}{origin}: {reason}") from error


def _reason(error: BaseException) -> str:
    """Return an error's message, and where the user's code raised it: ``(line 3 of /home/me/mine.py)``."""
    message = f"{type(error).__name__}: {shorten(message_of(error))}"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{message} (line {error.lineno} of {error.filename})"
    libraries = ("<frozen ", __file__, *(get_path(name) for name in ("stdlib", "purelib", "platlib")))
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith(libraries)]
    return f"{message} (line {frames[-1].lineno} of {frames[-1].filename})" if frames else message


def _name_clash(module: str) -> str:
    """Return a hint if a file of the working directory has the name of the module, but another one was imported."""
    name, _, suffix = module.partition(".")
    if suffix == "py":
        return f"; name the module, without .py: {name}"
    local_file = Path(f"{name}.py").resolve()
    if name not in sys.modules or not local_file.is_file():
        return ""
    imported = getattr(sys.modules[name], "__file__", None) or "built into Python"
    if Path(imported).resolve() == local_file:
        return ""
    return f"; the imported module is {imported}, not your {local_file}: rename yours"
