"""Noisy rewards, of which a store keeps what tells something: their last digits are noise, and do not compress.

An observed reward is an expected one and noise, and the expected ones are kept by themselves, as regrets. So where the
noise is plain to see, rewards are rounded to a grid, :data:`LEVELS` steps or more of it to what lies between a random
action and the optimum. A reward above all before it stays as it is, and none is rounded above those before it: the best
reward so far, and whatever is worked out from it, does not change.
"""

from __future__ import annotations

import numpy as np

LEVELS = 256
PLAIN = 2.0  # steps that half of the rewards at least are off what was expected

Array = np.ndarray


def rounded(rewards: Array, expected: Array, gap: float) -> Array:
    """Rewards as a store keeps them; what is rounded already comes out as it is.

    Args:
        rewards: observed, of each round, shape ``(rounds,)``.
        expected: of what was played, likewise.
        gap: what the optimum is above a random action's reward; where it is not above 0 nothing is rounded.
    """
    if not gap > 0.0:
        return rewards
    step = 2.0 ** np.floor(np.log2(gap / LEVELS))
    if not np.median(np.abs(rewards - expected)) > PLAIN * step:
        return rewards
    best = np.concatenate([[-np.inf], np.maximum.accumulate(rewards)[:-1]])
    nearest = np.round(rewards / step) * step
    lower = np.where(nearest > best, np.floor(rewards / step) * step, nearest)
    return np.where(rewards > best, rewards, lower)
