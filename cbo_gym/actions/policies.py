"""Choices of the policies of reinforcement learning libraries, as actions of any mode."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from cbo_gym.actions.codec import Action, Codec
from cbo_gym.actions.spaces import Space
from cbo_gym.arguments import seed_number, whole_number

MOST_CHOICES = 2**16  # actions of a policy that chooses among some


class PolicyActions:
    """Turns the choices of Stable-Baselines3's policies into actions of any mode.

    Args:
        codec: of the actions.
        count: None for policies that choose a point of ``Box(-1, 1, (dim,))``, as PPO and SAC do; a number for those
            that choose one of that many evenly spread actions, as DQN does.

    Attributes:
        space: what the policies choose from.

    Raises:
        ArgumentError: if ``count`` is below 2 or above ``MOST_CHOICES``.
    """

    def __init__(self, codec: Codec, count: int | None = None) -> None:
        self._codec = codec
        self._points = None if count is None else spread_points(codec.dim, count)
        self.space: Space
        if self._points is None:
            self.space = spaces.Box(-1.0, 1.0, (codec.dim,), dtype=np.float32)
        else:
            self.space = spaces.Discrete(len(self._points))

    def to_action(self, chosen: int | np.ndarray) -> Action:
        """The action of one choice, or the batch of actions of many; points outside the box are clipped."""
        if self._points is not None:
            return self._codec.to_action(np.array(self._points[chosen]))
        return self._codec.to_action(np.clip((np.asarray(chosen, dtype=np.float64) + 1.0) / 2.0, 0.0, 1.0))


def spread_points(dim: int, count: int, seed: int = 0) -> np.ndarray:
    """``count`` points that fill [0, 1]^dim evenly: a scrambled Sobol sequence, shape ``(count, dim)``.

    Raises:
        ArgumentError: if ``count`` is no whole number from 2 to ``MOST_CHOICES``, or ``seed`` is none.
    """
    count, seed = whole_number("count", count, 2, at_most=MOST_CHOICES), seed_number(seed)
    from scipy.stats import qmc  # late: slow to import, and needed only here

    power = (count - 1).bit_length()  # a full power of two keeps the sequence balanced
    points = qmc.Sobol(dim, scramble=True, rng=np.random.default_rng(seed)).random_base2(power)
    return points[:count]
