"""Agents of partial mode whose purchases are full evaluations (the baselines of Buathong et al. 2024, sec. 5)."""

from __future__ import annotations

import torch

from cbo_gym.agents.purchases.base import PurchaseAgent
from cbo_gym.agents.purchases.fast_pkgfn import KnowledgeGradientAgent
from cbo_gym.agents.purchases.knowledge_gradient import full_knowledge_gradient
from cbo_gym.task import Action

# Search for the greatest knowledge gradient: random candidates, survivors, generations, and children of each survivor.
RANDOM_CANDIDATES, SURVIVORS, GENERATIONS, CHILDREN = 16, 4, 2, 4
# Standard deviation of the children about a survivor.
PERTURBATION = 0.05
# Number of draws of the nodes' functions while there are many candidates.
COARSE_SAMPLES = 4


class FullRandom(PurchaseAgent):
    """Full evaluations with random parameters. Plays partial tasks.

    Args:
        device: torch device.
    """

    def choose(self, seed: int) -> Action:
        return self.buy_all(self.rng.random(self._dim))


class TSFN(PurchaseAgent):
    """Full evaluations at the maximiser of a network drawn from the posterior. Plays partial tasks.

    Args:
        device: torch device.
    """

    revision = 3

    def choose(self, seed: int) -> Action:
        return self.buy_all(self.maximisers_of_draws(1, seed)[0].cpu().numpy())


class FullEIFN(PurchaseAgent):
    """Full evaluations at the best expected improvement on a network of GPs. Plays partial tasks.

    Args:
        device: torch device.
    """

    def choose(self, seed: int) -> Action:
        return self.buy_all(self.propose(seed))


class KGFN(KnowledgeGradientAgent):
    """Full evaluations with the largest knowledge gradient on a network of GPs. Plays partial tasks.

    Args:
        fantasies: number of fantasies of the nodes' values, 1 to 4,096 (8 as in the published program).
        samples: number of draws of the nodes' functions in the knowledge gradient, 1 to 4,096.
        device: torch device.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    revision = 3

    def choose(self, seed: int) -> Action:
        designs = self.designs(seed)
        proposal = torch.from_numpy(self.propose(seed))[None].to(designs)
        random = torch.from_numpy(self.rng.random((RANDOM_CANDIDATES, self._dim))).to(designs)
        points = torch.cat([proposal, designs, random])
        for _ in range(GENERATIONS):
            gains = full_knowledge_gradient(self, designs, points, self.fantasies, COARSE_SAMPLES)
            fittest = points[gains.topk(SURVIVORS).indices]
            steps = PERTURBATION * self.rng.standard_normal((SURVIVORS * CHILDREN, self._dim))
            children = fittest.repeat_interleave(CHILDREN, 0) + torch.from_numpy(steps).to(designs)
            points = torch.cat([proposal, fittest, children.clamp(0.0, 1.0)])
        gains = full_knowledge_gradient(self, designs, points, self.fantasies, self.samples)
        # If all gains are equal, such as 0, this is the proposal.
        return self.buy_all(points[int(gains.argmax())].cpu().numpy())
