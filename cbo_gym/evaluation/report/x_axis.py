"""The x axis of curves: rounds, or the cost of the actions; of shares of runs, scores."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.runs.results import Run

Array = np.ndarray

STEPS = 150  # of an axis of costs
MOST_ROUNDS = 150  # of a line on a page; more are no wider than a dot on a screen


class Rounds:
    """The rounds of runs of one environment.

    Args:
        runs: finished ones.

    Attributes:
        title: of the axis; ``in_figures`` with mathematics.
        places: where curves have values, shape ``(n,)``.
        few: those that are enough for a page.
    """

    title = "Round"
    in_figures = "Round $t$"

    def __init__(self, runs: Sequence[Run]) -> None:
        horizon = runs[0].horizon
        self.places = np.arange(1, horizon + 1)
        self.few = np.unique(np.linspace(1, horizon, min(horizon, MOST_ROUNDS)).round().astype(int))

    def values(self, runs: Sequence[Run], curves: Array) -> Array:
        """The curves at the places: shape ``(seeds, n)`` of values after each round, shape ``(seeds, rounds)``."""
        return curves


class CostPaid:
    """The cost of the actions of runs of one environment: the sum over the rounds until then.

    The runs of an agent spend at different speeds. A run's value at a cost is that after the last round that it had
    paid for by then. It has none before its first round, and once it has ended keeps its last; an agent's curve ends
    with the dearest of its runs. Of what is not known after each round, as recommendations, the last that is counts.

    Args, attributes: as of :class:`Rounds`.

    Raises:
        ArgumentError: if a run has no costs.
    """

    title = in_figures = "Cost paid"

    def __init__(self, runs: Sequence[Run]) -> None:
        if not all(map(has_costs, runs)):
            raise ArgumentError("curves against costs need runs of environments whose actions have costs")
        by_agent = groupby(sorted(runs, key=attrgetter("agent")), key=attrgetter("agent"))
        paid = [_paid(list(own)) for _, own in by_agent]
        ends = np.array([(one[:, 0].max(), one[:, -1].max()) for one in paid])
        self.places = np.unique([*np.linspace(0.0, ends.max(), STEPS + 1), *ends.ravel()])
        self.few = self.places

    def values(self, runs: Sequence[Run], curves: Array) -> Array:
        """The curves of one agent's runs at the places, NaN where it has none."""
        paid, curves = _paid(runs), _carried_on(curves)
        rounds = np.stack([np.searchsorted(one, self.places, side="right") for one in paid]) - 1
        found = np.take_along_axis(curves, rounds.clip(min=0), axis=1)
        return np.where((rounds < 0) | (self.places > paid[:, -1].max()), np.nan, found)


class Scores:
    """Scores from 0 to 1, against which shares of runs are drawn.

    Args, attributes: as of :class:`Rounds`, ``places`` being given.
    """

    title = "Score s"
    in_figures = "Score $s$ (0 = random play, 1 = optimum)"

    def __init__(self, places: Array) -> None:
        self.places = self.few = places


Horizontal = Rounds | CostPaid


def has_costs(run: Run) -> bool:
    """Whether a finished run's actions had costs."""
    return "cost" in run.columns


def _paid(runs: Sequence[Run]) -> Array:
    """The cost that each run had paid after each round, shape ``(seeds, rounds)``."""
    return np.stack([np.cumsum(run.curve("cost")) for run in runs])


def _carried_on(curves: Array) -> Array:
    """Each NaN replaced by the last number before it in its row, where there is one."""
    last = np.maximum.accumulate(np.where(np.isnan(curves), 0, np.arange(curves.shape[1])), axis=1)
    return np.take_along_axis(curves, last, axis=1)
