"""The parallel bandit algorithm of Lattimore, Lattimore & Reid (2016), Algorithm 1: observe first, then fill the gaps.

All variables are independent causes of the reward, so that P(Y | do(X = x)) = P(Y | X = x), and observations are
informative about every arm whose value occurs by itself. For half of the horizon nothing is set. Then the m arms with
the rarest values are played in turn, where m is the smallest number for which all others occurred in at least
1 / (m + 1) of the rounds. The method minimises the simple regret, not the cumulative one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbo_gym.agent import UnsupportedModeError
from cbo_gym.agents.discrete.base import ArmAgent
from cbo_gym.task import Action, Info, Observation


class ParallelBandit(ArmAgent):
    """Observation for half of the horizon, then the arms that were rarely seen. Plays discrete tasks.

    The graph must be that of a parallel bandit: independent causes of the reward, arms that set one of them, and one
    that sets none.

    Raises:
        UnsupportedModeError: by :meth:`reset`, for another graph or other arms.
    """

    takes_missing = False
    takes_precision = False

    def __init__(self) -> None:
        super().__init__()

    def setup(self, seed: int) -> None:
        super().setup(seed)
        task = self.task
        causes = task.nodes[:-1]
        if task.diagram.bidirected or task.diagram.directed != {(name, task.reward) for name in causes}:
            raise UnsupportedModeError(f"ParallelBandit needs independent causes of the reward; not {task.env_id}")
        if {} not in task.arms or any(len(arm) > 1 for arm in task.arms):
            raise UnsupportedModeError(f"ParallelBandit needs arms that set one variable or none; not {task.env_id}")
        self._observing = task.arms.index({})
        pairs = [next(iter(arm.items()), (task.reward, np.nan)) for arm in task.arms]
        self._node = np.array([task.nodes.index(name) for name, _ in pairs])
        self._value = np.array([value for _, value in pairs])
        self._rare: np.ndarray | None = None
        #: Number of observations of each arm's value while nothing was set, and the sum of their rewards.
        self._observed_counts, self._observed_sums = np.zeros(len(task.arms)), np.zeros(len(task.arms))

    def act(self, observation: Observation) -> Action:
        rounds = len(self.history) - len(self.task.initial_data)
        if rounds < self.task.horizon // 2:
            return self._observing
        if self._rare is None:
            self._rare = rarest(self._observed_counts / self._observed_counts[self._observing])
        return self._rare[rounds % len(self._rare)]

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        if int(action) == self._observing:
            agrees = np.asarray(observation["nodes"])[self._node] == self._value
            agrees[self._observing] = True
            self._observed_counts += agrees
            self._observed_sums += reward * agrees

    def reward_posterior(self, actions: Sequence[Action]) -> None:
        """Return ``None``: the paper gives no standard deviation for estimates from observations."""

    def sample_outcomes(self, actions: Sequence[Action], count: int, seed: int = 0, *, noise: bool = True) -> None:
        """Return ``None``, as :meth:`reward_posterior`."""

    def means(self) -> np.ndarray:
        """Return mean rewards of the arms: from plays for the rarest arms, from observations for the others."""
        is_rare = np.zeros(len(self.counts), dtype=bool)
        if self._rare is not None:
            is_rare[self._rare] = self.counts[self._rare] > 0.0
        counts = np.where(is_rare, self.counts, self._observed_counts)
        return np.where(
            counts > 0.0, np.where(is_rare, self.sums, self._observed_sums) / np.maximum(counts, 1.0), -np.inf
        )


def rarest(shares: np.ndarray) -> np.ndarray:
    """Return the indices of the m rarest arms, given their ``shares`` of the rounds, ``(K,)``."""
    order = np.argsort(shares, kind="stable")
    enough = shares[order] >= 1.0 / np.arange(1, len(shares) + 1)
    return order[: max(1, int(np.argmax(enough)))]
