"""qEHVI-Network: expected hypervolume improvement on a network of GPs. The method is ours, of known parts.

A GP models every node from its parents and its own actions, as for MCBO and EIFN (Astudillo & Frazier 2021; Sussex et
al. 2023, sec. 3). Functions drawn from the posterior are pushed through the graph, which gives samples of all
objectives together, correlated as the graph has it; each is a mean over the nodes' noise. The action with the greatest
expected gain of hypervolume over the front of posterior means is played (Daulton, Balandat & Bakshy 2020). In hard mode
the search covers every minimal target set, and values that are set take the nodes' places.

A drawn function deviates from its posterior mean by the same number of standard deviations everywhere, so that one
sample needs no joint draw at all points where its inputs lie.
"""

from __future__ import annotations

import numpy as np
import torch
from botorch.utils.multi_objective.box_decompositions import FastNondominatedPartitioning
from torch import Tensor
from torch.quasirandom import SobolEngine

from cbo_gym.agents.several_objectives.base import SeveralObjectivesAgent, reference_below
from cbo_gym.agents.surrogates.causal.gp_network import GPNetwork
from cbo_gym.agents.toolbox.limits import require_device
from cbo_gym.agents.toolbox.search import Acquisition, maximise
from cbo_gym.arguments import whole_number
from cbo_gym.task import Action, Info, Observation

MOST_DRAWS = 256
NOISE_SAMPLES = 8  # of the nodes' noise, for each drawn network
SCREENING_DRAWS = 4
MEAN_SAMPLES = 64  # of the noise, for the estimates of rewards
RAW_SAMPLES, GENERATIONS, RESTARTS = 512, 2, 6  # of the search
SOFTNESS = 0.01  # of the improvement's corner, in units of the rewards' range


class QEHVINetwork(SeveralObjectivesAgent):
    """Expected hypervolume improvement on a network of GPs. Plays soft and hard tasks with several objectives.

    Args:
        draws: networks drawn from the posterior, 1 to 256.
        device: torch device.

    Attributes:
        network: the GPs of the nodes.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    def __init__(self, draws: int = 16, device: str = "cpu") -> None:
        self.draws = whole_number("draws", draws, at_least=1, at_most=MOST_DRAWS)
        require_device(device)
        self.device = device

    def setup(self, seed: int) -> None:
        super().setup(seed)
        self.network = GPNetwork(self.task, self.device, self.observed)
        self.features = self.network.features
        self._noise_seed = int(self.rng.integers(2**31))
        self._estimates: np.ndarray | None = None

    def update(self, action: Action, observation: Observation, reward: np.ndarray, info: Info) -> None:
        super().update(action, observation, reward, info)
        self.network.add(action, observation)
        self._estimates = None

    def choose(self, seed: int) -> Action:
        estimates = self.estimated_rewards()
        centre, width = estimates.mean(axis=0), np.maximum(np.ptp(estimates, axis=0), 1e-9)
        scaled = torch.from_numpy((estimates - centre) / width).to(self.device)
        reference = torch.from_numpy((reference_below(estimates) - centre) / width).to(self.device)
        cells = FastNondominatedPartitioning(reference, scaled).get_hypercell_bounds()
        units = torch.from_numpy(centre).to(self.device), torch.from_numpy(width).to(self.device)
        few, many = (self._improvement(draws, cells, *units, seed) for draws in (SCREENING_DRAWS, self.draws))
        return maximise(
            many,
            self.features,
            self.front_first(estimates, self.network.minimal),
            seed=seed,
            screening=few,
            scouting=few,
            raw_samples=RAW_SAMPLES,
            generations=GENERATIONS,
            restarts=RESTARTS,
            device=self.device,
        )

    def _improvement(self, draws: int, cells: Tensor, centre: Tensor, width: Tensor, seed: int) -> Acquisition:
        """The logarithm of the expected gain of hypervolume: inputs ``b x 1 x d`` to values ``(b,)``.

        Args:
            draws: networks that are drawn.
            cells: lower and upper corners of boxes that together make up what the front does not dominate, above the
                reference point, ``2 x cells x m``; the rewards are in units of ``centre`` and ``width``.
        """
        draws = min(draws, self.draws)
        nodes = self.network.nodes
        uniform = SobolEngine(len(nodes), scramble=True, seed=seed % 2**31).draw(draws, dtype=torch.float64)
        normal = torch.special.ndtri(uniform.clamp(1e-6, 1.0 - 1e-6)).to(self.device)
        noise = self.network.draw_noise(draws * NOISE_SAMPLES, seed)
        each = len(next(iter(noise.values()))) // draws if noise else 1
        deviation = dict(zip(nodes, normal.repeat_interleave(each, 0).unbind(-1), strict=True))

        def drawn(node: str, inputs: Tensor, mean: Tensor, std: Tensor) -> Tensor:
            return mean + std * deviation[node]

        def improvement(inputs: Tensor) -> Tensor:
            flat = inputs.squeeze(-2)
            values = self.network.rollout(flat, drawn, noise)
            shape = len(flat), draws * each
            columns = [values[name].expand(shape).unflatten(1, (draws, each)).mean(-1) for name in self.observed]
            rewards = (self.rewards_of(torch.stack(columns, -1), flat.unsqueeze(1)) - centre) / width
            gained = _softplus(torch.minimum(rewards.unsqueeze(-2), cells[1]) - cells[0])
            return gained.prod(-1).sum(-1).mean(-1).clamp_min(1e-300).log()

        return improvement

    def estimated_rewards(self) -> np.ndarray:
        if self._estimates is None:
            noise = self.network.draw_noise(MEAN_SAMPLES, self._noise_seed)
            with torch.no_grad():
                values = self.network.rollout(self.network.inputs, lambda node, points, mean, std: mean, noise)
                means = [values[name].mean(-1).expand(len(self.history)) for name in self.observed]
                self._estimates = self.rewards_of(torch.stack(means, -1), self.network.inputs).cpu().numpy()
        return self._estimates


def _softplus(excess: Tensor) -> Tensor:
    """The positive part, smooth at its corner, so that points that gain nothing have a slope."""
    return SOFTNESS * torch.nn.functional.softplus(excess / SOFTNESS)
