"""Outcomes: what counts of a round."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter

from cbo_gym.actions import Costs
from cbo_gym.scm import Floats
from cbo_gym.task import Constraint


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
