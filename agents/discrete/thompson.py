"""Thompson sampling with Beta posteriors on the arms of a causal bandit; POMIS-TS (Lee & Bareinboim 2018, sec. 5).

The prior of every arm is uniform. A reward between 0 and 1 counts as a success with that probability (Agrawal & Goyal
2012, Algorithm 2).
"""

from __future__ import annotations

import numpy as np

from cbo_gym.agents.discrete.base import ArmAgent
from cbo_gym.task import Action, Info, Observation


class TS(ArmAgent):
    """Thompson sampling for rewards in [0, 1]. Plays discrete tasks.

    Attributes:
        successes: 1 plus the number of successes of each arm; a reward r is a success with probability r.
        failures: 1 plus the number of failures of each arm.
    """

    def setup(self, seed: int) -> None:
        super().setup(seed)
        self.successes = np.ones(len(self.task.arms))
        self.failures = np.ones(len(self.task.arms))

    def act(self, observation: Observation) -> Action:
        samples = self.rng.beta(self.successes[self.considered], self.failures[self.considered])
        return self.considered[samples.argmax()]

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        if (count := float(observation.get("count", 1.0))) != 1.0:
            self.successes[int(action)] += count * reward
            self.failures[int(action)] += count * (1.0 - reward)
            return
        success = reward == 1.0 or (reward > 0.0 and self.rng.random() < reward)
        (self.successes if success else self.failures)[int(action)] += 1.0


class POMISTS(TS):
    """Thompson sampling over the arms that can be optimal in some system on the graph. Plays discrete tasks."""

    def __init__(self) -> None:
        super().__init__(sets="possibly_optimal")
