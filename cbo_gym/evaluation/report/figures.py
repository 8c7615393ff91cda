"""Content of figures and of the page's charts, worked out once: panels of curves, with their axes and looks.

Two modules render them: :mod:`cbo_gym.evaluation.report.plots` for paper, :mod:`cbo_gym.evaluation.report.charts` for
the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.compare.leaderboard import Leaderboard
from cbo_gym.evaluation.metrics.regret import running_frequencies
from cbo_gym.evaluation.report.curves import FEWEST_FOR_BAND, Curve, curve, linear_limits, log_limits, log_ticks
from cbo_gym.evaluation.report.palette import Look, of_place
from cbo_gym.evaluation.report.x_axis import CostPaid, Horizontal, Rounds, Scores, has_costs
from cbo_gym.evaluation.runs.results import Run, stacked

FLOOR = 1e-4  # below this share of the gap a regret is drawn as zero
MOST_CHOICES = 8  # lines of a panel; the others are added up
OTHERS = "others"
SHARES = (0.0, 1.02)

Styles = Mapping[str, Look]


@dataclass(frozen=True)
class Panel:
    """One panel.

    Attributes:
        title: what is shown; of choices, whose.
        curves: by the names of the legend, in its order.
        limits: of the vertical axis.
        ticks: of a logarithmic one; none of a linear one.
    """

    title: str
    curves: Mapping[str, Curve]
    limits: tuple[float, float]
    ticks: Sequence[float] = ()


@dataclass(frozen=True)
class CurvesFigure:
    """Panels with one horizontal axis and one legend.

    Attributes:
        horizontal: the axis.
        looks: of the legend's entries, in their order.
        panels: at least one.
        note: what is drawn, and on what it rests.
    """

    horizontal: Horizontal | Scores
    looks: Styles
    panels: Sequence[Panel]
    note: str


def regret_figure(runs: Sequence[Run], styles: Styles, against: type[Horizontal] = Rounds) -> CurvesFigure:
    """Average and simple regret of the finished runs of one environment, in gaps of optimum and random play."""
    horizontal, by_agent = against(runs), _by_agent(runs, styles)
    average, simple = (
        {agent: _regret(own, horizontal, column, floor) for agent, own in by_agent.items()}
        for column, floor in (("average_regret", -np.inf), ("simple_regret", FLOOR))
    )
    low, high = log_limits([found.mean for found in simple.values()])
    panels = [
        Panel("Average regret", average, linear_limits([found.mean for found in average.values()])),
        Panel("Simple regret", simple, (low, high), log_ticks(low, high)),
    ]
    note = what_is_drawn(len({run.seed for run in runs}))
    return CurvesFigure(horizontal, {agent: styles[agent] for agent in by_agent}, panels, note)


def _by_agent(runs: Sequence[Run], agents: Iterable[str]) -> dict[str, list[Run]]:
    """The runs of each agent that has any, in the order of the agents."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.agent, []).append(run)
    return {agent: found[agent] for agent in agents if agent in found}


def _regret(runs: Sequence[Run], horizontal: Horizontal, column: str, floor: float) -> Curve:
    gaps = np.array([run.optimum - run.random_value for run in runs])
    regrets = stacked(runs, [column])[column] / gaps[:, None]
    return curve(horizontal.values(runs, regrets), floor, horizontal.places)


def choice_figure(
    runs: Sequence[Run], agents: Iterable[str], against: type[Horizontal] = Rounds, looks: Styles | None = None
) -> CurvesFigure:
    """How often each target set or scope had been chosen after t rounds on one environment, one panel per agent.

    What an agent never chose has no curve.

    Args:
        runs: finished ones, of which some chose.
        agents: in the order of their panels.
        against: the horizontal axis.
        looks: of the choices; None for :func:`choice_styles`.
    """
    choosing = [run for run in runs if run.choices]
    horizontal, looks = against(runs), looks or choice_styles(choosing)
    panels = [
        Panel(agent, choice_curves_of(own, looks, horizontal), SHARES)
        for agent, own in _by_agent(choosing, agents).items()
    ]
    return CurvesFigure(
        horizontal, looks, panels, "Share of rounds 1 to t in which each target set or scope was chosen"
    )


def choice_curves_of(runs: Sequence[Run], looks: Styles, horizontal: Horizontal) -> dict[str, Curve]:
    """Of the runs of one agent: the share of rounds in which each target set or scope was chosen."""
    return {
        name: curve(horizontal.values(runs, curves), places=horizontal.places)
        for name, curves in choice_frequencies(runs, list(looks)).items()
    }


def choice_styles(runs: Sequence[Run]) -> dict[str, Look]:
    """A look for each of the eight target sets or scopes that the runs chose most, and for the others together."""
    often: Counter[str] = Counter()
    for run in runs:
        for place, count in zip(*np.unique(run.curve("choice"), return_counts=True), strict=True):
            often[run.choices[place]] += count / run.horizon
    names = [name for name, _ in often.most_common(MOST_CHOICES)] + ([OTHERS] if len(often) > MOST_CHOICES else [])
    return {name: of_place(place) for place, name in enumerate(names)}


def choice_frequencies(runs: Sequence[Run], shown: Sequence[str]) -> dict[str, np.ndarray]:
    """Choice -> shape ``(seeds, rounds)``, of those shown that were ever chosen; the others are added up."""
    names = runs[0].choices
    curves = np.stack([running_frequencies(run.curve("choice"), len(names)) for run in runs])
    chosen = [place for place in range(len(names)) if curves[:, -1, place].any()]
    found = {name: curves[..., names.index(name)] for name in shown if name in names and names.index(name) in chosen}
    if rest := [place for place in chosen if names[place] not in found]:
        found[OTHERS] = curves[..., rest].sum(axis=-1)
    return found


def profile_figure(board: Leaderboard, group: str, styles: Styles) -> CurvesFigure:
    """The share of runs above each score; bands of agents with five seeds or more on every environment."""
    overall = board.overall.filter(pl.col("group") == group)
    sure = set(overall.filter(pl.col("fewest_seeds") >= FEWEST_FOR_BAND)["agent"])
    profiles = board.profiles.filter(pl.col("group") == group)
    rows = {agent: part for (agent,), part in profiles.partition_by("agent", as_dict=True).items()}
    curves = {agent: _profile(rows[agent], agent in sure) for agent in styles if agent in rows}
    horizontal = Scores(next(iter(curves.values())).rounds)
    panel = Panel("Share of runs with a score above s", curves, SHARES)
    looks = {agent: styles[agent] for agent in curves}
    return CurvesFigure(horizontal, looks, [panel], "Performance profiles: higher is better")


def _profile(rows: pl.DataFrame, sure: bool) -> Curve:
    share = rows["fraction"].to_numpy()
    low, high = (rows[f"fraction_{end}"].cast(pl.Float64).to_numpy() if sure else None for end in ("low", "high"))
    return Curve(rows["threshold"].to_numpy(), share, low, high, np.empty((0, len(share))), 0)


def with_costs(runs: Sequence[Run], against: type[Horizontal]) -> Sequence[Run]:
    """The runs that can be drawn against an axis.

    Raises:
        ArgumentError: if none can.
    """
    if against is not CostPaid:
        return runs
    if not (priced := [run for run in runs if has_costs(run)]):
        raise ArgumentError("curves against costs need runs of environments whose actions have costs")
    return priced


def what_is_drawn(seeds: int) -> str:
    """How a curve tells what it rests on."""
    if seeds == 1:
        return "1 seed"
    return f"Means of {seeds} seeds; " + ("single runs thin" if seeds < FEWEST_FOR_BAND else "95 % bootstrap intervals")
