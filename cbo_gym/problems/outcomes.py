"""The aims of a problem: its objectives, constraints and costs, with the checks that they fit the system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np

from cbo_gym._util.arguments import is_finite_number
from cbo_gym.actions import Costs
from cbo_gym.errors import ArgumentError, did_you_mean, short_repr
from cbo_gym.scm import Floats
from cbo_gym.scm.system import Structure
from cbo_gym.task import Constraint, Objective

SIDES = ("<=", ">=")
DIRECTIONS = ("maximize", "minimize")
# Name of the objective that is the cost of the round rather than a variable.
COST = "cost"


@dataclass(frozen=True)
class Outcomes:
    """The aims of a problem: its objectives, its constraints and its costs.

    Args:
        objective: the node whose expected value is maximised.
        constraints: limits to the expected values of other observed nodes.
        costs: the prices of rounds; None if rounds are free. Costs are not part of the reward, unless they are an
            objective.
        objectives: all objectives, including ``objective``, of a problem with several; otherwise empty.
    """

    objective: str
    constraints: tuple[Constraint, ...] = ()
    costs: Costs | None = None
    objectives: tuple[Objective, ...] = ()

    @cached_property
    def reward(self) -> Callable[[Mapping[str, Floats]], Floats]:
        """Function from the values of rounds, by variable, to their rewards, an array of the same shape."""
        return itemgetter(self.objective)

    def several(self, values: Mapping[str, Floats], cost: Floats) -> dict[str, Floats]:
        """Return the values of :attr:`objectives` in rounds, by name; empty for a problem with a single objective.

        Args:
            values: values of the rounds, by variable, numbers or arrays.
            cost: costs of the rounds.
        """
        return {
            objective.name: cost if objective.name == COST else values[objective.name] for objective in self.objectives
        }

    def rewards(self, values: Mapping[str, Floats], shape: tuple[int, ...]) -> np.ndarray:
        """Return the reward vectors of rounds: the objectives' values, negated for objectives to minimise.

        Args:
            values: values of the objectives, by name.
            shape: shape of the rounds.

        Returns:
            An array of shape ``(*shape, number of objectives)``.
        """
        rewards = np.empty((*shape, len(self.objectives)))
        for index, objective in enumerate(self.objectives):
            rewards[..., index] = objective.sign * values[objective.name]
        return rewards

    @cached_property
    def has_cost_objective(self) -> bool:
        """Whether the cost of a round is an objective."""
        return any(objective.name == COST for objective in self.objectives)


@dataclass(frozen=True)
class PlayedSlice(Outcomes):
    """Outcomes of a problem with slices, whose reward is the objective in the time slice being played.

    Args:
        bare: name of the objective without its slice, under which a round returns the value in the slice being played.
    """

    bare: str = field(kw_only=True)

    @cached_property
    def reward(self) -> Callable[[Mapping[str, Floats]], Floats]:
        return itemgetter(self.bare)


def check_constraints(name: str, constraints: Iterable[Any], scm: Structure) -> None:
    """Check that constraints fit a system.

    Raises:
        ArgumentError: if the node of a constraint is unknown, latent or the reward, the side is not one of
            :data:`SIDES`, or the threshold is not finite.
    """
    allowed = [node for node in scm.nodes if node != scm.reward]
    for constraint in constraints:
        if not isinstance(constraint, Constraint):
            raise ArgumentError(f"{name}: constraints must be of type Constraint; given {short_repr(constraint)}")
        if constraint.node not in allowed:
            if constraint.node == scm.reward:
                reason = "is the reward, which is optimised"
            else:
                reason = "is latent" if constraint.node in scm.all_names else "is unknown"
            raise ArgumentError(
                f"{name}: a constraint is on the expected value of an observed node; "
                f"{short_repr(constraint.node)} {reason}; choose from {allowed}{did_you_mean(constraint.node, allowed)}"
            )
        if constraint.side not in SIDES or not is_finite_number(constraint.threshold):
            raise ArgumentError(
                f"{name}: a constraint has a side, '<=' or '>=', and a finite threshold; "
                f"given {short_repr(constraint.side)} and {constraint.threshold!r}"
            )


def check_objectives(outcomes: Outcomes, scm: Structure, settable: Iterable[str]) -> None:
    """Check that several objectives fit the system; ``settable`` are the variables that interventions may set.

    Raises:
        ArgumentError: if there is a single objective, an objective is repeated, is not an observed variable or can be
            set, a direction is not one of :data:`DIRECTIONS`, the cost is an objective but rounds are free, the
            system's reward is not an objective, or there are constraints.
    """
    if not outcomes.objectives:
        return
    names = [objective.name for objective in outcomes.objectives if isinstance(objective, Objective)]
    if len(set(names)) < max(2, len(outcomes.objectives)):
        raise ArgumentError(f"objectives must be two or more different objectives of type Objective; "
                            f"given {outcomes.objectives}")  # fmt: skip
    if unknown := [objective.direction for objective in outcomes.objectives if objective.direction not in DIRECTIONS]:
        raise ArgumentError(
            f"the direction of an objective is one of {DIRECTIONS}; given {short_repr(unknown[0])}"
            f"{did_you_mean(unknown[0], DIRECTIONS)}"
        )
    allowed = [node for node in scm.nodes if node not in set(settable)]
    if unsuitable := [node for node in names if node not in allowed and node != COST]:
        raise ArgumentError(
            f"objectives are observed variables that cannot be set, or {COST!r}; given "
            f"{short_repr(unsuitable[0])}; choose from {allowed}{did_you_mean(unsuitable[0], allowed)}"
        )
    if outcomes.has_cost_objective and (outcomes.costs is None or COST in scm.nodes):
        raise ArgumentError(f"the objective {COST!r} needs costs, and no variable may have this name")
    if outcomes.objective not in names:
        raise ArgumentError(f"the system's reward {outcomes.objective!r} must be among the objectives {names}")
    if outcomes.constraints:
        raise ArgumentError("a problem with several objectives cannot have constraints; make them objectives")
