"""Rewards of several objectives, in the manner of MO-Gymnasium: arrays with one number each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from gymnasium import spaces

from cbo_gym.problems.outcomes import Outcomes
from cbo_gym.scm import Floats
from cbo_gym.scm.model import not_finite


def reward_space(outcomes: Outcomes) -> spaces.Box:
    """The space of the rewards of one round."""
    return spaces.Box(-np.inf, np.inf, (len(outcomes.objectives),), dtype=np.float64)


def finite_rewards(outcomes: Outcomes, found: Mapping[str, Floats], shape: tuple[int, ...]) -> np.ndarray:
    """Rewards of rounds, ``(*shape, number of objectives)``.

    Args:
        outcomes: of the problem.
        found: the objectives' values by name.
        shape: of the rounds, () for one.

    Raises:
        OperationError: naming the first objective that is not a finite number.
    """
    rewards = outcomes.rewards(found, shape)
    if not np.isfinite(rewards).all():
        name = next(name for name, value in found.items() if not np.isfinite(value).all())
        raise not_finite(name, f"gives {found[name]}")
    return rewards
