"""SEM-UCB (Nourani-Koliji, Ghoorchian & Maghsudi 2022): linear structural equations and bounds on the signals' means.

With linear edges the payoff is a weighted sum of the signals. The score of a super arm is that sum at the upper
confidence bounds of the signals' means, without a bonus for uncertainty about the edges.
"""

from __future__ import annotations

import numpy as np

from cbo_gym.agents.super_arms.payoff_polynomials import Expansion
from cbo_gym.agents.super_arms.separable_system import EdgeFunction
from cbo_gym.agents.super_arms.ssem_ucb import SSEMUCBJO

# Default of the argument internal_scale.
INTERNAL_SCALE = 0.0003


class SEMUCB(SSEMUCBJO):
    """Linear SEM-UCB. Plays masked separable tasks.

    Args:
        internal_scale: factor of the confidence in the signals' means, at least 0; the theory has 1.

    Raises:
        ArgumentError: if the scale is out of range; from ``reset``, if there are too many super arms.
        UnsupportedModeError: from ``reset``, if the task is not a separable system.
    """

    def __init__(self, internal_scale: float = INTERNAL_SCALE) -> None:
        super().__init__(degree=1, internal_scale=internal_scale, external_scale=0.0, corrected=False)

    def components(self) -> tuple[EdgeFunction, ...]:
        # np.asarray is the identity.
        return (np.asarray,)

    def internal(self, expansion: Expansion) -> np.ndarray:
        confidence = self.moments.confidence(len(self.history), self.limit)
        return expansion.optimistic(*self.moments.intervals(self.internal_scale * confidence))
