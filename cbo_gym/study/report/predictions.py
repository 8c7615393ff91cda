"""The section "What the agent predicts": a small figure of means and intervals for each set, parameter or arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cbo_gym.actions import Range, TypedDomain
from cbo_gym.actions.codec import ArmCodec
from cbo_gym.scm.scopes import pomis
from cbo_gym.study.expectation import Band
from cbo_gym.study.report.lines import Line, lines_of, sets_to_show
from cbo_gym.study.report.snapshot import Snapshot, interval, number
from cbo_gym.study.report.svg import BLUE, GREY, ORANGE, image, page_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Width and height of a panel in inches; it is as wide as a telephone.
PANEL = (3.35, 2.0)
# Left, bottom, width and height of the axes, as shares of the panel.
AXES = (0.13, 0.23, 0.84, 0.73)
# Height of an arm in inches.
ARM_HEIGHT = 0.2
MAX_ARMS = 40
# Largest number of characters of the label of a category on an axis.
MAX_LABEL = 12
# Intervals are cut off if they exceed the range of rewards by more than this share of it.
MARGIN = 0.6


def predictions(snapshot: Snapshot) -> dict[str, Any] | str:
    """Return figures and notes; a sentence if the agent has no model."""
    if snapshot.agent is None:
        return snapshot.no_predictions
    codec = snapshot.study.interface.codec
    with page_style():
        content = _arms(snapshot, codec) if isinstance(codec, ArmCodec) else _panels(snapshot)
    if content is None:
        return f"{snapshot.description.agent} has no model that predicts the reward of actions that were not tried."
    return content


def _panels(snapshot: Snapshot) -> dict[str, Any] | None:
    lines = lines_of(snapshot)
    if not lines:
        return None
    limits = _limits([line.band for line in lines], [reward for line in lines for _, reward in line.measured])
    panels = []
    for line in lines:
        # The line of a parameter has its name as the title.
        along = f" along {line.axis}" if line.axis and line.axis.partition(" [")[0] != line.title else ""
        figure = image(_panel(line, limits), _label(snapshot, line))
        panels.append({"title": line.title, "along": along, "others": line.others, "figure": figure})
    return {"legend": _legend(snapshot), "panels": panels, "notes": _list_omissions(snapshot, lines), "ruled_out": []}


def _list_omissions(snapshot: Snapshot, lines: Sequence[Line]) -> list[str]:
    """Return sentences on the sets, scopes or parameters without a panel."""
    codec = snapshot.study.interface.codec
    if not codec.separate_choices:
        remainder = len(codec.domains.names) - len(lines)
        return [f"{remainder} more parameters, which have less effect, are not shown."] if remainder else []
    shown = sets_to_show(snapshot)
    unmodelled = {snapshot.choice_name(index) for index in shown} - {line.title for line in lines}
    remainder = len(codec.choices) - len(shown)
    return [
        f"Without a model: {'; '.join(sorted(unmodelled))}." if unmodelled else "",
        f"{remainder} more, which were tried less often, are not shown." if remainder else "",
    ]


def _legend(snapshot: Snapshot) -> str:
    legend = (
        f"The expected {snapshot.with_unit(snapshot.units.objectives[0])}: the line is the agent's mean, the band "
        "its 95 % interval for the expectation, without the scatter of single rounds. Dots are measured rounds; "
    )
    if not snapshot.study.interface.sets_variables:
        legend += (
            "the mark is the recommendation. One parameter varies at a time, and the others have their recommended "
            "values, which the dots need not have."
        )
    else:
        legend += (
            "the mark is the best action of the set according to the agent. The variable with the largest effect "
            "varies; the others have their best values."
        )
    if snapshot.context:
        legend += (
            f" The line is for the context of the last trial, {snapshot.words(snapshot.context)}; the dots were "
            "measured in other contexts."
        )
    return legend


def _nearest(line: Line) -> int:
    """Return the index of the point nearest to the mark."""
    return int(np.argmin(np.abs(line.points - line.at))) if len(line.points) else 0


def _label(snapshot: Snapshot, line: Line) -> str:
    where = f"best at {line.axis} = {line.best}, where " if line.axis else ""
    mean, ends = interval(line.band, _nearest(line))
    return f"{line.title}: {where}{snapshot.units.objectives[0]} is expected to be {mean}, 95 % interval {ends}"


def _limits(bands: Sequence[Band], rewards: Sequence[float]) -> tuple[float, float]:
    """Return the limits of all vertical axes; intervals far outside the range of the rewards are cut off."""
    values = np.array([*rewards, *(mean for band in bands for mean in band.mean)])
    smallest, largest = float(values.min()), float(values.max())
    span = float(np.ptp(values)) or max(abs(float(values[0])), 1.0)
    low = max(min(float(band.low.min()) for band in bands), smallest - MARGIN * span)
    high = min(max(float(band.high.max()) for band in bands), largest + MARGIN * span)
    return min(low, smallest) - 0.04 * span, max(high, largest) + 0.04 * span


def _panel(line: Line, limits: tuple[float, float]) -> Figure:
    """Draw the line; for a set without variables one interval, and the rewards next to it."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=PANEL)
    # The axes have the same position in all panels, so that they are aligned.
    axis, band = figure.add_axes(AXES), line.band
    axis.set_ylim(limits)
    domain = line.domain if isinstance(line.domain, TypedDomain) else None
    if domain is not None and domain.categories:
        axis.vlines(line.points, band.low, band.high, color=BLUE, linewidth=6, alpha=0.3)
        axis.plot(line.points, band.mean, "_", color=BLUE, markersize=9)
        mark, dots = line.at, line.measured
        axis.set(xlabel=line.axis, xlim=(-0.5, domain.high + 0.5))
        axis.set_xticks(range(len(domain.categories)), [name[:MAX_LABEL] for name in domain.categories])
    elif line.axis:
        axis.fill_between(line.points, band.low, band.high, color=BLUE, alpha=0.2, linewidth=0)
        axis.plot(line.points, band.mean, color=BLUE)
        mark, left, right = line.at, line.points[0], line.points[-1]
        dots = [(x, y) for x, y in line.measured if left <= x <= right]
        pad = 0.02 * (right - left)
        axis.set(xlabel=line.axis, xlim=(left - pad, right + pad))
        if isinstance(domain, Range) and domain.scale == "log":
            axis.set(xscale="log", xlim=(left, right))
    else:
        axis.plot([0.3, 0.3], [band.low[0], band.high[0]], color=BLUE, linewidth=6, alpha=0.3)
        mark, rewards = 0.3, [reward for _, reward in line.measured]
        dots = list(zip(np.linspace(0.5, 0.9, len(rewards)), rewards, strict=True))
        axis.set(xlim=(0.0, 1.0), xticks=[])
        axis.grid(axis="x", visible=False)
    axis.plot([x for x, _ in dots], [y for _, y in dots], "o", color=GREY, markersize=3.2, alpha=0.8)
    axis.plot([mark], [band.mean[_nearest(line)]], "D", color=ORANGE, markersize=5.5)
    return figure


def _arms(snapshot: Snapshot, codec: ArmCodec) -> dict[str, Any] | None:
    arms, diagram = codec.arms, snapshot.study.diagram
    band = snapshot.rewards(range(len(arms)))
    if band is None:
        return None
    counts = np.bincount([int(played.action) for played in snapshot.rounds], minlength=len(arms))
    possible = set(range(len(arms)))
    if diagram is not None:
        sets = pomis(diagram, snapshot.units.objectives[0], frozenset[str]().union(*arms))
        possible = {index for index, arm in enumerate(arms) if frozenset(arm) in sets}
    sign = snapshot.description.goals[0].sign
    ruled_out = [arm for arm in range(len(arms)) if arm not in possible and counts[arm] == 0]
    # Tried arms first, and among them the best.
    order = sorted(set(range(len(arms))) - set(ruled_out), key=lambda arm: (counts[arm] == 0, -sign * band.mean[arm]))
    shown = order[:MAX_ARMS]
    legend = (
        f"The expected {snapshot.units.objectives[0]} of each arm: mean and 95 % interval from its own rounds, with "
        "the number of rounds."
    )
    if len(possible) < len(arms):
        legend += (
            f" By the diagram only {len(possible)} of the {len(arms)} arms can be optimal: those that set a possibly "
            "optimal set. The others are grey, and are shown only if they were tried."
        )
    best = max(shown, key=lambda arm: sign * band.mean[arm])
    label = f"{len(shown)} arms; the best mean is {number(float(band.mean[best]))}, of {snapshot.words(arms[best])}"
    remainder = len(order) - len(shown)
    return {
        "legend": legend,
        "panels": [],
        "figure": image(_arm_figure(snapshot, arms, band, counts, shown, possible), label),
        "notes": [f"{remainder} more arms are not shown."] if remainder else [],
        "ruled_out": [snapshot.words(arms[arm]) for arm in ruled_out],
    }


def _arm_figure(
    snapshot: Snapshot,
    arms: Sequence[Mapping[str, float]],
    band: Band,
    counts: np.ndarray,
    shown: Sequence[int],
    possible: set[int],
) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2, 0.7 + ARM_HEIGHT * len(shown)), layout="constrained")
    axis = figure.add_subplot()
    for row, arm in enumerate(shown):
        colour = BLUE if arm in possible else GREY
        axis.plot([band.low[arm], band.high[arm]], [row, row], color=colour, linewidth=4, alpha=0.3)
        axis.plot([band.mean[arm]], [row], "D" if counts[arm] else "|", color=colour, markersize=4.5)
    labels = [f"{snapshot.words(arms[arm])}  ({counts[arm]} rounds)" for arm in shown]
    axis.set(ylim=(len(shown) - 0.4, -0.6), xlabel=snapshot.with_unit(snapshot.units.objectives[0]))
    axis.set_yticks(range(len(shown)), labels)
    axis.grid(axis="y", visible=False)
    return figure
