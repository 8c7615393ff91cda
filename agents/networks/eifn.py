"""EIFN: expected improvement for function networks (Astudillo & Frazier 2021).

A GP models every node from its parents and its own actions. Samples of the nodes' posteriors are pushed through the
graph, and the action with the highest Monte Carlo expected improvement of the reward is played.

Departures:

* Improvement is over the best posterior mean of the reward among the actions played, which on noiseless networks is
  the best reward seen; with noise the best reward seen would be inflated.
* The logarithm of a smoothed EI is maximised (qLogEI, Ament et al. 2023) with fixed Sobol samples in each round.
* The method is for deterministic networks. On noisy ones the nodes' noise is left out of the samples, as in the
  comparison of Sussex et al. (2023), sec. 5.
* In hard mode the nodes that are set take their values, and the rest of the network goes on from there.
"""

from __future__ import annotations

import numpy as np
import torch
from botorch.acquisition import qLogExpectedImprovement
from botorch.models.model import Model
from botorch.posteriors import Posterior
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from cbo_gym.agents.networks.base import NetworkAgent
from cbo_gym.agents.surrogates.gp_network import GPNetwork
from cbo_gym.agents.toolbox.arguments import require_count
from cbo_gym.agents.toolbox.search import best_first, maximise
from cbo_gym.errors import ArgumentError
from cbo_gym.task import Action

SCREENING_SAMPLES = 16
RESTARTS = 6


class EIFN(NetworkAgent):
    """Expected improvement on a network of GPs. Plays soft and hard tasks.

    Args:
        samples: Sobol samples of the posterior, at least 1 (128 as in the paper).
        device: torch device.

    Attributes:
        network: the GPs of the nodes.

    Raises:
        ArgumentError: if ``samples`` is out of range.
    """

    def __init__(self, samples: int = 128, device: str = "cpu") -> None:
        require_count("samples", samples)
        self.samples = samples
        self.device = device

    def setup(self, seed: int) -> None:
        self.network = GPNetwork(self.task, self.device)
        self._model = NetworkModel(self.network)
        self._sampler = self._make_sampler(self.samples)
        self._coarse_sampler = self._make_sampler(min(self.samples, SCREENING_SAMPLES))

    def _make_sampler(self, samples: int) -> SobolQMCNormalSampler:
        return SobolQMCNormalSampler(torch.Size([samples]), seed=int(self.rng.integers(2**31)))

    def choose(self, estimates: np.ndarray, seed: int) -> Action:
        best = float(estimates.max())
        played = best_first(self.history, estimates)
        return maximise(
            qLogExpectedImprovement(self._model, best, self._sampler),
            self.network.features,
            played,
            seed=seed,
            screening=qLogExpectedImprovement(self._model, best, self._coarse_sampler),
            restarts=RESTARTS,
            device=self.device,
        )

    def estimate(self) -> Tensor:
        return self._sampler(self._model.posterior(self.network.inputs.unsqueeze(-2))).mean(0).reshape(-1)


class NetworkModel(Model):
    """The reward of a GPNetwork as a BoTorch model: what its acquisition functions sample is a pass through the graph.

    Every sample draws each node anew at its own inputs, which is all that single points (``q = 1``) need.
    """

    def __init__(self, network: GPNetwork) -> None:
        super().__init__()
        self._network = network

    @property
    def num_outputs(self) -> int:
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        return torch.Size()

    def posterior(self, X: Tensor, *args: object, **kwargs: object) -> NetworkPosterior:  # noqa: N803
        """The reward's distribution at inputs ``b x 1 x d``.

        Raises:
            ArgumentError: if ``X`` asks for the joint distribution of several points.
        """
        if X.shape[-2] != 1:
            raise ArgumentError(f"NetworkModel takes points of shape b x 1 x d; given {tuple(X.shape)}")
        return NetworkPosterior(self._network, X)


class NetworkPosterior(Posterior):
    """Samples of the reward by passes through a GPNetwork, one standard normal number a node and sample.

    Args:
        network: of GPs.
        inputs: features of actions, ``b x 1 x d``.
    """

    def __init__(self, network: GPNetwork, inputs: Tensor) -> None:
        self._network, self._inputs = network, inputs

    @property
    def device(self) -> torch.device:
        return self._inputs.device

    @property
    def dtype(self) -> torch.dtype:
        return self._inputs.dtype

    @property
    def base_sample_shape(self) -> torch.Size:
        return torch.Size([len(self._inputs), 1, len(self._network.nodes)])

    @property
    def batch_range(self) -> tuple[int, int]:
        return (0, -2)

    # The name is BoTorch's: its samplers ask a posterior for this.
    def _extended_shape(self, sample_shape: torch.Size = torch.Size()) -> torch.Size:  # noqa: B008
        return sample_shape + torch.Size([len(self._inputs), 1, 1])

    def rsample_from_base_samples(self, sample_shape: torch.Size, base_samples: Tensor) -> Tensor:
        draws = base_samples.reshape(*sample_shape, -1, len(self._network.nodes))
        columns = dict(zip(self._network.nodes, draws.movedim(0, 1).unbind(-1), strict=True))

        def sampled(node: str, points: Tensor, mean: Tensor, std: Tensor) -> Tensor:
            return mean + std * columns[node]

        values = self._network.rollout(self._inputs.squeeze(-2), sampled, {})
        reward = values[self._network.task.reward].expand(len(self._inputs), *sample_shape)
        return reward.T[..., None, None]

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        shape = sample_shape or torch.Size([1])
        normal = torch.randn(*shape, *self.base_sample_shape, device=self.device, dtype=self.dtype)
        return self.rsample_from_base_samples(shape, normal)
