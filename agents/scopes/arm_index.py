"""The index of a bandit over scopes: the value U_i of arm i, to which it adds a bonus for rare plays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict

import numpy as np

from cbo_gym.agents.scopes.scope_arm import ScopeArm
from cbo_gym.task import Action

FILLING = 5  # plays of an arm with values that fill its box: enough for a model
WITHIN = 2.0  # chosen, with rho and the kernel, on CBO/CoCaAligned-v0, seeds 100 to 129
FEWEST, MOST = 8, 16  # first plays of an arm, these included
FIRST_SHARE = 4  # the first plays of all arms are one in so many rounds, if that is between the two


class ArmIndex(ABC):
    """Values of arms.

    Attributes:
        filling: how many of an arm's first plays have values that fill its box; the others have promising ones.
        within: width of the bounds that choose values inside an arm, in those by which arms are compared.
    """

    filling: int
    within: float

    @abstractmethod
    def first_plays(self, arms: int, horizon: int) -> int:
        """How often each of so many arms is played before arms are compared."""

    @abstractmethod
    def plays(self, arm: ScopeArm, rounds: int) -> int:
        """The number n with which beta and rho grow, after so many rounds of all arms."""

    def note(self, arm: ScopeArm, action: Action, context: np.ndarray, width: float) -> None:  # noqa: B027
        """Look at an action before its reward is known to the arm."""

    @abstractmethod
    def value(self, arm: ScopeArm, contexts: np.ndarray, width: float) -> float:
        """U_i of an arm that has been played, given the contexts ``(n, k)`` of all rounds, and the width of bounds."""


class HighestBounds(ArmIndex):
    """The average over the contexts of all rounds of the highest bound that the arm's present model has there.

    It bounds from above what the arm could earn, whatever it played so far, and all arms are compared in equal
    contexts. beta and rho grow with the rounds of all arms, so that no arm is given up for good.
    """

    filling = FILLING
    within = WITHIN

    def first_plays(self, arms: int, horizon: int) -> int:
        return min(max(horizon // (FIRST_SHARE * arms), FEWEST), MOST)

    def plays(self, arm: ScopeArm, rounds: int) -> int:
        return rounds

    def value(self, arm: ScopeArm, contexts: np.ndarray, width: float) -> float:
        return float(arm.highest_bounds(contexts, width).mean())


class RunningAverages(ArmIndex):
    """Algorithm 2 to the letter: the running average of the bounds of the time at which the points were played."""

    filling = 1
    within = 1.0

    def __init__(self) -> None:
        self._bounds: dict[ScopeArm, list[float]] = defaultdict(list)

    def first_plays(self, arms: int, horizon: int) -> int:
        return 1

    def plays(self, arm: ScopeArm, rounds: int) -> int:
        return 1 + len(arm.rounds)

    def note(self, arm: ScopeArm, action: Action, context: np.ndarray, width: float) -> None:
        self._bounds[arm].append(arm.bound_of(action, context, width))

    def value(self, arm: ScopeArm, contexts: np.ndarray, width: float) -> float:
        return float(np.mean(self._bounds[arm]))
