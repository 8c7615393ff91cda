"""Admission: check the labels of an untrusted results file before anything that they name is played.

Labels are data. They name installed agents and registered environments, with literals as parameters, of the declared
types. An import path is followed only if the person who checks the file allows that very path; a third-party
problem never is.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from pydantic import ConfigDict, PydanticSchemaGenerationError, TypeAdapter, ValidationError

from cbo_gym.agent_registry.finding import find_agent, known_agents
from cbo_gym.agent_registry.labels import Spec, is_import_path
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.envs.registry import EnvEntry, entries, find_entry
from cbo_gym.errors import ArgumentError, did_you_mean
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.modes import OUTCOME_KEYWORDS, feedback_class
from cbo_gym.problems.build import builder_of
from cbo_gym.problems.variations.graph_knowledge import GRAPH_KEYWORDS
from cbo_gym.problems.variations.instance import INSTANCE_KEYWORD

# Keyword -> its type; Any if no type is declared.
ParameterTypes = Mapping[str, Any]
# Keywords of every environment, which are checked when they are read.
GENERAL = (*GRAPH_KEYWORDS, *OUTCOME_KEYWORDS, INSTANCE_KEYWORD)
_LOOSE = ConfigDict(strict=True, arbitrary_types_allowed=True)


def admit(run: Run, allow: Iterable[str] = ()) -> tuple[Spec, Spec]:
    """Return the agent and the environment of a stored run, if their labels are allowed.

    Args:
        run: Run of any file.
        allow: Import paths of agents that may be played in addition to installed ones: ``"my_package:MyAgent"``.

    Raises:
        ArgumentError: if the agent or the environment may not be played, or does not declare a parameter.
    """
    return admit_agent(run.agent, tuple(allow)), admit_env(run.env)


def admit_agent(label: str, allow: Collection[str] = ()) -> Spec:
    """Return the agent that a label of a file names: an installed one, or one of the allowed import paths.

    No third-party code is run; third-party agents check their parameters in their own process.

    Raises:
        ArgumentError: if the label is neither, or has a parameter that the agent of this package does not declare.
    """
    spec = Spec.parse(label)
    if spec.name in zoo():
        _require(spec, parameter_types(find_agent(spec.name)), f"the agent {spec.name}")
    elif spec.name not in allow and (is_import_path(spec.name) or spec.name not in known_agents()):
        raise ArgumentError(
            f"the agent {spec.name!r} is not installed here{did_you_mean(spec.name, known_agents())}. Install it under "
            "this name, or allow an import path by naming it: --allow package.module:Class"
        )
    return spec


def admit_env(label: str) -> Spec:
    """Return the environment that a label names: a registered one with parameters of its mode and its problem.

    Raises:
        ArgumentError: if it is not registered, or has an undeclared parameter.
    """
    spec = Spec.parse(label)
    entry = find_entry(spec.name)
    if entry is None:
        hint = did_you_mean(spec.name, [entry.id for entry in entries()])
        raise ArgumentError(f"{spec.name!r} is not a registered environment, and no other one is played here{hint}")
    _require(spec, env_parameter_types(entry), spec.name)
    return spec


def env_parameter_types(entry: EnvEntry) -> ParameterTypes:
    """Return the keywords that a registered environment accepts in a label, with their types."""
    return {
        **parameter_types(builder_of(entry.problem)),
        **parameter_types(feedback_class(entry.mode), inspect.Parameter.KEYWORD_ONLY),
        **dict.fromkeys(GENERAL, Any),
    }


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


def _require(spec: Spec, known: ParameterTypes, what: str) -> None:
    for name, value in spec.parameters:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ArgumentError(
                f"{what} takes {', '.join(sorted(known)) or 'no parameters'}; given also {name!r}{hint}"
            )
        if not _fits(value, known[name]):
            raise ArgumentError(f"{name} of {what} must be {inspect.formatannotation(known[name])}; given {value!r}")


def _fits(value: Any, annotation: Any) -> bool:
    try:
        TypeAdapter(annotation, config=_LOOSE).validate_python(value)
        return True
    except ValidationError:
        return False
    # A type that no literal has.
    except PydanticSchemaGenerationError:
        return False
