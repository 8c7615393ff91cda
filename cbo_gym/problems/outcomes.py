"""Outcomes: what counts of a round."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any

from cbo_gym.actions import Costs
from cbo_gym.arguments import is_finite_number
from cbo_gym.errors import ArgumentError, did_you_mean, shown
from cbo_gym.scm import Floats, System
from cbo_gym.task import Constraint

SIDES = ("<=", ">=")


@dataclass(frozen=True)
class Outcomes:
    """What a problem asks of the rounds that are played: the place for all of it, beside the objective too.

    Args:
        objective: the node whose expected value is maximised.
        constraints: what the expected values of other observed nodes must meet.
        costs: what rounds cost; None where nothing is paid. They are no part of the reward.
    """

    objective: str
    constraints: tuple[Constraint, ...] = ()
    costs: Costs | None = None

    @cached_property
    def reward(self) -> Callable[[Mapping[str, Floats]], Floats]:
        """Called with the values of rounds, by variable: their rewards, of the rounds' shape."""
        return itemgetter(self.objective)


@dataclass(frozen=True)
class PlayedSlice(Outcomes):
    """The objective of the slice that is played, in a problem with slices.

    Args:
        bare: the objective's name in a slice, under which a round gives it for the slice that is played.
    """

    bare: str = field(kw_only=True)

    @cached_property
    def reward(self) -> Callable[[Mapping[str, Floats]], Floats]:
        return itemgetter(self.bare)


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
