"""One agent on one environment with one seed."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from time import perf_counter
from typing import Any

import gymnasium as gym
import numpy as np
import polars as pl

from cbo_gym.envs.tasks import make_task
from cbo_gym.errors import ArgumentError, CBOGymError, OperationError
from cbo_gym.evaluation import regret
from cbo_gym.evaluation.machine import describe_machine
from cbo_gym.evaluation.results import Run, today
from cbo_gym.feedback import Feedback
from cbo_gym.oracle import Oracle, oracle_of
from cbo_gym.specs import Spec, create_agent, make_env, require_agent
from cbo_gym.task import Action, Observation, Task
from cbo_gym.wrappers import OracleInfo, wrappers_of

AGENT_STREAM = 2  # keeps an agent's random stream apart from the noise of the same seed


class AgentError(OperationError):
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
        ArgumentError: for an unknown agent or environment, or bad parameters.
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
    _refuse_the_truth(made)
    try:
        task = make_task(made, seed)
        played = _play(agent, label, made, task, seed, on_round)
        oracle = oracle_of(made)
        table = _score(played, oracle)
        optimum = oracle.optimum
    finally:
        made.close()
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
        choices=oracle.feedback.codec.choices,
        table=table,
    )


def _refuse_the_truth(env: gym.Env[Observation, Action]) -> None:
    if any(isinstance(wrapper, OracleInfo) for wrapper in wrappers_of(env)):
        raise ArgumentError(f"{env} tells expected rewards; agents that are evaluated may not see them")


def _play(
    agent: Any,
    label: str,
    env: gym.Env[Observation, Action],
    task: Task,
    seed: int,
    on_round: Callable[[int, int], None] | None,
) -> dict[str, list[Any]]:
    """The rounds as lists, one entry a round; of what is ``seen`` before one, one more: after the last round."""
    feedback: Feedback = env.unwrapped.feedback  # type: ignore[attr-defined]
    stream = np.random.SeedSequence(seed, spawn_key=(AGENT_STREAM,))
    observation, _ = env.reset(seed=seed)
    try:
        agent.reset(task, seed=int(stream.generate_state(1)[0]))
    except CBOGymError:  # the task is none that the agent plays, or lacks what it needs
        raise
    except Exception as error:
        raise AgentError(f"{label} on {task.env_id}, seed {seed}, reset: {type(error).__name__}: {error}") from error
    names = ("action", "recommended", "nodes", "reward", "act_seconds", "update_seconds", "seen")
    played: dict[str, list[Any]] = {name: [] for name in names}
    played["seen"].append(deepcopy(observation))
    for round_number in range(1, task.horizon + 1):
        try:
            start = perf_counter()
            handed = agent.act(observation)
            chosen = perf_counter()
            action = deepcopy(handed)  # what is scored is the record's own, whatever the agent does to its arrays
            observation, reward, _, _, info = env.step(action)
            seen = deepcopy(observation)
            stepped = perf_counter()
            agent.update(handed, observation, reward, info)
            learned = perf_counter()
            recommended = deepcopy(agent.recommend())
            feedback.decode(recommended)  # raises if it is no action
        except Exception as error:
            raise AgentError(
                f"{label} on {task.env_id}, seed {seed}, round {round_number}: {type(error).__name__}: {error}"
            ) from error
        played["action"].append(action)
        played["recommended"].append(recommended)
        played["nodes"].append(seen["nodes"].tolist())
        played["seen"].append(seen)
        played["reward"].append(reward)
        played["act_seconds"].append(chosen - start)
        played["update_seconds"].append(learned - stepped)
        if on_round:
            on_round(round_number, task.horizon)
    return played


def _score(played: dict[str, list[Any]], oracle: Oracle) -> pl.DataFrame:
    codec = oracle.feedback.codec
    best = oracle.optimum.value
    reward = np.asarray(played["reward"], dtype=float)
    seen: list[Observation] = played["seen"]
    verdict = oracle.judge(played["action"], played["recommended"], seen)
    expected = verdict.expected.value
    columns: dict[str, object] = {
        "round": np.arange(1, len(reward) + 1),
        "action": [codec.to_numbers(action) for action in played["action"]],
        "nodes": played["nodes"],
        "reward": reward,
    }
    if "context" in seen[0]:
        columns["context"] = [one["context"].tolist() for one in seen[:-1]]
        columns["context_regret"] = regret.instant_regret(verdict.best, expected)
    columns |= {
        "best_so_far_regret": regret.best_so_far_regret(verdict.best, expected),
        "simple_regret": regret.simple_regret(verdict.best_next, verdict.recommended.value),
        "expected_reward": expected,
        "expected_reward_standard_error": verdict.expected.standard_error,
        "recommended_reward": verdict.recommended.value,
        "recommended_reward_standard_error": verdict.recommended.standard_error,
        "instant_regret": regret.instant_regret(best, expected),
        "cumulative_regret": regret.cumulative_regret(best, expected),
        "average_regret": regret.average_regret(best, expected),
        "average_reward": regret.average_reward(expected),
        "pseudo_regret": regret.pseudo_regret(best, reward),
        "average_pseudo_regret": regret.running_mean(regret.pseudo_regret(best, reward)),
        "act_seconds": played["act_seconds"],
        "update_seconds": played["update_seconds"],
    }
    if codec.choices:
        columns["choice"] = [codec.chosen(action) for action in played["action"]]
    return pl.DataFrame(columns)
