"""Build a Problem from the import path of a function or from a YAML file."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

from cbo_gym.errors import ArgumentError, CBOGymError, did_you_mean, import_hint, short_repr, shorten
from cbo_gym.problems.base import Problem
from cbo_gym.problems.custom.problem_file import load_problem

#: Errors of a function that is called with unsuitable arguments.
FAULTS = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, MemoryError, OSError)


def build_problem(builder: str | Problem, **parameters: Any) -> Problem:
    """Return a problem from its builder's import path, ``"package.module:function"``, or from a YAML file's path.

    A Problem is returned unchanged. An import path runs that module's code; reading a YAML file runs none.

    Raises:
        ArgumentError: if there is nothing at the path, or the builder has no such parameter.
    """
    if isinstance(builder, Problem) or _is_file(builder):
        if parameters:
            raise ArgumentError(f"a ready Problem takes no parameters; given {sorted(parameters)}")
        return builder if isinstance(builder, Problem) else load_problem(builder)
    allowed = builder_parameters(builder)
    if unknown := sorted(set(parameters) - set(allowed)):
        hints = "".join(did_you_mean(name, allowed) for name in unknown)
        raise ArgumentError(f"{builder} takes the parameters {sorted(allowed)}; given also {unknown}{hints}")
    try:
        problem = import_builder(builder)(**parameters)
    except CBOGymError:
        raise
    except FAULTS as error:
        raise ArgumentError(f"cannot build {builder} with {short_repr(parameters)}: {shorten(str(error))}") from error
    if not isinstance(problem, Problem):
        raise ArgumentError(f"{shorten(builder)} must return a Problem; it returned a {type(problem).__name__}")
    return problem


def builder_parameters(builder: str | Problem) -> list[str]:
    """Return the keyword arguments that a builder takes; a ready Problem and a YAML file take none.

    Raises:
        ArgumentError: if there is nothing at the import path.
    """
    if isinstance(builder, Problem) or _is_file(builder):
        return []
    function = import_builder(builder)
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError) as error:
        # The object is not callable or has no signature.
        raise ArgumentError(f"{short_repr(builder)} names no function that builds a problem ({error})") from error


def _is_file(builder: str | None) -> bool:
    """Return whether a builder is the path of a YAML file; raise ArgumentError if it is no path at all."""
    if builder is None:
        raise ArgumentError(
            "give the problem to play, problem=...: a Problem, as cbo_gym.custom_problem makes it, the path of a YAML "
            "file, or the import path 'package.module:function' of a builder"
        )
    if not isinstance(builder, str):
        raise ArgumentError(
            f"a problem is a Problem, an import path or the path of a YAML file; given {short_repr(builder)}"
        )
    return is_yaml_file(builder)


def is_yaml_file(path: str) -> bool:
    """Return whether a path has the extension of a YAML file."""
    return path.lower().endswith((".yaml", ".yml"))


def import_builder(path: str) -> Callable[..., Problem]:
    """Return the object at an import path ``"package.module:function"``; this runs the module's code.

    Raises:
        ArgumentError: if there is nothing there.
    """
    module_name, _, attribute = path.partition(":")
    try:
        return getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        # A relative path raises TypeError.
        raise ArgumentError(
            f"no problem builder at {short_repr(path)}; give 'package.module:function' ({shorten(str(error))})"
            f"{import_hint(error)}"
        ) from error
