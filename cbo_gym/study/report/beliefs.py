"""The agent's beliefs about each target set, scope, parameter or arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from cbo_gym.actions.codec import ArmCodec
from cbo_gym.scm.scopes import pomis
from cbo_gym.study.expectation import Band
from cbo_gym.study.report.lines import Line, lines_of, shown_sets
from cbo_gym.study.report.markup import folded, number, paragraph, section
from cbo_gym.study.report.mind import Mind
from cbo_gym.study.report.naming import action_words, choice_name, with_unit
from cbo_gym.study.report.rounds import seen_rounds
from cbo_gym.study.report.svg import BLUE, GREY, ORANGE, image, page_style
from cbo_gym.study.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = (3.35, 2.0)  # inches, as wide as a telephone
INSIDE = (0.13, 0.23, 0.84, 0.73)  # of a panel: left, bottom, width and height of the axes
ARM_HEIGHT = 0.2
MOST_ARMS = 40
ROOM = 0.6  # of the rewards' range above and below, beyond which intervals are cut off


def beliefs_section(study: Study, mind: Mind) -> str:
    """Small multiples of means and 95 % intervals; in words where the agent believes nothing."""
    if mind.agent is None:
        return section("beliefs", "What the agent believes", paragraph(mind.silence))
    if isinstance(study.feedback.codec, ArmCodec):
        parts = _arms(study, mind, study.feedback.codec)
    else:
        lines = lines_of(study, mind)
        parts = _panels(study, mind, lines) if lines else [paragraph(_no_model(study))]
    return section("beliefs", "What the agent believes", *parts)


def _no_model(study: Study) -> str:
    return (
        f"{study.about.agent} has no model of the expected reward that could be asked about actions that were not "
        "tried; it knows what was seen."
    )


def _panels(study: Study, mind: Mind, lines: Sequence[Line]) -> list[str]:
    limits = _limits([line.band for line in lines], [reward for line in lines for _, reward in line.seen])
    parts = [paragraph(_legend(study, mind), "note")]
    with page_style():
        figures = [
            f'<figure class="panel"><figcaption>{_title(line)}</figcaption>\n'
            f"{image(_panel(line, limits), _heard(study, line))}</figure>"
            for line in lines
        ]
    parts.append(f'<div class="panels">{"".join(figures)}</div>')
    parts += [paragraph(text, "note") for text in _left_out(study, lines)]
    return parts


def _left_out(study: Study, lines: Sequence[Line]) -> list[str]:
    """Sentences on the sets, scopes or parameters that no panel tells of."""
    names = study.feedback.codec.choices
    if not names:
        more = len(study.feedback.codec.domains.names) - len(lines)
        return [f"{more} more parameters, on which less depends, are not shown."] if more else []
    shown = shown_sets(study)
    silent = {choice_name(study, index) for index in shown} - {line.title for line in lines}
    said = [f"The agent has no model of {'; '.join(sorted(silent))}."] if silent else []
    more = len(names) - len(shown)
    return said + ([f"{more} more, which were tried less, are not shown."] if more else [])


def _legend(study: Study, mind: Mind) -> str:
    about = study.about
    text = (
        f"The expected {with_unit(study, about.reward)}: the line is the agent's mean, the band its 95 % interval for "
        "the expectation, without the scatter of single rounds. Dots are what was seen; "
    )
    if about.mode in ("soft", "aggregated"):
        text += (
            "the mark is what is recommended. One parameter moves at a time, the others stay as recommended; dots have "
            "values of their own for them."
        )
    else:
        text += (
            "the mark is the best action of the set by these beliefs. The variable on which most depends moves; the "
            "others stay where they are best."
        )
    if mind.context:
        text += f" The context is that of the last trial, {action_words(study, mind.context)}; the dots saw other ones."
    return text


def _title(line: Line) -> str:
    moved = f" along {line.axis}" if line.axis and line.axis.partition(" [")[0] != line.title else ""
    held = f"<br><small>{escape(line.held)}</small>" if line.held else ""
    return f"<strong>{escape(line.title)}</strong>{escape(moved)}{held}"


def _heard(study: Study, line: Line) -> str:
    place = int(np.argmin(np.abs(line.points - line.at))) if len(line.points) else 0
    where = f"best at {line.axis} = {number(line.at)}, where " if line.axis else ""
    low, mean, high = (number(float(part[place])) for part in (line.band.low, line.band.mean, line.band.high))
    return f"{line.title}: {where}{study.about.reward} is expected to be {mean}, 95 % interval {low} to {high}"


def _limits(bands: Sequence[Band], seen: Sequence[float]) -> tuple[float, float]:
    """The vertical axis of all panels, so that they compare; intervals far beyond what was seen are cut off."""
    known = np.array([*seen, *(value for band in bands for value in band.mean)])
    span = float(np.ptp(known)) or max(abs(float(known[0])), 1.0)
    low = max(min(float(band.low.min()) for band in bands), float(known.min()) - ROOM * span)
    high = min(max(float(band.high.max()) for band in bands), float(known.max()) + ROOM * span)
    low, high = min(low, float(known.min())), max(high, float(known.max()))
    return low - 0.04 * span, high + 0.04 * span


def _panel(line: Line, limits: tuple[float, float]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=PANEL)
    axis = figure.add_axes(INSIDE)  # in all panels alike, so that their axes stand in a row
    if line.axis:
        _draw_line(axis, line)
    else:
        _draw_point(axis, line)
    axis.set_ylim(limits)
    return figure


def _draw_line(axis: Axes, line: Line) -> None:
    axis.fill_between(line.points, line.band.low, line.band.high, color=BLUE, alpha=0.2, linewidth=0)
    axis.plot(line.points, line.band.mean, color=BLUE)
    inside = [(x, y) for x, y in line.seen if line.points[0] <= x <= line.points[-1]]
    axis.plot(*(zip(*inside, strict=True) if inside else ([], [])), "o", color=GREY, markersize=3.2, alpha=0.8)
    place = int(np.argmin(np.abs(line.points - line.at)))
    axis.plot([line.at], [line.band.mean[place]], "D", color=ORANGE, markersize=5.5)
    pad = 0.02 * (line.points[-1] - line.points[0])
    axis.set(xlabel=line.axis, xlim=(line.points[0] - pad, line.points[-1] + pad))


def _draw_point(axis: Axes, line: Line) -> None:
    """A set without variables: one interval, and what was seen beside it."""
    axis.plot([0.3, 0.3], [line.band.low[0], line.band.high[0]], color=BLUE, linewidth=6, alpha=0.3)
    axis.plot([0.3], [line.band.mean[0]], "D", color=ORANGE, markersize=5.5)
    rewards = [reward for _, reward in line.seen]
    axis.plot(np.linspace(0.5, 0.9, len(rewards)), rewards, "o", color=GREY, markersize=3.2, alpha=0.8)
    axis.set(xlim=(0.0, 1.0), xticks=[])
    axis.grid(axis="x", visible=False)


def _arms(study: Study, mind: Mind, codec: ArmCodec) -> list[str]:
    band = mind.rewards(range(len(codec.arms)))
    if band is None:
        return [paragraph(_no_model(study))]
    rounds = seen_rounds(study)
    counts = np.bincount([int(one.action) for one in rounds], minlength=len(codec.arms))
    possible = _possibly_optimal(study, codec)
    sign = -1.0 if study.about.direction == "minimize" else 1.0
    ruled_out = [arm for arm in range(len(codec.arms)) if arm not in possible and not counts[arm]]
    order = sorted(
        set(range(len(codec.arms))) - set(ruled_out), key=lambda arm: (counts[arm] == 0, -sign * band.mean[arm])
    )
    shown = order[:MOST_ARMS]
    said = (
        f"The expected {study.about.reward} of each arm: mean and 95 % interval of what its own rounds tell, with how "
        "often it was tried."
    )
    if study.diagram is not None and len(possible) < len(codec.arms):
        said += (
            f" By the diagram {len(possible)} of the {len(codec.arms)} arms can be best for some mechanisms: those "
            "that set a possibly optimal set. Others are grey, and not shown unless they were tried."
        )
    with page_style():
        figure = _arm_figure(study, codec, band, counts, shown, possible)
        best = max(shown, key=lambda arm: sign * band.mean[arm])
        heard = (
            f"{len(shown)} arms; the best mean is {number(float(band.mean[best]))}, of "
            f"{action_words(study, codec.arms[best])}"
        )
        drawn = f'<figure class="arms">{image(figure, heard)}</figure>'
    parts = [paragraph(said, "note"), drawn]
    if len(order) > len(shown):
        parts.append(paragraph(f"{len(order) - len(shown)} more arms are not shown.", "note"))
    if ruled_out:
        names = "; ".join(_arm_name(codec.arms[arm]) for arm in ruled_out)
        parts.append(folded(f"{len(ruled_out)} arms that cannot be best, by the diagram", paragraph(names)))
    return parts


def _possibly_optimal(study: Study, codec: ArmCodec) -> set[int]:
    """Places of the arms whose sets can be best for some mechanisms on the diagram; all where it is not known."""
    sets = [frozenset(arm) for arm in codec.arms]
    if study.diagram is None:
        return set(range(len(sets)))
    chosen = pomis(study.diagram, study.about.reward, frozenset[str]().union(*sets))
    return {place for place, members in enumerate(sets) if members in chosen}


def _arm_figure(
    study: Study, codec: ArmCodec, band: Band, counts: np.ndarray, shown: Sequence[int], possible: set[int]
) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2, 0.7 + ARM_HEIGHT * len(shown)), layout="constrained")
    axis = figure.add_subplot()
    for row, arm in enumerate(shown):
        colour = BLUE if arm in possible else GREY
        axis.plot([band.low[arm], band.high[arm]], [row, row], color=colour, linewidth=4, alpha=0.3)
        axis.plot([band.mean[arm]], [row], "D" if counts[arm] else "|", color=colour, markersize=4.5)
    labels = [f"{_arm_name(codec.arms[arm])}  ({counts[arm]} rounds)" for arm in shown]
    axis.set(yticks=range(len(shown)), ylim=(len(shown) - 0.4, -0.6), xlabel=with_unit(study, study.about.reward))
    axis.set_yticklabels(labels)
    axis.grid(axis="y", visible=False)
    return figure


def _arm_name(arm: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in arm.items()) or "nothing set"
