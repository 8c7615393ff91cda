"""Figures of runs: regret against rounds and what was chosen how often, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cbo_gym.evaluation.leaderboard import env_label, half_width
from cbo_gym.evaluation.regret import running_frequencies
from cbo_gym.evaluation.results import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = {"average_regret": "Average regret R$_t$/t", "simple_regret": "Simple regret"}
FLOOR = 1e-4  # below this share of the gap a regret is drawn as zero
LINE_STYLES = ("-", "--", "-.", ":")


def regret_curves(runs: Sequence[Run]) -> Figure:
    """Average and simple regret against rounds, a row of panels an environment.

    Regrets are divided by the gap between the optimum and a random action, so 1 is random play. Lines are means over
    seeds, bands their 95 % t-intervals. Simple regret has a logarithmic scale, with what is below 1e-4 drawn at 1e-4;
    the scales follow the lines, since with few seeds the bands would fill any panel.
    """
    from matplotlib.figure import Figure  # late: slow to import, and needed only for figures

    envs = sorted({env_label(run) for run in runs})
    agents = sorted({run.agent for run in runs})
    figure = Figure(figsize=(11, 3.2 * len(envs) + 0.8), layout="constrained")
    axes = figure.subplots(len(envs), len(COLUMNS), squeeze=False)
    for row, env in zip(axes, envs, strict=True):
        for axis, (column, title) in zip(row, COLUMNS.items(), strict=True):
            for place, agent in enumerate(agents):
                chosen = [run for run in runs if env_label(run) == env and run.agent == agent]
                if chosen:
                    _curve(axis, chosen, column, agent, place)
            _finish(axis, env, title)
        _scale_to_lines(row[0], log=False)
        _scale_to_lines(row[1], log=True)
    handles = {
        label: handle for axis in axes.flat for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=min(5, len(handles)))
    return figure


def _curve(axis: Axes, runs: Sequence[Run], column: str, label: str, place: int) -> None:
    gap = runs[0].optimum - runs[0].random_value
    curves = np.stack([run.table[column].to_numpy() for run in runs]) / gap
    mean_curve(axis, curves, label, place, floor=FLOOR)


def choice_curves(runs: Sequence[Run]) -> Figure | None:
    """How often each target set or scope had been chosen after t rounds, a panel for each environment and agent.

    Lines are means over seeds, bands their 95 % t-intervals; what an agent never chose has no line. None where no run
    chose anything.
    """
    from matplotlib.figure import Figure

    groups: dict[tuple[str, str], list[Run]] = {}
    for run in sorted(runs, key=lambda run: (env_label(run), run.agent)):
        if run.choices:
            groups.setdefault((env_label(run), run.agent), []).append(run)
    if not groups:
        return None
    columns = min(3, len(groups))
    rows = -(-len(groups) // columns)
    figure = Figure(figsize=(4.2 * columns + 0.4, 3.2 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis, ((env, agent), group) in zip(axes.flat, groups.items(), strict=False):
        frequency_curves(axis, group)
        axis.set_title(f"{env}\n{agent}", fontsize=9)
    for axis in axes.flat[len(groups) :]:
        axis.axis("off")
    return figure


def frequency_curves(axis: Axes, runs: Sequence[Run]) -> None:
    """Draw the frequencies of one agent's choices on one environment against rounds, and their legend."""
    names = runs[0].choices
    curves = np.stack([running_frequencies(run.table["choice"].to_numpy(), len(names)) for run in runs])
    for place, name in enumerate(names):
        if curves[..., place].any():
            mean_curve(axis, curves[..., place], name, place)
    axis.set_xlabel("Round t")
    axis.set_ylabel("Share of rounds 1 to t")
    axis.set_ylim(-0.02, 1.02)
    axis.margins(x=0.01)
    axis.grid(True, alpha=0.3)
    axis.legend(fontsize=7, loc="best", framealpha=0.6)


def mean_curve(axis: Axes, curves: np.ndarray, label: str, place: int, floor: float = -np.inf) -> None:
    """Draw the mean over seeds against rounds, and the band of its 95 % t-interval if there are several seeds.

    Args:
        axis: where to draw.
        curves: shape ``(seeds, rounds)``.
        label: of the line, for a legend.
        place: of the line among those of a figure, from 0; it fixes colour and dash.
        floor: what lies below is drawn at it, for logarithmic axes.
    """
    mean, half = curves.mean(axis=0), half_width(curves)
    rounds = np.arange(1, curves.shape[1] + 1)
    style = LINE_STYLES[(place // 10) % len(LINE_STYLES)]  # ten colours, then another dash
    axis.plot(rounds, mean.clip(min=floor), style, color=f"C{place % 10}", label=label, linewidth=1.8)
    if not np.isnan(half).any():
        low, high = (mean - half).clip(min=floor), (mean + half).clip(min=floor)
        axis.fill_between(rounds, low, high, color=f"C{place % 10}", alpha=0.18, linewidth=0)


def _finish(axis: Axes, env: str, title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_title(env, fontsize=10)
    axis.set_xlabel("Round t")
    axis.set_ylabel(f"{title}\n(1 = random play)")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.grid(True, which="major", alpha=0.3)
    axis.margins(x=0.01)


def _scale_to_lines(axis: Axes, log: bool) -> None:
    heights = np.concatenate([line.get_ydata() for line in axis.lines])
    if log:
        axis.set_yscale("log")
        axis.set_ylim(heights.min() / 2.0, heights.max() * 2.0)
    else:
        axis.set_ylim(0.0, 1.25 * heights.max())
