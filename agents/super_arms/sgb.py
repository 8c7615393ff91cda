"""SGB, the stochastic greedy bandit (Fourati, Quinn, Alouini & Aggarwal 2024), which commits after exploring.

The super arm grows by one base arm in each of s phases. A phase draws a random sample of the remaining base arms, plays
each of them ``repetitions`` times together with the chosen ones, and adds the one with the best mean reward. The final
super arm is played in all remaining rounds. A sample of ``(N / s) ln(1 / miss)`` base arms misses the best of the
remaining ones with probability ``miss``, so exploration takes ``N ln(1 / miss)`` trials in all.
"""

from __future__ import annotations

import math

import numpy as np

from cbo_gym._util.arguments import require_probability
from cbo_gym.actions.spaces import SuperArmSpace
from cbo_gym.agent import Agent
from cbo_gym.task import Action, Info, Mode, Observation


class SGB(Agent):
    """Greedy inclusion of base arms, then commitment. Plays masked tasks.

    Args:
        miss: probability with which a phase may miss the best base arm, between 0 and 1.

    Raises:
        ArgumentError: if ``miss`` is out of range.
    """

    modes = frozenset({Mode.MASKED})

    def __init__(self, miss: float = 0.1) -> None:
        self.miss = require_probability("miss", miss)

    def setup(self, seed: int) -> None:
        space = self.task.action_space
        assert isinstance(space, SuperArmSpace)
        self._limit = space.size
        self._chosen = np.zeros(space.arms, dtype=np.int8)
        trials = space.arms * math.log(1.0 / self.miss)
        self._sample_size = math.ceil(trials / space.size)
        horizon = self.task.horizon
        # The number of repetitions with the smallest bound of the regret; exploration takes at most half of the rounds.
        balanced = (horizon * math.sqrt(2.0 * math.log(horizon)) / (2.0 * trials)) ** (2.0 / 3.0)
        self.repetitions = max(1, min(math.ceil(balanced), int(0.5 * horizon / (self._sample_size * space.size))))
        self._begin_phase()

    def _begin_phase(self) -> None:
        remaining = np.flatnonzero(self._chosen == 0)
        if self._chosen.sum() == self._limit:
            remaining = remaining[:0]
        self._candidates = self.rng.permutation(remaining)[: self._sample_size]
        self._trials: list[float] = []

    def act(self, observation: Observation) -> Action:
        action = self._chosen.copy()
        if len(self._candidates):
            action[self._candidates[len(self._trials) // self.repetitions]] = 1
        return action

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        if len(self._candidates) == 0 or len(self.history) <= len(self.task.initial_data):
            return
        self._trials.append(float(reward))
        if len(self._trials) == self.repetitions * len(self._candidates):
            means = np.reshape(self._trials, (len(self._candidates), self.repetitions)).mean(axis=1)
            self._chosen[self._candidates[int(means.argmax())]] = 1
            self._begin_phase()

    def estimated_rewards(self) -> np.ndarray:
        """Return the mean reward of the super arm of every round, over the rounds in which it was played."""
        keys = [past.action.tobytes() for past in self.history]
        _, indices = np.unique(keys, return_inverse=True)
        rewards = np.array([past.reward for past in self.history])
        return (np.bincount(indices, rewards) / np.bincount(indices))[indices]
