"""Feedback modes: what an agent chooses in a round, and what it observes. One folder per mode, named after it.

The folder of a mode has an interface, from which a study is made; dynamics, which an environment plays; and an oracle,
unless the shared oracle gives its expected rewards. Its ``__init__.py`` names them ``INTERFACE``, ``DYNAMICS`` and
``ORACLE``.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

from cbo_gym.actions import Costs
from cbo_gym.errors import ArgumentError, did_you_mean, short_repr, shorten
from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.base.interface import Interface
from cbo_gym.modes.oracles import Oracle
from cbo_gym.problems import Problem, build_problem
from cbo_gym.problems.build import builder_parameters
from cbo_gym.problems.recorded import RecordedOptimum
from cbo_gym.problems.variations.constraints import constrain, require_known
from cbo_gym.problems.variations.graph_knowledge import GRAPH_KEYWORDS, with_knowledge
from cbo_gym.problems.variations.instance import INSTANCE_KEYWORD, transform_problem
from cbo_gym.task import Mode

# Keywords of the outcomes of rounds, which every problem takes.
OUTCOME_KEYWORDS = ("constraints", "costs")

__all__ = ["make_dynamics", "oracle_for"]


def classes_of(mode: Mode | str) -> Any:
    """Return the folder of a mode as a module, with the classes ``INTERFACE``, ``DYNAMICS`` and ``ORACLE``."""
    names = [known_mode.value for known_mode in Mode]
    if not isinstance(mode, str) or mode not in names:
        raise ArgumentError(
            f"mode must be one of {', '.join(names)}; given {short_repr(mode)}{did_you_mean(mode, names)}"
        )
    return import_module(f"cbo_gym.modes.{Mode(mode).value}")


def oracle_for(dynamics: Dynamics, recorded: RecordedOptimum | None = None) -> Oracle:
    """Return the oracle of a problem in a mode."""
    return classes_of(dynamics.mode).ORACLE(dynamics, recorded=recorded)


def make_dynamics(problem: str | Problem, mode: Mode | str, **parameters: Any) -> Dynamics:
    """Return a problem in a mode.

    Args:
        problem: the Problem, the import path ``"package.module:function"`` of its builder, or a YAML file's path.
        mode: the feedback mode.
        parameters: keyword arguments of the mode, of the problem's builder, of
            :func:`cbo_gym.problems.variations.constraints.constrain` (the constraints of an action), and of
            :func:`cbo_gym.problems.variations.graph_knowledge.with_knowledge` (what agents know of the graph);
            ``costs`` of rounds, as :meth:`cbo_gym.actions.Costs.read` takes them, None for none; and ``instance``, see
            :mod:`cbo_gym.problems.variations.instance`.

    Raises:
        ArgumentError: if the problem cannot be built or does not fit the mode, or a parameter is unknown.
    """
    dynamics_class: type[Dynamics] = classes_of(mode).DYNAMICS
    instance = parameters.pop(INSTANCE_KEYWORD, 0)
    graph_arguments = {name: parameters.pop(name) for name in GRAPH_KEYWORDS if name in parameters}
    outcome_arguments = {name: parameters.pop(name) for name in OUTCOME_KEYWORDS if name in parameters}
    mode_keywords = dynamics_class.keywords()
    keywords = [*mode_keywords, *builder_parameters(problem)]
    if unknown := sorted(set(parameters).difference(keywords)):
        shared_keywords = (*OUTCOME_KEYWORDS, *GRAPH_KEYWORDS, INSTANCE_KEYWORD)
        hints = "".join(did_you_mean(name, [*keywords, *shared_keywords]) for name in unknown)
        raise ArgumentError(
            f"{_name(problem)} in {mode} mode has no parameter {', '.join(unknown)}{hints or ';'} it takes "
            f"{', '.join(sorted(keywords)) or 'none'}, and as every environment {', '.join(shared_keywords)}; "
            "gym.make takes the number of rounds as max_episode_steps, evaluate and sweep take it as horizon"
        )
    built = build_problem(problem, **{key: value for key, value in parameters.items() if key not in mode_keywords})
    built = _with_outcomes(built, outcome_arguments)
    mode_arguments = {key: value for key, value in parameters.items() if key in mode_keywords}
    if built.outcomes.objectives:
        require_several_objectives(built.name, dynamics_class)
        if instance != 0:
            raise ArgumentError(f"instances transform one reward; {built.name} has several objectives: set instance=0")
    # The published problem is built first, so that errors have the names that the user knows.
    truth = dynamics_class(built, **mode_arguments)
    if (transformed := transform_problem(built, dynamics_class.instance_rules, instance)) is not built:
        truth = dynamics_class(transformed, **mode_arguments)
    if (known_problem := with_knowledge(built, **graph_arguments)) is built:
        return truth
    # Agents with other knowledge of the graph play the same instance; regret is measured on the true graph.
    known_instance = transform_problem(known_problem, dynamics_class.instance_rules, instance, built)
    dynamics = dynamics_class(known_instance, **mode_arguments)
    require_known(known_problem.outcomes, dynamics.knowledge)
    dynamics.truth = truth
    return dynamics


def require_several_objectives(name: str, interface: type[Interface]) -> None:
    """Raise ArgumentError unless a mode supports several objectives, as the problem of this name has."""
    if not interface.several_objectives:
        supported = [mode.value for mode in Mode if classes_of(mode).INTERFACE.several_objectives]
        raise ArgumentError(
            f"{name} has several objectives, which are played in the modes {', '.join(supported)}; "
            f"in {interface.mode} mode a round has one reward"
        )


def _with_outcomes(problem: Problem, keywords: dict[str, Any]) -> Problem:
    """Return the problem with the constraints and costs of ``keywords``, if any."""
    outcomes = constrain(
        problem.outcomes, keywords.get("constraints"), [variable.name for variable in problem.scm.variables]
    )
    if "costs" in keywords:
        outcomes = replace(outcomes, costs=None if keywords["costs"] is None else Costs.read(keywords["costs"]))
    return problem if outcomes is problem.outcomes else replace(problem, outcomes=outcomes)


def _name(problem: str | Problem) -> str:
    """Return the name of a problem for errors: without the module's path if it is one of this package."""
    if isinstance(problem, Problem):
        return problem.name
    return problem.partition(":")[2] if problem.startswith("cbo_gym.") else shorten(problem)
