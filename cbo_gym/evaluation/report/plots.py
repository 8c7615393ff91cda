"""Draw figures of a leaderboard for a paper with Matplotlib: curves and comparisons of agents.

Every agent has a colour, dash and marker from :mod:`cbo_gym.evaluation.report.palette`. A curve is a mean over seeds
with markers. With fewer than five seeds each run is drawn as a thin line; otherwise a band shows the 95 % bootstrap
interval of the mean. Legends are outside the panels. Labels are shown literally, ``$`` included; long labels are
shortened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from cbo_gym._util.arguments import require_word
from cbo_gym._util.files import write_bytes
from cbo_gym._util.fronts import non_dominated
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.comparison.leaderboard import Leaderboard, compared_agents, known_improvement
from cbo_gym.evaluation.comparison.significance import Ranking
from cbo_gym.evaluation.metrics.targets import TARGETS, has_targets, rounds_to, seconds_to, shares_reached
from cbo_gym.evaluation.report.curves import (
    RECOMMENDED,
    AxisType,
    CostPaid,
    Curve,
    CurvesFigure,
    Front,
    LineStyles,
    Rounds,
    by_agent,
    by_env,
    choice_figure,
    curve,
    format_tick,
    has_costs,
    profile_figure,
    regret_figure,
)
from cbo_gym.evaluation.report.palette import GREY, LineStyle, for_figure, line_styles, shorten
from cbo_gym.evaluation.runs.results import Run, last_line

# Number of points of a curve of reached targets.
TARGET_POINTS = 100
WIDTH = 7.0  # inches
LABEL_WIDTH = 30  # characters
MARKERS_PER_LINE = 6
DPI = 200
FORMATS = ("png", "pdf")
# Metadata of each format that leave out the date, so that the same figure is the same file.
METADATA: dict[str, Any] = {"png": None, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
STYLE: Any = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.labelsize": 8.5,
    "axes.edgecolor": "#555555",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 3.0,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.5,
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    # Embedded fonts, which journals require.
    "pdf.fonttype": 42,
    # Fixed identifiers, so that the same figure is the same file.
    "svg.hashsalt": "cbo-gym",
}


#: Decorator that applies the Matplotlib settings :data:`STYLE` while a function draws; also for figures of your own.
publication_style = rc_context(STYLE)


def require_formats(formats: Sequence[str]) -> None:
    """Raise an ArgumentError if figures cannot be written in one of the formats."""
    if unknown := [name for name in formats if name not in METADATA]:
        raise ArgumentError(f"figures are written as {', '.join(METADATA)}; given {', '.join(map(str, unknown))}")


@publication_style
def save(figure: Figure, folder: Path, name: str, formats: Sequence[str] = FORMATS) -> None:
    """Write a figure to ``folder/name`` in some formats (``png``, ``pdf``, ``svg``); raise ArgumentError for others."""
    require_formats(formats)
    # The layout is computed once, so that it is the same in all formats.
    figure.draw_without_rendering()
    figure.set_layout_engine(None)
    for suffix in formats:
        # Matplotlib does not write the file, because its error on a full disk names another cause.
        content = BytesIO()
        figure.savefig(content, format=suffix, dpi=DPI, metadata=METADATA[suffix])
        write_bytes(folder / f"{name}.{suffix}", content.getvalue())


@publication_style
def regret_curves(runs: Sequence[Run], styles: LineStyles | None = None, against: AxisType = Rounds) -> Figure:
    """Draw average and simple regret against rounds or against cumulative cost, a row of panels per environment.

    Regrets are divided by the gap between the optimum and a random action, so 1 is random play. Simple regret has a
    logarithmic scale, on which values below 1e-4 are drawn at 1e-4. Limits of the axes depend on means, not on single
    runs.

    Args:
        runs: runs, of which the finished ones are drawn.
        styles: styles of all agents of a report; None for styles of the agents of the runs.
        against: Rounds, or CostPaid, which leaves out environments whose actions have no costs.

    Raises:
        ArgumentError: if no run has finished, or ``against`` is CostPaid and no environment has costs.
    """
    styles = styles or line_styles(run.agent for run in runs)
    runs = [run for run in runs if run.status == "finished"]
    if not runs:
        raise ArgumentError("there is no finished run to draw")
    runs = [run for run in runs if against is not CostPaid or has_costs(run)]
    if not runs:
        raise ArgumentError("curves against costs need runs of environments whose actions have costs")
    return draw_regrets({env: regret_figure(runs_of_env, styles, against) for env, runs_of_env in by_env(runs).items()})


def plot_run(run: Run) -> Figure:
    """Draw average and simple regret of a run against rounds; raise ArgumentError if the run did not finish."""
    if run.status != "finished":
        raise ArgumentError(f"a run that {run.status} has nothing to plot: {last_line(run.error)}")
    return regret_curves([run])


def plot_board(
    board: Leaderboard, kind: Literal["regret", "scores", "profiles"] = "regret", group: str | None = None
) -> Figure:
    """Compare agents in one figure, which opens no window.

    Args:
        board: the leaderboard.
        kind: ``"regret"`` against rounds, a row of panels per environment; ``"scores"`` with their intervals; or
            performance ``"profiles"``.
        group: feedback mode of scores and profiles, or ``"all modes"``; by default the leaderboard's first group.

    Raises:
        ArgumentError: for an unknown kind or group.
    """
    group = board.groups[0] if group is None else group
    figures: dict[str, Callable[[], Figure]] = {
        "regret": lambda: regret_curves(board.runs),
        "scores": lambda: score_intervals(board, group),
        "profiles": lambda: draw_profiles(group, profile_figure(board, group)),
    }
    require_word("kind", kind, figures)
    require_word("group", group, board.groups)
    return figures[kind]()


@publication_style
def draw_regrets(figures: Mapping[str, CurvesFigure]) -> Figure:
    """Draw the curves of each environment as a row of panels."""
    figure, axes = _panels(len(figures), 2, 2.35)
    for row, (env, curves) in zip(axes, figures.items(), strict=True):
        for axis, panel in zip(row, curves.panels, strict=True):
            _draw_curves(axis, panel.curves, _names_with_seeds(panel.curves), curves)
            axis.set_ylabel(panel.title.replace("Average regret", "Average regret $R_t/t$").replace(" (", "\n("))
            if panel.ticks:
                axis.set_yscale("log")
            axis.set_ylim(*panel.limits)
            if panel.ticks:
                axis.yaxis.set_major_locator(FixedLocator(list(panel.ticks)))
                axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_tick(value)))
                axis.yaxis.set_minor_locator(NullLocator())
        row[0].set_title(for_figure(_short(env, 60)), loc="left")
        row[-1].set_title(curves.note, loc="right", fontsize=7.5, color="#555555")
    shared_legend(figure)
    return figure


def _names_with_seeds(curves: Mapping[str, Curve]) -> dict[str, str]:
    """Return agent -> short label, with the number of seeds if agents differ in it."""
    short = shorten(curves, LABEL_WIDTH)
    if len({curve.seeds for curve in curves.values()}) == 1:
        return short
    return {agent: f"{short[agent]} ({_with_noun(curve.seeds, 'seed')})" for agent, curve in curves.items()}


def _with_noun(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def round_axis(axis: Axes) -> None:
    """Label the horizontal axis as rounds, with a few whole numbers as ticks."""
    axis.set_xlabel("Round $t$")
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    axis.margins(x=0.01)


@publication_style
def score_intervals(board: Leaderboard, group: str, styles: LineStyles | None = None) -> Figure:
    """Draw interquartile mean and mean of the normalised score, with 95 % intervals, the best agent on top."""
    rows = board.overall.filter(pl.col("group") == group)
    styles = styles or line_styles(rows["agent"])
    heights = np.arange(rows.height)
    figure, ((axis,),) = _panels(1, 1, 0.9 + 0.24 * rows.height)
    # Column, name in the legend, vertical shift of the marker, and whether it is filled.
    statistics = (("iqm", "interquartile mean", -0.14, True), ("score", "mean", 0.14, False))
    for name, _, shift, is_filled in statistics:
        for height, row in zip(heights + shift, rows.iter_rows(named=True), strict=True):
            style, low, high = styles[row["agent"]], row[f"{name}_low"], row[f"{name}_high"]
            if low is not None:
                axis.hlines(height, low, high, color=style.colour, linewidth=1.6, alpha=0.6)
            face = style.colour if is_filled else "white"
            axis.plot(row[name], height, style.marker, color=style.colour, markerfacecolor=face)
    names = shorten(rows["agent"], LABEL_WIDTH)
    labels = [
        for_figure(names[row["agent"]]) + (f" ({row['envs']} of {row['of']} envs)" if row["envs"] < row["of"] else "")
        for row in rows.iter_rows(named=True)
    ]
    axis.set_yticks(heights, labels)
    axis.grid(False, axis="y")
    axis.set(xlabel="Score (0 = random play, 1 = optimum)", ylim=(rows.height - 0.5, -0.5))
    axis.set_xlim(min(0.0, axis.get_xlim()[0]), max(1.0, axis.get_xlim()[1]))
    axis.set_title(f"{group}: scores over {_with_noun(rows['of'][0], 'environment')}", loc="left")
    handles = [
        Line2D(
            [], [], marker="o", linestyle="", color=GREY, markerfacecolor=GREY if is_filled else "white", label=label
        )
        for _, label, _, is_filled in statistics
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=2)
    return figure


@publication_style
def draw_profiles(group: str, content: CurvesFigure) -> Figure:
    """Draw performance profiles: the fraction of runs above each score, see :func:`profile_figure`."""
    figure, ((axis,),) = _panels(1, 1, 3.0)
    (panel,) = content.panels
    _draw_curves(axis, panel.curves, shorten(panel.curves, LABEL_WIDTH), content)
    axis.set(ylabel="Share of runs with a score above $s$", xlim=(0, 1), ylim=(-0.02, 1.02))
    axis.set_title(f"{group}: performance profiles", loc="left")
    shared_legend(figure)
    return figure


@publication_style
def improvement_matrix(board: Leaderboard, group: str) -> Figure:
    """Draw the probability that a run of the agent in the row scores higher than a run of the agent in the column."""
    rows = known_improvement(board, group)
    agents = compared_agents(board, group)
    probabilities = {(row["agent"], row["other"]): row["probability"] for row in rows.iter_rows(named=True)}
    matrix = np.array([[probabilities.get((agent, other), np.nan) for other in agents] for agent in agents])
    short = shorten(agents, LABEL_WIDTH)
    names = [for_figure(short[agent]) for agent in agents]
    margin = 0.4 + 0.062 * max(len(short[agent]) for agent in agents)
    size = max(1.4, 0.34 * len(agents))
    figure, ((axis,),) = _panels(1, 1, size + 0.75 * margin + 0.4, width=max(4.0, size + margin))
    axis.imshow(matrix, cmap="PuOr", vmin=0, vmax=1)
    for (row_index, column), value in np.ndenumerate(matrix):
        if not np.isnan(value):
            colour = "white" if abs(value - 0.5) > 0.35 else "black"
            axis.text(column, row_index, f"{value:.2f}".lstrip("0"), ha="center", va="center", fontsize=7, color=colour)
    axis.set_xticks(range(len(agents)), names, rotation=45, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(agents)), names)
    axis.grid(False)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    axis.set_title(f"{group}:\nP(row scores higher than column)", loc="left")
    return figure


@publication_style
def critical_differences(ranking: Ranking, styles: LineStyles | None = None) -> Figure:
    """Draw mean ranks, with the best agent on top; bars at the side join agents that the test does not distinguish."""
    styles = styles or line_styles(ranking.agents)
    heights = np.arange(len(ranking.agents))
    figure, ((axis,),) = _panels(1, 1, 1.1 + 0.24 * len(heights))
    names = shorten(ranking.agents, LABEL_WIDTH)
    for height, agent, rank in zip(heights, ranking.agents, ranking.ranks, strict=True):
        style = styles[agent]
        axis.plot(rank, height, style.marker, color=style.colour, markersize=6)
        axis.annotate(f"{rank:.2f}", (rank, height), (6, 0), textcoords="offset points", va="center", fontsize=7.5)
    end = len(heights) + 0.3
    for index, members in enumerate(ranking.groups):
        if len(members) > 1:
            x = end + 0.2 + 0.25 * index
            axis.plot([x, x], [min(members) - 0.2, max(members) + 0.2], color="#333333", linewidth=3, clip_on=False)
    axis.set_yticks(heights, [for_figure(names[agent]) for agent in ranking.agents])
    axis.grid(False, axis="y")
    axis.set(xlim=(0.7, end + 0.2 + 0.25 * len(ranking.groups)), ylim=(len(heights) - 0.4, -0.6))
    axis.set_xticks([tick for tick in axis.get_xticks() if 1 <= tick <= len(heights) and tick == int(tick)])
    axis.set_xlabel("Mean rank (1 is best)")
    title = f"{ranking.group}: bars join agents that {_with_noun(ranking.envs, 'environment')} do not distinguish"
    axis.set_title(f"{title}\n{ranking.test_in_short}", loc="left")
    return figure


@publication_style
def draw_choices(env: str, content: CurvesFigure) -> Figure:
    """Draw how often each target set or scope was chosen up to each round, a panel per agent."""
    columns = min(3, len(content.panels))
    figure, axes = _panels(-(-len(content.panels) // columns), columns, 2.1)
    short = shorten([panel.title for panel in content.panels], LABEL_WIDTH)
    for axis, panel in zip(axes.flat, content.panels, strict=False):
        _draw_frequencies(axis, panel.curves, content)
        axis.set_title(f"{for_figure(_short(env, 34))}\n{for_figure(short[panel.title])}", loc="left", fontsize=8)
    for axis in axes.flat[len(content.panels) :]:
        axis.axis("off")
    shared_legend(figure)
    return figure


@publication_style
def frequency_curves(axis: Axes, runs: Sequence[Run]) -> None:
    """Draw how often each target set or scope was chosen up to each round, in the runs of one agent."""
    content = choice_figure(runs, [runs[0].agent])
    _draw_frequencies(axis, content.panels[0].curves, content)


def _draw_frequencies(axis: Axes, curves: Mapping[str, Curve], content: CurvesFigure) -> None:
    _draw_curves(axis, curves, {name: _short(name, LABEL_WIDTH) for name in curves}, content)
    axis.set(ylabel="Share of rounds 1 to $t$", ylim=(-0.02, 1.02))


@publication_style
def draw_fronts(env: str, runs: Sequence[Run], front: Front, styles: LineStyles) -> Figure:
    """Draw the expected rewards of the last recommendations of all seeds, a panel per pair of objectives.

    Args:
        env: label of the environment.
        runs: runs on the environment.
        front: the :func:`known_front` of the runs.
        styles: styles of the agents.
    """
    names, optimal = front
    vectors_by_agent: dict[str, list[np.ndarray]] = {}
    for run in runs:
        vectors = np.array(run.table[RECOMMENDED][-1].to_list()).reshape(-1, len(names))
        vectors_by_agent.setdefault(run.agent, []).append(vectors[non_dominated(vectors)])
    pairs = list(combinations(range(len(names)), 2))
    figure, (axes,) = _panels(1, max(2, len(pairs)), 2.4)
    for axis, (i, j) in zip(axes, pairs, strict=False):
        points, line = optimal[np.argsort(optimal[:, i])], "." if len(names) > 2 else "-"
        axis.plot(points[:, i], points[:, j], line, color=GREY, label="Pareto front")
        for agent, vectors_of_seeds in vectors_by_agent.items():
            style, points = styles[agent], np.concatenate(vectors_of_seeds)
            marks = {"linestyle": "none", "marker": style.marker, "markersize": 3.5, "color": style.colour}
            axis.plot(points[:, i], points[:, j], label=for_figure(agent), **marks)
        axis.set(xlabel=names[i], ylabel=names[j])
    for axis in axes[len(pairs) :]:
        axis.set_axis_off()
    axes[0].set_title(for_figure(env), loc="left")
    shared_legend(figure)
    return figure


@publication_style
def draw_targets(runs: Sequence[Run], styles: LineStyles | None = None) -> Figure:
    """Draw the fraction of runs that reached each target score, against rounds and against seconds.

    Environments have equal weights.

    Args:
        runs: runs, at least one of them with targets, see :func:`has_targets`.
        styles: styles of all agents of a report; None for styles of the agents of the runs.
    """
    runs = list(filter(has_targets, runs))
    groups = by_agent(runs, dict.fromkeys(run.agent for run in runs))
    styles, names = styles or line_styles(groups), shorten(groups, LABEL_WIDTH)
    figure, axes = _panels(2, len(TARGETS), 1.8, sharex="row", sharey=True)
    for row, label, times_of in zip(axes, ("Round", "Seconds of the agent"), (rounds_to, seconds_to), strict=True):
        for agent, runs_of_agent in groups.items():
            envs = np.array([run.env for run in runs_of_agent])
            times_by_target = np.stack([times_of(run) for run in runs_of_agent], -1)
            for axis, times in zip(row, times_by_target, strict=True):
                finite = times[np.isfinite(times) & (times > 0.0)]
                x = np.unique(np.geomspace(finite.min(), finite.max(), TARGET_POINTS)) if len(finite) else np.ones(1)
                share = np.mean([shares_reached(times[envs == env], x) for env in np.unique(envs)], axis=0)
                line = {"markersize": 3.5, "markevery": 12, "drawstyle": "steps-post"} | styles[agent].plot_arguments
                axis.plot(x, share, label=for_figure(names[agent]), **line)
        for axis in row:
            axis.set(xscale="log", xlabel=label, ylim=(-0.03, 1.03))
        row[0].set_ylabel("Share of runs")
    for axis, target in zip(axes[0], TARGETS, strict=True):
        axis.set_title(f"score {target:g}")
    shared_legend(figure)
    return figure


@publication_style
def mean_curve(axis: Axes, curves: np.ndarray, label: str, style: LineStyle, floor: float = -np.inf) -> None:
    """Draw the mean over seeds against rounds, with each run if there are fewer than five seeds, else a 95 % band.

    Args:
        axis: axes to draw on.
        curves: shape ``(seeds, rounds)``; rounds in which a seed has NaN are left out.
        label: name of the line in a legend.
        style: colour, dash and marker.
        floor: lower values are raised to it, for logarithmic axes.
    """
    _draw_curve(axis, curve(curves, floor), label, style)


def _draw_curves(axis: Axes, curves: Mapping[str, Curve], names: Mapping[str, str], figure: CurvesFigure) -> None:
    """Draw the curves of a panel of ``figure``, and its horizontal axis."""
    for key in curves:
        _draw_curve(axis, curves[key], names[key], figure.styles[key])
    if isinstance(figure.horizontal, Rounds):
        round_axis(axis)
    else:
        axis.set_xlabel(figure.horizontal.matplotlib_title)
        axis.margins(x=0.01)


def _draw_curve(axis: Axes, curve: Curve, label: str, style: LineStyle) -> None:
    step = max(1, len(curve.x) // MARKERS_PER_LINE)
    # The offset keeps markers apart on lines that coincide.
    offset = int(step * (0.31 * len(axis.lines) % 1.0))
    line = {"markevery": (offset, step), "markeredgecolor": "white", "markeredgewidth": 0.4, **style.plot_arguments}
    axis.plot(curve.x, curve.mean, label=for_figure(label), **line)
    if curve.low is not None and curve.high is not None:
        axis.fill_between(curve.x, curve.low, curve.high, color=style.colour, alpha=0.15, linewidth=0)
    if len(curve.runs):
        lines = [np.column_stack([curve.x, run]) for run in curve.runs]
        axis.add_collection(LineCollection(lines, colors=style.colour, linewidths=0.5, alpha=0.4, zorder=1.5))


def scale_to_lines(axis: Axes) -> None:
    """Set the limits of the vertical axis to the range of the means, without single runs, which would flatten them.

    The first tenth of the rounds is left out as well, unless the means are flat after it. An empty panel does not
    change.
    """
    if not axis.lines:
        return
    lines = [np.asarray(line.get_ydata()) for line in axis.lines]
    heights = np.concatenate([line[len(line) // 10 :] for line in lines])
    if np.ptp(heights) < 0.01 * np.ptp(np.concatenate(lines)):
        heights = np.concatenate(lines)
    margin = 0.1 * np.ptp(heights) + 1e-9
    axis.set_ylim(heights.min() - margin, heights.max() + margin)


@publication_style
def shared_legend(figure: Figure) -> None:
    """Add one legend above all panels, with each label once, and increase the figure's height to make room."""
    handles: dict[str, Any] = {}
    for axis in figure.axes:
        axis_handles, labels = axis.get_legend_handles_labels()
        handles |= dict(zip(labels, axis_handles, strict=True))
    if not handles:
        return
    # A column has a handle and a label.
    inches = 0.55 + 0.062 * max(map(len, handles))
    columns = max(1, min(len(handles), int(figure.get_figwidth() / inches)))
    rows = -(-len(handles) // columns)
    # Fill the rows evenly.
    columns = -(-len(handles) // rows)
    figure.set_figheight(figure.get_figheight() + 0.18 * rows)
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=columns)


def _panels(rows: int, columns: int, height: float, width: float = WIDTH, **share: Any) -> tuple[Figure, Any]:
    """Return an empty figure and its axes, shape ``(rows, columns)``, each ``height`` inches high."""
    figure = Figure(figsize=(width, height * rows + 0.2), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **share)


def _short(label: str, width: int) -> str:
    return shorten([label], width)[label]
