"""CEO: causal entropy optimisation (Branchini, Aglietti, Dhir & Damoulas 2022).

CBO with a posterior over candidate graphs. Its causal prior is the mixture of the priors given each graph. A round
plays the action with the greatest expected information per unit of cost, about the graph and the optimum together.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cbo_gym.agents.intervention_sets.candidate_graphs import CandidateGraphs
from cbo_gym.agents.intervention_sets.cbo import CBO, GivenCosts
from cbo_gym.task import Action, Observation

# Entropy in nats below which the graph counts as known.
NEGLIGIBLE_ENTROPY = 0.05
# While the graph is unknown, information is computed at this number of a set's best points, and of random ones.
ANCHORS = 8
# Number of quantiles that represent the distribution of the greatest expected reward.
QUANTILES = 8


class CEO(CBO):
    """CBO that learns which of the candidate graphs is the true one. Plays hard tasks.

    Args:
        costs: costs of the target sets, as for CBO.
        in_common: whether all sets share a GP, as for CBO; False for the paper's method.
        device: torch device.

    Attributes:
        graphs: the posterior over the task's candidate graphs, or over all graphs if the task states none and has at
            most four variables.

    Raises:
        ArgumentError: if a cost is not finite and above 0.
        HiddenGraphError: by :meth:`reset`, if the task has no candidates and too many variables to list all graphs.
    """

    takes_limits = False
    takes_mixed_domains = False
    graphs: CandidateGraphs

    def __init__(self, costs: GivenCosts | None = None, in_common: bool = True, device: str = "cpu") -> None:
        super().__init__(costs=costs, in_common=in_common, device=device)

    def make_effects(self) -> CandidateGraphs:
        self.graphs = CandidateGraphs(self.task, self.device)
        # Interventions are evidence about the graph.
        self.learns_from_interventions = len(self.graphs.diagrams) > 1
        return self.graphs

    def act(self, observation: Observation) -> Action:
        if not self.history:
            return self.begin()
        self._refresh()
        # The model of the empty set is on the CPU.
        candidates = [[tensor.to(self.device) for tensor in model.candidates()] for model in self._explored]
        _, means, stds = zip(*candidates, strict=True)
        greatest = greatest_rewards(torch.cat(means), torch.cat(stds))
        options: list[tuple[float, Action]] = []
        for model, (points, mean, std) in zip(self._explored, candidates, strict=True):
            gain = information_on_greatest(mean, std, model.noise, greatest)
            if self.graphs.entropy > NEGLIGIBLE_ENTROPY:
                anchors = gain.topk(min(ANCHORS, len(gain))).indices.tolist()
                anchors += self.rng.integers(len(gain), size=ANCHORS).tolist() if len(gain) > ANCHORS else []
                on_graph = self.graphs.information(self.task.targets[model.index], points[anchors])
                points, gain = points[anchors], gain[anchors] + torch.from_numpy(on_graph).to(gain)
            gain = gain * (-model.log_surcharge(points)).exp()
            best = int(gain.argmax())
            options.append((float(gain[best]) / model.cost, model.action(points[best].cpu().numpy())))
        return max(options, key=lambda option: option[0])[1]


def greatest_rewards(mean: Tensor, std: Tensor) -> Tensor:
    """Return quantiles ``(QUANTILES,)`` of the greatest of normal variables ``(n,)``, taken as independent."""
    levels = (torch.arange(QUANTILES).to(mean) + 0.5) / QUANTILES
    low = torch.full_like(levels, float((mean - 8.0 * std).max()))
    high = torch.full_like(levels, float((mean + 8.0 * std).max()))
    for _ in range(40):
        middle = 0.5 * (low + high)
        below = torch.special.log_ndtr((middle[:, None] - mean) / std).sum(-1) < levels.log()
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return 0.5 * (low + high)


def information_on_greatest(mean: Tensor, std: Tensor, noise: float, greatest: Tensor) -> Tensor:
    """Return a lower bound, in nats, on the information of noisy observations about the greatest of normal variables.

    Given the greatest value, the normal distribution of a variable is truncated there. The entropy of a noisy
    observation of the variable is at most that of a normal distribution with the same variance. Without the noise, an
    observation of the best variable would seem more informative than one of an unknown variable.

    Args:
        mean: means of the variables, ``(n,)``.
        std: standard deviations of the variables, above 0, ``(n,)``.
        noise: standard deviation of the observations about the variables, at least 0.
        greatest: samples or quantiles of the greatest variable, ``(q,)``.

    Returns:
        the bound for an observation of each variable, ``(n,)``.

    References:
        Moss, Leslie, Gonzalez & Rayson (2021), GIBBON: General-purpose information-based Bayesian optimisation, sec. 3.
    """
    gamma = (greatest[:, None] - mean) / std
    ratio = (-0.5 * (gamma.square() + math.log(2.0 * math.pi)) - torch.special.log_ndtr(gamma)).exp()
    share = std.square() / (std.square() + noise**2)
    return -0.5 * torch.log1p(-share * (ratio * (gamma + ratio)).clamp(0.0, 1.0 - 1e-12)).mean(0)
