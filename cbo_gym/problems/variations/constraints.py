"""Constraints: what actions must meet in expectation, as a keyword on any environment.

``gym.make("CBO/ToyGraph-v0", constraints=["X0 <= 3"])`` is ToyGraph where only actions with E[X0 | action] <= 3 count.
"""

from __future__ import annotations

import re
from dataclasses import replace

from cbo_gym.errors import ArgumentError, shown
from cbo_gym.problems.outcomes import COST, Outcomes
from cbo_gym.task import Constraint, ToldGraph

MOST_CONSTRAINTS = 100
FORM = re.compile(r"\s*(?P<node>[^<>=]*[^<>=\s])\s*(?P<side><=|>=)\s*(?P<threshold>[^<>=\s]+)\s*")


def constrain(outcomes: Outcomes, constraints: object = None) -> Outcomes:
    """The outcomes of a problem, with other constraints than its own.

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
        ArgumentError: if the text has another form, or the threshold is not a finite number.
    """
    found = FORM.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ArgumentError(f"cannot read the constraint {shown(text)}; write 'NODE <= NUMBER' or 'NODE >= NUMBER'")
    try:
        threshold = float(found["threshold"])
    except ValueError as error:
        raise ArgumentError(
            f"the threshold of the constraint {shown(text)} is not a number: {shown(found['threshold'])}"
        ) from error
    return Constraint(found["node"], "<=" if found["side"] == "<=" else ">=", threshold)


def require_told(outcomes: Outcomes, told: ToldGraph) -> None:
    """Refuse to leave constrained nodes, or objectives, out of what agents are told.

    Raises:
        ArgumentError: naming them.
    """
    if untold := [str(one) for one in outcomes.constraints if one.node not in told.nodes]:
        raise ArgumentError(f"the constraints {untold} are on nodes that agents are not told of: {list(told.nodes)}")
    if unknown := [str(one) for one in outcomes.objectives if one.name not in (*told.nodes, COST)]:
        raise ArgumentError(f"the objectives {unknown} are nodes that agents are not told of: {list(told.nodes)}")
