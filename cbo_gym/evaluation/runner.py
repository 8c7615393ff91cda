"""One agent on one environment with one seed."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import gymnasium as gym
import numpy as np
import polars as pl
from gymnasium import spaces

from cbo_gym.envs.base import CausalBanditEnv
from cbo_gym.envs.tasks import make_task
from cbo_gym.evaluation import regret
from cbo_gym.evaluation.machine import describe_machine
from cbo_gym.evaluation.results import Run, today
from cbo_gym.evaluation.specs import Spec, create_agent, require_agent
from cbo_gym.oracle import Optimum, Oracle
from cbo_gym.task import Action, Mode, Task

AGENT_STREAM = 2  # keeps an agent's random stream apart from the noise of the same seed


class AgentError(RuntimeError):
    """An agent failed in a run; the message says which, where and in what round. The cause is chained."""


def evaluate(
    agent: Any,
    env: str | Spec,
    seed: int,
    *,
    horizon: int | None = None,
    label: str | None = None,
    on_round: Callable[[int, int], None] | None = None,
    **env_parameters: Any,
) -> Run:
    """Let an agent play one experiment and score it.

    The agent sees its Task, the observations, the rewards and what was done. Expected rewards are computed after
    the run, for all rounds at once.

    Args:
        agent: an agent object, or a name, import path or Spec as in :func:`create_agent`.
        env: environment id, also with parameters: ``"CBO/BinaryTree-v0(depth=3)"``.
        seed: at least 0; it fixes the noise, the initial data and the agent's own randomness.
        horizon: number of rounds; None for the registered one.
        label: what the results call the agent; None for its name with its parameters, or its class.
        on_round: called after every round with its number and the horizon.
        env_parameters: more keyword arguments of the environment.

    Returns:
        the run, with a table of one row a round.

    Raises:
        ValueError: for an unknown agent or environment, or bad parameters.
        UnsupportedModeError: if the agent does not play the environment's mode.
        AgentError: if the agent raises, or returns an action that the environment rejects.
    """
    spec = Spec.parse(env) if isinstance(env, str) else env
    spec = Spec(spec.name, tuple(sorted({**spec.keywords, **env_parameters}.items())))
    if isinstance(agent, str | Spec):
        agent = Spec.parse(agent) if isinstance(agent, str) else agent
        label = label or str(agent)
        agent = create_agent(agent)
    label = label or type(require_agent(agent)).__name__
    made = make_env(spec, horizon)
    try:
        task = make_task(made, seed)
        played = _play(agent, label, made, task, seed, on_round)
        base = made.unwrapped
        assert isinstance(base, CausalBanditEnv)
        oracle = Oracle(base)
        table = _score(played, oracle, base)
    finally:
        made.close()
    optimum = oracle.optimum
    return Run(
        agent=label,
        env=str(spec),
        seed=seed,
        horizon=task.horizon,
        mode=task.mode,
        date=today(),
        machine=describe_machine(),
        optimum=optimum.value,
        optimum_standard_error=optimum.standard_error,
        random_value=optimum.random_value,
        choices=tuple(_name_target(target) for target in task.targets),
        table=table,
    )


def make_env(spec: Spec, horizon: int | None = None) -> gym.Env[Any, Any]:
    """``gym.make`` for a Spec, with the registered horizon replaced if one is given.

    Raises:
        ValueError: if the id is unknown, a parameter is wrong, or the horizon is below 1.
    """
    if horizon is not None and horizon < 1:
        raise ValueError(f"horizon must be at least 1; given {horizon}")
    try:
        return gym.make(spec.name, max_episode_steps=horizon, **spec.keywords)
    except (gym.error.Error, TypeError) as error:
        raise ValueError(f"cannot make the environment {spec}: {error}") from error


def _name_target(target: frozenset[str]) -> str:
    return "{" + ", ".join(sorted(target)) + "}"


def _play(
    agent: Any,
    label: str,
    env: gym.Env[Any, Any],
    task: Task,
    seed: int,
    on_round: Callable[[int, int], None] | None,
) -> dict[str, list[Any]]:
    """The rounds as lists, one entry a round."""
    stream = np.random.SeedSequence(seed, spawn_key=(AGENT_STREAM,))
    observation, _ = env.reset(seed=seed)
    agent.reset(task, seed=int(stream.generate_state(1)[0]))
    names = ("action", "recommended", "nodes", "reward", "act_seconds", "update_seconds")
    played: dict[str, list[Any]] = {name: [] for name in names}
    for round_number in range(1, task.horizon + 1):
        try:
            start = perf_counter()
            action = agent.act(observation)
            chosen = perf_counter()
            observation, reward, _, _, info = env.step(action)
            stepped = perf_counter()
            agent.update(action, observation, reward, info)
            learned = perf_counter()
            recommended = agent.recommend()
            env.unwrapped.decode(recommended)  # type: ignore[attr-defined]  # raises if it is no action
        except Exception as error:
            raise AgentError(
                f"{label} on {task.env_id}, seed {seed}, round {round_number}: {type(error).__name__}: {error}"
            ) from error
        played["action"].append(action)
        played["recommended"].append(recommended)
        played["nodes"].append(observation["nodes"].tolist())
        played["reward"].append(reward)
        played["act_seconds"].append(chosen - start)
        played["update_seconds"].append(learned - stepped)
        if on_round:
            on_round(round_number, task.horizon)
    return played


def _score(played: dict[str, list[Any]], oracle: Oracle, env: CausalBanditEnv) -> pl.DataFrame:
    rounds = len(played["reward"])
    both = oracle.expected_rewards([*played["action"], *played["recommended"]])
    expected, recommended = np.split(both.value, [rounds])
    error, recommended_error = np.split(both.standard_error, [rounds])
    best: Optimum = oracle.optimum
    columns: dict[str, Any] = {
        "round": np.arange(1, rounds + 1),
        "action": [_flat(env.action_space, action) for action in played["action"]],
        "nodes": played["nodes"],
        "reward": np.asarray(played["reward"], dtype=float),
        "expected_reward": expected,
        "expected_reward_standard_error": error,
        "recommended_reward": recommended,
        "recommended_reward_standard_error": recommended_error,
        "instant_regret": regret.instant_regret(best.value, expected),
        "cumulative_regret": regret.cumulative_regret(best.value, expected),
        "average_regret": regret.average_regret(best.value, expected),
        "average_reward": regret.average_reward(expected),
        "best_so_far_regret": regret.best_so_far_regret(best.value, expected),
        "simple_regret": regret.simple_regret(best.value, recommended),
        "pseudo_regret": regret.pseudo_regret(best.value, np.asarray(played["reward"])),
        "act_seconds": played["act_seconds"],
        "update_seconds": played["update_seconds"],
    }
    if env.mode is Mode.HARD:
        columns["choice"] = [int(action["target"]) for action in played["action"]]
    return pl.DataFrame(columns)


def _flat(space: spaces.Space[Any], action: Action) -> list[float]:
    if isinstance(space, spaces.Dict):  # the values alone: the target has a column of its own
        return np.asarray(action["values"], dtype=float).tolist()
    return np.asarray(action, dtype=float).ravel().tolist()  # of a cell: its lower corner, then its upper
