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
    """Turn ``Dict(target, values)`` or ``Dict(scope, values)`` into one ``Box(0, 1, (n_choices + n_manipulable,))``.

    The largest of the first ``n_choices`` numbers picks the target set or scope; the others are the values.

    Raises:
        TypeError: if the environment's actions are not of that kind.
        InvalidAction: from ``step``, if an action lies outside the box.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        inner = env.action_space
        if not isinstance(inner, spaces.Dict) or set(inner) not in ({"target", "values"}, {"scope", "values"}):
            raise TypeError(
                f"FlattenAction needs actions Dict(target, values) or Dict(scope, values); the environment has {inner}"
            )
        (self._choice,) = set(inner) - {"values"}
        choice, values = inner[self._choice], inner["values"]
        assert isinstance(choice, spaces.Discrete)
        assert isinstance(values, spaces.Box)
        self._n_choices = int(choice.n)
        self.action_space = spaces.Box(0.0, 1.0, (self._n_choices + values.shape[0],), dtype=np.float64)

    def action(self, action: np.ndarray) -> dict[str, Any]:
        if action not in self.action_space:
            raise InvalidAction(f"the action must lie in {self.action_space}; given {action!r}")
        scores, values = np.split(action, [self._n_choices])
        return {self._choice: int(np.argmax(scores)), "values": values}


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
