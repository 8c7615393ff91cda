"""Outcomes: objectives, constraints and costs of a problem."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np

from cbo_gym.actions import Costs
from cbo_gym.arguments import is_finite_number
from cbo_gym.errors import ArgumentError, did_you_mean, shown
from cbo_gym.scm import Floats
from cbo_gym.scm.system import Structure
from cbo_gym.task import Constraint, Objective

SIDES = ("<=", ">=")
DIRECTIONS = ("maximize", "minimize")
COST = "cost"  # the objective that is not a variable


@dataclass(frozen=True)
class Outcomes:
    """The aims of a problem: its objectives, its constraints and its costs.

    Args:
        objective: the node whose expected value is maximised.
        constraints: limits to the expected values of other observed nodes.
        costs: the prices of rounds; None if rounds are free. Costs are not part of the reward, unless they are an
            objective.
        objectives: all objectives if there are several, ``objective`` among them; else empty.
    """

    objective: str
    constraints: tuple[Constraint, ...] = ()
    costs: Costs | None = None
    objectives: tuple[Objective, ...] = ()

    @cached_property
    def reward(self) -> Callable[[Mapping[str, Floats]], Floats]:
        """Function of the values of rounds, by variable, that returns their rewards, of the rounds' shape."""
        return itemgetter(self.objective)

    def several(self, values: Mapping[str, Floats], cost: Floats) -> dict[str, Floats]:
        """Return the objectives' values in rounds, by name, where there are several; of the rounds' shape or numbers.

        Args:
            values: values of the rounds, by variable.
            cost: costs of the rounds.
        """
        return {
            objective.name: cost if objective.name == COST else values[objective.name] for objective in self.objectives
        }

    def rewards(self, found: Mapping[str, Floats], shape: tuple[int, ...]) -> np.ndarray:
        """Return the reward vectors of these values, of shape ``(*shape, number of objectives)``."""
        rewards = np.empty((*shape, len(self.objectives)))
        for index, objective in enumerate(self.objectives):
            rewards[..., index] = objective.sign * found[objective.name]
        return rewards

    @property
    def is_paid_for(self) -> bool:
        """Whether the cost of a round is an objective."""
        return any(objective.name == COST for objective in self.objectives)


@dataclass(frozen=True)
class PlayedSlice(Outcomes):
    """The objective of the slice being played, in a problem with slices.

    Args:
        bare: Name of the objective in a slice; a round returns its value in the slice being played under this name.
    """

    bare: str = field(kw_only=True)

    @cached_property
    def reward(self) -> Callable[[Mapping[str, Floats]], Floats]:
        return itemgetter(self.bare)


def check_constraints(name: str, constraints: Iterable[Any], scm: Structure) -> None:
    """Refuse constraints that do not fit a system.

    Raises:
        ArgumentError: for a latent or unknown node, the reward, another side, or a threshold that is not finite.
    """
    allowed = [node for node in scm.nodes if node != scm.reward]
    for constraint in constraints:
        if not isinstance(constraint, Constraint):
            raise ArgumentError(f"{name}: constraints must be of type Constraint; given {shown(constraint)}")
        if constraint.node not in allowed:
            reason = "is latent" if constraint.node in scm.all_names else "is unknown"
            reason = "is the reward, which is optimised" if constraint.node == scm.reward else reason
            raise ArgumentError(
                f"{name}: a constraint is on the expected value of an observed node; "
                f"{shown(constraint.node)} {reason}; choose from {allowed}{did_you_mean(constraint.node, allowed)}"
            )
        if constraint.side not in SIDES or not is_finite_number(constraint.threshold):
            raise ArgumentError(
                f"{name}: a constraint has a side, '<=' or '>=', and a finite threshold; "
                f"given {shown(constraint.side)} and {constraint.threshold!r}"
            )


def check_objectives(name: str, outcomes: Outcomes, scm: Structure, settable: Iterable[str]) -> None:
    """Refuse several objectives that do not fit a system.

    Args:
        name: name of the problem.
        outcomes: with several objectives or none.
        scm: the system.
        settable: variables that interventions may set.

    Raises:
        ArgumentError: for a single one, one that comes twice, is not an observed variable or can be set, another
            direction, costs without prices, constraints as well, or if the system's reward is not among them.
    """
    names = [objective.name for objective in outcomes.objectives if isinstance(objective, Objective)]
    if not outcomes.objectives:
        return
    if len(names) < max(2, len(outcomes.objectives)) or len(set(names)) < len(names):
        raise ArgumentError(f"{name}: objectives must be two or more different Objective; given {outcomes.objectives}")
    if wrong := [objective.direction for objective in outcomes.objectives if objective.direction not in DIRECTIONS]:
        raise ArgumentError(
            f"{name}: the direction of an objective is one of {DIRECTIONS}; given {shown(wrong[0])}"
            f"{did_you_mean(wrong[0], DIRECTIONS)}"
        )
    allowed = [node for node in scm.nodes if node not in set(settable)]
    if strangers := [node for node in names if node not in allowed and node != COST]:
        raise ArgumentError(
            f"{name}: objectives are observed variables that cannot be set, or {COST!r}; given {shown(strangers[0])}, "
            f"choose from {allowed}{did_you_mean(strangers[0], allowed)}"
        )
    if outcomes.is_paid_for and (outcomes.costs is None or COST in scm.nodes):
        raise ArgumentError(f"{name}: the objective {COST!r} needs costs, and no variable of that name")
    if outcomes.objective not in names:
        raise ArgumentError(f"{name}: the system's reward {outcomes.objective!r} must be among the objectives {names}")
    if outcomes.constraints:
        raise ArgumentError(f"{name}: constraints cannot be put on a problem with several objectives; make them one")
