"""One agent on one environment with one seed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from time import perf_counter
from typing import Any

import gymnasium as gym
import numpy as np
import polars as pl
from gymnasium import spaces

from cbo_gym.envs.base import CausalBanditEnv
from cbo_gym.envs.choice import ChoiceEnv
from cbo_gym.envs.contextual import ContextualEnv
from cbo_gym.envs.tasks import make_task
from cbo_gym.evaluation import regret
from cbo_gym.evaluation.machine import describe_machine
from cbo_gym.evaluation.results import Run, today
from cbo_gym.evaluation.specs import Spec, create_agent, require_agent
from cbo_gym.oracle import Estimate
from cbo_gym.scm.scopes import Scope
from cbo_gym.task import Action, Task

AGENT_STREAM = 2  # keeps an agent's random stream apart from the noise of the same seed
LONGEST_LIST = 4  # names that are written out


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
        table = _score(played, base)
        optimum = base.oracle.optimum
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
        choices=tuple(map(name_target, task.targets)) or tuple(map(name_scope, task.scopes)),
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
    except gym.error.UnregisteredEnv as error:
        raise ValueError(f"cannot make the environment {spec}: {error} See cbo-gym list.") from error
    except (gym.error.Error, TypeError) as error:
        raise ValueError(f"cannot make the environment {spec}: {error}") from error


def name_target(target: frozenset[str]) -> str:
    """``{X1, X2}``; long lists are counted."""
    return "{" + _listed(target, "variables") + "}"


def name_scope(scope: Scope) -> str:
    """``{X1, X2 | C}``: the variables of a scope and the contexts on which any of them may depend."""
    variables = _listed([variable for variable, _ in scope], "variables")
    contexts = _listed(frozenset().union(*[given for _, given in scope]), "contexts")
    return "{" + (f"{variables} | {contexts}" if contexts else variables) + "}"


def _listed(names: Collection[str], what: str) -> str:
    return f"{len(names)} {what}" if len(names) > LONGEST_LIST else ", ".join(sorted(names))


def _play(
    agent: Any,
    label: str,
    env: gym.Env[Any, Any],
    task: Task,
    seed: int,
    on_round: Callable[[int, int], None] | None,
) -> dict[str, list[Any]]:
    """The rounds as lists, one entry a round; of contexts one more, the one after the last round."""
    stream = np.random.SeedSequence(seed, spawn_key=(AGENT_STREAM,))
    observation, _ = env.reset(seed=seed)
    agent.reset(task, seed=int(stream.generate_state(1)[0]))
    names = ("action", "recommended", "nodes", "reward", "act_seconds", "update_seconds", "context")
    played: dict[str, list[Any]] = {name: [] for name in names}
    if "context" in observation:
        played["context"].append(observation["context"])
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
        if "context" in observation:
            played["context"].append(observation["context"])
        played["reward"].append(reward)
        played["act_seconds"].append(chosen - start)
        played["update_seconds"].append(learned - stepped)
        if on_round:
            on_round(round_number, task.horizon)
    return played


def _score(played: dict[str, list[Any]], env: CausalBanditEnv) -> pl.DataFrame:
    rounds = len(played["reward"])
    best = env.oracle.optimum.value
    reward = np.asarray(played["reward"], dtype=float)
    columns: dict[str, Any] = {
        "round": np.arange(1, rounds + 1),
        "action": [_flat(env.action_space, action) for action in played["action"]],
        "nodes": played["nodes"],
        "reward": reward,
    }
    if isinstance(env, ContextualEnv):
        columns["context"] = np.stack(played["context"][:-1]).tolist()
        expected, in_context, recommended, simple = _expected_in_context(played, env)
        columns["context_regret"] = in_context
        columns["best_so_far_regret"] = np.minimum.accumulate(in_context)
        columns["simple_regret"] = simple
    else:
        both = env.oracle.expected_rewards([*played["action"], *played["recommended"]])
        expected, recommended = (Estimate(*parts) for parts in zip(*[np.split(p, [rounds]) for p in both], strict=True))
        columns["best_so_far_regret"] = regret.best_so_far_regret(best, expected.value)
        columns["simple_regret"] = regret.simple_regret(best, recommended.value)
    columns |= {
        "expected_reward": expected.value,
        "expected_reward_standard_error": expected.standard_error,
        "recommended_reward": recommended.value,
        "recommended_reward_standard_error": recommended.standard_error,
        "instant_regret": regret.instant_regret(best, expected.value),
        "cumulative_regret": regret.cumulative_regret(best, expected.value),
        "average_regret": regret.average_regret(best, expected.value),
        "average_reward": regret.average_reward(expected.value),
        "pseudo_regret": regret.pseudo_regret(best, reward),
        "average_pseudo_regret": regret.running_mean(regret.pseudo_regret(best, reward)),
        "act_seconds": played["act_seconds"],
        "update_seconds": played["update_seconds"],
    }
    if isinstance(env, ChoiceEnv):
        columns["choice"] = [int(action[env.choice]) for action in played["action"]]
    return pl.DataFrame(columns)


def _expected_in_context(
    played: dict[str, list[Any]], env: ContextualEnv
) -> tuple[Estimate, np.ndarray, Estimate, np.ndarray]:
    """E[Y | x, c] of what was played and how much it lacks, and the same of what was recommended for the next context.

    What is lacking is counted from max over x of E[Y | x, c], so that the luck of the context is no part of it.
    """
    contexts = np.stack(played["context"])
    best = env.oracle.best_given(contexts).value
    expected = env.oracle.expected_given(played["action"], contexts[:-1])
    recommended = env.oracle.expected_given(played["recommended"], contexts[1:])
    return expected, best[:-1] - expected.value, recommended, best[1:] - recommended.value


def _flat(space: spaces.Space[Any], action: Action) -> list[float]:
    if isinstance(space, spaces.Dict):  # the values alone: the target has a column of its own
        return np.asarray(action["values"], dtype=float).tolist()
    return np.asarray(action, dtype=float).ravel().tolist()  # of a cell: its lower corner, then its upper
