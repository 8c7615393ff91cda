"""Admission: check the labels in an untrusted file of results before anything that they name is played.

Agents must be installed or allowed, see :mod:`cbo_gym.agent_registry.admission`. Environments must be registered, so
the problems of third parties are never played.
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

# Parameters of every environment; making the environment checks their values.
GENERAL_PARAMETERS = (*GRAPH_KEYWORDS, *OUTCOME_KEYWORDS, INSTANCE_KEYWORD)
# Limits of the process that makes an environment that a file names.
MAKING_LIMITS = Limits(time_limit=300, memory_limit=8192)


def admit(run: Run, allow: Iterable[str] = ()) -> tuple[Spec, Spec]:
    """Return the agent and the environment of a stored run, if their labels are allowed.

    Args:
        run: Run of an untrusted file.
        allow: Import paths of agents that may be played in addition to installed ones: ``"my_package:MyAgent"``.
    """
    return admit_agent(run.agent, tuple(allow)), admit_env(run.env)


def admit_env(label: str) -> Spec:
    """Parse the label of a registered environment; raise ArgumentError for others and for undeclared parameters."""
    spec = Spec.parse(label)
    entry = find_entry(spec.name)
    if entry is None:
        hint = did_you_mean(spec.name, [entry.id for entry in entries()])
        raise ArgumentError(f"{spec.name!r} is not a registered environment, and no other one is played here{hint}")
    require_parameters(spec, env_parameter_types(entry), spec.name)
    return spec


def env_parameter_types(entry: EnvEntry) -> ParameterTypes:
    """Return the parameters that a registered environment accepts in a label, with their types."""
    return {
        **parameter_types(import_builder(entry.problem)),
        **parameter_types(classes_of(entry.mode).DYNAMICS, inspect.Parameter.KEYWORD_ONLY),
        **dict.fromkeys(GENERAL_PARAMETERS, Any),
    }


def guarded_cells() -> Callable[[Spec, int, int, str], Cell]:
    """Return a function like :func:`cell_of` that is safe for environments that an untrusted file names.

    The function makes an environment once for all seeds, in a process with limits of time and memory.
    """
    worker = Worker(MAKING_LIMITS)

    @cache
    def cell_without_seed(env: Spec, horizon: int) -> Cell:
        try:
            return Cell(env, 0, "", *worker.call(_describe_cell, (env, horizon)))
        except DiedError as error:
            raise ArgumentError(f"cannot make the environment {env}: {last_line(str(error))}") from error

    return lambda env, seed, horizon, secret: cell_without_seed(env, horizon)._replace(seed=seed, secret=secret)


def _describe_cell(arguments: tuple[Spec, int]) -> tuple[str, int, object]:
    """Return mode, horizon and problem of an environment's cell."""
    env, horizon = arguments
    return cell_of(env, 0, horizon)[3:]
