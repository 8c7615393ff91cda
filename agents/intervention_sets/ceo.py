"""CEO: causal entropy optimisation (Branchini, Aglietti, Dhir & Damoulas 2022).

CBO with a posterior over candidate graphs. Its causal prior is the mixture of those of the graphs, and a round is worth
what it is expected to tell of the graph and of the optimum together, per unit of cost.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from cbo_gym.agents.intervention_sets.candidate_graphs import CandidateGraphs
from cbo_gym.agents.intervention_sets.cbo import CBO, GivenCosts
from cbo_gym.task import Action, Observation

KNOWN = 0.05  # nats of the graph's entropy
ANCHORS = 8  # points of a set, the best and random ones, where both amounts are computed
QUANTILES = 8  # of the greatest expected reward


class CEO(CBO):
    """CBO that learns which of the candidate graphs is the true one. Plays hard tasks.

    Args:
        costs: as for CBO.
        in_common: as for CBO; False for the paper's method.
        device: torch device.

    Attributes:
        graphs: the posterior over the candidates that the task tells; over all graphs of at most four variables where
            it tells names alone.

    Raises:
        ArgumentError: if a cost is not finite and above 0.
        HiddenGraphError: by :meth:`reset`, if no candidates are told and there are too many variables to list them.
    """

    graphs: CandidateGraphs

    def __init__(self, costs: GivenCosts | None = None, in_common: bool = True, device: str = "cpu") -> None:
        super().__init__(costs=costs, in_common=in_common, device=device)

    def make_model(self) -> CandidateGraphs:
        self.graphs = CandidateGraphs(self.task, self.device)
        self.learns_from_interventions = len(self.graphs.diagrams) > 1  # they tell which graph is the true one
        return self.graphs

    def act(self, observation: Observation) -> Action:
        if not self.history:
            return self._observing.act()
        self.estimated_rewards()  # brings the models up to date
        beliefs = [arm.beliefs() for arm in self._explored]
        greatest = greatest_rewards(*(torch.cat(parts) for parts in zip(*[b[1:] for b in beliefs], strict=True)))
        found: list[tuple[float, Action]] = []
        for arm, (points, mean, std) in zip(self._explored, beliefs, strict=True):
            gain = information_on_greatest(mean, std, arm.noise, greatest)
            if self.graphs.entropy > KNOWN:
                chosen = gain.topk(min(ANCHORS, len(gain))).indices.tolist()
                chosen += self.rng.integers(len(gain), size=ANCHORS).tolist() if len(gain) > ANCHORS else []
                of_graph = self.graphs.information(self.task.targets[arm.index], points[chosen])
                points, gain = points[chosen], gain[chosen] + torch.from_numpy(of_graph).to(gain)
            gain = gain * (-arm.log_surcharge(points)).exp()
            best = int(gain.argmax())
            found.append((float(gain[best]) / arm.cost, arm.action(points[best].cpu().numpy())))
        return max(found, key=lambda pair: pair[0])[1]


def greatest_rewards(mean: Tensor, std: Tensor) -> Tensor:
    """Quantiles of the greatest of many normal variables ``(n,)``, taken as independent: shape ``(QUANTILES,)``."""
    levels = (torch.arange(QUANTILES).to(mean) + 0.5) / QUANTILES
    low = torch.full_like(levels, float((mean - 8.0 * std).max()))
    high = torch.full_like(levels, float((mean + 8.0 * std).max()))
    for _ in range(40):
        middle = 0.5 * (low + high)
        below = torch.special.log_ndtr((middle[:, None] - mean) / std).sum(-1) < levels.log()
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return 0.5 * (low + high)


def information_on_greatest(mean: Tensor, std: Tensor, noise: float, greatest: Tensor) -> Tensor:
    """A lower bound, in nats, on the information that noisy observations of normal variables give of the greatest one.

    Given the greatest, a variable's normal distribution is truncated there. A normal one with the same variance, and
    the noise on top, has at least the entropy of the observation. Without heed of the noise the best variable, of which
    a little is unknown for ever, would be worth more than any that is unknown altogether.

    Args:
        mean: shape ``(n,)``.
        std: the same, above 0.
        noise: standard deviation of the observations about the variables, at least 0.
        greatest: samples or quantiles of the greatest.

    Returns:
        shape ``(n,)``.

    References:
        Moss, Leslie, Gonzalez & Rayson (2021), GIBBON: General-purpose information-based Bayesian optimisation, sec. 3.
    """
    gamma = (greatest[:, None] - mean) / std
    ratio = (-0.5 * (gamma.square() + math.log(2.0 * math.pi)) - torch.special.log_ndtr(gamma)).exp()
    share = std.square() / (std.square() + noise**2)
    return -0.5 * torch.log1p(-share * (ratio * (gamma + ratio)).clamp(0.0, 1.0 - 1e-12)).mean(0)
