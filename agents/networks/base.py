"""Base classes of agents that model every node of the diagram, such as MCBO, EIFN and EXCBO."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from cbo_gym.agent import Agent, LeaveOneOut
from cbo_gym.agents.common.initial import SearchAgent
from cbo_gym.agents.common.search import best_first
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.gp.protocols import MakeNodeSurrogate
from cbo_gym.agents.networks.exploration import Exploration
from cbo_gym.agents.networks.gp_network import GPNetwork
from cbo_gym.agents.networks.warmup_exploration import WarmupExploration
from cbo_gym.task import Action, HardTask, Info, Mode, Observation, SoftTask


class NetworkLearner(Agent):
    """Base class of agents that learn from every node.

    Attributes:
        network: the surrogates of the nodes, set in ``setup``.
    """

    network: GPNetwork
    # Estimates for the rounds so far, if computed.
    _estimates: np.ndarray | None = None

    def update(self, action: Action, observation: Observation, reward: Any, info: Info) -> None:
        super().update(action, observation, reward, info)
        self.learn(action, observation, partial=False)

    def update_partial(self, action: Action, observation: Observation, info: Info) -> None:
        self.learn(action, observation, partial=True)

    def learn(self, action: Action, observation: Observation, partial: bool) -> None:
        """Add a round to the surrogates' data; a ``partial`` round has no reward."""
        self.network.add(action, observation, partial)
        self._estimates = None

    def sample_outcomes(
        self, actions: Sequence[Action], count: int, seed: int = 0, *, noise: bool = True
    ) -> Mapping[str, np.ndarray] | None:
        return self.network.sample_outcomes(actions, count, seed, noise)

    def leave_one_out(self) -> Mapping[str, LeaveOneOut]:
        return self.network.leave_one_out()


class NetworkAgent(NetworkLearner, SearchAgent):
    """Base class of agents that play the action that :meth:`choose` returns.

    The first action without data is that of :func:`~cbo_gym.agents.common.initial.first_action`. Subclasses set
    ``network`` in ``setup``, and may set ``warmup`` and ``exploration``.

    Attributes:
        make_surrogate: function that returns the surrogate of a node.
        warmup: exploration in some of the first rounds; None for none.
        exploration: replacement of actions from which the agent would learn nothing; None for none.
    """

    modes = frozenset({Mode.SOFT, Mode.HARD, Mode.ADVERSARIAL})
    task: SoftTask | HardTask
    make_surrogate: ClassVar[MakeNodeSurrogate] = GaussianProcess
    warmup: WarmupExploration | None = None
    exploration: Exploration | None = None

    def search(self, seed: int) -> Action:
        estimates = self.estimated_rewards()
        played, best = best_first(self.history, estimates), float(estimates.max())
        if self.warmup is not None and (action := self.warmup.replacement(self.history, played, seed)) is not None:
            return action
        action = self.choose(played, best, seed)
        return action if self.exploration is None else self.exploration.replacement(action, played, best, seed)

    def expected_nodes(self, action: Action) -> Mapping[str, float]:
        return self.network.expected_nodes(action)

    def expected_nodes_given(self, action: Action, measured: Mapping[str, float]) -> Mapping[str, float]:
        return self.network.expected_nodes(action, measured)

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray]:
        inputs = self.network.features.of_actions(actions).to(self.network.inputs)
        with torch.no_grad():
            mean, std = self.network.reward_posterior(inputs)
        return mean.cpu().numpy(), std.cpu().numpy()

    def estimated_rewards(self) -> np.ndarray:
        # Cached for the recommendation and the next action.
        if self._estimates is None:
            with torch.no_grad():
                self._estimates = self.estimate().cpu().numpy()
        return self._estimates

    @abstractmethod
    def estimate(self) -> Tensor:
        """Return estimates of the expected rewards of the rounds played, ``(rounds,)``."""

    @abstractmethod
    def choose(self, played: list[Action], best: float, seed: int) -> Action:
        """Return the next action.

        Args:
            played: actions played, from the highest to the lowest estimate of their expected rewards.
            best: the highest estimate.
            seed: seed of the search.
        """
