"""Find and make agents by name: those of this package, of other installed packages, and of import paths."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, entry_points
from pathlib import Path
from sysconfig import get_path
from traceback import extract_tb
from typing import Any

from cbo_gym.agents.zoo import DISTRIBUTION, GROUP, zoo
from cbo_gym.errors import (
    ArgumentError,
    ArgumentTypeError,
    CBOGymError,
    did_you_mean,
    import_hint,
    naming_the_extra,
    nearby,
    shortened,
    shown,
    text_of,
)
from cbo_gym.labels import AGENTS_LISTED_BY, Spec, is_import_path
from cbo_gym.task import Mode

NAMELESS = "without a name"
AGENT_METHODS = ("reset", "act", "update", "recommend")
PYTHONS_HINT = ". Did you mean "  # which parameter a TypeError suggests, since Python 3.13


def known_agents() -> tuple[str, ...]:
    """Names of the installed agents: those of this package and of other packages' entry points."""
    return tuple(sorted({*zoo(), *(point.name for point in _of_others())}))


def usable_agents(make: Callable[[Spec], object] | None = None, names: Iterable[str] | None = None) -> list[str]:
    """The known agents that can be made without parameters; a warning names each that cannot, and the reason.

    Args:
        make: makes an agent; None for :func:`create_agent`.
        names: names of the agents to try; None for all.
    """
    usable = []
    for name in known_agents() if names is None else names:
        try:
            (make or create_agent)(Spec(name))
            usable.append(name)
        except CBOGymError as error:
            warnings.warn(f"left out: {error}", stacklevel=2)
    return usable


def _of_others() -> tuple[EntryPoint, ...]:
    """Entry points of other packages, also those with the name of an agent of this package."""
    return _read_entry_points(tuple((str(folder), _last_change(folder)) for folder in sys.path))


@lru_cache(maxsize=1)  # reading the metadata of all packages takes as long as a short run
def _read_entry_points(folders: object) -> tuple[EntryPoint, ...]:
    points = entry_points(group=GROUP)
    packages = {id(point.dist): point.dist for point in points if point.dist}
    own = [key for key, package in packages.items() if _name(package) == DISTRIBUTION]  # parse each once
    return tuple(point for point in points if id(point.dist) not in own)


def _last_change(folder: str) -> int:
    """Time of the last change of a folder of the path, in nanoseconds; 0 if the folder does not exist."""
    try:
        return Path(folder).stat().st_mtime_ns
    except OSError:
        return 0


def _package(point: EntryPoint) -> str:
    return _name(point.dist) if point.dist else NAMELESS


def _name(package: Distribution) -> str:
    try:
        return package.name or NAMELESS
    except Exception:  # METADATA is missing or damaged; the error depends on the version of Python
        return NAMELESS


def create_agent(spec: Spec | str) -> Any:
    """Make an agent from an installed name or from the import path ``package.module:Class``.

    An import path runs the code of that module, so only pass paths that you trust.

    Raises:
        ArgumentError: if there is no such agent, it does not take the parameters, or a library that it needs is
            missing.
        ArgumentTypeError: if the result lacks a method of the Agent interface.
    """
    spec = Spec.parse(spec) if isinstance(spec, str) else spec
    factory = find_agent(spec.name)
    hints = _hints(factory, spec.keywords)
    try:
        agent = factory(**spec.keywords)
    except (TypeError, ValueError, ImportError) as error:  # a wrong parameter, or a missing library
        reason = str(error).partition(PYTHONS_HINT)[0] if hints else error
        raise ArgumentError(f"cannot create {spec.shown}: {reason}{hints}") from error
    except (Exception, SystemExit) as error:  # the agent's code must not end this process
        message = shortened(text_of(error))
        raise ArgumentError(f"cannot create {spec.shown}: {type(error).__name__}: {message}{_origin(error)}") from error
    return require_agent(agent)


def agent_of(source: Any) -> Any:
    """Return an agent from an instance, a name, a Spec, a class or a function that makes the agent.

    Raises:
        ArgumentError: if there is no such agent, or it cannot be made without parameters.
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
        message = shortened(text_of(error))
        raise ArgumentError(
            f"cannot make an agent by {name}(): {type(error).__name__}: {message}{_origin(error)}; give an instance "
            "or a function without parameters that makes the agent"
        ) from error
    return require_agent(agent)


def _hints(factory: Any, names: Iterable[str]) -> str:
    try:
        known = inspect.signature(factory).parameters
    except (TypeError, ValueError):  # some callables have none
        return ""
    return "".join(did_you_mean(name, known) for name in names if name not in known)


def require_agent(agent: Any) -> Any:
    """Return ``agent`` if it has the methods of the Agent interface.

    Raises:
        ArgumentTypeError: if methods are missing, with their names.
    """
    if isinstance(agent, type):
        raise ArgumentTypeError(f"give an instance of {agent.__name__}, not the class")
    missing = [name for name in AGENT_METHODS if not callable(getattr(agent, name, None))]
    if missing:
        raise ArgumentTypeError(
            f"{type(agent).__name__} is not an agent: it lacks {missing}; agents have the methods {list(AGENT_METHODS)}"
        )
    return agent


def find_agent(name: str) -> Any:
    """The class or function that makes the agent of a name or an import path.

    Raises:
        ArgumentError: if there is no such agent, or it cannot be imported.
    """
    if name in zoo():
        require_unshared(name)
        return _load(zoo()[name], f"the agent {name!r}")
    others = [point for point in _of_others() if point.name == name]
    if len(others) > 1:
        raise ArgumentError(
            f"the packages {' and '.join(map(_package, others))} have an agent {name!r} each; remove one, or name "
            f"the agent by its import path: {' or '.join(point.value for point in others)}"
        )
    for point in others:
        return _load(point.value, display_name(name))
    if not is_import_path(name):
        raise ArgumentError(
            f"no agent is called {name!r}{nearby(name, known_agents(), AGENTS_LISTED_BY)}, "
            "and 'package.module:Class' names any that is not installed"
        )
    return _load(name, f"the agent {name!r}")


def require_unshared(name: str) -> None:
    """Check that no other package uses the name of an agent of this package.

    Raises:
        ArgumentError: if another package does.
    """
    for point in _of_others():
        if point.name == name:
            raise ArgumentError(
                f"the package {_package(point)} calls its {point.value} {name!r} too, the name of an agent of "
                f"cbo-gym; remove that package, or name its agent by the import path {point.value}"
            )


def display_name(name: str) -> str:
    """The name of an agent for messages, with its package unless that is this one."""
    packages = [_package(point) for point in _of_others() if point.name == name]
    return f"the agent {shown(name)}" + (f" of the package {' and '.join(packages)}" if packages else "")


def modes_of(factory: Any) -> tuple[str, ...]:
    """The feedback modes in the attribute ``modes`` of an agent's class; empty without the attribute."""
    modes = getattr(factory, "modes", ())
    return tuple(mode.value for mode in Mode if isinstance(modes, Collection) and mode in modes)


def _load(path: str, what: str) -> Any:
    module, _, attribute = path.partition(":")
    try:
        with naming_the_extra(what), warnings.catch_warnings():
            # Importing GPyTorch raises a deprecation warning of torch, which is fatal if warnings are errors.
            warnings.filterwarnings("ignore", "`?torch.jit", DeprecationWarning)
            target = import_module(module)
        for name in attribute.split("."):
            target = getattr(target, name)
        return target
    except CBOGymError:
        raise
    except (Exception, SystemExit) as error:  # of a third-party module
        message = shortened(text_of(error))
        reason = f"{type(error).__name__}: {message}{_origin(error)}{_name_clash(module)}{import_hint(error)}"
        raise ArgumentError(f"cannot import {what} from {path!r}: {reason}") from error


def _origin(error: BaseException) -> str:
    """The line of the user's code that raised an error: ``" (line 3 of /home/me/mine.py)"``, or an empty string."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" (line {error.lineno} of {error.filename})"
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen ")]
    libraries = (__file__, *(get_path(name) for name in ("stdlib", "purelib", "platlib")))
    theirs = [frame for frame in frames if not frame.filename.startswith(libraries)]
    return f" (line {theirs[-1].lineno} of {theirs[-1].filename})" if theirs else ""


def _name_clash(module: str) -> str:
    """Say that the imported module is not the file of that name in the working directory, if that file exists."""
    name, _, suffix = module.partition(".")
    if suffix == "py":
        return f"; name the module, without .py: {name}"
    mine = Path(f"{name}.py").resolve()
    if name not in sys.modules or not mine.is_file():
        return ""
    imported = getattr(sys.modules[name], "__file__", None) or "a part of Python"
    if Path(imported).resolve() == mine:
        return ""
    return f"; the imported module is {imported}, not your {mine}: rename yours"
