"""Natively vectorised environments: one NumPy pass for all sub-environments.

Sub-environment ``i`` meets the noise of the scalar environment seeded with ``seed + i``, as in Gymnasium's own
``SyncVectorEnv``, and resets itself in the same way, on the step after the last round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from cbo_gym._util.arguments import MAX_NOISE_SEED, seed_number, whole_number
from cbo_gym.actions.codec import Actions
from cbo_gym.actions.reading import copy_action
from cbo_gym.envs.objectives import finite_rewards, reward_space
from cbo_gym.envs.rendering import render, require_render_mode
from cbo_gym.envs.scalar import NOISE_BLOCK, CausalBanditEnv, NoiseStream
from cbo_gym.envs.snapshot import Snapshot
from cbo_gym.errors import ArgumentError
from cbo_gym.modes import make_dynamics
from cbo_gym.modes.base.dynamics import Memory
from cbo_gym.modes.oracles.constrained import require_feasible
from cbo_gym.problems import Problem
from cbo_gym.scm import Floats, Intervention
from cbo_gym.scm.model import not_finite_error
from cbo_gym.scm.system import Draws, Values
from cbo_gym.task import Mode, StepInfo

Observations = dict[str, np.ndarray]
# Largest number of noise draws in memory at once, which take half a gigabyte.
MAX_DRAWS = 2**26


class CausalBanditVectorEnv(VectorEnv[Observations, Actions, np.ndarray]):
    """Many independent experiments on one problem, stepped together.

    Experiment ``i`` equals the single environment seeded with ``seed + i`` bit for bit, except for rounding in three
    cases. NumPy computes powers of arrays (``x**0.5`` in Alpine2, PooledTesting, Chemostat), and the C library those of
    single floats. A cyclic system (TrainDelay) is iterated until all experiments have settled to 1e-12. Matrix products
    in custom mechanisms may be summed in another order.

    Args:
        num_envs: number of sub-environments, from 1 to 262,144 divided by the number of variables that have noise. At
            the maximum the noise of a block of rounds takes half a gigabyte.
        problem: as for the scalar environment.
        mode: the feedback mode.
        max_episode_steps: rounds after which every sub-environment is truncated; None for never.
        render_mode: None, ``"ansi"`` or ``"rgb_array"``; ``render`` returns a tuple of frames.
        parameters: as for the scalar environment.

    Raises:
        ArgumentError: if ``num_envs`` or ``max_episode_steps`` is out of range, or as the scalar environment.
    """

    metadata: dict[str, Any] = {
        **CausalBanditEnv.metadata,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int,
        problem: str | Problem,
        *,
        mode: Mode | str = Mode.SOFT,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        **parameters: Any,
    ) -> None:
        require_render_mode(render_mode)
        whole_number("num_envs", num_envs, at_least=1)
        self.max_episode_steps = (
            None if max_episode_steps is None else whole_number("max_episode_steps", max_episode_steps, at_least=1)
        )
        self.render_mode = render_mode
        self.dynamics = make_dynamics(problem, mode, **parameters)
        require_feasible(self.dynamics)
        self.mode = self.dynamics.mode
        self.problem = self.dynamics.problem
        self.scm = self.dynamics.scm
        max_envs = MAX_DRAWS // (NOISE_BLOCK * max(1, len(self.scm.noisy)))
        self.num_envs = whole_number("num_envs", num_envs, at_least=1, at_most=max_envs)
        self.single_action_space = self.dynamics.action_space
        self.single_observation_space = self.dynamics.observation_space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._objectives = self.problem.outcomes.objectives
        if self._objectives:
            self.reward_space = reward_space(self.problem.outcomes)
        self._generators: list[np.random.Generator] = []
        self._begin()

    def _begin(self) -> None:
        self._round = 0
        self._total_reward = self._no_reward()
        self._values: Values = {}
        self._intervention: Intervention | None = None
        self._truncated = False
        self._noise = NoiseStream(self.scm, self._generators)
        self._last_noise: Draws = ()
        self._memory = self._last_memory = self.dynamics.start()

    def _no_reward(self) -> np.ndarray:
        return np.zeros((self.num_envs, len(self._objectives)) if self._objectives else self.num_envs)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: StepInfo | None = None
    ) -> tuple[Observations, StepInfo]:
        """Start all experiments. Without a seed the noise continues its random streams.

        Raises:
            ArgumentError: for a seed that is not a whole number from 0 to 2**128 - 1, another number of seeds than
                sub-environments, or the option ``reset_mask``.
        """
        if options and "reset_mask" in options:
            raise ArgumentError("all sub-environments play the same round, so reset_mask is not supported")
        seeds = self._seeds(seed)
        old_generators = self._generators or [seeding.np_random()[0] for _ in seeds]
        pairs = zip(seeds, old_generators, strict=True)
        self._generators = [old if own_seed is None else seeding.np_random(own_seed)[0] for own_seed, old in pairs]
        self._begin()
        empty = {key: np.tile(value, (self.num_envs, 1)) for key, value in self.dynamics.empty_observation().items()}
        return self._with_next(empty, self._memory), self._info({})

    def _seeds(self, seed: Any) -> list[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if not isinstance(seed, list | tuple | np.ndarray):
            first_seed = seed_number(seed, at_most=MAX_NOISE_SEED)
            return [first_seed + i for i in range(self.num_envs)]
        if np.shape(seed)[:1] != (self.num_envs,):
            raise ArgumentError(f"give one seed for each of {self.num_envs} environments; given {np.size(seed)}")
        return [None if own_seed is None else seed_number(own_seed, at_most=MAX_NOISE_SEED) for own_seed in seed]

    def step(self, actions: Actions) -> tuple[Observations, np.ndarray, np.ndarray, np.ndarray, StepInfo]:
        """Play one round everywhere; after a truncated round, reset everywhere and ignore ``actions``.

        Raises:
            gymnasium.error.ResetNeeded: before the first reset.
            gymnasium.error.InvalidAction: naming the first sub-environment whose action is invalid.
            OperationError: if a reward, or any variable of a :class:`~cbo_gym.scm.GuardedModel`, is not
                finite; nothing changes then.
        """
        if not self._generators:
            raise gym.error.ResetNeeded("call reset before step")
        false = np.zeros(self.num_envs, dtype=bool)
        if self._truncated:
            observation, info = self.reset()
            return observation, self._no_reward(), false, false.copy(), info
        intervention = self._decode(actions, self._memory)
        noise = self._noise.draw()
        try:
            values, observation, reward = self._outcome(noise, intervention)
            memory = self.dynamics.remember(self._memory, intervention, values)
            observation = self._with_next(observation, memory)
        except BaseException:
            self._noise.take_back()
            raise
        self._last_memory, self._memory = self._memory, memory
        self._round += 1
        self._last_noise = noise
        self._values = values
        self._total_reward += reward
        self._truncated = self._round == self.max_episode_steps
        self._intervention = intervention
        info = self._round_info(intervention, values)
        return observation, reward, false, np.full(self.num_envs, self._truncated), info

    def counterfactual(self, actions: Actions) -> tuple[Observations, np.ndarray, np.ndarray, np.ndarray, StepInfo]:
        """Return the outcomes of the last round if other actions had been played, with the same noise.

        As in the scalar environment, the outcomes are exact, and the environment does not change.

        Raises:
            gymnasium.error.ResetNeeded: before the first round of an experiment.
            gymnasium.error.InvalidAction: naming the first sub-environment whose action is invalid.
            OperationError: as ``step``.
        """
        if not self._round:
            raise gym.error.ResetNeeded("no round has been played: call step before counterfactual")
        intervention = self._decode(actions, self._last_memory)
        values, observation, reward = self._outcome(self._last_noise, intervention)
        memory = self.dynamics.remember(self._last_memory, intervention, values)
        false, truncated = np.zeros(self.num_envs, dtype=bool), np.full(self.num_envs, self._truncated)
        info = self._round_info(intervention, values)
        return self._with_next(observation, memory), reward, false, truncated, info

    def to_intervention(self, actions: Actions) -> Intervention:
        """Return the interventions that actions would make in the next rounds, in native units.

        Raises:
            gymnasium.error.InvalidAction: naming the first sub-environment whose action is invalid.
        """
        return self._decode(actions, self._memory)

    def _decode(self, actions: Actions, memory: Memory) -> Intervention:
        """Return the interventions of actions, after the rounds in ``memory``."""
        copied = copy_action(self.single_action_space, actions)
        intervention = self.dynamics.decode_batch(copied)
        for column in copied.values() if isinstance(copied, dict) else [copied]:
            if len(column) != self.num_envs:
                raise gym.error.InvalidAction(
                    f"give one action for each of {self.num_envs} environments; given {len(column)}"
                )
        return self.dynamics.in_round(intervention, memory)

    def _to_batch(self, value: Floats) -> np.ndarray:
        return np.array(np.broadcast_to(value, self.num_envs), dtype=float)

    def _outcome(self, noise: Draws, intervention: Intervention) -> tuple[Values, Observations, np.ndarray]:
        """Return the values, the observations and the rewards of rounds."""
        values = self.dynamics.play(noise, intervention)
        nodes = np.empty((self.num_envs, len(self.dynamics.nodes)))
        for index, name in enumerate(self.dynamics.nodes):
            nodes[:, index] = values[name]
        if self._objectives:
            objectives = self.dynamics.objectives(values, intervention)
            reward = finite_rewards(self.problem.outcomes, objectives, (self.num_envs,))
        else:
            reward = np.empty(self.num_envs)
            reward[:] = self.problem.outcomes.reward(values)
            if not np.isfinite(reward).all():
                raise not_finite_error(self.scm.reward, f"gives {reward[np.argmin(np.isfinite(reward))]}")
        return values, self.dynamics.after(nodes, values), reward

    def _with_next(self, observation: Observations, memory: Memory) -> Observations:
        """Return the observation with the context of the next round and the memory before it."""
        if self.dynamics.observes_before:
            observation |= self.dynamics.before(self._noise.peek())
        for key, value in self.dynamics.observe_memory(memory).items():
            observation[key] = np.tile(value, (self.num_envs, 1)) if value.ndim == 1 else value
        return observation

    def _round_info(self, intervention: Intervention, values: Values) -> StepInfo:
        """Return the ``info`` of rounds, given their interventions and outcomes."""
        more: StepInfo = {}
        if self.dynamics.costs is not None:
            more["cost"] = self._to_batch(self.dynamics.cost(intervention))
        if self._objectives:
            objectives = self.dynamics.objectives(values, intervention)
            more["objectives"] = self._masked({name: self._to_batch(value) for name, value in objectives.items()})
        return self._info(self.dynamics.describe_batch(intervention), **more)

    def _info(self, intervention: StepInfo, **more: Any) -> StepInfo:
        return self._masked({"round": np.full(self.num_envs, self._round), "intervention": intervention, **more})

    def _masked(self, entries: StepInfo) -> StepInfo:
        """Return the entries, each with a mask that says that all sub-environments have it."""
        masked: StepInfo = {}
        for name, entry in entries.items():
            masked |= {name: entry, f"_{name}": np.ones(self.num_envs, dtype=bool)}
        return masked

    def render(self) -> tuple[str | np.ndarray, ...] | None:
        """Render a frame for each sub-environment."""
        if self.render_mode is None:
            gym.logger.warn("render() was called on an environment without a render_mode")
            return None
        return tuple(render(self._snapshot(index), self.render_mode) for index in range(self.num_envs))

    def _snapshot(self, index: int) -> Snapshot:
        values = {name: float(np.broadcast_to(value, self.num_envs)[index]) for name, value in self._values.items()}
        intervention = None if self._intervention is None else self._intervention.at(index)
        env_id = self.spec.id if self.spec else None
        return Snapshot(self.dynamics, env_id, self._round, self._total_reward[index], values, intervention)
