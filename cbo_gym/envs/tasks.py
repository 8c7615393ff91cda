"""Tasks of environments: what an agent may know, with the initial data that it learns from before its first action."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space, iterate
from pydantic import ValidationError

from cbo_gym._util.arguments import MAX_NOISE_SEED, seed_number, whole_number
from cbo_gym._util.validation import field_errors
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.envs.making import env_spec, make_env
from cbo_gym.envs.registry import InitialData, find_entry, is_custom
from cbo_gym.envs.scalar import CausalBanditEnv
from cbo_gym.errors import ArgumentError, ArgumentTypeError
from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.base.interface import Interface
from cbo_gym.task import Action, Observation, Round, Task

# Keys of random streams that are independent of the rounds' noise.
INITIAL_DATA_STREAM, ACTION_SPACE_STREAM = 1, 2


def make_task(
    env: gym.Env[Observation, Action] | str | Spec,
    seed: int = 0,
    *,
    horizon: int | None = None,
    initial_data: InitialData | Mapping[str, Any] | None = None,
) -> Task:
    """Return the task of an environment: everything that an agent may know of it, with the initial data of ``seed``.

    Args:
        env: an environment of this package, which need not be from ``gym.make``; or an id, optionally with parameters,
            ``"CBO/BinaryTree-v0(depth=3)"``.
        seed: seed of the initial data and of samples of the action space, from 0 to 2**128 - 1; both are the same for
            all agents with the same seed.
        horizon: number of rounds; None for the environment's own ``max_episode_steps``.
        initial_data: sizes of the initial data, such as ``{"observational": 10, "random": 2}``; None for those in the
            registry. An unregistered environment has no initial data by default.

    Raises:
        ArgumentTypeError: if ``env`` is neither an id nor an environment of this package.
        ArgumentError: if there is no such id, or a parameter is wrong; if the horizon is None and not
            registered, or not a whole number of at least 1; if the seed is not a whole number in its range.
    """
    if isinstance(env, str | Spec):
        env = make_env(env_spec(env))
    base = getattr(env, "unwrapped", env)
    if not isinstance(base, CausalBanditEnv):
        raise ArgumentTypeError(
            f"a Task needs the id of an environment, or an environment of cbo_gym; given {type(base).__name__}"
        )
    seed = seed_number(seed, at_most=MAX_NOISE_SEED)
    spec = env.spec
    if horizon is None and spec is not None:
        horizon = spec.max_episode_steps
    if horizon is None:
        raise ArgumentError("give a horizon; the environment has no max_episode_steps")
    horizon = whole_number("horizon", horizon, at_least=1)
    dynamics = base.dynamics
    try:
        sizes = _sizes(base) if initial_data is None else InitialData.model_validate(initial_data)
    except ValidationError as error:
        raise ArgumentError(f"cannot read initial_data: {field_errors(error, InitialData)}") from error
    random_fields = dynamics.random_fields(_generator(seed), sizes.observational)
    env_id = spec.id if spec else base.problem.name
    task = task_of(dynamics, env_id, horizon, _draw_initial_data(dynamics, seed, sizes), random_fields)
    task.action_space.seed(int(_stream(seed, ACTION_SPACE_STREAM).generate_state(1)[0]))
    return task


def task_of(
    interface: Interface,
    env_id: str,
    horizon: int,
    initial_data: tuple[Round, ...],
    random_fields: Mapping[str, Any] | None = None,
) -> Task:
    """Return the task of an interface, with the rounds that an agent gets before it acts.

    Args:
        interface: interface of any mode.
        env_id: name of the environment in the task.
        horizon: number of rounds.
        initial_data: the rounds before the first action.
        random_fields: more fields of the mode's task, from :meth:`Interface.random_fields`.
    """
    problem = interface.problem
    noise = interface.exogenous()
    known_noise = {name: noise[name] for name in interface.nodes if name in noise}
    task = interface.task_class(
        env_id=env_id,
        mode=interface.mode,
        graph=interface.knowledge,
        nodes=interface.nodes,
        reward=interface.nodes[-1],
        horizon=horizon,
        action_space=interface.action_space,
        observation_space=interface.observation_space,
        codec=interface.codec,
        noise=known_noise if problem.noise_known else None,
        initial_data=initial_data,
        costs=interface.costs,
        constraints=problem.outcomes.constraints,
        objectives=problem.outcomes.objectives,
        **interface.task_fields(),
        **(random_fields or {}),
    )
    # A copy, so that agents cannot change the environment.
    return deepcopy(task)


def _sizes(env: CausalBanditEnv) -> InitialData:
    """Return the registered sizes; for a custom problem, those that papers use in its mode."""
    entry = find_entry(env.spec.id) if env.spec else None
    if entry is not None and entry.mode == env.mode:
        return entry.initial_data
    if env.spec is None or not (entry or is_custom(env.spec.id)):
        return InitialData(observational=0, random=0)
    observational, random = env.dynamics.default_initial_data
    return InitialData(observational=observational, random="2q+1" if random is None else random)


def _generator(seed: int) -> np.random.Generator:
    """Return the random stream of the initial data."""
    return np.random.default_rng(_stream(seed, INITIAL_DATA_STREAM))


def _stream(seed: int, key: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(key,))


def _draw_initial_data(dynamics: Dynamics, seed: int, sizes: InitialData) -> tuple[Round, ...]:
    rng = _generator(seed)
    random = None if sizes.random == "2q+1" else sizes.random
    actions = dynamics.initial_actions(rng, sizes.observational, random)
    count = len(next(iter(actions.values())) if isinstance(actions, dict) else actions)
    if count == 0:
        return ()
    intervention = dynamics.decode_batch(actions)
    values = dynamics.play(dynamics.scm.draw_noise(rng, count), intervention)
    nodes = np.broadcast_to(dynamics.scm.stack(values, dynamics.nodes), (count, len(dynamics.nodes)))
    outcomes = dynamics.problem.outcomes
    rewards: Any
    if outcomes.objectives:
        rewards = outcomes.rewards(dynamics.objectives(values, intervention), (count,))
    else:
        rewards = np.broadcast_to(outcomes.reward(values), count).tolist()
    observations = dynamics.after(nodes, {name: np.broadcast_to(value, count) for name, value in values.items()})
    return tuple(
        Round(action, {key: value[i].copy() for key, value in observations.items()}, rewards[i])
        for i, action in enumerate(iterate(batch_space(dynamics.action_space, count), actions))
    )
