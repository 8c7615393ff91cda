"""Successive rejects (Audibert, Bubeck & Munos 2010, sec. 3): the best arm after a known number of rounds.

K arms take K - 1 phases. Each phase plays the remaining arms equally often and drops the one with the lowest mean. The
last arm is played in all remaining rounds.
"""

from __future__ import annotations

import math

import numpy as np

from cbo_gym.agents.discrete.base import ArmAgent
from cbo_gym.task import Action, Observation


class SuccessiveRejects(ArmAgent):
    """Phases of equal play, each of which drops the worst of the remaining arms. Plays discrete tasks."""

    def setup(self, seed: int) -> None:
        super().setup(seed)
        count = len(self.considered)
        weight = 0.5 + (1.0 / np.arange(2, count + 1)).sum()
        spare_rounds = max(0, self.task.horizon - count)
        # Number of plays of each remaining arm at the end of each phase.
        self._goals = [max(1, math.ceil(spare_rounds / (weight * arms))) for arms in range(count, 1, -1)]

    def act(self, observation: Observation) -> Action:
        while len(self.considered) > 1:
            counts = self.counts[self.considered]
            arm = int(counts.argmin())
            if counts[arm] < self._goals[-len(self.considered) + 1]:
                return self.considered[arm]
            self.considered = np.delete(self.considered, self.means()[self.considered].argmin())
        return self.considered[0]
