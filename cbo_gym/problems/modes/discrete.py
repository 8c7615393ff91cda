"""A problem's data for discrete mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cbo_gym._util.arguments import is_finite_number
from cbo_gym.errors import ArgumentError
from cbo_gym.problems.base import ModeData, ProblemStatement
from cbo_gym.problems.transform import ARMS, Transform

MAX_ARMS = 2**14


@dataclass(frozen=True)
class Arms(ModeData):
    """The interventions that may be played in the discrete mode of a problem.

    The reward of a problem with arms is in [0, 1], as bandit algorithms require.

    Args:
        interventions: each a mapping from variables to native values; ``{}`` is to only observe.
    """

    interventions: Sequence[Mapping[str, float]]

    def check(self, problem: ProblemStatement) -> None:
        problem.require_settable(frozenset().union(*self.interventions))
        if len(self.interventions) > MAX_ARMS:
            raise ArgumentError(f"at most {MAX_ARMS} arms can be played; given {len(self.interventions)}")
        for index, arm in enumerate(self.interventions):
            if not all(map(is_finite_number, arm.values())):
                raise ArgumentError(f"arm {index} must set variables to finite numbers; given {dict(arm)}")
        if len({frozenset(arm.items()) for arm in self.interventions}) < len(self.interventions):
            raise ArgumentError(f"the arms must be different interventions; two of {len(self.interventions)} agree")

    def transform(self, transform: Transform) -> Arms:
        return Arms(transform.shuffle([transform.values(arm) for arm in self.interventions], ARMS))


def arms_of(problem: ProblemStatement) -> Sequence[Mapping[str, float]]:
    """Return the interventions of a problem's discrete mode; empty if it has no such mode."""
    arms = problem.data(Arms)
    return arms.interventions if arms else ()
