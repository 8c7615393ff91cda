"""Wrappers that give RL libraries the action spaces that they can handle."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction
from gymnasium.utils import RecordConstructorArgs

from cbo_gym.envs.spaces import SparseBox
from cbo_gym.flat import flat_actions, spread_points


class FlattenAction(gym.ActionWrapper[Any, np.ndarray, Any], RecordConstructorArgs):
    """Turn any mode's actions into one ``Box(0, 1, (dim,))``, for PPO, SAC and other continuous methods.

    Of ``Dict(target, values)`` and ``Dict(scope, values)`` the largest of the first numbers picks the target set or
    scope and the others are the values; of a cell the numbers are its two corners in any order; under a limit the
    coordinates farthest from the null action are kept; of a super arm the numbers are scores of the base arms, of
    which the highest ones above one half are selected, as many as the limit allows.

    Raises:
        TypeError: if the environment's actions are not of a kind that cbo_gym has.
        InvalidAction: from ``step``, if an action lies outside the box.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self._flat = flat_actions(env.action_space)
        self.action_space = spaces.Box(0.0, 1.0, (self._flat.dim,), dtype=np.float64)

    def action(self, action: np.ndarray) -> Any:
        point = np.asarray(action, dtype=np.float64)
        if point not in self.action_space:
            raise InvalidAction(f"the action must lie in {self.action_space}; given {action!r}")
        return self._flat.to_action(point)


class DiscreteAction(gym.ActionWrapper[Any, Any, Any], RecordConstructorArgs):
    """Offer ``count`` actions that spread evenly over the action space, for DQN and other discrete methods.

    Args:
        env: an environment of any mode.
        count: number of actions, at least 2.
        seed: of the scrambled Sobol sequence that the actions come from.

    Raises:
        TypeError: if the environment's actions are not of a kind that cbo_gym has.
        ValueError: if ``count`` is below 2.
        InvalidAction: from ``step``, if an action is not one of 0..count-1.
    """

    def __init__(self, env: gym.Env[Any, Any], count: int = 64, seed: int = 0) -> None:
        RecordConstructorArgs.__init__(self, count=count, seed=seed)
        super().__init__(env)
        self._flat = flat_actions(env.action_space)
        self._points = spread_points(self._flat.dim, count, seed)
        self.action_space = spaces.Discrete(count)

    def action(self, action: int) -> Any:
        if action not in self.action_space:
            raise InvalidAction(f"the action must be one of 0..{len(self._points) - 1}; given {action!r}")
        return self._flat.to_action(self._points[int(action)])


class TopKMask(gym.ActionWrapper[Any, np.ndarray, Any], RecordConstructorArgs):
    """Let an agent play the whole box where a cardinality limit holds.

    Of the coordinates the ones farthest from the null action are kept, as many as the limit allows; the rest are
    set to null.

    Raises:
        TypeError: if the environment has no cardinality limit.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        if not isinstance(env.action_space, SparseBox):
            raise TypeError(f"TopKMask needs an environment with max_interventions; it has {env.action_space}")
        self._sparse = env.action_space
        self.action_space = spaces.Box(0.0, 1.0, self._sparse.shape, dtype=np.float64)

    def action(self, action: np.ndarray) -> np.ndarray:
        return self._sparse.keep_largest(np.asarray(action))
