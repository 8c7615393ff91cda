"""SubsetUCB: upper confidence bounds on the means of all subsets, the baseline in Varici et al. (2023), sec. 6.

A round plays the subset with the greatest

    mean + sqrt(4 log T / plays),

where T is the horizon; a subset without plays has a mean of 0 and counts as played once.
"""

from __future__ import annotations

import math

import numpy as np

from cbo_gym.agent import Agent
from cbo_gym.agents.subsets.base import enumerable_space
from cbo_gym.task import Action, Info, Mode, Observation, SubsetTask

MAX_SUBSETS = 2**16


class SubsetUCB(Agent):
    """Upper confidence bounds without a model of the system. Plays subset mode, up to 16 parameters.

    Attributes:
        counts: number of plays of each subset. The index of a subset is a binary number with its parameters as digits,
            the first one lowest.
        sums: sum of the rewards of each subset.

    Raises:
        ArgumentError: from ``reset``, if there are more subsets than 65,536.
    """

    modes = frozenset({Mode.SUBSET})
    task: SubsetTask

    def setup(self, seed: int) -> None:
        space = enumerable_space(self.task, MAX_SUBSETS, "SubsetUCB keeps a mean for every subset")
        self._digits = 2 ** np.arange(space.arms)
        self.counts, self.sums = np.zeros((2, space.count))

    def act(self, observation: Observation) -> Action:
        bonus = np.sqrt(4.0 * math.log(self.task.horizon) / np.maximum(self.counts, 1.0))
        return self._subset(int(np.argmax(self._means() + bonus)))

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        index = int(np.asarray(action, dtype=int) @ self._digits)
        self.counts[index] += 1.0
        self.sums[index] += reward

    def recommend(self) -> Action:
        """Return the subset with the greatest mean among those played."""
        if not self.history:
            return super().recommend()
        return self._subset(int(np.argmax(np.where(self.counts > 0, self._means(), -np.inf))))

    def _means(self) -> np.ndarray:
        return self.sums / np.maximum(self.counts, 1.0)

    def _subset(self, index: int) -> Action:
        return (index // self._digits % 2).astype(np.int8)
