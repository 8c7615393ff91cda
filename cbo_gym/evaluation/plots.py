"""Figures of a leaderboard: regret, choices and comparisons of agents over environments, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from cbo_gym.evaluation.leaderboard import Leaderboard, env_label, half_width
from cbo_gym.evaluation.regret import running_frequencies
from cbo_gym.evaluation.results import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = {"average_regret": "Average regret R$_t$/t", "simple_regret": "Simple regret"}
FLOOR = 1e-4  # below this share of the gap a regret is drawn as zero
LINE_STYLES = ("-", "--", "-.", ":")


def regret_curves(runs: Sequence[Run], agents: Sequence[str] = ()) -> Figure:
    """Average and simple regret against rounds, a row of panels an environment.

    The colour of an agent is its place in ``agents``, so that figures with the same ``agents`` agree; by default
    these are the agents of the runs.

    Regrets are divided by the gap between the optimum and a random action, so 1 is random play. Lines are means over
    seeds, bands their 95 % t-intervals. Simple regret has a logarithmic scale, with what is below 1e-4 drawn at 1e-4;
    the scales follow the lines, since with few seeds the bands would fill any panel.
    """
    from matplotlib.figure import Figure  # late: slow to import, and needed only for figures

    envs = sorted({env_label(run) for run in runs})
    agents = agents or sorted({run.agent for run in runs})
    figure = Figure(figsize=(11, 3.2 * len(envs) + 0.8), layout="constrained")
    axes = figure.subplots(len(envs), len(COLUMNS), squeeze=False)
    for row, env in zip(axes, envs, strict=True):
        for axis, (column, title) in zip(row, COLUMNS.items(), strict=True):
            for place, agent in enumerate(agents):
                chosen = [run for run in runs if env_label(run) == env and run.agent == agent]
                if chosen:
                    _curve(axis, chosen, column, agent, place)
            _finish(axis, env, title)
        _scale_regret(row[0], log=False)
        _scale_regret(row[1], log=True)
    shared_legend(figure, 5)
    return figure


def score_intervals(board: Leaderboard, group: str) -> Figure:
    """Interquartile mean and mean of the normalised score, with 95 % intervals, the best agent on top."""
    from matplotlib.figure import Figure

    rows = board.overall.filter(pl.col("group") == group)
    heights = np.arange(rows.height)
    figure = Figure(figsize=(7.5, 1.4 + 0.42 * rows.height), layout="constrained")
    axis = figure.subplots()
    for name, label, marker, shift in (("iqm", "interquartile mean", "o", -0.12), ("score", "mean", "D", 0.12)):
        value, low, high = (rows[f"{name}{end}"].cast(pl.Float64).to_numpy() for end in ("", "_low", "_high"))
        axis.hlines(heights + shift, low, high, color=f"C{int(shift > 0)}", linewidth=3, alpha=0.45)
        axis.plot(value, heights + shift, marker, color=f"C{int(shift > 0)}", markersize=5, label=label)
    names = [f"{row['agent']}  ({row['envs']} of {row['of']})" for row in rows.iter_rows(named=True)]
    axis.set_yticks(heights, names)
    axis.set(xlabel="Score (0 = random play, 1 = optimum)", ylim=(rows.height - 0.5, -0.5))
    axis.set_xlim(min(0.0, axis.get_xlim()[0]), max(1.0, axis.get_xlim()[1]))
    axis.set_title(f"{group}: agents (environments finished)", fontsize=10)
    axis.grid(True, axis="x", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2)
    return figure


def performance_profiles(board: Leaderboard, group: str, agents: Sequence[str]) -> Figure:
    """The share of runs above each score, with 95 % bands; the colour of an agent is its place in ``agents``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axis = figure.subplots()
    for (agent,), rows in board.profiles.filter(pl.col("group") == group).group_by("agent", maintain_order=True):
        threshold, fraction = rows["threshold"].to_numpy(), rows["fraction"].to_numpy()
        low, high = (rows[f"fraction_{end}"].cast(pl.Float64).to_numpy() for end in ("low", "high"))
        colour, dash = line_style(agents.index(str(agent)))
        axis.plot(threshold, fraction, dash, color=colour, label=agent, linewidth=1.8)
        axis.fill_between(threshold, low, high, color=colour, alpha=0.12, linewidth=0)
    axis.set(xlabel="Score s (0 = random play, 1 = optimum)", ylabel="Share of runs with a score above s")
    axis.set(xlim=(0, 1), ylim=(-0.02, 1.02))
    axis.set_title(f"{group}: performance profiles", fontsize=10)
    axis.grid(True, alpha=0.3)
    figure.legend(loc="outside right upper")
    return figure


def improvement_matrix(board: Leaderboard, group: str) -> Figure:
    """The probability that a run of the agent in the row scores higher than one of the agent in the column."""
    from matplotlib.figure import Figure

    agents = board.overall.filter(pl.col("group") == group)["agent"].to_list()
    place = {agent: number for number, agent in enumerate(agents)}
    matrix = np.full((len(agents), len(agents)), np.nan)
    for row in board.improvement.filter(pl.col("group") == group).iter_rows(named=True):
        matrix[place[row["agent"]], place[row["other"]]] = row["probability"]
    size = 2.6 + 0.55 * len(agents)
    figure = Figure(figsize=(size + 1.2, size), layout="constrained")
    axis = figure.subplots()
    image = axis.imshow(matrix, cmap="RdBu", vmin=0, vmax=1)
    for (top, left), value in np.ndenumerate(matrix):
        if not np.isnan(value):
            shade = "white" if abs(value - 0.5) > 0.35 else "black"
            axis.text(left, top, f"{value:.2f}", ha="center", va="center", fontsize=8, color=shade)
    axis.set_xticks(range(len(agents)), agents, rotation=45, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(agents)), agents)
    axis.set(xlabel="the other agent", ylabel="agent")
    axis.set_title(f"{group}: P(agent scores higher than the other)", fontsize=10)
    figure.colorbar(image, ax=axis, shrink=0.8)
    return figure


def line_style(place: int) -> tuple[str, str]:
    """Colour and dash of the line at a place, from 0: ten colours, then another dash."""
    return f"C{place % 10}", LINE_STYLES[(place // 10) % len(LINE_STYLES)]


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
        curves: shape ``(seeds, rounds)``; rounds in which a seed has NaN are left out.
        label: of the line, for a legend.
        place: of the line among those of a figure, from 0; it fixes colour and dash.
        floor: what lies below is drawn at it, for logarithmic axes.
    """
    known = ~np.isnan(curves).any(axis=0)
    rounds, curves = np.arange(1, len(known) + 1)[known], curves[:, known]
    mean, half = curves.mean(axis=0), half_width(curves)
    colour, dash = line_style(place)
    axis.plot(rounds, mean.clip(min=floor), dash, color=colour, label=label, linewidth=1.8)
    if not np.isnan(half).any():
        low, high = (mean - half).clip(min=floor), (mean + half).clip(min=floor)
        axis.fill_between(rounds, low, high, color=colour, alpha=0.18, linewidth=0)


def scale_to_lines(axis: Axes) -> None:
    """Limit the height of a panel to its lines after their first tenth, with a margin.

    The bands of few seeds, and what was played at first, would leave the lines flat. Where they are flat after their
    first tenth, the panel shows them from the start. An empty panel stays as it is.
    """
    if not axis.lines:
        return
    lines = [np.asarray(line.get_ydata()) for line in axis.lines]
    heights, all_heights = np.concatenate([line[len(line) // 10 :] for line in lines]), np.concatenate(lines)
    if np.ptp(heights) < 0.01 * np.ptp(all_heights):
        heights = all_heights
    margin = 0.1 * np.ptp(heights) + 1e-9
    axis.set_ylim(heights.min() - margin, heights.max() + margin)


def shared_legend(figure: Figure, columns: int, frameon: bool = True) -> None:
    """One legend above all panels, each label once, in at most so many columns."""
    handles = {
        label: handle for axis in figure.axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    columns = min(columns, len(handles))
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=columns, frameon=frameon)


def _finish(axis: Axes, env: str, title: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_title(env, fontsize=10)
    axis.set_xlabel("Round t")
    axis.set_ylabel(f"{title}\n(1 = random play)")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.grid(True, which="major", alpha=0.3)
    axis.margins(x=0.01)


def _scale_regret(axis: Axes, log: bool) -> None:
    heights = np.concatenate([line.get_ydata() for line in axis.lines])
    if log:
        axis.set_yscale("log")
        axis.set_ylim(heights.min() / 2.0, heights.max() * 2.0)
    else:
        axis.set_ylim(0.0, 1.25 * heights.max())
