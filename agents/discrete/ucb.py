"""kl-UCB (Cappe, Garivier, Maillard, Munos & Stoltz 2013, sec. 3) on the arms of a causal bandit; POMIS-UCB.

Every arm is played once, in random order; then the one with the greatest q for which
``count * kl(mean, q) <= log t + 3 log log t``, kl between Bernoulli distributions. On the possibly optimal arms this is
POMIS-UCB (Lee & Bareinboim 2018, sec. 5).
"""

from __future__ import annotations

import math

import numpy as np

from cbo_gym.agents.discrete.base import ArmAgent
from cbo_gym.task import Action, Info, Observation

# Number of Newton steps, which leave an error below 1e-10.
NEWTON_STEPS = 6
# Number of rounds per arm for which bounds are computed ahead.
LOOK_AHEAD = 2


class UCB(ArmAgent):
    """Upper confidence bounds for rewards in [0, 1], kl-UCB. Plays discrete tasks."""

    def setup(self, seed: int) -> None:
        super().setup(seed)
        #: Bounds in round ``_until`` if the arm is not played before, in the order of `considered`
        self._ahead = np.full(len(self.considered), math.inf)
        self._until = 0
        self._index = {int(arm): index for index, arm in enumerate(self.considered)}

    def act(self, observation: Observation) -> Action:
        """Play the arm with the greatest bound. Bounds grow with t, so bounds of a later round rule out most arms."""
        t = int(self.counts.sum()) + 1
        if t > self._until:
            self._until = t + LOOK_AHEAD * len(self.considered)
            self._ahead[:] = [self._bound(int(arm), self._until) for arm in self.considered]
        bounds, exact = self._ahead.copy(), -1
        while (best := int(bounds.argmax())) != exact:
            bounds[best], exact = self._bound(int(self.considered[best]), t), best
        return self.considered[best]

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        index = self._index.get(int(action))
        if index is not None:
            self._ahead[index] = self._bound(int(action), self._until)

    def _bound(self, arm: int, t: int) -> float:
        count = float(self.counts[arm])
        return upper_bound(float(self.sums[arm]) / count, confidence(t) / count) if count else math.inf


class POMISUCB(UCB):
    """Upper confidence bounds over the arms that can be optimal in some system on the graph. Plays discrete tasks."""

    def __init__(self) -> None:
        super().__init__(sets="possibly_optimal")


def confidence(t: int) -> float:
    """Return log t + 3 log log t; 1 in the first two rounds."""
    return math.log(t) + 3.0 * math.log(math.log(t)) if t > 2 else 1.0


def upper_bound(mean: float, divergence: float) -> float:
    """Return the greatest q with kl(mean, q) <= divergence, for a mean in [0, 1] and a divergence above 0.

    Newton's method from above: kl is convex in q. It starts from the lower of two bounds, Pinsker's and that of
    kl(p, q) >= p log p + (1 - p) log((1 - p) / (1 - q)).
    """
    miss = 1.0 - mean
    if miss <= 0.0:
        return 1.0
    hit = mean * math.log(mean) if mean > 0.0 else 0.0
    entropy = hit + miss * math.log(miss)
    q = min(mean + math.sqrt(0.5 * divergence), 1.0 - miss * math.exp((hit - divergence) / miss))
    for _ in range(NEWTON_STEPS):
        if not mean < q < 1.0:
            break
        excess = entropy - mean * math.log(q) - miss * math.log1p(-q) - divergence
        q -= excess * q * (1.0 - q) / (q - mean)
    return q
