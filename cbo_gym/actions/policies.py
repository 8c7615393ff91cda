"""Actions of reinforcement learning policies, converted to actions of any mode."""

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from cbo_gym._util.arguments import seed_number, whole_number
from cbo_gym.actions.codec import Action, Codec
from cbo_gym.actions.spaces import Space

# Largest number of actions from which a policy chooses.
MAX_CHOICES = 2**16


class PolicyActions:
    """Converter from actions of Stable-Baselines3's policies to actions of any mode.

    Args:
        codec: codec of the actions.
        count: None for policies whose action is a point of ``Box(-1, 1, (dim,))``, as PPO and SAC; a number for
            policies that choose one of that many evenly spread actions, as DQN.

    Attributes:
        space: the policies' action space.

    Raises:
        ArgumentError: if ``count`` is below 2 or above ``MAX_CHOICES``.
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
        """Return the action of one choice, or a batch of actions; points outside the box are clipped."""
        if self._points is not None:
            return self._codec.to_action(np.array(self._points[chosen]))
        return self._codec.to_action(np.clip((np.asarray(chosen, dtype=np.float64) + 1.0) / 2.0, 0.0, 1.0))


def spread_points(dim: int, count: int, seed: int = 0) -> np.ndarray:
    """Return 2 to ``MAX_CHOICES`` points of a scrambled Sobol sequence in [0, 1]^dim, shape ``(count, dim)``."""
    count, seed = whole_number("count", count, 2, at_most=MAX_CHOICES), seed_number(seed)
    # Imported here, because it is slow to import.
    from scipy.stats import qmc

    # A full power of two keeps the sequence balanced.
    sobol = qmc.Sobol(dim, scramble=True, rng=np.random.default_rng(seed))
    return sobol.random_base2((count - 1).bit_length())[:count]
