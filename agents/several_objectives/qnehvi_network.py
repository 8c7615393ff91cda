"""qNEHVI-Network: noisy expected hypervolume improvement on a network of GPs, a new combination of known methods.

Every node has a GP. A network drawn from their posteriors gives a joint sample of all objectives, averaged over samples
of the nodes' noise. A round plays the action with the greatest expected gain of hypervolume over the sampled fronts of
the actions played (Daulton, Balandat & Bakshy 2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from botorch.acquisition.logei import TAU_RELU
from botorch.utils.multi_objective.box_decompositions import FastNondominatedPartitioning
from botorch.utils.safe_math import log_fatplus
from torch import Tensor
from torch.quasirandom import SobolEngine

from cbo_gym._util.arguments import whole_number
from cbo_gym.agents.common.limits import require_device
from cbo_gym.agents.common.search import Acquisition, Effort
from cbo_gym.agents.networks.base import NetworkLearner
from cbo_gym.agents.networks.gp_network import GPNetwork
from cbo_gym.agents.several_objectives.base import SeveralObjectivesAgent, baseline_of, reference_of, scale_of
from cbo_gym.task import Action

# Number of noise samples for each drawn network, and for the estimates of rewards.
NOISE_SAMPLES, MEAN_SAMPLES = 8, 64
# Number of drawn networks with which random points are screened, and for the posterior of the objectives.
SCREENING_DRAWS, POSTERIOR_DRAWS = 4, 64
EFFORT = Effort(raw_samples=512, generations=2, restarts=6)


class QNEHVINetwork(NetworkLearner, SeveralObjectivesAgent):
    """Noisy expected hypervolume improvement on a network of GPs. Plays soft and hard tasks with several objectives.

    Args:
        draws: number of networks drawn from the posterior, 1 to 256.
        device: torch device.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    takes_mixed_domains = True
    takes_limits = True
    takes_partial = True
    takes_precision = True

    def __init__(self, draws: int = 16, device: str = "cpu") -> None:
        self.draws = whole_number("draws", draws, at_least=1, at_most=256)
        self.device = require_device(device)

    def setup(self, seed: int) -> None:
        super().setup(seed)
        self.network = GPNetwork(self.task, self.device, self.observed)
        self.features = self.network.features
        self._noise_seed = int(self.rng.integers(2**31))

    def search(self, seed: int) -> Action:
        estimates = self.estimated_rewards()
        screening = self._improvement(min(SCREENING_DRAWS, self.draws), estimates, seed)
        acquisition = self._improvement(self.draws, estimates, seed)
        played = self.front_first(estimates, self.network.minimal)
        return self.maximise(acquisition, screening, played, seed, EFFORT)

    def _improvement(self, draws: int, estimates: np.ndarray, seed: int) -> Acquisition:
        """Return the logarithm of the expected gain of hypervolume: inputs ``b x 1 x d`` to values ``(b,)``."""
        nodes = self.network.nodes
        uniform = SobolEngine(len(nodes), scramble=True, seed=seed % 2**31).draw(draws, dtype=torch.float64)
        normal = torch.special.ndtri(uniform.clamp(1e-6, 1.0 - 1e-6)).to(self.device)
        noise = self.network.draw_noise(draws * NOISE_SAMPLES, seed)
        noise_count = NOISE_SAMPLES if noise else 1
        deviation = dict(zip(nodes, normal.repeat_interleave(noise_count, 0).unbind(-1), strict=True))
        centre, width = scale_of(estimates, self.device)

        def draw(node: str, inputs: Tensor, mean: Tensor, std: Tensor) -> Tensor:
            return mean + std * deviation[node]

        def rewards(inputs: Tensor) -> Tensor:
            """Return rewards of actions ``b x d`` in each drawn network, ``b x draws x m``, in units of their range."""
            values = self.network.rollout(inputs, draw, noise)
            shape = len(inputs), draws * noise_count
            columns = [values[name].expand(shape).unflatten(1, (draws, noise_count)).mean(-1) for name in self.observed]
            return (self.rewards_of(torch.stack(columns, -1), inputs.unsqueeze(1)) - centre) / width

        native_reference = reference_of(estimates, self._predicted_rewards, self.features, seed, self.device)
        reference = (torch.from_numpy(native_reference).to(self.device) - centre) / width
        with torch.no_grad():
            played = rewards(self.network.inputs[baseline_of(estimates)])
        # For each drawn network, the ends of the boxes that its front leaves open, ``2 x boxes x m``.
        boxes = [FastNondominatedPartitioning(reference, front).get_hypercell_bounds() for front in played.unbind(1)]
        most = max(ends.shape[1] for ends in boxes)
        # Boxes that begin at infinity pad the shorter lists, because no point reaches them.
        padded = [torch.nn.functional.pad(ends, (0, 0, 0, most - ends.shape[1]), value=torch.inf) for ends in boxes]
        lower, upper = torch.stack(padded, 1)

        def improvement(inputs: Tensor) -> Tensor:
            predicted = rewards(inputs.squeeze(-2)).unsqueeze(-2)
            log_gains = log_fatplus(torch.minimum(predicted, upper) - lower, TAU_RELU).sum(-1)
            return log_gains.logsumexp(-1).logsumexp(-1)

        return improvement

    def posterior(self, actions: Sequence[Action]) -> tuple[Tensor, Tensor]:
        inputs = self.features.of_actions(actions).to(self.network.inputs)
        noise = self.network.draw_noise(NOISE_SAMPLES, self._noise_seed)
        samples = NOISE_SAMPLES if noise else 1
        return self.network.expectations(inputs, self.observed, noise, POSTERIOR_DRAWS, samples)

    def expected_nodes(self, action: Action) -> Mapping[str, float]:
        return {**self.network.expected_nodes(action), **super().expected_nodes(action)}

    def expected_nodes_given(self, action: Action, measured: Mapping[str, float]) -> Mapping[str, float]:
        return {**super().expected_nodes(action), **self.network.expected_nodes(action, measured)}

    def estimated_rewards(self) -> np.ndarray:
        if self._estimates is None:
            self._estimates = self._predicted_rewards(self.network.inputs)
        return self._estimates

    def _predicted_rewards(self, inputs: Tensor) -> np.ndarray:
        noise = self.network.draw_noise(MEAN_SAMPLES, self._noise_seed)
        with torch.no_grad():
            values = self.network.rollout(inputs, lambda node, points, mean, std: mean, noise)
            means = [values[name].mean(-1).expand(len(inputs)) for name in self.observed]
            return self.rewards_of(torch.stack(means, -1), inputs).cpu().numpy()
