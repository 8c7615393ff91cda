"""Curves for the page of a report: what the figures show, packed small, with a text for those who cannot see them."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl

from cbo_gym.errors import printable
from cbo_gym.evaluation.compare.leaderboard import Leaderboard
from cbo_gym.evaluation.report.curves import FEWEST_FOR_BAND, Curve, curve, linear_limits, log_limits, log_ticks
from cbo_gym.evaluation.report.labels import shortened
from cbo_gym.evaluation.report.palette import Look
from cbo_gym.evaluation.report.plots import FLOOR, choice_frequencies, choice_styles, regrets
from cbo_gym.evaluation.report.x_axis import Horizontal, Rounds
from cbo_gym.evaluation.runs.results import Run

DIGITS = 4
LISTED = 12  # lines that a description lists

Styles = Mapping[str, Look]


@dataclass(frozen=True)
class Line:
    """One line of a panel; ``key`` counts the entries of the chart's legend."""

    key: int
    mean: list[float | None]
    low: list[float | None] | None
    high: list[float | None] | None
    runs: list[list[float | None]]


@dataclass(frozen=True)
class Panel:
    """One panel: its title, the vertical axis (``ticks`` for a logarithmic one), and what a reader is told of it."""

    title: str
    description: str
    range: tuple[float, float]
    ticks: list[float] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)


@dataclass(frozen=True)
class Chart:
    """Panels with one horizontal axis and one legend, whose entries are name -> look."""

    x: list[float]
    x_title: str
    legend: dict[str, Look]
    panels: list[Panel]

    @property
    def columns(self) -> int:
        """Panels in a row: at most four, with the fewest places left empty."""
        return (
            min((3, 4, 2), key=lambda columns: -len(self.panels) % columns)
            if len(self.panels) > 2
            else len(self.panels)
        )

    @property
    def packed(self) -> str:
        """All but the texts as JSON, deflated, in base64."""
        content: dict[str, Any] = {
            "x": self.x,
            "xTitle": self.x_title,
            "legend": [{"name": printable(name), **asdict(look)} for name, look in self.legend.items()],
            "panels": [
                {name: value for name, value in asdict(p).items() if name != "description"} for p in self.panels
            ],
        }
        return b64encode(zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 9)).decode()


def regret_chart(runs: Sequence[Run], styles: Styles, against: type[Horizontal] = Rounds) -> Chart:
    """Average and simple regret of the runs of one environment."""
    horizontal = against(runs)
    agents = [agent for agent in styles if any(run.agent == agent for run in runs)]
    average, simple = (
        {agent: _regret([run for run in runs if run.agent == agent], horizontal, column, floor) for agent in agents}
        for column, floor in (("average_regret", -np.inf), ("simple_regret", FLOOR))
    )
    low, high = log_limits([found.mean for found in simple.values()])
    panels = [
        _panel(
            "Average regret (1 = random play)",
            average,
            horizontal.few,
            linear_limits([c.mean for c in average.values()]),
        ),
        _panel("Simple regret (1 = random play)", simple, horizontal.few, (low, high), log_ticks(low, high)),
    ]
    return Chart(horizontal.few.tolist(), horizontal.title, {agent: styles[agent] for agent in agents}, panels)


def _regret(runs: Sequence[Run], horizontal: Horizontal, column: str, floor: float) -> Curve:
    return curve(horizontal.values(runs, regrets(runs, column)), floor, horizontal.places)


def choice_chart(runs: Sequence[Run], styles: Styles, against: type[Horizontal] = Rounds) -> Chart | None:
    """How often each target set or scope was chosen, a panel an agent; None where no run chose anything."""
    choosing = [run for run in runs if run.choices]
    if not choosing:
        return None
    horizontal = against(runs)
    legend = choice_styles(choosing)
    panels = []
    for agent in (agent for agent in styles if any(run.agent == agent for run in choosing)):
        own = [run for run in choosing if run.agent == agent]
        found = {
            name: curve(horizontal.values(own, curves), places=horizontal.places)
            for name, curves in choice_frequencies(own, list(legend)).items()
        }
        panels.append(_panel(printable(agent), found, horizontal.few, (0.0, 1.02), keys=list(legend)))
    return Chart(horizontal.few.tolist(), horizontal.title, legend, panels)


def profile_chart(board: Leaderboard, group: str, styles: Styles) -> Chart:
    """The share of runs above each score; bands of agents with five seeds or more on every environment."""
    sure = set(board.overall.filter(pl.col("group") == group, pl.col("fewest_seeds") >= FEWEST_FOR_BAND)["agent"])
    found = {}
    for (agent,), rows in board.profiles.filter(pl.col("group") == group).group_by("agent"):
        threshold, share = rows["threshold"].to_numpy(), rows["fraction"].to_numpy()
        low, high = (rows[f"fraction_{end}"].to_numpy() if agent in sure else None for end in ("low", "high"))
        found[str(agent)] = Curve(threshold, share, low, high, np.empty((0, len(share))), 0)
    found = {agent: found[agent] for agent in styles if agent in found}
    x = next(iter(found.values())).rounds
    panel = _panel("Share of runs with a score above s", found, x, (0.0, 1.02), at="at s = 0.5", place=len(x) // 2)
    return Chart(x.tolist(), "Score s", {agent: styles[agent] for agent in found}, [panel])


def _panel(
    title: str,
    curves: Mapping[str, Curve],
    x: np.ndarray,
    limits: tuple[float, float],
    ticks: list[float] | None = None,
    keys: Sequence[str] | None = None,
    at: str = "after the last round",
    place: int = -1,
) -> Panel:
    keys = list(curves) if keys is None else keys
    short = shortened(curves, 40)
    ends = sorted((float(found.mean[place]), short[name]) for name, found in curves.items())
    said = ", ".join(f"{name} {value:.3g}" for value, name in ends[:LISTED])
    more = f" and {len(ends) - LISTED} more" if len(ends) > LISTED else ""
    lines = [
        Line(
            keys.index(name),
            _numbers(found.rounds, found.mean, x),
            None if found.low is None else _numbers(found.rounds, found.low, x),
            None if found.high is None else _numbers(found.rounds, found.high, x),
            [_numbers(found.rounds, run, x) for run in found.runs],
        )
        for name, found in curves.items()
    ]
    return Panel(title, f"{title} {at}, lowest first: {said}{more}.", limits, ticks or [], lines)


def _numbers(known: np.ndarray, values: np.ndarray, x: np.ndarray) -> list[float | None]:
    """The values at ``x`` with a few digits, None where they are not known."""
    at = np.searchsorted(known, x)
    there = (at < len(known)) & (known[np.minimum(at, len(known) - 1)] == x)
    return [float(f"{values[k]:.{DIGITS}g}") if found else None for k, found in zip(at, there, strict=True)]
