"""Rewards of several objectives: arrays with one number per objective, as in MO-Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from gymnasium import spaces

from cbo_gym.problems.outcomes import Outcomes
from cbo_gym.scm import Floats
from cbo_gym.scm.model import not_finite_error


def reward_space(outcomes: Outcomes) -> spaces.Box:
    """Return the space of the rewards of a round."""
    return spaces.Box(-np.inf, np.inf, (len(outcomes.objectives),), dtype=np.float64)


def finite_rewards(outcomes: Outcomes, values: Mapping[str, Floats], shape: tuple[int, ...]) -> np.ndarray:
    """Return the rewards of rounds, ``(*shape, number of objectives)``.

    Args:
        outcomes: outcomes of the problem.
        values: values of the objectives by name.
        shape: shape of the rounds; () for a single round.

    Raises:
        OperationError: naming the first objective that is not a finite number.
    """
    rewards = outcomes.rewards(values, shape)
    if not np.isfinite(rewards).all():
        name = next(name for name, value in values.items() if not np.isfinite(value).all())
        raise not_finite_error(name, f"gives {values[name]}")
    return rewards
