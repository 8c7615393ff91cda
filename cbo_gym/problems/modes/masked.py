"""A problem's data for masked mode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cbo_gym.actions import Interval
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.problems.base import ModeData, Problem
from cbo_gym.problems.transform import Transform
from cbo_gym.scm import Component, DistributionFamily


@dataclass(frozen=True)
class SuperArms(ModeData):
    """Base arms with random signals, some of which a super arm selects, for the masked mode of a problem.

    The soft parameters of the system are the super arm, 0 or 1 for each base arm.

    Args:
        size: the largest number s of base arms in a super arm.
        exogenous: the variables that hold the selected signals, in the order of the arms.
        signal_range: an interval that holds every signal.
        signal_family: the family from which the signals' distributions were drawn; None if agents do not know it.
        components: the functions that occur in the equations, each times an unknown factor; empty if agents do not know
            them.
    """

    size: int
    exogenous: Sequence[str]
    signal_range: Interval = (0.0, 1.0)
    signal_family: DistributionFamily | None = None
    components: Sequence[Component] = ()

    def check(self, problem: Problem) -> None:
        q = problem.scm.action_dim
        if not (len(self.exogenous) == q and self.size in range(1, q + 1)):
            raise ArgumentError(
                f"a super arm must hold at least 1 and at most all of the {q} base arms, each with a "
                f"signal; given the size {short_repr(self.size)} and {len(self.exogenous)} signals"
            )

    def transform(self, transform: Transform) -> SuperArms:
        return replace(self, exogenous=transform.reorder([transform.names[name] for name in self.exogenous]))
