"""Admission: check the labels of an untrusted results file before anything that they name is played.

Labels are data. They name installed agents and registered environments, see
:mod:`cbo_gym.agent_registry.admission`; a third-party problem is never played.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from cbo_gym._util.processes.channel import DiedError
from cbo_gym._util.processes.worker import Limits, Worker
from cbo_gym.agent_registry.admission import ParameterTypes, admit_agent, parameter_types, require_parameters
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.envs.registry import EnvEntry, entries, find_entry
from cbo_gym.errors import ArgumentError, did_you_mean
from cbo_gym.evaluation.play.grid import Cell, cell_of
from cbo_gym.evaluation.runs.results import Run, last_line
from cbo_gym.modes import OUTCOME_KEYWORDS, classes_of
from cbo_gym.problems.build import import_builder
from cbo_gym.problems.variations.graph_knowledge import GRAPH_KEYWORDS
from cbo_gym.problems.variations.instance import INSTANCE_KEYWORD

# Keywords of every environment, which are checked when they are read.
GENERAL = (*GRAPH_KEYWORDS, *OUTCOME_KEYWORDS, INSTANCE_KEYWORD)
# Limits of making an environment that a file names.
MAKING = Limits(time_limit=300, memory_limit=8192)


def admit(run: Run, allow: Iterable[str] = ()) -> tuple[Spec, Spec]:
    """Return the agent and the environment of a stored run, if their labels are allowed.

    Args:
        run: Run of any file.
        allow: Import paths of agents that may be played in addition to installed ones: ``"my_package:MyAgent"``.

    Raises:
        ArgumentError: if the agent or the environment may not be played, or does not declare a parameter.
    """
    return admit_agent(run.agent, tuple(allow)), admit_env(run.env)


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
    require_parameters(spec, env_parameter_types(entry), spec.name)
    return spec


def env_parameter_types(entry: EnvEntry) -> ParameterTypes:
    """Return the keywords that a registered environment accepts in a label, with their types."""
    return {
        **parameter_types(import_builder(entry.problem)),
        **parameter_types(classes_of(entry.mode).DYNAMICS, inspect.Parameter.KEYWORD_ONLY),
        **dict.fromkeys(GENERAL, Any),
    }


def guarded_cells() -> Callable[[Spec, int, int, str], Cell]:
    """Return a function like :func:`cell_of` for environments that an untrusted file names.

    The function makes each environment once for all seeds, in a process with limits of time and memory.
    """
    worker = Worker(MAKING)

    @cache
    def first(env: Spec, horizon: int) -> Cell:
        try:
            return Cell(env, 0, "", *worker.call(_describe_cell, (env, horizon)))
        except DiedError as error:
            raise ArgumentError(f"cannot make the environment {env}: {last_line(str(error))}") from error

    return lambda env, seed, horizon, secret: first(env, horizon)._replace(seed=seed, secret=secret)


def _describe_cell(arguments: tuple[Spec, int]) -> tuple[str, int, object]:
    env, horizon = arguments
    return cell_of(env, 0, horizon)[3:]
