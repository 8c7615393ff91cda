"""MultiplicativeWeights: base class of agents with a weight for every action (Freund & Schapire 1997).

Every round, these agents draw an action with probabilities proportional to the weights. After the adversary's move they
estimate the reward of every action against that move, clip it to [0, 1], and multiply the action's weight by
``exp(-rate * (1 - reward))``.
"""

from __future__ import annotations

from abc import abstractmethod
from math import log, sqrt

import numpy as np
import torch
from torch import Tensor

from cbo_gym._util.arguments import require_not_negative
from cbo_gym.actions import GridBox
from cbo_gym.agent import Agent
from cbo_gym.agents.common.limits import require_device
from cbo_gym.task import Action, AdversarialTask, Info, Mode, Observation


class MultiplicativeWeights(Agent):
    """Agent that draws actions by weights that follow :meth:`optimistic_rewards`. Plays adversarial tasks.

    Args:
        beta: distance of the optimistic rewards from the mean, in standard deviations; finite, at least 0.
        rate: the learning rate; finite, at least 0. None for ``sqrt(8 log(n) / T)`` with n actions and T rounds, with
            which the regret against known rewards is at most ``sqrt(T log(n) / 2)`` in expectation.
        device: torch device.

    Attributes:
        actions: all n actions of the task, ``n x q``.
        gains: estimated total reward that each action would have earned so far, ``(n,)``.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    modes = frozenset({Mode.ADVERSARIAL})
    task: AdversarialTask

    def __init__(self, beta: float = 0.5, rate: float | None = None, device: str = "cpu") -> None:
        self.beta = require_not_negative("beta", beta)
        if rate is not None:
            require_not_negative("rate", rate)
        self.device = require_device(device)
        self.rate = rate

    def setup(self, seed: int) -> None:
        space = self.task.action_space
        assert isinstance(space, GridBox)
        self._grid = space
        self.actions = space.all()
        self.gains = np.zeros(len(self.actions))
        # Number of rounds in the gains.
        self._rounds = 0
        # Whether the agent has chosen an action; until then it is given initial data.
        self._acted = False
        self._rate = sqrt(8.0 * log(len(self.actions)) / self.task.horizon) if self.rate is None else self.rate

    @property
    def weights(self) -> np.ndarray:
        """Normalised weights of the actions, the probabilities with which they are drawn, ``(n,)``."""
        unnormalised = np.exp(self._rate * (self.gains - self.gains.max()))
        return unnormalised / unnormalised.sum()

    def act(self, observation: Observation) -> Action:
        self._acted = True
        return self.actions[self.rng.choice(len(self.actions), p=self.weights)].copy()

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        self.learn(action, observation, reward)
        # Initial data train the model, but do not count for the gains.
        if self._acted:
            with torch.no_grad():
                rewards = self.optimistic_rewards(self.with_move(observation["adversary"])).cpu().numpy()
            self.gains += np.clip(rewards, 0.0, 1.0)
            self._rounds += 1

    def with_move(self, move: np.ndarray) -> Tensor:
        """Return every action followed by one move, ``n x (q + k)``."""
        moves = np.broadcast_to(move, (len(self.actions), len(move)))
        return torch.from_numpy(np.concatenate([self.actions, moves], axis=1)).to(self.device)

    @abstractmethod
    def learn(self, action: Action, observation: Observation, reward: float) -> None:
        """Learn from a round."""

    @abstractmethod
    def optimistic_rewards(self, inputs: Tensor) -> Tensor:
        """Return upper bounds on the rewards of actions followed by moves, ``n x (q + k)`` to ``(n,)``."""

    def estimated_rewards(self) -> np.ndarray:
        """Return the mean gains of the actions played; before the first round, the observed rewards."""
        if not self._rounds:
            return super().estimated_rewards()
        indices = self._grid.indices(np.stack([past.action for past in self.history]))
        return self.gains[indices] / self._rounds

    def recommend(self) -> Action:
        """Return the action with the greatest gain, played or not."""
        return self.actions[np.argmax(self.gains)].copy() if self._rounds else super().recommend()
