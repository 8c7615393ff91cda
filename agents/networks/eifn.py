"""EIFN: expected improvement for function networks (Astudillo & Frazier 2021).

A GP models every node from its parents and its own actions. Samples of the nodes' posteriors are pushed through the
graph, and the action with the highest Monte Carlo expected improvement of the reward is played.
"""

from __future__ import annotations

import torch
from botorch.acquisition import qLogExpectedImprovement
from botorch.sampling import SobolQMCNormalSampler
from torch import Tensor

from cbo_gym._util.arguments import require_truth_value, whole_number
from cbo_gym.agents.common.limits import MAX_SAMPLES, require_device
from cbo_gym.agents.common.search import maximise
from cbo_gym.agents.networks.base import NetworkAgent
from cbo_gym.agents.networks.exploration import EFFORT, Exploration
from cbo_gym.agents.networks.gp_network import GPNetwork
from cbo_gym.agents.networks.network_model import GPNetworkModel
from cbo_gym.task import Action, HardTask

SCREENING_SAMPLES = 8


class EIFN(NetworkAgent):
    """Expected improvement on a network of GPs. Plays soft, hard and adversarial tasks.

    Args:
        samples: number of Sobol samples of the posterior, 1 to 4,096 (128 as in the paper).
        explore: whether to play another action if the agent would learn nothing from the chosen one, in at most
            ``2 sqrt(t)`` of t rounds, but never in hard mode with noisy nodes. False for the paper's method.
        device: torch device.

    Attributes:
        network: the GPs of the nodes.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    takes_missing = True
    takes_mixed_domains = True
    takes_partial = True
    learns_mechanisms = True
    takes_limits = True
    takes_precision = True

    def __init__(self, samples: int = 128, explore: bool = True, device: str = "cpu") -> None:
        self.samples = whole_number("samples", samples, at_least=1, at_most=MAX_SAMPLES)
        self.explore = require_truth_value("explore", explore)
        self.device = require_device(device)

    def setup(self, seed: int) -> None:
        self.network = GPNetwork(self.task, self.device, make=self.make_surrogate)
        explores = self.explore and not (self.network.noisy and isinstance(self.task, HardTask))
        self.exploration = Exploration(self.network, seed, self.device) if explores else None
        self._model = GPNetworkModel(self.network)
        self._sampler = self._make_sampler(self.samples)
        self._coarse_sampler = self._make_sampler(min(self.samples, SCREENING_SAMPLES))

    def _make_sampler(self, samples: int) -> SobolQMCNormalSampler:
        return SobolQMCNormalSampler(torch.Size([samples]), seed=int(self.rng.integers(2**31)))

    def choose(self, played: list[Action], best: float, seed: int) -> Action:
        coarse = qLogExpectedImprovement(self._model, best, self._coarse_sampler)
        return maximise(
            qLogExpectedImprovement(self._model, best, self._sampler),
            self.network.features,
            played,
            seed=seed,
            screening=coarse,
            scouting=coarse,
            effort=EFFORT,
            device=self.device,
        )

    def estimate(self) -> Tensor:
        return self._sampler(self._model.posterior(self.network.inputs.unsqueeze(-2))).mean(0).reshape(-1)
