"""The section "The trade-off" of studies with several objectives: a figure for each pair of objectives.

It shows the measured rounds, the recommended actions, and forecasts of random actions.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from cbo_gym._util.fronts import non_dominated
from cbo_gym.agents.common.seeding import seeded_copy
from cbo_gym.study.expectation import Band, RecommendedSet
from cbo_gym.study.report.snapshot import Snapshot
from cbo_gym.study.report.svg import BLUE, GREY, ORANGE, image, page_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Number of random actions from which the front is forecast.
RANDOM_ACTIONS = 256
# Size of the figure in inches.
SIZE = (4.3, 3.6)
# Objective -> expected values of some actions.
Bands = dict[str, Band]


def front(snapshot: Snapshot) -> dict[str, Any] | str:
    """Return a figure for each pair of objectives, and a legend; a sentence if nothing is known."""
    from matplotlib.figure import Figure

    if not snapshot.rounds:
        return "Nothing is known yet."
    is_on_front = np.zeros(len(snapshot.rounds), dtype=bool)
    is_on_front[snapshot.front] = True
    recommended, forecast = _recommended(snapshot.recommended_set), _forecast(snapshot)
    panels = []
    for x, y in combinations(snapshot.description.goals, 2):
        names = (x.name, y.name)
        values = np.array([[played.objectives[name] for name in names] for played in snapshot.rounds])
        with page_style():
            figure = Figure(figsize=SIZE, layout="constrained")
            axes = figure.add_subplot()
            axes.plot(*values[~is_on_front].T, "o", color=GREY, markersize=3.5, alpha=0.7, label="dominated round")
            axes.plot(*values[is_on_front].T, "o", color=BLUE, markersize=5.0, label="round not dominated")
            if forecast:
                bands = [forecast[name] for name in names]
                order = np.argsort(bands[0].mean)
                # With three objectives a line through two of them would go back and forth.
                style = "--" if len(forecast) == 2 else "."
                line = [band.mean[order] for band in bands]
                axes.plot(*line, style, color=ORANGE, linewidth=1.0, markersize=3.0, label="forecast of random actions")
                _draw_intervals(axes, bands, fmt="none", alpha=0.25)
            if recommended:
                marker = {"fmt": "D", "markersize": 5.5, "markerfacecolor": "none", "label": "recommended"}
                _draw_intervals(axes, [recommended[name] for name in names], **marker)
            xlabel, ylabel = (f"{snapshot.with_unit(goal.name)}, to {goal.verb}" for goal in (x, y))
            axes.set(xlabel=xlabel, ylabel=ylabel)
            figure.legend(loc="outside upper left", ncols=2, handlelength=1.6, columnspacing=1.2)
            title = f"{y.name} against {x.name}"
            counts = f"{len(is_on_front)} rounds, of which {is_on_front.sum()} are not dominated"
            label = f"{title}: {counts}, and the recommended actions"
            panels.append({"title": title, "along": "", "others": "", "figure": image(figure, label)})
    return {"legend": _legend(snapshot), "panels": panels, "notes": [], "ruled_out": []}


def _legend(snapshot: Snapshot) -> str:
    count, conditions = len(snapshot.units.objectives), snapshot.units.conditions
    all_objectives = f", of all {count}" if count > 2 else ""
    or_broken = f", or if it breaks the {conditions}" if conditions else ""
    return (
        "Dots are measured rounds. A round is dominated if another one is at least as good in every objective and "
        f"better in one{all_objectives}{or_broken}. Diamonds are the recommended actions, where the agent expects "
        "them; bars are 95 % intervals of the expectations, without the scatter of single rounds. "
        f"{'The dashed line joins' if count == 2 else 'Small dots are'} the best of {RANDOM_ACTIONS} random actions, "
        "where the agent expects them."
    )


def _draw_intervals(axes: Axes, bands: list[Band], **options: Any) -> None:
    xerr, yerr = ([band.mean - band.low, band.high - band.mean] for band in bands)
    axes.errorbar(bands[0].mean, bands[1].mean, xerr=xerr, yerr=yerr, color=ORANGE, elinewidth=1.0, **options)


def _recommended(actions: RecommendedSet | None) -> Bands:
    bands: Bands = {}
    if not actions:
        return bands
    for name in actions[0].expected:
        means = [action.expected[name] for action in actions]
        ends = [action.expected.intervals.get(name, (action.expected[name],) * 2) for action in actions]
        bands[name] = Band(np.array(means), *np.array(ends).T)
    return bands


def _forecast(snapshot: Snapshot) -> Bands:
    """Return the objectives that the agent expects of the best random actions; empty without a model."""
    if snapshot.agent is None:
        return {}
    codec, rng = snapshot.study.interface.codec, np.random.default_rng(0)
    space = seeded_copy(codec.space, 0)
    actions = [space.sample() if codec.limits is None else codec.draw(rng) for _ in range(RANDOM_ACTIONS)]
    bands = snapshot.forecasts(actions)
    if not bands:
        return {}
    best = non_dominated(snapshot.units.to_rewards(np.stack([band.mean for band in bands.values()], -1)))
    return {name: Band(*(values[best] for values in band)) for name, band in bands.items()}
