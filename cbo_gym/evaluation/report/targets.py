"""Runtime-to-target curves: the share of runs that reached a score, against rounds and against seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cbo_gym.evaluation.metrics.targets import TARGETS, has_targets, rounds_to, seconds_to, shares
from cbo_gym.evaluation.report.labels import for_figure, shortened
from cbo_gym.evaluation.report.palette import Look, looks
from cbo_gym.evaluation.report.plots import LABEL_WIDTH, WIDTH, on_paper, shared_legend
from cbo_gym.evaluation.runs.results import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT = 3.8  # inches
POINTS = 100  # of a line
EVERY = 12  # points between markers
#: what is on the horizontal axes of a row: its title, and a run's times to the targets
ROWS: dict[str, Callable[[Run], np.ndarray]] = {"Round": rounds_to, "Seconds of the agent": seconds_to}


@on_paper
def draw_targets(runs: Sequence[Run], styles: Mapping[str, Look] | None = None) -> Figure:
    """A panel for each target, rounds above and seconds below; each environment counts alike.

    Args:
        runs: of several agents, at least one of them with targets, see :func:`has_targets`.
        styles: of the agents.
    """
    from matplotlib.figure import Figure

    by_agent: dict[str, list[Run]] = {}
    for run in filter(has_targets, runs):
        by_agent.setdefault(run.agent, []).append(run)
    styles, names = styles or looks(by_agent), shortened(by_agent, LABEL_WIDTH)
    figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    axes = figure.subplots(len(ROWS), len(TARGETS), sharex="row", sharey=True)
    for row, (label, times) in zip(axes, ROWS.items(), strict=True):
        for agent, own in by_agent.items():
            envs = np.array([run.env for run in own])
            for axis, found in zip(row, np.stack([times(run) for run in own], -1), strict=True):
                _draw(axis, found, envs, names[agent], styles[agent])
        for axis in row:
            axis.set(xscale="log", xlabel=label, ylim=(-0.03, 1.03))
        row[0].set_ylabel("Share of runs")
    for axis, target in zip(axes[0], TARGETS, strict=True):
        axis.set_title(f"score {target:g}")
    shared_legend(figure)
    return figure


def _draw(axis: Axes, times: np.ndarray, envs: np.ndarray, name: str, look: Look) -> None:
    known = times[np.isfinite(times) & (times > 0.0)]
    at = np.unique(np.geomspace(known.min(), known.max(), POINTS)) if len(known) else np.ones(1)
    reached = np.mean([shares(times[envs == env], at) for env in np.unique(envs)], axis=0)
    axis.plot(
        at,
        reached,
        linestyle=look.linestyle,
        color=look.colour,
        marker=look.marker,
        markersize=3.5,
        markevery=EVERY,
        drawstyle="steps-post",
        label=for_figure(name),
    )
