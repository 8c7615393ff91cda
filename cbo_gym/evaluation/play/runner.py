"""evaluate: play one agent on one environment with one seed, and score the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import polars as pl

from cbo_gym._util.arguments import seed_number, whole_number
from cbo_gym._util.numerics import with_numerical_settings
from cbo_gym.actions.sets import to_flat
from cbo_gym.agent_registry.finding import agent_of
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.envs.making import env_spec, make_env, rounds_of
from cbo_gym.envs.oracle import oracle_of
from cbo_gym.envs.tasks import make_task
from cbo_gym.envs.wrappers import OracleInfo, wrappers_of
from cbo_gym.errors import ArgumentError, UnsupportedModeError
from cbo_gym.evaluation.metrics import regret
from cbo_gym.evaluation.play.agent_sources import parameters_of
from cbo_gym.evaluation.play.callbacks import Callback, PlayedRound, Sampled
from cbo_gym.evaluation.play.players import IsolatedPlayer
from cbo_gym.evaluation.play.playing import Checkpoint, Playing
from cbo_gym.evaluation.play.seeds import seeds_of
from cbo_gym.evaluation.runs.provenance import provenance_fields
from cbo_gym.evaluation.runs.results import COLUMNS, TIMING_COLUMNS, Recommend, Run, recommendation_rounds
from cbo_gym.evaluation.runs.revisions import modules_of, package_stamp, sources
from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.oracles import Oracle
from cbo_gym.task import Action, Observation, Task

# Replaces the environment's id in the task of an isolated agent, and in blind play.
HIDDEN_ID = "the environment"


@with_numerical_settings
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
    checkpoint: Path | str | None = None,
    checkpoint_every: int = 100,
    **env_parameters: Any,
) -> Run:
    """Let an agent play one experiment and score it.

    The agent sees its Task, the observations, the rewards and its actions. Expected rewards are computed after the run,
    for all rounds at once.

    Args:
        agent: An agent; or a class, or a function without parameters, that makes one; or a name, import path or Spec,
            see :func:`create_agent`.
        env: Environment id, also with parameters: ``"CBO/BinaryTree-v0(depth=3)"``; or an environment from
            ``gym.make``, which is made again with the same parameters and number of rounds, and not changed.
        seed: Seed from 0 to 2**63 - 1 of the noise, the initial data and the agent.
        horizon: Number of rounds; None for the environment's own.
        recommend: Rounds after which the agent is asked for its recommendation: ``"every"`` round, ``"powers"`` of two
            and the last round, or only the ``"end"``. Some agents fit their model for each recommendation.
        batch: Number of actions that the agent chooses at a time, by its ``act_batch``, before it learns the outcome of
            any of them; the last batch may be smaller. ``Run.by_batch`` has a row for each batch.
        label: Name of the agent in the results; None for its name with its parameters, or its class.
        secret: Secret of blind play, empty for ordinary play.
        callbacks: Each is called after every round with a :class:`PlayedRound`, in the order of the rounds, after the
            agent has learned from the whole batch.
        checkpoint: File to which the run is saved, and from which it resumes if the file exists; it is removed when the
            run ends. None for no checkpoints.
        checkpoint_every: Rounds between checkpoints, at least 1; each takes a fraction of a second.
        env_parameters: More keyword arguments of the environment.

    Returns:
        The run, with a table of one row per round.

    Raises:
        ArgumentError: for an unknown agent or environment, or bad parameters.
        UnsupportedModeError: if the agent does not play the environment's mode; or if ``batch`` is above 1, and the
            agent chooses one action at a time, or the best action in this mode depends on the round.
        AgentError: if the agent raises, or returns an action that the environment rejects.
        StateError: before the first round, if a checkpoint is wanted and the agent's state cannot be saved.
        OperationError: if the checkpoint is of another run, its rounds do not play as before, or it cannot be written.
    """
    spec = env_spec(env, env_parameters)
    if isinstance(agent, str):
        agent = Spec.parse(agent)
    agent_spec = agent if isinstance(agent, Spec) else None
    agent = agent_of(agent)
    label = str(label or agent_spec or type(agent).__name__)
    with closing(make_env(spec, rounds_of(env) if horizon is None else horizon)) as instance:
        if any(isinstance(wrapper, OracleInfo) for wrapper in wrappers_of(instance)):
            raise ArgumentError(f"{instance} shows expected rewards, which agents that are evaluated may not see")
        seeds = seeds_of(seed_number(seed), secret)
        task = make_task(instance, seeds.data)
        is_isolated = isinstance(agent, IsolatedPlayer)
        code = sources(agent.modules if is_isolated else modules_of(agent, agent_spec), problem_of(instance), spec)
        recommend_after = recommendation_rounds(recommend, task.horizon, whole_number("batch", batch, at_least=1))
        if batch > 1:
            _require_batches(agent, label, instance)
        callback_list = list(callbacks)

        def on_round(number: int, *outcome: Any) -> None:
            for callback in callback_list:
                if not isinstance(callback, Sampled) or callback.is_due(number, task.horizon):
                    callback(PlayedRound(label, str(spec), int(seed), number, task.horizon, *outcome))

        agent_task = replace(task, env_id=HIDDEN_ID) if secret or is_isolated else task
        where = f"{label} on {task.env_id}, seed {seed}"
        playing = Playing(agent, where, instance, agent_task, seeds, recommend_after, batch, on_round)
        about: dict[str, Any] = {"agent": label, "env": str(spec), "seed": int(seed), "horizon": task.horizon}
        about |= {"recommend": recommend, "batch": batch}
        saved = None
        if checkpoint is not None:
            parameters = {f"parameter {name}": value for name, value in parameters_of(agent).items()}
            identity = about | {"sources": code | package_stamp()} | parameters
            saved = Checkpoint(Path(checkpoint), checkpoint_every, identity)
        columns = playing.play(saved)
        oracle = oracle_of(instance)
        table = _score(columns, recommend_after, oracle)
        initial_expected, initial_reward = _initial_best(task, oracle)
        return Run(
            **about,
            mode=str(task.mode),
            sources=code,
            **provenance_fields(),
            reset_seconds=columns["reset_seconds"][0],
            optimum=oracle.optimum.value,
            optimum_standard_error=oracle.optimum.standard_error,
            random_value=oracle.optimum.random_value,
            initial_expected=initial_expected,
            initial_reward=initial_reward,
            choices=oracle.dynamics.codec.choices,
            isolated=is_isolated,
            secret=secret,
            table=table,
        )


def _require_batches(agent: Any, label: str, env: gym.Env[Observation, Action]) -> None:
    dynamics: Dynamics = env.unwrapped.dynamics  # type: ignore[attr-defined]
    if dynamics.remembers or dynamics.observes_before:
        raise UnsupportedModeError(
            f"the best action in {dynamics.mode} mode depends on the observation before each round, so several actions "
            "cannot be chosen together; leave batch at 1"
        )
    if not callable(getattr(agent, "act_batch", None)):
        raise UnsupportedModeError(
            f"{label} chooses one action at a time; give it act_batch(observation, count), or derive it from "
            "cbo_gym.Agent, which has one"
        )


def problem_of(env: gym.Env[Observation, Action]) -> object:
    """Return the problem of an environment: an import path, a YAML file's path, or a Problem."""
    return env.spec.kwargs.get("problem") if env.spec is not None else None


def _initial_best(task: Task, oracle: Oracle) -> tuple[float, float]:
    """Return the best expected reward of a feasible action in the initial data, and the best reward of an intervention.

    Without such data, it is the expected reward of random play. The record of an observation is empty, so all
    observations are one action.
    """
    random_value = oracle.optimum.random_value
    if not task.initial_data:
        return random_value, random_value
    records = [oracle.dynamics.codec.to_record(played.action) for played in task.initial_data]
    actions = {str(record): played.action for record, played in zip(records, task.initial_data, strict=True)}
    is_feasible = dict(zip(actions, oracle.meets_constraints(list(actions.values())), strict=True))
    expected = oracle.expected_rewards(list(actions.values())).value[list(is_feasible.values())]
    rewards = [
        float(oracle.scalarize(np.array([played.reward]))[0])
        for record, played in zip(records, task.initial_data, strict=True)
        if record and is_feasible[str(record)]
    ]
    return float(expected.max()) if len(expected) else random_value, max(rewards, default=random_value)


def _score(played: dict[str, list[Any]], recommend_after: frozenset[int], oracle: Oracle) -> pl.DataFrame:
    """Return the table of a run: a row per round, and the columns of :data:`COLUMNS` that the environment has."""
    codec = oracle.dynamics.codec
    rewards = np.asarray(played["reward"], dtype=float)
    reward = oracle.scalarize(rewards)
    seen: list[Observation] = played["seen"]
    # Rounds without a recommendation get one that is scored but not stored.
    placeholder = next(action for action in played["recommended"] if action is not None)
    recommended = [placeholder if action is None else action for action in played["recommended"]]
    scores = oracle.score(played["action"], recommended, seen)
    best: regret.Optima = scores.best if oracle.best_changes else oracle.optimum.value
    random_value = oracle.optimum.random_value if scores.violations is not None else 0.0
    expected = regret.penalized_rewards(scores.expected.value, scores.violations, random_value)
    recommended_expected = regret.penalized_rewards(
        scores.recommended.value, scores.recommended_violations, random_value
    )
    recommendation_columns: dict[str, Sequence[Any] | np.ndarray] = {
        "simple_regret": regret.instant_regret(scores.best_next, recommended_expected),
        "recommended_reward": scores.recommended.value,
        "recommended_reward_standard_error": scores.recommended.standard_error,
    }
    columns: dict[str, object] = {
        "round": np.arange(1, len(reward) + 1),
        "action": [codec.to_numbers(action) for action in played["action"]],
        "recommended": [
            to_flat(codec, action) if number in recommend_after else None
            for number, action in enumerate(recommended, start=1)
        ],
        "nodes": played["nodes"],
        "reward": reward,
    }
    if rewards.ndim > 1:
        columns["rewards"] = rewards.tolist()
    if "context" in seen[0]:
        columns["context"] = [observation["context"].tolist() for observation in seen[:-1]]
        columns["context_regret"] = regret.instant_regret(scores.best, expected)
    if "slice" in seen[0]:
        columns["slice"] = [int(observation["slice"][0]) for observation in seen[:-1]]
        columns["random_reward"] = scores.at_random
    columns |= {
        "best_so_far_regret": regret.best_so_far_regret(scores.best, expected),
        "expected_reward": scores.expected.value,
        "expected_reward_standard_error": scores.expected.standard_error,
        "instant_regret": regret.instant_regret(best, expected),
        "cumulative_regret": regret.cumulative_regret(best, expected),
        "average_regret": regret.average_regret(best, expected),
        "average_reward": regret.running_mean(scores.expected.value),
        "pseudo_regret": regret.instant_regret(best, reward),
        "average_pseudo_regret": regret.running_mean(regret.instant_regret(best, reward)),
        **{name: played[name] for name in TIMING_COLUMNS},
    }
    if codec.choices:
        columns["choice"] = [codec.choice_index(action) for action in played["action"]]
    if oracle.dynamics.costs is not None:
        columns["cost"] = played["cost"]
    if scores.violations is not None and scores.recommended_violations is not None:
        violation = scores.violations.sum(axis=-1)
        recommended_violation = scores.recommended_violations.sum(axis=-1)
        columns |= {"feasible": violation == 0.0, "violation": violation}
        recommendation_columns["recommended_feasible"] = recommended_violation == 0.0
        recommendation_columns["recommended_violation"] = recommended_violation
    columns |= scores.extra_columns
    for name, values in (recommendation_columns | dict(scores.extra_next)).items():
        columns[name] = [
            value if number in recommend_after else None for number, value in enumerate(list(values), start=1)
        ]
    return pl.DataFrame(columns, schema={name: dtype for name, dtype in COLUMNS.items() if name in columns})
