"""The registry of metrics: each has a title, a direction, a unit, and a function that computes it from runs.

A new entry of :data:`METRICS` appears in tables, comparisons and files without further code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import polars as pl

from cbo_gym.evaluation.metrics.gap import GAPS, gaps
from cbo_gym.evaluation.metrics.regret import TIE_DECIMALS, normalised_score
from cbo_gym.evaluation.metrics.targets import first_rounds
from cbo_gym.evaluation.runs.results import TIMING_COLUMNS, Run, stack_curves

Array = np.ndarray
Subject = Literal["play", "best so far", "recommendation", "agent", "task"]
# Score of the metric ``rounds_to_goal``.
GOAL = 0.9
# Columns that most metrics need; reading them together is faster.
COMMON_COLUMNS = (
    "average_regret", "simple_regret", "best_so_far_regret", "cumulative_regret", "average_reward", "feasible", "cost",
    *TIMING_COLUMNS,
)  # fmt: skip


class FinishedRuns:
    """Finished runs with the same horizon and columns, whose curves are read when they are needed.

    Args:
        runs: at least one run.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.columns = runs[0].columns
        self._curves = stack_curves(runs, [name for name in COMMON_COLUMNS if name in self.columns])

    def curve(self, name: str) -> Array:
        """Return a column of all tables, shape ``(runs, rounds)``."""
        if name not in self._curves:
            self._curves |= stack_curves(self.runs, [name])
        return self._curves[name]

    def last(self, name: str) -> Array | None:
        """Return the last round of a column, shape ``(runs,)``; None if the runs do not have it."""
        return self.curve(name)[:, -1] if name in self.columns else None

    def field(self, name: str) -> Array:
        """Return a field of the runs, shape ``(runs,)``."""
        return np.array([getattr(run, name) for run in self.runs])

    def score(self, rewards: Array) -> Array:
        """Scale rewards, shape ``(runs,)`` or ``(runs, rounds)``: 0 is a random action, 1 the optimum; NaN if equal."""
        shape = (-1, *[1] * (rewards.ndim - 1))
        optima, random_values = self.field("optimum").reshape(shape), self.field("random_value").reshape(shape)
        optima = np.where(optima > random_values, optima, np.nan)
        return normalised_score(optima, random_values, rewards).round(TIE_DECIMALS)

    @cached_property
    def seconds(self) -> Array:
        """Mean seconds of a round, shape ``(runs,)``."""
        return np.sum([self.curve(name) for name in TIMING_COLUMNS], axis=0).mean(axis=-1)

    @cached_property
    def gaps(self) -> dict[str, Array]:
        """Name of a column of GAP or PA-GAP -> its values, shape ``(runs,)``."""
        return gaps(self.runs)


@dataclass(frozen=True)
class Metric:
    """Metric of a finished run.

    Attributes:
        title: title of its column in tables.
        subject: what the metric measures.
        values: function that returns the metric of runs, shape ``(runs,)``, or None if it is not defined for them. NaN
            is a missing value; infinity, in a censored metric, a run that did not reach it. By default the metric is
            the last value of the column with its name.
        best: ``min`` or ``max``, whichever returns the better of several values; None if none is better.
        unit: unit; empty if there is none, ``reward`` for that of the environment.
        column: whether the table of an environment has a column: always, if some agent has a value, or never.
        censored: whether a run may end before it reaches the metric. The mean is then null unless all seeds reach it,
            because the mean of the others would favour agents that often fail; a second column counts those that do.
        over_envs: average over environments: with an interval, a mean alone, or empty for none, because units differ.
        expendable: order in which columns are hidden in a narrow terminal, highest first; 0 for never.
    """

    title: str
    subject: Subject
    values: Callable[[FinishedRuns], Array | None] | None = None
    best: Callable[[Any], Any] | None = min
    unit: str = ""
    column: Literal["always", "where any", "never"] = "always"
    censored: bool = False
    over_envs: Literal["interval", "mean", ""] = ""
    expendable: int = 0


def _score(finished: FinishedRuns) -> Array:
    """Return scores of recommendations, computed from their regret because the optimum may depend on the context."""
    return finished.score(finished.field("optimum") - finished.curve("simple_regret")[:, -1])


def _average_score(finished: FinishedRuns) -> Array:
    if finished.runs[0].is_constrained:
        return finished.score(finished.field("optimum") - finished.curve("average_regret")[:, -1])
    return finished.score(finished.curve("average_reward")[:, -1])


def _rounds_to_goal(finished: FinishedRuns) -> Array | None:
    """Return the first round after which the best action played so far scores at least :data:`GOAL`."""
    # In dynamic mode the optimum differs between slices, so no reward is the goal of all rounds.
    if "slice" in finished.columns or "best_so_far_regret" not in finished.columns:
        return None
    best_rewards = finished.field("optimum")[:, None] - finished.curve("best_so_far_regret")
    return first_rounds(finished.score(best_rewards) >= GOAL)


def _gap(name: str, finished: FinishedRuns) -> Array:
    return finished.gaps[name]


def _aggregate_rounds(name: str, statistic: Callable[[pl.Series], Any], finished: FinishedRuns) -> Array | None:
    return np.array([statistic(pl.Series(row)) for row in finished.curve(name)]) if name in finished.columns else None


#: Name -> metric, in the order of their columns.
METRICS: dict[str, Metric] = {
    "average_regret": Metric("average regret", "play", unit="reward"),
    "simple_regret": Metric("simple regret", "recommendation", unit="reward", expendable=4),
    "best_so_far_regret": Metric("best-so-far regret", "best so far", unit="reward", expendable=5),
    "cumulative_regret": Metric("cumulative regret", "play", unit="reward", expendable=6),
    "score": Metric("score of recommendation", "recommendation", _score, max, over_envs="interval", expendable=1),
    "average_score": Metric("score of play", "play", _average_score, max, over_envs="interval", expendable=2),
    "seconds": Metric("seconds a round", "agent", lambda runs: runs.seconds, unit="s", over_envs="mean", expendable=3),
    "rounds_to_goal": Metric(
        f"rounds to score {GOAL:g}", "best so far", _rounds_to_goal, unit="rounds", column="where any", censored=True,
        expendable=7,
    ),
    "total_cost": Metric("total cost", "task", partial(_aggregate_rounds, "cost", pl.Series.sum), column="where any"),
    "feasible_share": Metric(
        "feasible actions", "play", partial(_aggregate_rounds, "feasible", pl.Series.mean), max, column="where any"
    ),
    "gd_plus": Metric("GD+", "recommendation", column="where any"),
    "igd_plus": Metric("IGD+", "recommendation", column="where any"),
    **{
        name: Metric(
            name.replace("_", " "), "best so far", partial(_gap, name), max, column="never", over_envs="interval"
        )
        for name in GAPS
    },
    "run_seconds": Metric(
        "seconds a run", "agent", lambda runs: runs.field("reset_seconds") + runs.seconds * runs.runs[0].horizon,
        unit="s", column="never", over_envs="mean",
    ),
    **{
        name: Metric(
            name.replace("_", " "), "agent", partial(_aggregate_rounds, name, pl.Series.mean), unit="s", column="never"
        )
        for name in TIMING_COLUMNS
    },
}  # fmt: skip


def numbers_of(runs: Sequence[Run]) -> dict[str, Array]:
    """Return name -> metric of finished runs with the same horizon and columns, shape ``(runs,)``; NaN is missing."""
    finished = FinishedRuns(runs)
    numbers = {}
    for name, metric in METRICS.items():
        values = metric.values(finished) if metric.values else finished.last(name)
        numbers[name] = np.full(len(runs), np.nan) if values is None else values
    return numbers
