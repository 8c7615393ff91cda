"""Natively vectorised environments: one NumPy pass for all sub-environments.

Sub-environment ``i`` meets the noise of the scalar environment seeded with ``seed + i``, as in Gymnasium's own
``SyncVectorEnv``, and autoresets in the same way (on the step after the last one).
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from cbo_gym.envs.aggregated import AggregatedEnv
from cbo_gym.envs.base import NOISE_BLOCK, CausalBanditEnv
from cbo_gym.envs.contextual import ContextualEnv
from cbo_gym.envs.hard import HardEnv
from cbo_gym.envs.masked import MaskedEnv
from cbo_gym.envs.soft import SoftEnv
from cbo_gym.problems import Problem


class CausalBanditVectorEnv(VectorEnv[Any, Any, Any]):
    """Many independent experiments on one problem, stepped together.

    Args:
        num_envs: number of sub-environments, at least 1.
        problem: as for the scalar environment.
        max_episode_steps: rounds after which every sub-environment is truncated; None for never.
        render_mode: None, ``"ansi"`` or ``"rgb_array"``; ``render`` returns a tuple, one frame a sub-environment.
        parameters: as for the scalar environment.

    Raises:
        ValueError: if ``num_envs`` is below 1, or as the scalar environment.
    """

    metadata: dict[str, Any] = {
        **CausalBanditEnv.metadata,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }
    env_class: ClassVar[type[CausalBanditEnv]]

    def __init__(
        self,
        num_envs: int,
        problem: str | Problem,
        *,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        **parameters: Any,
    ) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1; given {num_envs}")
        self.num_envs = num_envs
        self.max_episode_steps = max_episode_steps
        self.render_mode = render_mode
        # The scalar environment lends its spaces, its reading of actions and its rendering.
        self._one = self.env_class(problem, render_mode=render_mode, **parameters)
        self.single_action_space = self._one.action_space
        self.single_observation_space = self._one.observation_space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._generators: list[np.random.Generator] = []
        self._begin()

    def _begin(self) -> None:
        self._round = 0
        self._total_reward = np.zeros(self.num_envs)
        self._values: dict[str, Any] = {}
        self._masks: dict[str, np.ndarray] = {}
        self._truncated = False
        self._block: list[np.ndarray] = []
        self._drawn = 0  # rounds whose noise has been drawn

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start all experiments. Without a seed the noise goes on where the random streams are.

        Raises:
            ValueError: for another number of seeds than sub-environments, or for the option ``reset_mask``.
        """
        if options and "reset_mask" in options:
            raise ValueError("all sub-environments play the same round, so reset_mask is not supported")
        if isinstance(seed, int):
            seed = [seed + i for i in range(self.num_envs)]
        if seed is not None and len(seed) != self.num_envs:
            raise ValueError(f"give one seed for each of {self.num_envs} environments; given {len(seed)}")
        seeds: list[int | None] = seed or [None] * self.num_envs
        kept = self._generators or [seeding.np_random(one)[0] for one in seeds]
        self._generators = [
            old if one is None else seeding.np_random(one)[0] for one, old in zip(seeds, kept, strict=True)
        ]
        self._begin()
        return self._empty_observation(), self._info({})

    def step(self, actions: Any) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Play one round everywhere; after a truncated round, reset everywhere and ignore ``actions``.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset.
            gymnasium.error.InvalidAction: naming the first sub-environment whose action is invalid.
        """
        if not self._generators:
            raise gym.error.ResetNeeded("call reset before step")
        false = np.zeros(self.num_envs, dtype=bool)
        if self._truncated:
            observation, info = self.reset()
            return observation, np.zeros(self.num_envs), false, false.copy(), info
        intervention = self._one.decode_batch(actions)
        self._require_one_each(actions)
        values = self._one.play(self._next_noise(), intervention)
        nodes = np.empty((self.num_envs, len(self._one.scm.nodes)))
        for place, name in enumerate(self._one.scm.nodes):
            nodes[:, place] = values[name]
        reward = nodes[:, -1].copy()
        self._round += 1
        self._values = values
        self._total_reward += reward
        self._truncated = self._round == self.max_episode_steps
        truncated = np.full(self.num_envs, self._truncated)
        self._masks = {name: mask for name, (mask, _) in intervention.hard.items()}
        info = self._info(self._one.describe_batch(intervention))
        if self._one.with_oracle:
            for key, number in self._one.oracle_info(intervention).items():
                info[key] = np.broadcast_to(number, self.num_envs)
                info[f"_{key}"] = info["_round"]
        return self._one.observation(nodes, values), reward, false, truncated, info

    def _require_one_each(self, actions: Any) -> None:
        for part in actions.values() if isinstance(actions, dict) else [actions]:
            if len(part) != self.num_envs:
                raise gym.error.InvalidAction(
                    f"give one action for each of {self.num_envs} environments; given {len(part)}"
                )

    def _next_noise(self) -> tuple[np.ndarray, ...]:
        """The noise of the round that is played next."""
        if self._round == self._drawn:
            draws = [self._one.scm.draw_noise(rng, NOISE_BLOCK) for rng in self._generators]
            self._block = [np.stack(columns, axis=1) for columns in zip(*draws, strict=True)]
            self._drawn += NOISE_BLOCK
        return tuple(column[self._round % NOISE_BLOCK] for column in self._block)

    def _empty_observation(self) -> dict[str, np.ndarray]:
        one = self._one.empty_observation()
        return {key: np.tile(value, (self.num_envs, 1)) for key, value in one.items()}

    def _info(self, intervention: dict[str, Any]) -> dict[str, Any]:
        everywhere = np.ones(self.num_envs, dtype=bool)
        return {
            "round": np.full(self.num_envs, self._round),
            "_round": everywhere,
            "intervention": intervention,
            "_intervention": everywhere,
        }

    def render(self) -> tuple[Any, ...] | None:
        """One frame for each sub-environment."""
        self._one.spec = self.spec
        frames = []
        for index in range(self.num_envs):
            self._one.round = self._round
            self._one.total_reward = float(self._total_reward[index])
            self._one.values = {
                name: float(np.broadcast_to(value, self.num_envs)[index]) for name, value in self._values.items()
            }
            self._one.intervened = frozenset(name for name, mask in self._masks.items() if mask[index])
            frames.append(self._one.render())
        return None if self.render_mode is None else tuple(frames)


class SoftVectorEnv(CausalBanditVectorEnv):
    """Vectorised :class:`SoftEnv`."""

    env_class = SoftEnv


class HardVectorEnv(CausalBanditVectorEnv):
    """Vectorised :class:`HardEnv`."""

    env_class = HardEnv


class AggregatedVectorEnv(CausalBanditVectorEnv):
    """Vectorised :class:`AggregatedEnv`."""

    env_class = AggregatedEnv


class MaskedVectorEnv(CausalBanditVectorEnv):
    """Vectorised :class:`MaskedEnv`."""

    env_class = MaskedEnv


class ContextualVectorEnv(CausalBanditVectorEnv):
    """Vectorised :class:`ContextualEnv`."""

    env_class = ContextualEnv
    _one: ContextualEnv

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        observation, info = super().reset(seed=seed, options=options)
        return self._with_next_context(observation), info

    def step(self, actions: Any) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(actions)
        return self._with_next_context(observation), reward, terminated, truncated, info

    def _with_next_context(self, observation: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        self._one.context = self._one.natural_contexts(self._next_noise())
        return {**observation, "context": self._one.context.copy()}
