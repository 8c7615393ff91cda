"""Feedback: what an action means and what comes back. One pure module per mode, named after it, without sessions."""

from __future__ import annotations

import inspect
from dataclasses import replace
from importlib import import_module
from typing import Any

from cbo_gym.actions import Costs
from cbo_gym.errors import ArgumentError, did_you_mean, shortened, shown
from cbo_gym.feedback.base import Feedback, Region
from cbo_gym.problems import Problem, build_problem
from cbo_gym.problems.build import builder_parameters
from cbo_gym.problems.variations.constraints import constrain, require_known
from cbo_gym.problems.variations.graph_knowledge import GRAPH_KEYWORDS, with_knowledge
from cbo_gym.problems.variations.instance import INSTANCE_KEYWORD, transform_problem
from cbo_gym.task import Mode

OUTCOME_KEYWORDS = ("constraints", "costs")  # what is asked of rounds, of any problem

__all__ = ["OUTCOME_KEYWORDS", "Feedback", "Region", "feedback_class", "make_feedback"]


def feedback_class(mode: Mode | str) -> type[Feedback]:
    """The class of a mode: what its module calls ``FEEDBACK``.

    Raises:
        ArgumentError: if there is no such mode.
    """
    known = [known.value for known in Mode]
    if not isinstance(mode, str) or mode not in known:
        raise ArgumentError(f"mode must be one of {', '.join(known)}; given {shown(mode)}{did_you_mean(mode, known)}")
    return import_module(f"cbo_gym.feedback.{Mode(mode).value}").FEEDBACK


def make_feedback(problem: str | Problem, mode: Mode | str, **parameters: Any) -> Feedback:
    """A problem in a mode.

    Args:
        problem: the Problem, the import path ``"package.module:function"`` of its builder, or a YAML file's path.
        mode: how it is played.
        parameters: keyword arguments of the mode, of the problem's builder, of
            :func:`cbo_gym.problems.variations.constraints.constrain`: what an action must meet, and of
            :func:`cbo_gym.problems.variations.graph_knowledge.tell`: what agents are told of the graph; ``costs`` of
            rounds, as :meth:`cbo_gym.actions.Costs.read` takes them, None for none; and ``instance``, see
            :mod:`cbo_gym.problems.variations.instance`.

    Raises:
        ArgumentError: if the problem cannot be built or does not fit the mode, or a parameter is neither's.
    """
    kind = feedback_class(mode)
    instance = parameters.pop(INSTANCE_KEYWORD, 0)
    of_graph = {name: parameters.pop(name) for name in GRAPH_KEYWORDS if name in parameters}
    asked = {name: parameters.pop(name) for name in OUTCOME_KEYWORDS if name in parameters}
    own = [name for name, p in inspect.signature(kind).parameters.items() if p.kind is p.KEYWORD_ONLY]
    known = [*own, *builder_parameters(problem)]
    if unknown := sorted(set(parameters) - set(known)):
        of_all = (*OUTCOME_KEYWORDS, *GRAPH_KEYWORDS, INSTANCE_KEYWORD)
        hints = "".join(did_you_mean(name, [*known, *of_all]) for name in unknown)
        raise ArgumentError(
            f"{_name(problem)} in {mode} mode has no parameter {', '.join(unknown)}{hints or ';'} it takes "
            f"{', '.join(sorted(known)) or 'none of its own'}, and as every environment {', '.join(of_all)}"
        )
    built = build_problem(problem, **{key: value for key, value in parameters.items() if key not in own})
    built = _asking(built, asked)
    of_mode = {key: value for key, value in parameters.items() if key in own}
    _require_one_objective(built, kind, instance)
    truth = kind(built, **of_mode)  # which checks names as the user knows them
    if (transformed := transform_problem(built, kind.mode, instance)) is not built:
        truth = kind(transformed, **of_mode)
    if (known_problem := with_knowledge(built, **of_graph)) is built:
        return truth
    feedback = kind(transform_problem(known_problem, kind.mode, instance, built), **of_mode)
    require_known(known_problem.outcomes, feedback.knowledge)
    feedback.truth = truth
    return feedback


def _require_one_objective(problem: Problem, kind: type[Feedback], instance: object) -> None:
    """Refuse several objectives where they are not played."""
    if not problem.outcomes.objectives:
        return
    if not kind.several_objectives:
        played = [mode.value for mode in Mode if feedback_class(mode).several_objectives]
        raise ArgumentError(
            f"{problem.name} has several objectives, which are played in the modes {', '.join(played)}; what "
            f"{kind.mode} mode makes of a round is one number"
        )
    if instance != 0:
        raise ArgumentError(f"instances turn one reward; {problem.name} has several objectives: leave instance at 0")


def _asking(problem: Problem, asked: dict[str, Any]) -> Problem:
    """The problem with other outcomes than its own, as far as any are asked for."""
    outcomes = constrain(problem.outcomes, asked.get("constraints"), [one.name for one in problem.scm.variables])
    if "costs" in asked:
        outcomes = replace(outcomes, costs=None if asked["costs"] is None else Costs.read(asked["costs"]))
    return problem if outcomes is problem.outcomes else replace(problem, outcomes=outcomes)


def _name(problem: str | Problem) -> str:
    """The user's name for it: of a system of this package no function's path."""
    if isinstance(problem, Problem):
        return problem.name
    return problem.partition(":")[2] if problem.startswith("cbo_gym.") else shortened(problem)
