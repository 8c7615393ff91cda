"""Admission of an agent's label from an untrusted file, before any of its code is run.

Labels are data. They name installed agents, with literals as parameters, of the declared types. An import path is
followed only if the person who checks the file allows that very path.
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

# Keyword -> its type; Any if no type is declared.
ParameterTypes = Mapping[str, Any]
_STRICT = ConfigDict(strict=True, arbitrary_types_allowed=True)


def admit_agent(label: str, allow: Collection[str] = ()) -> Spec:
    """Return the agent that a label of a file names: an installed one, or one of the allowed import paths.

    No third-party code is run; third-party agents check their parameters in their own process.

    Raises:
        ArgumentError: if the label is neither, or has a parameter that the agent of this package does not declare.
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
    """Return the named parameters of a class or a function, with their types.

    Args:
        factory: Class or function.
        kinds: Kinds of parameters; by default all that can be passed by name.
    """
    kinds = kinds or (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    hints = typing.get_type_hints(factory.__init__ if isinstance(factory, type) else factory)  # type: ignore[misc]
    parameters = inspect.signature(factory).parameters.values()
    return {parameter.name: hints.get(parameter.name, Any) for parameter in parameters if parameter.kind in kinds}


def require_parameters(spec: Spec, known: ParameterTypes, subject: str) -> None:
    """Check the parameters of a label against the declared ones.

    Raises:
        ArgumentError: if one is not declared, or its value has another type.
    """
    for name, value in spec.parameters:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ArgumentError(
                f"{subject} takes {', '.join(sorted(known)) or 'no parameters'}; given also {name!r}{hint}"
            )
        if not _fits(value, known[name]):
            raise ArgumentError(f"{name} of {subject} must be {inspect.formatannotation(known[name])}; given {value!r}")


def _fits(value: Any, annotation: Any) -> bool:
    try:
        TypeAdapter(annotation, config=_STRICT).validate_python(value)
        return True
    except ValidationError:
        return False
    # A type that no literal has.
    except PydanticSchemaGenerationError:
        return False
