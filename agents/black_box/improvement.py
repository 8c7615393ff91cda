"""The common part of agents that play the Monte Carlo expected improvement of GPs from the action to some nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from botorch.acquisition import qLogExpectedImprovement
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from cbo_gym.agent import Agent
from cbo_gym.agents.black_box.independent import IndependentGPs
from cbo_gym.agents.surrogates.gp.model import GaussianProcess, is_noiseless
from cbo_gym.agents.surrogates.protocols import MakeSurrogate
from cbo_gym.agents.toolbox.features import features_of
from cbo_gym.agents.toolbox.initial import few_observations, first_action
from cbo_gym.agents.toolbox.limits import MOST_SAMPLES, require_device
from cbo_gym.agents.toolbox.search import best_first, maximise
from cbo_gym.arguments import whole_number
from cbo_gym.task import Action, Info, Mode, Observation, Round


class NodeImprovement(Agent):
    """Plays the action with the greatest expected improvement, by a GP for each of some nodes. The graph is ignored.

    Args:
        samples: Sobol samples of the posterior, 1 to 4,096.
        device: torch device.

    Attributes:
        features: of the task's actions, which the GPs take as inputs.
        make_surrogate: makes a surrogate.
        surrogates: the GPs of the modelled nodes, each from the action.
        model: these GPs together, as BoTorch takes them.

    Raises:
        ArgumentError: if ``samples`` is out of range.
    """

    modes = frozenset({Mode.SOFT, Mode.HARD})

    make_surrogate: ClassVar[MakeSurrogate] = GaussianProcess

    def __init__(self, samples: int = 128, device: str = "cpu") -> None:
        self.samples = whole_number("samples", samples, at_least=1, at_most=MOST_SAMPLES)
        require_device(device)
        self.device = device

    @abstractmethod
    def modelled(self) -> list[str]:
        """The nodes that have a GP, without repetition."""

    @abstractmethod
    def improvement(self, estimates: np.ndarray) -> qLogExpectedImprovement:
        """The logarithm of the expected improvement over what was played: GP inputs ``b x 1 x d`` to values ``b``.

        Args:
            estimates: of :meth:`estimated_rewards`.
        """

    def setup(self, seed: int) -> None:
        task = self.task
        self.features = features_of(task)
        dim, self._modelled = self.features.input_dim, self.modelled()
        self._columns = [task.nodes.index(node) for node in self._modelled]
        self.surrogates = [
            self.make_surrogate(node, dim, noise_std=0.0 if is_noiseless(task, node) else None, device=self.device)
            for node in self._modelled
        ]
        self.model = IndependentGPs(self.surrogates)
        self.sampler = SobolQMCNormalSampler(torch.Size([self.samples]), seed=int(self.rng.integers(2**31)))

    def initial_rounds(self) -> Sequence[Round]:
        return few_observations(self.task)

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        inputs = self.features.inputs(self.features.encode(action))
        for surrogate, column in zip(self.surrogates, self._columns, strict=True):
            surrogate.add(inputs, observation["nodes"][column])

    def believed_rewards(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray]:
        with torch.no_grad():
            mean, std = self.reward_belief(self.features.of_actions(actions).to(self.device))
        return mean.cpu().numpy(), std.cpu().numpy()

    @abstractmethod
    def reward_belief(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the expected reward, GP inputs ``b x d`` to ``(b,)`` each."""

    def act(self, observation: Observation) -> Action:
        seed = int(self.rng.integers(2**31))
        if not self.history:
            return first_action(self.task, seed)
        estimates = self.estimated_rewards()
        played = best_first(self.history, estimates)
        return maximise(self.improvement(estimates), self.features, played, seed=seed, device=self.device)
