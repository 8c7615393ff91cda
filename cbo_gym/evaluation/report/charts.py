"""Curves for the page of a report: what the figures show, packed small, with a text for those who cannot see them."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from cbo_gym.errors import printable
from cbo_gym.evaluation.report import figures
from cbo_gym.evaluation.report.figures import CurvesFigure
from cbo_gym.evaluation.report.labels import shortened
from cbo_gym.evaluation.report.palette import Look

DIGITS = 4
LISTED = 12  # lines that a description lists


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


def regret_chart(shown: CurvesFigure) -> Chart:
    """Average and simple regret."""
    return _chart(shown, [_panel(panel, f"{panel.title} (1 = random play)", shown) for panel in shown.panels])


def choice_chart(shown: CurvesFigure) -> Chart:
    """How often each target set or scope was chosen, one panel per agent."""
    return _chart(shown, [_panel(panel, printable(panel.title), shown) for panel in shown.panels])


def profile_chart(shown: CurvesFigure) -> Chart:
    """The share of runs above each score."""
    middle = len(shown.horizontal.few) // 2
    return _chart(shown, [_panel(panel, panel.title, shown, "at s = 0.5", middle) for panel in shown.panels])


def _chart(shown: CurvesFigure, panels: list[Panel]) -> Chart:
    return Chart(shown.horizontal.few.tolist(), shown.horizontal.title, dict(shown.looks), panels)


def _panel(
    panel: figures.Panel, title: str, shown: CurvesFigure, at: str = "after the last round", place: int = -1
) -> Panel:
    keys, x, curves = list(shown.looks), shown.horizontal.few, panel.curves
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
    return Panel(title, f"{title} {at}, lowest first: {said}{more}.", panel.limits, list(panel.ticks), lines)


def _numbers(known: np.ndarray, values: np.ndarray, x: np.ndarray) -> list[float | None]:
    """The values at ``x`` with a few digits, None where they are not known."""
    at = np.searchsorted(known, x)
    there = (at < len(known)) & (known[np.minimum(at, len(known) - 1)] == x)
    return [float(f"{values[k]:.{DIGITS}g}") if found else None for k, found in zip(at, there, strict=True)]
