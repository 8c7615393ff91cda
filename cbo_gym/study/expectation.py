"""What an agent expects of actions, in the units of a study: means and 95 % intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from cbo_gym.study.forecast import NO_FORECAST, Forecast
from cbo_gym.study.units import Units, format_assignments
from cbo_gym.task import Action

# Half the width of a 95 % interval, in standard deviations.
WIDTH = 1.96
# Low and high end of an interval.
Ends = tuple[float, float]


class Band(NamedTuple):
    """Means and ends of 95 % intervals of one objective for several actions, in the study's units; ``low <= high``."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Expectation(dict[str, float]):
    """Expected values of the objectives and of the variables that the agent models, by name.

    Attributes:
        intervals: objective -> the ends of its 95 % interval, without the noise of a trial; empty if the agent has no
            model that gives one.
        assumed: null values of the parameters that were not named.
        forecast: the forecast for a new trial.
    """

    def __init__(
        self,
        values: Mapping[str, float],
        intervals: Mapping[str, Ends],
        assumed: Mapping[str, float] = MappingProxyType({}),
        forecast: Forecast = NO_FORECAST,
    ) -> None:
        super().__init__(values)
        self.intervals, self.assumed = dict(intervals), dict(assumed)
        self.forecast = forecast

    @property
    def interval(self) -> Ends | None:
        """The interval of the reward; None without one, or with several objectives."""
        return next(iter(self.intervals.values())) if len(self.intervals) == 1 else None

    @property
    def outcomes(self) -> Mapping[str, Ends]:
        """Variable -> the ends of the 95 % interval of its value in a new trial, noise included.

        Empty if the agent has no model that gives them.
        """
        return self.forecast.intervals

    @property
    def probabilities(self) -> Mapping[str, float]:
        """Constraint -> probability that a new trial meets it."""
        return self.forecast.probabilities

    def rows(self) -> list[tuple[str, float, Ends | None, Ends | None]]:
        """Return name, expected value, and the 95 % intervals of the mean and of a new outcome of each variable.

        Only objectives have an interval of the mean.
        """
        return [(name, value, self.intervals.get(name), self.outcomes.get(name)) for name, value in self.items()]


class RecommendedAction(NamedTuple):
    """One action of a recommended set: the values to set, by name, and the expected values of the objectives."""

    do: Mapping[str, Any]
    expected: Expectation

    def __str__(self) -> str:
        expected = [
            f"{name} {value:.4g}" + ("" if ends is None else f" ({ends[0]:.4g} to {ends[1]:.4g})")
            for name, value, ends, _ in self.expected.rows()
        ]
        return f"{format_assignments(self.do) or 'nothing set'}: {', '.join(expected)}"


class RecommendedSet(tuple[RecommendedAction, ...]):
    """The recommendation of a study with several objectives: a tuple of actions, none expected to dominate another.

    It prints a line for each action, with 95 % intervals.
    """

    def to_frame(self) -> pl.DataFrame:
        """Return a row for each action, with the ends of intervals in columns ``low(Y)`` and ``high(Y)``."""
        rows = []
        for action in self:
            row = {f"do({name})": value for name, value in action.do.items()}
            for name, value, ends, _ in action.expected.rows():
                row |= {name: value} | ({} if ends is None else {f"low({name})": ends[0], f"high({name})": ends[1]})
            rows.append(row)
        frame = pl.DataFrame(rows, infer_schema_length=None)
        ordered = sorted(frame.columns, key=lambda name: not name.startswith("do("))
        return frame.select(ordered)

    def __str__(self) -> str:
        return "\n".join(map(str, self))


def forecasts(units: Units, agent: Any, actions: Sequence[Action]) -> dict[str, Band]:
    """Return objective -> its expected values with intervals; empty if the agent cannot predict all of the actions."""
    reward_posterior = getattr(agent, "reward_posterior", None)
    posterior = None if reward_posterior is None else reward_posterior(list(actions))
    if posterior is None:
        return {}
    # Columns are objectives.
    mean, std = (np.reshape(values, (len(actions), -1)) for values in posterior)
    low, high = units.to_ends(mean - WIDTH * std, mean + WIDTH * std)
    if units.reward_range is not None:
        low, high = np.clip(low, *units.reward_range), np.clip(high, *units.reward_range)
    columns = zip(units.objectives, units.to_values(mean).T, low.T, high.T, strict=True)
    return {name: Band(*band) for name, *band in columns}
