"""The parallel bandit algorithm of Lattimore, Lattimore & Reid (2016), Algorithm 1: observe first, then fill the gaps.

All variables are independent causes of the reward, so that P(Y | do(X = x)) = P(Y | X = x): a round in which nothing is
set informs about every arm whose value occurs in it. For half of the horizon nothing is set. Then the m arms with the
rarest values are played in turn, where m is the smallest number for which the values of all other arms occurred in at
least 1 / (m + 1) of the rounds. The method minimises the simple regret, not the cumulative one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbo_gym.agent import UnsupportedModeError
from cbo_gym.agents.discrete.base import ArmAgent
from cbo_gym.task import Action, Info, Observation


class ParallelBandit(ArmAgent):
    """Observation for half of the horizon, then the arms whose values were rarely observed. Plays discrete tasks.

    The task must be a parallel bandit: all other nodes are independent causes of the reward, one arm sets nothing, and
    each of the others sets one variable.

    Raises:
        UnsupportedModeError: by :meth:`reset`, for another graph or other arms.
    """

    takes_missing = False
    takes_precision = False

    def __init__(self) -> None:
        # Without the base class's choice of target sets.
        super().__init__()

    def setup(self, seed: int) -> None:
        super().setup(seed)
        task = self.task
        causes = task.nodes[:-1]
        if task.diagram.bidirected or task.diagram.directed != {(name, task.reward) for name in causes}:
            raise UnsupportedModeError(f"ParallelBandit needs independent causes of the reward; not {task.env_id}")
        if {} not in task.arms or any(len(arm) > 1 for arm in task.arms):
            raise UnsupportedModeError(f"ParallelBandit needs arms that set one variable or none; not {task.env_id}")
        self._empty_arm = task.arms.index({})
        # The variable and the value that each arm sets; a placeholder for the empty arm.
        settings = [next(iter(arm.items()), (task.reward, np.nan)) for arm in task.arms]
        self._columns = np.array([task.nodes.index(name) for name, _ in settings])
        self._values = np.array([value for _, value in settings])
        self._rare: np.ndarray | None = None
        # Number of observations of each arm's value while nothing was set, and the sum of their rewards.
        self._observed_counts, self._observed_sums = np.zeros(len(task.arms)), np.zeros(len(task.arms))

    def act(self, observation: Observation) -> Action:
        rounds = len(self.history) - len(self.task.initial_data)
        if rounds < self.task.horizon // 2:
            return self._empty_arm
        if self._rare is None:
            self._rare = rarest(self._observed_counts / self._observed_counts[self._empty_arm])
        return self._rare[rounds % len(self._rare)]

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        if int(action) == self._empty_arm:
            occurred = np.asarray(observation["nodes"])[self._columns] == self._values
            occurred[self._empty_arm] = True
            self._observed_counts += occurred
            self._observed_sums += reward * occurred

    def reward_posterior(self, actions: Sequence[Action]) -> None:
        """Return ``None``: the paper gives no standard deviation for estimates from observations."""

    def sample_outcomes(self, actions: Sequence[Action], count: int, seed: int = 0, *, noise: bool = True) -> None:
        """Return ``None``, as :meth:`reward_posterior`."""

    def means(self) -> np.ndarray:
        """Return mean rewards of the arms: from plays for the rarest arms, from observations for the others."""
        counts, sums = self._observed_counts.copy(), self._observed_sums.copy()
        if self._rare is not None:
            played = self._rare[self.counts[self._rare] > 0.0]
            counts[played], sums[played] = self.counts[played], self.sums[played]
        return np.where(counts > 0.0, sums / np.maximum(counts, 1.0), -np.inf)


def rarest(shares: np.ndarray) -> np.ndarray:
    """Return the indices of the m rarest arms, at least one, given all arms' ``shares`` of the rounds, ``(K,)``.

    m is the least number such that each of the other arms occurred in at least a share 1 / (m + 1) of the rounds.
    """
    order = np.argsort(shares, kind="stable")
    # Entry m: whether that holds for the m rarest arms.
    is_frequent = shares[order] >= 1.0 / np.arange(1, len(shares) + 1)
    return order[: max(1, int(np.argmax(is_frequent)))]
