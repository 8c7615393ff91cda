"""Round noisy rewards before they are stored, because their last digits are noise and do not compress.

If the noise is large, observed rewards are rounded to a grid with at least :data:`LEVELS` steps from the random value
to the optimum. Expected rewards are stored separately, as regrets. A reward that exceeds all earlier rewards is not
rounded, and no other reward is rounded above these. So the best reward so far, and all that is computed from it, is
unchanged.
"""

from __future__ import annotations

import numpy as np

LEVELS = 256
# Rewards are rounded if their median distance from the expected rewards is larger than this number of steps.
MIN_NOISE = 2.0

Array = np.ndarray


def round_rewards(rewards: Array, expected: Array, gap: float) -> Array:
    """Return the rewards as a store keeps them; rounding is idempotent.

    Args:
        rewards: Observed rewards, shape ``(rounds,)``.
        expected: Expected rewards of the actions, shape ``(rounds,)``.
        gap: Optimum minus random value; if it is not above 0, nothing is rounded.
    """
    if not gap > 0.0:
        return rewards
    step = 2.0 ** np.floor(np.log2(gap / LEVELS))
    if not np.median(np.abs(rewards - expected)) > MIN_NOISE * step:
        return rewards
    best = np.concatenate([[-np.inf], np.maximum.accumulate(rewards)[:-1]])
    nearest = np.round(rewards / step) * step
    lower = np.where(nearest > best, np.floor(rewards / step) * step, nearest)
    return np.where(rewards > best, rewards, lower)
