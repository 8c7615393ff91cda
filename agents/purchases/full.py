"""TSFN and EIFN for partial mode: every purchase is a full evaluation (the rivals of Buathong et al. 2024, sec. 5)."""

from __future__ import annotations

from cbo_gym.agents.purchases.base import PurchaseAgent
from cbo_gym.task import Action


class TSFN(PurchaseAgent):
    """Full evaluations at the maximiser of a network drawn from the posterior. Plays partial tasks.

    Args:
        device: torch device.
    """

    def choose(self, seed: int) -> Action:
        return self.buy_all(self.maximisers_of_draws(1, seed)[0].cpu().numpy())


class FullEIFN(PurchaseAgent):
    """Full evaluations at the best expected improvement on a network of GPs. Plays partial tasks.

    Args:
        device: torch device.
    """

    def choose(self, seed: int) -> Action:
        return self.buy_all(self.propose(seed))
