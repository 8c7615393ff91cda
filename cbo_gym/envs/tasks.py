"""From an environment to the Task that an agent is given."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import batch_space, iterate

from cbo_gym.envs.base import CausalBanditEnv
from cbo_gym.registry import InitialData, initial_data_of
from cbo_gym.task import Round, Task

INITIAL_DATA_STREAM = 1  # keeps the initial data's random stream apart from the rounds' noise


def make_task(
    env: gym.Env[Any, Any],
    seed: int,
    *,
    horizon: int | None = None,
    initial_data: InitialData | None = None,
) -> Task:
    """What an agent may know about ``env``, with the initial data of ``seed``.

    Args:
        env: made by ``gym.make``, or an environment of this package directly.
        seed: of the initial data, at least 0; one seed gives every agent the same data.
        horizon: number of rounds; None for the environment's own ``max_episode_steps``.
        initial_data: sizes of the initial data; None for the registry's, or none for an unregistered environment.

    Raises:
        TypeError: if ``env`` is not an environment of this package.
        ValueError: if the horizon is neither given nor known, or the seed is negative.
    """
    base = env.unwrapped
    if not isinstance(base, CausalBanditEnv):
        raise TypeError(f"a Task needs an environment of cbo_gym; given {type(base).__name__}")
    if seed < 0:
        raise ValueError(f"seed must be at least 0; given {seed}")
    spec = env.spec
    if horizon is None and spec is not None:
        horizon = spec.max_episode_steps
    if horizon is None:
        raise ValueError("give a horizon; the environment was made without max_episode_steps")
    if horizon < 1:
        raise ValueError(f"horizon must be at least 1; given {horizon}")
    sizes = initial_data or (initial_data_of(spec.id) if spec else InitialData(observational=0, random=0))
    problem = base.problem
    noise = {v.name: v.noise for v in base.scm.variables if v.observed}
    return Task(
        env_id=spec.id if spec else problem.name,
        mode=base.mode,
        diagram=base.scm.diagram,
        nodes=base.scm.nodes,
        reward=base.scm.reward,
        horizon=horizon,
        action_space=deepcopy(base.action_space),  # an agent's draws must not move the environment's
        observation_space=deepcopy(base.observation_space),
        noise=noise if problem.noise_known else None,
        initial_data=_draw_initial_data(base, seed, sizes),
        **base.task_fields(),
    )


def _draw_initial_data(env: CausalBanditEnv, seed: int, sizes: InitialData) -> tuple[Round, ...]:
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(INITIAL_DATA_STREAM,)))
    random = None if sizes.random == "2q+1" else sizes.random
    actions = env.initial_actions(rng, sizes.observational, random)
    count = len(next(iter(actions.values())) if isinstance(actions, dict) else actions)
    if count == 0:
        return ()
    intervention = env.decode_batch(actions)
    values = env.play(env.scm.draw_noise(rng, count), intervention)
    nodes = np.broadcast_to(env.scm.stack(values), (count, len(env.scm.nodes)))
    single = iterate(batch_space(env.action_space, count), actions)
    seen = env.observation(nodes, {name: np.broadcast_to(value, count) for name, value in values.items()})
    return tuple(
        Round(action, {key: part[i].copy() for key, part in seen.items()}, float(nodes[i, -1]))
        for i, action in enumerate(single)
    )
