"""Wrappers that give RL libraries the action spaces that they can handle."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction
from gymnasium.utils import RecordConstructorArgs

from cbo_gym.envs.spaces import SparseBox


class FlattenAction(gym.ActionWrapper[Any, np.ndarray, Any], RecordConstructorArgs):
    """Turn the hard mode's ``Dict(target, values)`` into one ``Box(0, 1, (n_targets + n_manipulable,))``.

    The largest of the first ``n_targets`` numbers picks the target set; the others are the values.

    Raises:
        TypeError: if the environment's actions are not of that kind.
        InvalidAction: from ``step``, if an action lies outside the box.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        inner = env.action_space
        if not isinstance(inner, spaces.Dict) or set(inner) != {"target", "values"}:
            raise TypeError(f"FlattenAction needs actions Dict(target, values); the environment has {inner}")
        target, values = inner["target"], inner["values"]
        assert isinstance(target, spaces.Discrete)
        assert isinstance(values, spaces.Box)
        self._n_targets = int(target.n)
        self.action_space = spaces.Box(0.0, 1.0, (self._n_targets + values.shape[0],), dtype=np.float64)

    def action(self, action: np.ndarray) -> dict[str, Any]:
        if action not in self.action_space:
            raise InvalidAction(f"the action must lie in {self.action_space}; given {action!r}")
        scores, values = np.split(action, [self._n_targets])
        return {"target": int(np.argmax(scores)), "values": values}


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
