"""Wrappers: action spaces that RL libraries support, and the oracle's values in ``info``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction
from gymnasium.utils import RecordConstructorArgs
from gymnasium.vector import VectorActionWrapper, VectorEnv, VectorObservationWrapper, VectorWrapper

from cbo_gym.actions import BoxCodec, Codec, Domains, SparseBox
from cbo_gym.actions.codec import Actions
from cbo_gym.actions.policies import spread_points
from cbo_gym.actions.reading import as_index, as_numbers
from cbo_gym.envs.oracle import oracle_of
from cbo_gym.errors import ArgumentTypeError, short_repr
from cbo_gym.modes.oracles import ConstrainedOracle, Oracle
from cbo_gym.scm import Intervention
from cbo_gym.task import Action, Observation, StepInfo


def codec_of(env: gym.Env[Observation, Action]) -> Codec:
    """Return the codec of an environment's actions, given what its wrappers have made of them.

    Raises:
        ArgumentTypeError: if no mode of cbo_gym has such an action space.
    """
    space = env.action_space
    dynamics = getattr(env.unwrapped, "dynamics", None)
    if dynamics is not None and dynamics.action_space == space:
        return dynamics.codec
    unit = spaces.Box(0.0, 1.0, space.shape, dtype=np.float64)
    if dynamics is not None and isinstance(space, spaces.Box) and len(space.shape) == 1 and space == unit:
        return BoxCodec(space, Domains([(0.0, 1.0)] * space.shape[0]))
    raise ArgumentTypeError(f"no flat view of the action space {space}; only those of cbo_gym's environments have one")


class FlattenAction(gym.ActionWrapper[Observation, np.ndarray, Action], RecordConstructorArgs):
    """Turn any mode's actions into one ``Box(0, 1, (dim,))``, for PPO, SAC and other continuous methods.

    For ``Dict(target, values)`` and ``Dict(scope, values)``, the largest of the first numbers selects the target set or
    scope; the others are the values. For a cell, the numbers are two corners in any order. Under a cardinality limit,
    the coordinates farthest from the null action are kept. For a super arm, the numbers are scores of the base arms:
    the highest scores above one half are selected, as many as the limit allows.

    Raises:
        ArgumentTypeError: if the environment's actions are of a type that cbo_gym does not have.
        InvalidAction: from ``step``, if an action is outside the box.
    """

    def __init__(self, env: gym.Env[Observation, Action]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self._codec = codec_of(env)
        self.action_space = spaces.Box(0.0, 1.0, (self._codec.dim,), dtype=np.float64)

    def action(self, action: np.ndarray) -> Action:
        return self._codec.to_action(_read_point(self.action_space, action))


class DiscreteAction(gym.ActionWrapper[Observation, Any, Action], RecordConstructorArgs):
    """Offer ``count`` actions that spread evenly over the action space, for DQN and other discrete methods.

    Args:
        env: an environment of any mode.
        count: number of actions, at least 2.
        seed: seed of the scrambled Sobol sequence from which the actions come.

    Raises:
        ArgumentTypeError: if the environment's actions are of a type that cbo_gym does not have.
        ArgumentError: if ``count`` or ``seed`` is out of range or not a whole number.
        InvalidAction: from ``step``, if an action is not one of 0..count-1.
    """

    def __init__(self, env: gym.Env[Observation, Action], count: int = 64, seed: int = 0) -> None:
        RecordConstructorArgs.__init__(self, count=count, seed=seed)
        super().__init__(env)
        self._codec = codec_of(env)
        self._points = spread_points(self._codec.dim, count, seed)
        self.action_space = spaces.Discrete(len(self._points))

    def action(self, action: int) -> Action:
        return self._codec.to_action(self._points[as_index(action, len(self._points))].copy())


class TopKMask(gym.ActionWrapper[Observation, np.ndarray, Action], RecordConstructorArgs):
    """Accept every point of the box although a cardinality limit holds.

    The coordinates farthest from the null action are kept, as many as the limit allows; the others are set to null.

    Raises:
        ArgumentTypeError: if the environment has no cardinality limit.
        InvalidAction: from ``step``, if an action is outside the box.
    """

    def __init__(self, env: gym.Env[Observation, Action]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        if not isinstance(env.action_space, SparseBox):
            raise ArgumentTypeError(f"TopKMask needs an environment with max_interventions; it has {env.action_space}")
        self._sparse = env.action_space
        self.action_space = spaces.Box(0.0, 1.0, self._sparse.shape, dtype=np.float64)

    def action(self, action: np.ndarray) -> np.ndarray:
        return self._sparse.keep_largest(_read_point(self.action_space, action))


class OracleInfo(gym.Wrapper[Observation, Action, Observation, Action], RecordConstructorArgs):
    """Put ``expected_reward`` and ``instant_regret`` into ``info``. For teaching and evaluation: agents may not use it.

    In contextual mode the expected reward is E[Y | x, c] of the action in the context in which it is played, and the
    regret is the difference from the best policy's. In adversarial mode both are against the move of
    ``adversary="fixed"``, because the best action in hindsight is not known yet. With constraints, ``info`` also has
    ``feasible`` and ``violation``, and the regret of an infeasible action is that of a random feasible one.

    Args:
        env: an environment of this package whose actions no wrapper has changed.

    Raises:
        ArgumentTypeError: if the environment is of another package, or a wrapper changes its actions.
    """

    def __init__(self, env: gym.Env[Observation, Action]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self.oracle = oracle_of(env)
        self._last_observation: Observation = {}
        _require_unchanged(env, (gym.ActionWrapper, gym.ObservationWrapper))

    def reset(self, *, seed: int | None = None, options: StepInfo | None = None) -> tuple[Observation, StepInfo]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._last_observation = _copy(observation)
        return observation, info

    def step(self, action: Action) -> tuple[Observation, SupportsFloat, bool, bool, StepInfo]:
        # The oracle evaluates exactly the action that is played.
        action_played = self.oracle.dynamics.read(action)
        intervention = self.env.unwrapped.to_intervention(action_played)  # type: ignore[attr-defined]
        observation, reward, terminated, truncated, info = self.env.step(action_played)
        info |= _oracle_info(self.oracle, intervention, self._last_observation)
        self._last_observation = _copy(observation)
        return observation, reward, terminated, truncated, info


class VectorOracleInfo(VectorWrapper):
    """:class:`OracleInfo` for a vectorised environment.

    Args:
        env: a vectorised environment of this package.

    Raises:
        ArgumentTypeError: if the environment is of another package, or a wrapper changes its actions.
    """

    def __init__(self, env: VectorEnv[Observation, Actions, np.ndarray]) -> None:
        super().__init__(env)
        self.oracle = oracle_of(env)
        self._last_observation: Observation = {}
        self._resets_next = False
        _require_unchanged(env, (VectorActionWrapper, VectorObservationWrapper))

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: StepInfo | None = None
    ) -> tuple[Observation, StepInfo]:
        observation, info = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        self._last_observation, self._resets_next = _copy(observation), False
        return observation, info

    def step(self, actions: Actions) -> tuple[Observation, np.ndarray, np.ndarray, np.ndarray, StepInfo]:
        # In the step after the last round, the environment resets and ignores the actions.
        if self._resets_next:
            observation, reward, terminated, truncated, info = self.env.step(actions)
        else:
            # The oracle evaluates exactly the actions that are played.
            actions_played = self.oracle.dynamics.read_batch(actions)
            intervention = self.env.unwrapped.to_intervention(actions_played)  # type: ignore[attr-defined]
            observation, reward, terminated, truncated, info = self.env.step(actions_played)
            for key, number in _oracle_info(self.oracle, intervention, self._last_observation).items():
                info[key] = np.full(self.num_envs, number)
                info[f"_{key}"] = np.ones(self.num_envs, dtype=bool)
        self._last_observation, self._resets_next = _copy(observation), bool(truncated[0])
        return observation, reward, terminated, truncated, info


def wrappers_of(env: Any) -> Iterator[Any]:
    """Yield the wrappers of an environment, scalar or vectorised, from the outermost to the innermost."""
    while isinstance(env, gym.Wrapper | VectorWrapper):
        yield env
        env = env.env


def _read_point(box: spaces.Space[Any], action: Any) -> np.ndarray:
    point = as_numbers(action)
    if point.shape != box.shape:
        raise InvalidAction(f"the action must lie in {box}; given shape {point.shape}")
    if point not in box:
        raise InvalidAction(f"the action must lie in {box}; given {short_repr(point.tolist())}")
    return point


def _require_unchanged(env: Any, wrapper_types: tuple[type, ...]) -> None:
    """Refuse wrappers that change actions or observations, because the oracle would evaluate another action."""
    if any(isinstance(wrapper, wrapper_types) for wrapper in wrappers_of(env)):
        raise ArgumentTypeError(f"OracleInfo goes inside of wrappers that change actions or observations; given {env}")


def _oracle_info(oracle: Oracle, intervention: Intervention, observation: Observation) -> StepInfo:
    """Return the keys that :class:`OracleInfo` adds to ``info``, given the observation before the round."""
    expected = oracle.expected_in_round(intervention, observation).value
    oracle_info: StepInfo = {"expected_reward": expected[()]}
    if isinstance(oracle, ConstrainedOracle):
        violations = oracle.batch_violations(intervention, max(1, np.size(expected))).reshape(*np.shape(expected), -1)
        feasible: np.ndarray = violations.sum(axis=-1) == 0.0
        expected = np.where(feasible, expected, oracle.optimum.random_value)
        oracle_info |= {"feasible": feasible[()], "violation": violations.sum(axis=-1)[()]}
    return oracle_info | {"instant_regret": (oracle.best_in_round(intervention, observation) - expected)[()]}


def _copy(observation: Observation) -> Observation:
    return {key: value.copy() for key, value in observation.items()}
