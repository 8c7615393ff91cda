"""Check an agent's label from an untrusted file, such as a submission to the leaderboard, before its code is run.

A label names an installed agent, with literals of the declared types as parameters. An import path is followed only if
the person who checks the file allows that very path.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any

from pydantic import ConfigDict, PydanticSchemaGenerationError, TypeAdapter, ValidationError

from cbo_gym.agent_registry.finding import find_agent, known_agents
from cbo_gym.agent_registry.labels import Spec, is_import_path
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.errors import ArgumentError, did_you_mean

# Name of a parameter -> its type; Any if no type is declared.
ParameterTypes = Mapping[str, Any]
_STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True)


def admit_agent(label: str, allow: Collection[str] = ()) -> Spec:
    """Parse a label that names an installed agent or one of the allowed import paths.

    No third-party code is run, so parameters of third-party agents are not checked.
    """
    spec = Spec.parse(label)
    if spec.name in zoo():
        require_parameters(spec, parameter_types(find_agent(spec.name)), f"the agent {spec.name}")
    elif spec.name not in allow and (is_import_path(spec.name) or spec.name not in known_agents()):
        raise ArgumentError(
            f"the agent {spec.name!r} is not installed here{did_you_mean(spec.name, known_agents())}. Install it under "
            "this name, or allow an import path by naming it: --allow package.module:Class"
        )
    return spec


@cache
def parameter_types(factory: Callable[..., Any], *kinds: Any) -> ParameterTypes:
    """Return the parameters of a class or a function, with their types.

    Args:
        factory: Class or function.
        kinds: Kinds of parameters (``inspect.Parameter.kind``); by default all that can be passed by name.
    """
    kinds = kinds or (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    hints = typing.get_type_hints(factory.__init__ if isinstance(factory, type) else factory)  # type: ignore[misc]
    parameters = inspect.signature(factory).parameters.values()
    return {parameter.name: hints.get(parameter.name, Any) for parameter in parameters if parameter.kind in kinds}


def require_parameters(spec: Spec, declared: ParameterTypes, subject: str) -> None:
    """Raise ArgumentError unless a label's parameters are declared and have the right types; ``subject`` owns them."""
    for name, value in spec.parameters:
        if name not in declared:
            names, hint = ", ".join(sorted(declared)) or "no parameters", did_you_mean(name, declared)
            raise ArgumentError(f"{subject} takes {names}; given also {name!r}{hint}")
        if not _fits(value, declared[name]):
            allowed = inspect.formatannotation(declared[name])
            raise ArgumentError(f"{name} of {subject} must be {allowed}; given {value!r}")


def _fits(value: Any, annotation: Any) -> bool:
    try:
        TypeAdapter(annotation, config=_STRICT).validate_python(value)
    # Pydantic makes no schema for some types, which no literal has.
    except (ValidationError, PydanticSchemaGenerationError):
        return False
    return True
