"""Constraining: what actions must meet in expectation, as a keyword on any environment.

``gym.make("CBO/ToyGraph-v0", constraints=["X0 <= 3"])`` is ToyGraph where only actions with E[X0 | action] <= 3 count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from cbo_gym.arguments import is_finite_number
from cbo_gym.errors import ArgumentError, did_you_mean, shown
from cbo_gym.problems.outcomes import Outcomes
from cbo_gym.scm import System
from cbo_gym.task import Constraint, ToldGraph

SIDES = ("<=", ">=")
MOST_CONSTRAINTS = 100
FORM = re.compile(r"\s*(?P<node>[^<>=]*[^<>=\s])\s*(?P<side><=|>=)\s*(?P<threshold>[^<>=\s]+)\s*")


def constrain(outcomes: Outcomes, constraints: object = None) -> Outcomes:
    """What a problem asks, with other constraints than its own.

    Args:
        outcomes: of the problem.
        constraints: at most 100 texts ``"node <= number"`` or ``"node >= number"``, one a constraint; ``[]`` for none;
            None for the problem's own.

    Raises:
        ArgumentError: if it is no list of such texts.
    """
    if constraints is None:
        return outcomes
    if not isinstance(constraints, list | tuple) or len(constraints) > MOST_CONSTRAINTS:
        raise ArgumentError(
            f"constraints must be a list of at most {MOST_CONSTRAINTS} texts such as 'X <= 1.5'; "
            f"given {shown(constraints)}"
        )
    return replace(outcomes, constraints=tuple(map(read_constraint, constraints)))


def read_constraint(text: object) -> Constraint:
    """The constraint that a text names.

    Raises:
        ArgumentError: if the text has another form, or the threshold is no finite number.
    """
    found = FORM.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ArgumentError(f"cannot read the constraint {shown(text)}; write 'NODE <= NUMBER' or 'NODE >= NUMBER'")
    try:
        threshold = float(found["threshold"])
    except ValueError as error:
        raise ArgumentError(
            f"the threshold of the constraint {shown(text)} is no number: {shown(found['threshold'])}"
        ) from error
    return Constraint(found["node"], "<=" if found["side"] == "<=" else ">=", threshold)


def check_constraints(name: str, constraints: Iterable[Any], scm: System) -> None:
    """Refuse constraints that do not fit a system.

    Raises:
        ArgumentError: for a latent or unknown node, the reward, another side, or a threshold that is not finite.
    """
    allowed = [node for node in scm.nodes if node != scm.reward]
    for one in constraints:
        if not isinstance(one, Constraint):
            raise ArgumentError(f"{name}: constraints must be of type Constraint; given {shown(one)}")
        if one.node not in allowed:
            what = "is latent" if one.node in {v.name for v in scm.variables} else "is unknown"
            what = "is the reward, which is maximised" if one.node == scm.reward else what
            raise ArgumentError(
                f"{name}: a constraint is on the expected value of an observed node; {shown(one.node)} {what}; choose "
                f"from {allowed}{did_you_mean(one.node, allowed)}"
            )
        if one.side not in SIDES or not is_finite_number(one.threshold):
            raise ArgumentError(
                f"{name}: a constraint has a side, '<=' or '>=', and a finite threshold; given {shown(one.side)} and "
                f"{one.threshold!r}"
            )


def require_told(outcomes: Outcomes, told: ToldGraph) -> None:
    """Refuse to leave constrained nodes out of what agents are told.

    Raises:
        ArgumentError: naming the constraints.
    """
    if untold := [str(one) for one in outcomes.constraints if one.node not in told.nodes]:
        raise ArgumentError(f"the constraints {untold} are on nodes that agents are not told of: {list(told.nodes)}")
