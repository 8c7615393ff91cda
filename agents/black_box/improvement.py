"""NodeImprovement: the base class of agents that maximise Monte Carlo expected improvement with a GP for each node.

A subclass chooses the nodes that have a GP, and the acquisition function that combines their posteriors.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from botorch.acquisition import qLogExpectedImprovement
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from cbo_gym._util.arguments import whole_number
from cbo_gym.agents.calibration.data_noise import add_measured, is_noiseless, standard_error
from cbo_gym.agents.calibration.forecast import ForecastsByNode
from cbo_gym.agents.common.features import features_of
from cbo_gym.agents.common.initial import SearchAgent
from cbo_gym.agents.common.limits import MAX_SAMPLES, require_device
from cbo_gym.agents.common.search import best_first, maximise
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.gp.outputs import GPOutputs, SampledPosterior
from cbo_gym.agents.gp.protocols import MakeSurrogate, Surrogate
from cbo_gym.task import Action, Info, Mode, Observation


class IndependentNormals(SampledPosterior):
    """Posterior of independent normal outputs, with mean and standard deviation of shape ``b x 1 x m``."""

    def __init__(self, mean: Tensor, std: Tensor) -> None:
        super().__init__(mean, mean.shape, mean.shape)
        self.mean, self.std = mean, std

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        return self.mean + self.std * base_samples


class IndependentGPs(GPOutputs[Surrogate]):
    """BoTorch model of independent outputs, one GP each, with marginal posteriors at single points (``q = 1``) only."""

    def posterior(self, X: Tensor, *args: object, **kwargs: object) -> IndependentNormals:  # noqa: N803
        """Return marginals of the latent functions at ``X`` of shape ``b x 1 x d``."""
        means, stds = zip(*[surrogate.posterior(X) for surrogate in self._surrogates], strict=True)
        return IndependentNormals(torch.stack(means, -1), torch.stack(stds, -1))


class NodeImprovement(ForecastsByNode, SearchAgent):
    """Base class of agents that maximise expected improvement with a GP for each modelled node. They ignore the graph.

    Args:
        samples: number of Sobol samples of the posterior, 1 to 4,096.
        device: torch device.

    Attributes:
        features: features of the task's actions, the inputs of the GPs.
        make_surrogate: function that makes the surrogate of a node.
        surrogates: the GPs from actions to the modelled nodes, one each.
        inputs: features of the actions played, ``n x d``.
        model: BoTorch model of all ``surrogates``.
    """

    modes = frozenset({Mode.SOFT, Mode.HARD})
    takes_missing = True
    takes_partial = True
    takes_precision = True

    make_surrogate: ClassVar[MakeSurrogate] = GaussianProcess

    def __init__(self, samples: int = 128, device: str = "cpu") -> None:
        self.samples = whole_number("samples", samples, at_least=1, at_most=MAX_SAMPLES)
        self.device = require_device(device)

    @abstractmethod
    def modelled_nodes(self) -> list[str]:
        """Return the nodes that have a GP, each once."""

    @abstractmethod
    def improvement(self, estimates: np.ndarray) -> qLogExpectedImprovement:
        """Return the acquisition function, log EI over the actions played: GP inputs ``b x 1 x d`` to values ``(b,)``.

        Args:
            estimates: estimates from :meth:`estimated_rewards`.
        """

    def setup(self, seed: int) -> None:
        task = self.task
        self.features = features_of(task)
        dim, self._modelled = self.features.input_dim, self.modelled_nodes()
        self._columns = [task.nodes.index(node) for node in self._modelled]
        # Surrogates need not accept the keyword if there are no categories.
        keywords: dict[str, Any] = {"categories": categories} if (categories := self.features.categories) else {}
        self.surrogates = [
            self.make_surrogate(
                node, dim, noise_std=0.0 if is_noiseless(task, node) else None, device=self.device, **keywords
            )
            for node in self._modelled
        ]
        self.model = IndependentGPs(self.surrogates)
        self.inputs = torch.empty((0, dim), dtype=torch.float64, device=self.device)
        self.sampler = SobolQMCNormalSampler(torch.Size([self.samples]), seed=int(self.rng.integers(2**31)))

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        self.inputs = torch.cat([self.inputs, self._learn(action, observation)[None].to(self.inputs)])

    def update_partial(self, action: Action, observation: Observation, info: Info) -> None:
        self._learn(action, observation)

    def _learn(self, action: Action, observation: Observation) -> Tensor:
        """Add a round to the surrogates of the measured nodes; return the features of its action, ``(d,)``."""
        inputs = self.features.of_actions([action])[0]
        for surrogate, column in zip(self.surrogates, self._columns, strict=True):
            if not np.isnan(value := observation["nodes"][column]):
                add_measured(surrogate, inputs, value, standard_error(observation, column))
        return inputs

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray]:
        with torch.no_grad():
            mean, std = self.reward_posterior_at(self.forecast_inputs(actions))
        return mean.cpu().numpy(), std.cpu().numpy()

    def surrogates_by_node(self) -> Mapping[str, Surrogate]:
        return dict(zip(self._modelled, self.surrogates, strict=True))

    @abstractmethod
    def reward_posterior_at(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean and standard deviation of the expected reward at GP inputs ``b x d``, each ``(b,)``."""

    def search(self, seed: int) -> Action:
        estimates = self.estimated_rewards()
        played = best_first(self.history, estimates)
        return maximise(self.improvement(estimates), self.features, played, seed=seed, device=self.device)
