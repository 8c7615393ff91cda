"""AskTell: the adapter for optimisers with an ask-and-tell interface.

The optimiser searches the box [0, 1]^dim, and ``task.codec`` converts its points into actions of any mode. In
contextual mode it does not see the context. A subclass is a few lines::

    class Annealing(AskTell):
        def start(self, dim, seed): self.optimiser = MyAnnealing(dim, seed)
        def ask(self): return self.optimiser.propose()
        def tell(self, point, reward): self.optimiser.record(point, reward)

A method without state, such as a BoTorch loop that fits a new model each round, needs only ``ask``: the data are in
``self.points`` and ``self.rewards``.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from cbo_gym.agent import Agent
from cbo_gym.task import Action, Info, Mode, Observation


class AskTell(Agent):
    """Base class of agents around a black-box optimiser of a function on [0, 1]^dim, which they maximise.

    Attributes:
        points: the points of all rounds, the initial data first, shape ``(n, dim)``.
        rewards: the observed reward of each point, shape ``(n,)``.
    """

    modes = frozenset(Mode)
    takes_missing = True
    takes_limits = True

    def setup(self, seed: int) -> None:
        # Points without a reward yet.
        self._proposed: list[np.ndarray] = []
        self._points: list[np.ndarray] = []
        self.start(self.task.codec.dim, seed)

    def start(self, dim: int, seed: int) -> None:
        """Build the optimiser; called at every reset, before any data."""

    @abstractmethod
    def ask(self) -> np.ndarray:
        """Return the next point to try, in [0, 1], shape ``(dim,)``."""

    def tell(self, point: np.ndarray, reward: float) -> None:
        """Learn the reward of a point, either a proposed one or one of the initial data."""

    @property
    def points(self) -> np.ndarray:
        return np.reshape(self._points, (-1, self.task.codec.dim))

    @property
    def rewards(self) -> np.ndarray:
        return np.array([past.reward for past in self.history])

    def act(self, observation: Observation) -> Action:
        self._proposed.append(np.clip(np.asarray(self.ask(), dtype=np.float64), 0.0, 1.0))
        return self.task.codec.to_action(self._proposed[-1])

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        point = self._take_point(action)
        self._points.append(point)
        self.tell(point, float(reward))

    def _take_point(self, action: Action) -> np.ndarray:
        """Return the point that :meth:`ask` proposed for an action, or the codec's point if it proposed none."""
        # Several points may become the same action, and the optimiser must recognise its own.
        point = self.task.codec.to_point(action)
        for index, proposed in enumerate(self._proposed):
            if np.array_equal(self.task.codec.to_point(self.task.codec.to_action(proposed)), point):
                return self._proposed.pop(index)
        return np.clip(point, 0.0, 1.0)
