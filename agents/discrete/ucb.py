"""kl-UCB (Cappe, Garivier, Maillard, Munos & Stoltz 2013, sec. 3) on the arms of a causal bandit; POMIS-UCB.

Every arm is played once, in random order. Each later round plays the arm with the greatest upper bound: the greatest q
with ``count * kl(mean, q) <= log t + 3 log log t``, where kl is the divergence of Bernoulli distributions. On the
possibly optimal arms this is POMIS-UCB (Lee & Bareinboim 2018, sec. 5).
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import xlogy

from cbo_gym.agents.discrete.base import ArmAgent
from cbo_gym.task import Action, Observation

# Number of Newton steps, which leave an error below 1e-10.
NEWTON_STEPS = 6


class UCB(ArmAgent):
    """Upper confidence bounds for rewards in [0, 1], kl-UCB. Plays discrete tasks."""

    def act(self, observation: Observation) -> Action:
        counts = self.counts[self.considered]
        if not counts.all():
            return self.considered[counts.argmin()]
        t = int(self.counts.sum()) + 1
        bounds = upper_bounds(self.sums[self.considered] / counts, confidence(t) / counts)
        return self.considered[bounds.argmax()]


class POMISUCB(UCB):
    """Upper confidence bounds over the arms that can be optimal in some system on the graph. Plays discrete tasks."""

    def __init__(self) -> None:
        super().__init__(sets="possibly_optimal")


def confidence(t: int) -> float:
    """Return log t + 3 log log t; 1 in the first two rounds."""
    return math.log(t) + 3.0 * math.log(math.log(t)) if t > 2 else 1.0


def upper_bounds(means: np.ndarray, divergences: np.ndarray) -> np.ndarray:
    """Return the greatest q with kl(mean, q) <= divergence, for means in [0, 1] and divergences above 0.

    kl is convex in q, so Newton's method converges from above. It starts from the lower of two upper bounds of q:
    Pinsker's, and that from kl(p, q) >= p log p + (1 - p) log((1 - p) / (1 - q)).
    """
    misses, hits = 1.0 - means, xlogy(means, means)
    entropies = hits + xlogy(misses, misses)
    with np.errstate(divide="ignore", invalid="ignore"):
        pinsker = means + np.sqrt(0.5 * divergences)
        by_misses = 1.0 - misses * np.exp((hits - divergences) / misses)
        q = np.where(misses > 0.0, np.minimum(pinsker, by_misses), 1.0)
        for _ in range(NEWTON_STEPS):
            excess = entropies - means * np.log(q) - misses * np.log1p(-q) - divergences
            q = np.where((means < q) & (q < 1.0), q - excess * q * (1.0 - q) / (q - means), q)
    return q
