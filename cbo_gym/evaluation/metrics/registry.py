"""Every number by which runs are compared: its name, what it is of, which way is better, and how it is worked out.

A new one is an entry of :data:`METRICS` and a function beside it; tables, comparisons and files follow.
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
from cbo_gym.evaluation.runs.results import TIMING_COLUMNS, Run, stacked

Array = np.ndarray
Of = Literal["play", "best so far", "recommendation", "agent", "task"]
GOAL = 0.9  # score that is reached early or late
#: columns that most metrics read
OFTEN = (
    "average_regret", "simple_regret", "best_so_far_regret", "cumulative_regret", "average_reward", "feasible", "cost",
    *TIMING_COLUMNS,
)  # fmt: skip


class Ends:
    """Finished runs with one horizon and the same columns, whose curves are read when they are asked for.

    Args:
        runs: at least one.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = runs
        self.columns = runs[0].columns
        self._curves = stacked(runs, [name for name in OFTEN if name in self.columns])  # at once: much is shared

    def curve(self, name: str) -> Array:
        """A column of all the tables, shape ``(runs, rounds)``."""
        if name not in self._curves:
            self._curves |= stacked(self.runs, [name])
        return self._curves[name]

    def last(self, name: str) -> Array | None:
        """Its last round, shape ``(runs,)``; None where the runs have no such column."""
        return self.curve(name)[:, -1] if name in self.columns else None

    def of(self, field: str) -> Array:
        """A field of the runs, shape ``(runs,)``."""
        return np.array([getattr(run, field) for run in self.runs])

    def score(self, rewards: Array) -> Array:
        """0 for what a random action earns, 1 for the optimum; NaN where the two are one. Shape ``(runs, ...)``."""
        optima, at_random = (
            self.of(name).reshape(-1, *[1] * (rewards.ndim - 1)) for name in ("optimum", "random_value")
        )
        scale = np.where(optima > at_random, optima, at_random + np.nan)
        return normalised_score(scale, at_random, rewards).round(TIE_DECIMALS)

    @cached_property
    def seconds(self) -> Array:
        """Of a round on average, shape ``(runs,)``."""
        return np.sum([self.curve(name) for name in TIMING_COLUMNS], axis=0).mean(axis=-1)

    @cached_property
    def gaps(self) -> dict[str, Array]:
        """GAP and PA-GAP, by their columns."""
        return gaps(self.runs)


@dataclass(frozen=True)
class Metric:
    """A number of a finished run.

    Attributes:
        title: as tables name it.
        of: what it is a number of.
        values: called with runs; their numbers, shape ``(runs,)``, or None where such runs have none. NaN is of a run
            that has none, infinity (of a censored metric) of one that did not get there. By default the last values of
            the runs' column of the metric's name.
        best: of several, ``min`` or ``max``; None where neither is better.
        unit: empty for a number without one; ``reward`` for that of the environment.
        shown: in the table of an environment always, only where some agent has a number, or never.
        censored: whether a run may end before it has its number. Means of those that got there would praise whoever
            fails often, so there is none unless all seeds got there; how many did is a column beside it.
        over_envs: how it is averaged over environments: with an interval, without, or not at all, since it is in
            units of its own on each.
        expendable: on a narrow terminal columns with higher numbers go first; 0 stays.
    """

    title: str
    of: Of
    values: Callable[[Ends], Array | None] | None = None
    best: Callable[[Any], Any] | None = min
    unit: str = ""
    shown: Literal["always", "where any", "never"] = "always"
    censored: bool = False
    over_envs: Literal["interval", "mean", ""] = ""
    expendable: int = 0


def _score(ends: Ends) -> Array:
    """Where the recommendation is for one context, what it lacks counts, not what the context is worth."""
    return ends.score(ends.of("optimum") - ends.curve("simple_regret")[:, -1])


def _average_score(ends: Ends) -> Array:
    constrained = ends.runs[0].is_constrained
    name = "average_regret" if constrained else "average_reward"
    last = ends.curve(name)[:, -1]
    return ends.score(ends.of("optimum") - last if constrained else last)


def _rounds_to_goal(ends: Ends) -> Array | None:
    """The first round after which the best action played so far scores at least :data:`GOAL`."""
    if "slice" in ends.columns or "best_so_far_regret" not in ends.columns:  # slices have no one optimum
        return None
    return first_rounds(ends.score(ends.of("optimum")[:, None] - ends.curve("best_so_far_regret")) >= GOAL)


def _feasible_share(ends: Ends) -> Array | None:
    return ends.curve("feasible").mean(axis=-1) if "feasible" in ends.columns else None


def _total_cost(ends: Ends) -> Array | None:
    return np.array([pl.Series(row).sum() for row in ends.curve("cost")]) if "cost" in ends.columns else None


def _gap(name: str, ends: Ends) -> Array:
    return ends.gaps[name]


def _mean(name: str, ends: Ends) -> Array:
    return np.array([pl.Series(row).mean() for row in ends.curve(name)])


def _words(name: str) -> str:
    return name.replace("_", " ")


#: name of its column -> the metric, in the order of the columns
METRICS: dict[str, Metric] = {
    "average_regret": Metric("average regret", "play", unit="reward"),
    "simple_regret": Metric("simple regret", "recommendation", unit="reward", expendable=4),
    "best_so_far_regret": Metric("best-so-far regret", "best so far", unit="reward", expendable=5),
    "cumulative_regret": Metric("cumulative regret", "play", unit="reward", expendable=6),
    "score": Metric("score of recommendation", "recommendation", _score, max, over_envs="interval", expendable=1),
    "average_score": Metric("score of play", "play", _average_score, max, over_envs="interval", expendable=2),
    "seconds": Metric("seconds a round", "agent", lambda ends: ends.seconds, unit="s", over_envs="mean", expendable=3),
    "rounds_to_goal": Metric(
        f"rounds to score {GOAL:g}", "best so far", _rounds_to_goal, unit="rounds", shown="where any", censored=True,
        expendable=7,
    ),
    "total_cost": Metric("total cost", "task", _total_cost, shown="where any"),
    "feasible_share": Metric("feasible actions", "play", _feasible_share, max, shown="where any"),
    "gd_plus": Metric("GD+", "recommendation", shown="where any"),
    "igd_plus": Metric("IGD+", "recommendation", shown="where any"),
    **{
        name: Metric(_words(name), "best so far", partial(_gap, name), max, shown="never", over_envs="interval")
        for name in GAPS
    },
    "run_seconds": Metric(
        "seconds a run", "agent", lambda ends: ends.of("reset_seconds") + ends.seconds * ends.runs[0].horizon, unit="s",
        shown="never", over_envs="mean",
    ),
    **{name: Metric(_words(name), "agent", partial(_mean, name), unit="s", shown="never") for name in TIMING_COLUMNS},
}  # fmt: skip


def numbers_of(runs: Sequence[Run]) -> dict[str, Array]:
    """All metrics of finished runs with one horizon and the same columns, each of shape ``(runs,)``."""
    ends = Ends(runs)
    found = {name: metric.values(ends) if metric.values else ends.last(name) for name, metric in METRICS.items()}
    return {name: np.full(len(runs), np.nan) if values is None else values for name, values in found.items()}
