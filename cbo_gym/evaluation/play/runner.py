"""One agent on one environment with one seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from time import perf_counter
from typing import Any

import gymnasium as gym
import numpy as np
import polars as pl

from cbo_gym.agent_finder import agent_of
from cbo_gym.arguments import whole_number
from cbo_gym.envs.making import env_spec, rounds_of
from cbo_gym.envs.tasks import make_task
from cbo_gym.errors import ArgumentError, CBOGymError, OperationError, UnsupportedModeError, text_of
from cbo_gym.evaluation.metrics import regret
from cbo_gym.evaluation.play.blind import Seeds, anonymous, seeds_of
from cbo_gym.evaluation.play.callbacks import Callback, PlayedRound
from cbo_gym.evaluation.play.isolated import IsolatedAgent, PlayerError
from cbo_gym.evaluation.runs.provenance import modules_of, played_with, sources
from cbo_gym.evaluation.runs.results import COLUMNS, SECONDS, Recommend, Run, asked_after
from cbo_gym.feedback import Feedback
from cbo_gym.oracle import Oracle, oracle_of
from cbo_gym.specs import Spec, make_env
from cbo_gym.task import Action, Observation, Task
from cbo_gym.wrappers import OracleInfo, wrappers_of


class AgentError(OperationError):
    """An agent failed in a run; the message says which, where and in what round. The cause is chained."""


def evaluate(
    agent: Any,
    env: str | Spec | gym.Env[Observation, Action],
    seed: int,
    *,
    horizon: int | None = None,
    recommend: Recommend = "every",
    batch: int = 1,
    label: str | None = None,
    secret: str = "",
    callbacks: Iterable[Callback] = (),
    **env_parameters: Any,
) -> Run:
    """Let an agent play one experiment and score it.

    The agent sees its Task, the observations, the rewards and what was done. Expected rewards are computed after
    the run, for all rounds at once.

    Args:
        agent: an agent object; a class, or a function without parameters, that makes one; or a name, import path or
            Spec as in :func:`create_agent`.
        env: environment id, also with parameters: ``"CBO/BinaryTree-v0(depth=3)"``; or an environment from
            ``gym.make``, which is made anew with the same parameters and number of rounds, and left as it is.
        seed: at least 0; it fixes the noise, the initial data and the agent's own randomness.
        horizon: number of rounds; None for the environment's own.
        recommend: after which rounds the agent is asked for its recommendation: ``"every"``, those that are
            ``"powers"`` of two and the last, or the last alone, ``"end"``. Some agents fit their model for it.
        batch: how many actions the agent chooses at a time, by its ``act_batch``, before it is told the outcome of any
            of them; the last batch is smaller where the horizon is no multiple. ``Run.by_batch`` has a row for each.
        label: what the results call the agent; None for its name with its parameters, or its class.
        secret: of blind play, see :mod:`cbo_gym.evaluation.play.blind`; empty for play that tells the environment's id.
        callbacks: each is called after every round with a :class:`PlayedRound`, in the order of the rounds, once the
            agent has learned from it, and of a batch from all of it.
        env_parameters: more keyword arguments of the environment.

    Returns:
        the run, with a table of one row a round.

    Raises:
        ArgumentError: for an unknown agent or environment, or bad parameters.
        UnsupportedModeError: if the agent does not play the environment's mode, or no batches, or in this mode actions
            cannot be chosen together, since what is best depends on the round.
        AgentError: if the agent raises, or returns an action that the environment rejects.
    """
    spec = env_spec(env, env_parameters)
    named = Spec.parse(agent) if isinstance(agent, str) else agent if isinstance(agent, Spec) else None
    agent = agent_of(named or agent)
    label = label or str(named or type(agent).__name__)
    made = make_env(spec, rounds_of(env) if horizon is None else horizon)
    _refuse_the_truth(made)
    try:
        seeds = seeds_of(whole_number("seed", seed, at_least=0), secret)
        task = make_task(made, seeds.data)
        modules = agent.modules if isinstance(agent, IsolatedAgent) else modules_of(agent, named)
        code = sources(modules, problem_of(made))
        asked = asked_after(recommend, task.horizon, whole_number("batch", batch, at_least=1))
        if batch > 1:
            _require_batches(agent, label, made)
        hear = _hearing(list(callbacks), label, str(spec), int(seed), task.horizon)
        told = anonymous(task) if secret else task
        played = _play(agent, f"{label} on {task.env_id}, seed {seed}", made, told, seeds, asked, batch, hear)
        oracle = oracle_of(made)
        table = _score(played, asked, oracle)
        optimum = oracle.optimum
        initial_expected, initial_reward = _initial_best(task, oracle)
    finally:
        made.close()
    return Run(
        agent=label,
        env=str(spec),
        seed=int(seed),
        horizon=task.horizon,
        recommend=recommend,
        batch=batch,
        mode=str(task.mode),
        sources=code,
        **played_with(),
        reset_seconds=played["reset_seconds"][0],
        optimum=optimum.value,
        optimum_standard_error=optimum.standard_error,
        random_value=optimum.random_value,
        initial_expected=initial_expected,
        initial_reward=initial_reward,
        choices=oracle.feedback.codec.choices,
        isolated=isinstance(agent, IsolatedAgent),
        secret=secret,
        table=table,
    )


def _refuse_the_truth(env: gym.Env[Observation, Action]) -> None:
    if any(isinstance(wrapper, OracleInfo) for wrapper in wrappers_of(env)):
        raise ArgumentError(f"{env} tells expected rewards; agents that are evaluated may not see them")


def _require_batches(agent: Any, label: str, env: gym.Env[Observation, Action]) -> None:
    feedback: Feedback = env.unwrapped.feedback  # type: ignore[attr-defined]
    if feedback.remembers or feedback.looks_ahead:
        raise UnsupportedModeError(
            f"what is best in {feedback.mode} mode depends on what is seen before each round, so that several actions "
            "cannot be chosen together; leave batch at 1"
        )
    if not callable(getattr(agent, "act_batch", None)):
        raise UnsupportedModeError(
            f"{label} chooses one action at a time; give it act_batch(observation, count), or derive it from "
            "cbo_gym.Agent, which has one"
        )


def _hearing(callbacks: Sequence[Callback], agent: str, env: str, seed: int, horizon: int) -> Callable[..., None]:
    """Tells a round to each callback."""

    def hear(*round_and_after: Any) -> None:
        for callback in callbacks:
            callback(PlayedRound(agent, env, seed, round_and_after[0], horizon, *round_and_after[1:]))

    return hear


def _play(
    agent: Any,
    where: str,
    env: gym.Env[Observation, Action],
    task: Task,
    seeds: Seeds,
    asked: frozenset[int],
    batch: int,
    hear: Callable[..., None],
) -> dict[str, list[Any]]:
    """The rounds as lists, one entry a round; of what is ``seen`` before one, one more: after the last round.

    The environment, the agent and the record each own their data: what an agent hands over is read once, and what it
    is handed is its own copy.
    """
    feedback: Feedback = env.unwrapped.feedback  # type: ignore[attr-defined]
    observation, _ = env.reset(seed=seeds.noise)
    with _blaming(f"{where}, reset", CBOGymError):  # the task is none that it plays, or lacks what it needs
        own = deepcopy(task)
        start = perf_counter()
        agent.reset(own, seed=seeds.agent)
        reset_seconds = perf_counter() - start
    names = ("action", "recommended", "nodes", "reward", "cost", *SECONDS, "seen")
    played: dict[str, list[Any]] = {name: [] for name in names} | {"reset_seconds": [reset_seconds]}
    played["seen"].append(observation)
    for first in range(1, task.horizon + 1, batch):
        last = min(first + batch - 1, task.horizon)
        with _blaming(f"{where}, round {first}"):
            shown = deepcopy(observation)
            start = perf_counter()
            handed = [agent.act(shown)] if batch == 1 else agent.act_batch(shown, last - first + 1)
            choosing = (perf_counter() - start) / (last - first + 1)
            actions = [feedback.read(one) for one in handed]
            if len(actions) != last - first + 1:
                raise ValueError(f"act_batch gave {len(actions)} actions; asked for {last - first + 1}")
        steps = [env.step(action) for action in actions]
        for round_number, action, step in zip(range(first, last + 1), actions, steps, strict=True):
            observation, reward, _, _, info = step
            with _blaming(f"{where}, round {round_number}"):
                copies = deepcopy(action), deepcopy(observation), reward, deepcopy(info)
                stepped = perf_counter()
                agent.update(*copies)
                learned = perf_counter()
                named = agent.recommend() if round_number in asked else None
                answered = perf_counter()
                recommended = feedback.read(named) if round_number in asked else None
            played["action"].append(action)
            played["recommended"].append(recommended)
            played["nodes"].append(observation["nodes"].tolist())
            played["seen"].append(observation)
            played["reward"].append(reward)
            played["cost"].append(info.get("cost"))
            for name, seconds in zip(SECONDS, (choosing, learned - stepped, answered - learned), strict=True):
                played[name].append(seconds)
        for round_number, action, (observation, reward, _, _, info) in zip(
            range(first, last + 1), actions, steps, strict=True
        ):
            hear(round_number, action, observation, reward, info, played["recommended"][round_number - 1])
    return played


@contextmanager
def _blaming(where: str, *let_pass: type[Exception]) -> Iterator[None]:
    """Whatever an agent raises becomes an AgentError; a request to end the process too, which is not its to make."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, *let_pass)):
            raise
        said = str(error) if isinstance(error, PlayerError) else f"{type(error).__name__}: {text_of(error)}"
        raise AgentError(f"{where}: {said}") from error


def problem_of(env: gym.Env[Observation, Action]) -> object:
    """What an environment was made with as its problem: an import path, a YAML file's path, or a Problem."""
    return env.spec.kwargs.get("problem") if env.spec is not None else None


def _initial_best(task: Task, oracle: Oracle) -> tuple[float, float]:
    """Among the initial data the best expected reward, and the best reward observed of an intervention.

    Without any that is feasible, what a random action earns. An action is taken for what it does: observations, whose
    values mean nothing, are one action, and no action that is recorded as empty intervenes.
    """
    at_random = oracle.optimum.random_value
    if not task.initial_data:
        return at_random, at_random
    records = [oracle.feedback.codec.to_record(past.action) for past in task.initial_data]
    distinct = {str(record): past.action for record, past in zip(records, task.initial_data, strict=True)}
    counting = dict(zip(distinct, oracle.meets_constraints(list(distinct.values())), strict=True))
    expected = oracle.expected_rewards(list(distinct.values())).value[list(counting.values())]
    rewards = [
        past.reward for record, past in zip(records, task.initial_data, strict=True) if record and counting[str(record)]
    ]
    return float(expected.max()) if len(expected) else at_random, max(rewards, default=at_random)


def _score(played: dict[str, list[Any]], asked: frozenset[int], oracle: Oracle) -> pl.DataFrame:
    codec = oracle.feedback.codec
    reward = np.asarray(played["reward"], dtype=float)
    seen: list[Observation] = played["seen"]
    first = next(action for action in played["recommended"] if action is not None)
    # a round without one has another's, which is judged with the rest but not told
    recommended = [first if action is None else action for action in played["recommended"]]
    verdict = oracle.judge(played["action"], recommended, seen)
    best: regret.Optima = verdict.best if oracle.best_changes else oracle.optimum.value
    at_random = oracle.optimum.random_value if verdict.missed is not None else 0.0
    expected = regret.counted(verdict.expected.value, verdict.missed, at_random)
    advised = regret.counted(verdict.recommended.value, verdict.missed_next, at_random)
    of_recommendations: dict[str, np.ndarray] = {
        "simple_regret": regret.simple_regret(verdict.best_next, advised),
        "recommended_reward": verdict.recommended.value,
        "recommended_reward_standard_error": verdict.recommended.standard_error,
    }
    columns: dict[str, object] = {
        "round": np.arange(1, len(reward) + 1),
        "action": [codec.to_numbers(action) for action in played["action"]],
        "recommended": [codec.to_flat(action) if t in asked else None for t, action in enumerate(recommended, start=1)],
        "nodes": played["nodes"],
        "reward": reward,
    }
    if "context" in seen[0]:
        columns["context"] = [one["context"].tolist() for one in seen[:-1]]
        columns["context_regret"] = regret.instant_regret(verdict.best, expected)
    if "slice" in seen[0]:
        columns["slice"] = [int(one["slice"][0]) for one in seen[:-1]]
        columns["random_reward"] = verdict.at_random
    columns |= {
        "best_so_far_regret": regret.best_so_far_regret(verdict.best, expected),
        "expected_reward": verdict.expected.value,
        "expected_reward_standard_error": verdict.expected.standard_error,
        "instant_regret": regret.instant_regret(best, expected),
        "cumulative_regret": regret.cumulative_regret(best, expected),
        "average_regret": regret.average_regret(best, expected),
        "average_reward": regret.average_reward(verdict.expected.value),
        "pseudo_regret": regret.pseudo_regret(best, reward),
        "average_pseudo_regret": regret.running_mean(regret.pseudo_regret(best, reward)),
        **{name: played[name] for name in SECONDS},
    }
    if codec.choices:
        columns["choice"] = [codec.chosen(action) for action in played["action"]]
    if oracle.feedback.costs is not None:
        columns["cost"] = played["cost"]
    if verdict.missed is not None and verdict.missed_next is not None:
        columns |= {"feasible": verdict.missed.sum(axis=-1) == 0.0, "violation": verdict.missed.sum(axis=-1)}
        of_recommendations["recommended_feasible"] = verdict.missed_next.sum(axis=-1) == 0.0
        of_recommendations["recommended_violation"] = verdict.missed_next.sum(axis=-1)
    for name, values in of_recommendations.items():
        columns[name] = [v if t in asked else None for t, v in enumerate(values.tolist(), start=1)]
    return pl.DataFrame(columns, schema={name: dtype for name, dtype in COLUMNS.items() if name in columns})
