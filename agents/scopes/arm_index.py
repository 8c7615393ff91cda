"""The value U_i of arm i in the index by which CoCaBO chooses a scope: two definitions with the same methods."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from cbo_gym.agents.scopes.scope_arm import ScopeArm
from cbo_gym.task import Action

# Limits of the number of first plays of an arm; within these, all first plays take one round in FIRST_SHARE.
MIN_FIRST, MAX_FIRST, FIRST_SHARE = 8, 16, 4


class HighestBounds:
    """Average, over the contexts of all rounds, of the highest upper bound under the arm's current model.

    It bounds the arm's best reward even if the arm was played with bad values, and compares arms in equal contexts.
    beta and rho grow with the rounds of all arms, so that every arm is played again eventually.

    Attributes:
        filling: number of an arm's first plays with values that fill its box evenly; later plays maximise the bound.
        within: width of the bounds that choose values inside an arm, in units of the bounds that compare arms.
    """

    filling = 5
    # Chosen, with rho and the kernel, on CBO/CoCaAligned-v0, seeds 100 to 129.
    within = 2.0

    def first_plays(self, arms: int, horizon: int) -> int:
        """Return the number of plays of each of ``arms`` arms before they are compared."""
        return min(max(horizon // (FIRST_SHARE * arms), MIN_FIRST), MAX_FIRST)

    def plays(self, arm: ScopeArm, rounds: int) -> int:
        """Return the number n with which beta and rho grow, after ``rounds`` rounds of all arms."""
        return rounds

    def record(self, arm: ScopeArm, action: Action, context: np.ndarray, width: float) -> None:
        """Record an action before the arm learns its reward."""

    def value(self, arm: ScopeArm, contexts: np.ndarray, width: float) -> float:
        """Return U_i of a played arm, given the contexts ``(n, k)`` of all rounds, and the width of bounds."""
        return float(arm.highest_bounds(contexts, width).mean())


class RunningAverages:
    """The index of Algorithm 2: the running average of the bounds at the time of each play.

    The attributes and methods are those of :class:`HighestBounds`.
    """

    filling = 1
    within = 1.0

    def __init__(self) -> None:
        self._bounds: dict[ScopeArm, list[float]] = defaultdict(list)

    def first_plays(self, arms: int, horizon: int) -> int:
        return 1

    def plays(self, arm: ScopeArm, rounds: int) -> int:
        return 1 + len(arm.rounds)

    def record(self, arm: ScopeArm, action: Action, context: np.ndarray, width: float) -> None:
        self._bounds[arm].append(arm.bound_of(action, context, width))

    def value(self, arm: ScopeArm, contexts: np.ndarray, width: float) -> float:
        return float(np.mean(self._bounds[arm]))


ArmIndex = HighestBounds | RunningAverages
