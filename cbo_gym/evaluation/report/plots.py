"""Figures of a leaderboard, as they go into a paper: curves and comparisons of agents, with their uncertainty.

Every agent has the look of :mod:`cbo_gym.evaluation.report.palette`. A curve is a mean over seeds with markers; of
fewer than five seeds the single runs are thin lines, of more the band is a 95 % bootstrap interval of the mean. Legends
stand outside of the panels. Labels are shown as they are, ``$`` too, and shortened where they are long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import polars as pl

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.compare.leaderboard import Leaderboard
from cbo_gym.evaluation.compare.significance import Ranking
from cbo_gym.evaluation.metrics.regret import running_frequencies
from cbo_gym.evaluation.report.curves import FEWEST_FOR_BAND, Curve, curve, linear_limits, log_limits, log_ticks, plain
from cbo_gym.evaluation.report.labels import for_figure, shortened
from cbo_gym.evaluation.report.palette import GREY, Look, looks, of_place
from cbo_gym.evaluation.report.x_axis import CostPaid, Horizontal, Rounds, has_costs
from cbo_gym.evaluation.runs.counted import env_label
from cbo_gym.evaluation.runs.results import Run, stacked
from cbo_gym.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
T = TypeVar("T")

COLUMNS = {"average_regret": "Average regret $R_t/t$", "simple_regret": "Simple regret"}
FLOOR = 1e-4  # below this share of the gap a regret is drawn as zero
WIDTH = 7.0  # inches, of both columns of a page
LABEL_WIDTH = 30  # characters
MARKERS_A_LINE = 6
MOST_CHOICES = 8  # lines of a panel; the others are added up
OTHERS = "others"
DPI = 200  # of PNG
FORMATS = ("png", "pdf")
UNDATED: dict[str, Any] = {"png": None, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
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
    "pdf.fonttype": 42,  # letters stay letters, which journals ask for
    "svg.hashsalt": "cbo-gym",  # the same figure is the same file
}


def on_paper(draw: Callable[P, T]) -> Callable[P, T]:
    """Let a function draw with the settings :data:`STYLE`; figures of your own look like these then."""

    @wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> T:
        from matplotlib import rc_context  # late, as below: slow to import, and needed only for figures

        with rc_context(STYLE):
            return draw(*args, **kwargs)

    return styled


def require_formats(formats: Sequence[str]) -> None:
    """Raise an ArgumentError if one of them is no format of figures."""
    if unknown := [kind for kind in formats if kind not in UNDATED]:
        raise ArgumentError(f"figures are written as {', '.join(UNDATED)}; given {', '.join(map(str, unknown))}")


@on_paper
def save(figure: Figure, folder: Path, name: str, formats: Sequence[str] = FORMATS) -> None:
    """Write a figure to ``folder/name`` in each of the formats ``png``, ``pdf`` and ``svg`` that are asked for.

    Raises:
        ArgumentError: for another format.
    """
    require_formats(formats)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # what has been laid out once need not be for every format
    for kind in formats:
        content = BytesIO()  # of a disk that is full Matplotlib says something else
        figure.savefig(content, format=kind, dpi=DPI, metadata=UNDATED[kind])
        write_bytes(folder / f"{name}.{kind}", content.getvalue())


@on_paper
def regret_curves(
    runs: Sequence[Run], styles: Mapping[str, Look] | None = None, against: type[Horizontal] = Rounds
) -> Figure:
    """Average and simple regret against rounds, or against what the actions cost, a row of panels an environment.

    Regrets are divided by the gap between the optimum and a random action, so 1 is random play. Simple regret has a
    logarithmic scale, with what is below 1e-4 drawn at 1e-4; the scales follow the means.

    Args:
        runs: finished ones.
        styles: of the agents, so that figures of a report agree; by default those of the agents of the runs.
        against: Rounds, or CostPaid for the environments whose actions have costs.

    Raises:
        ArgumentError: if none has.
    """
    styles = styles or looks(run.agent for run in runs)
    runs = _with_costs(runs) if against is CostPaid else runs
    envs = sorted({env_label(run) for run in runs})
    figure, axes = _panels(len(envs), len(COLUMNS), 2.35)
    for row, env in zip(axes, envs, strict=True):
        played = [run for run in runs if env_label(run) == env]
        names = _names_with_seeds(played)
        horizontal = against(played)
        for axis, (column, title) in zip(row, COLUMNS.items(), strict=True):
            for agent in sorted(names, key=list(styles).index):
                own = [run for run in played if run.agent == agent]
                values = horizontal.values(own, regrets(own, column))
                shown = curve(values, FLOOR if column == "simple_regret" else -np.inf, horizontal.places)
                _draw_curve(axis, shown, names[agent], styles[agent])
            axis.set_ylabel(f"{title}\n(1 = random play)")
        _finish(row, horizontal, for_figure(_short(env, 60)), what_is_drawn(len({run.seed for run in played})))
    shared_legend(figure)
    return figure


def regrets(runs: Sequence[Run], column: str) -> np.ndarray:
    """Curves in gaps between the optimum and a random action, shape ``(seeds, rounds)``."""
    gaps = np.array([run.optimum - run.random_value for run in runs])
    return stacked(runs, [column])[column] / gaps[:, None]


def _names_with_seeds(runs: Sequence[Run]) -> dict[str, str]:
    """The agents' labels; where they rest on different numbers of seeds, these beside them."""
    counts = Counter(run.agent for run in runs)
    uneven = len(set(counts.values())) > 1
    short = shortened(counts, LABEL_WIDTH)
    return {agent: f"{short[agent]} ({_seeds(count)})" if uneven else short[agent] for agent, count in counts.items()}


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def what_is_drawn(seeds: int) -> str:
    """How a curve tells what it rests on."""
    if seeds == 1:
        return "1 seed"
    return f"Means of {seeds} seeds; " + ("single runs thin" if seeds < FEWEST_FOR_BAND else "95 % bootstrap intervals")


def _with_costs(runs: Sequence[Run]) -> list[Run]:
    if not (priced := [run for run in runs if has_costs(run)]):
        raise ArgumentError("curves against costs need runs of environments whose actions have costs")
    return priced


def _finish(row: Sequence[Axes], horizontal: Horizontal, title: str, note: str) -> None:
    """Scales, ticks and labels of the regrets of one environment."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    average, simple = row
    average.set_ylim(*linear_limits([np.asarray(line.get_ydata()) for line in average.lines]))
    low, high = log_limits([np.asarray(line.get_ydata()) for line in simple.lines])
    simple.set_yscale("log")
    simple.set_ylim(low, high)
    simple.yaxis.set_major_locator(FixedLocator(log_ticks(low, high)))
    simple.yaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    simple.yaxis.set_minor_locator(NullLocator())
    for axis in row:
        _horizontal_axis(axis, horizontal)
    average.set_title(title, loc="left")
    simple.set_title(note, loc="right", fontsize=7.5, color="#555555")


def _horizontal_axis(axis: Axes, horizontal: Horizontal) -> None:
    if isinstance(horizontal, Rounds):
        round_axis(axis)
        return
    axis.set_xlabel(horizontal.in_figures)
    axis.margins(x=0.01)


def round_axis(axis: Axes) -> None:
    """A horizontal axis of rounds, with few whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_xlabel("Round $t$")
    axis.xaxis.set_major_locator(MaxNLocator(6, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))
    axis.margins(x=0.01)


@on_paper
def score_intervals(board: Leaderboard, group: str, styles: Mapping[str, Look] | None = None) -> Figure:
    """Interquartile mean and mean of the normalised score, with 95 % intervals, the best agent on top."""
    from matplotlib.lines import Line2D

    rows = board.overall.filter(pl.col("group") == group)
    styles = styles or looks(rows["agent"])
    heights = np.arange(rows.height)
    figure, ((axis,),) = _panels(1, 1, 0.9 + 0.24 * rows.height)
    kinds = (("iqm", "interquartile mean", -0.14, True), ("score", "mean", 0.14, False))
    for name, _, shift, filled in kinds:
        for height, row in zip(heights + shift, rows.iter_rows(named=True), strict=True):
            look = styles[row["agent"]]
            if row[f"{name}_low"] is not None:
                axis.hlines(
                    height, row[f"{name}_low"], row[f"{name}_high"], color=look.colour, linewidth=1.6, alpha=0.6
                )
            axis.plot(
                row[name], height, look.marker, color=look.colour, markerfacecolor=look.colour if filled else "white"
            )
    names = shortened(rows["agent"], LABEL_WIDTH)
    parts = [
        for_figure(names[row["agent"]]) + (f" ({row['envs']} of {row['of']} envs)" if row["envs"] < row["of"] else "")
        for row in rows.iter_rows(named=True)
    ]
    axis.set_yticks(heights, parts)
    axis.grid(False, axis="y")
    axis.set(xlabel="Score (0 = random play, 1 = optimum)", ylim=(rows.height - 0.5, -0.5))
    axis.set_xlim(min(0.0, axis.get_xlim()[0]), max(1.0, axis.get_xlim()[1]))
    axis.set_title(f"{group}: scores over {_environments(rows['of'][0])}", loc="left")
    figure.legend(
        [
            Line2D([], [], marker="o", linestyle="", color=GREY, markerfacecolor=GREY if k[3] else "white")
            for k in kinds
        ],
        [k[1] for k in kinds],
        loc="outside upper right",
        ncols=2,
    )
    return figure


def _environments(count: int) -> str:
    return "1 environment" if count == 1 else f"{count} environments"


@on_paper
def performance_profiles(board: Leaderboard, group: str, styles: Mapping[str, Look] | None = None) -> Figure:
    """The share of runs above each score, with 95 % bands of agents with five seeds or more on every environment."""
    overall = board.overall.filter(pl.col("group") == group)
    sure = set(overall.filter(pl.col("fewest_seeds") >= FEWEST_FOR_BAND)["agent"])
    profiles = board.profiles.filter(pl.col("group") == group)
    styles = styles or looks(profiles["agent"])
    names = shortened(profiles["agent"], LABEL_WIDTH)
    figure, ((axis,),) = _panels(1, 1, 3.0)
    for agent in sorted(names, key=list(styles).index):
        rows = profiles.filter(pl.col("agent") == agent)
        ends = [rows[f"fraction_{end}"].cast(pl.Float64).to_numpy() for end in ("low", "high")]
        low, high = ends if agent in sure else (None, None)
        share = rows["fraction"].to_numpy()
        shown = Curve(rows["threshold"].to_numpy(), share, low, high, np.empty((0, len(share))), 0)
        _draw_curve(axis, shown, names[agent], styles[agent])
    axis.set(xlabel="Score $s$ (0 = random play, 1 = optimum)", ylabel="Share of runs with a score above $s$")
    axis.set(xlim=(0, 1), ylim=(-0.02, 1.02))
    axis.set_title(f"{group}: performance profiles", loc="left")
    shared_legend(figure)
    return figure


@on_paper
def improvement_matrix(board: Leaderboard, group: str) -> Figure:
    """The probability that a run of the agent in the row scores higher than one of the agent in the column."""
    agents = board.overall.filter(pl.col("group") == group)["agent"].to_list()
    place = {agent: number for number, agent in enumerate(agents)}
    matrix = np.full((len(agents), len(agents)), np.nan)
    for row in board.improvement.filter(pl.col("group") == group).iter_rows(named=True):
        matrix[place[row["agent"]], place[row["other"]]] = row["probability"]
    short = shortened(agents, LABEL_WIDTH)
    names = [for_figure(short[agent]) for agent in agents]
    margin = 0.4 + 0.062 * max(len(short[agent]) for agent in agents)
    size = max(1.4, 0.34 * len(agents))
    figure, ((axis,),) = _panels(1, 1, size + 0.75 * margin + 0.4, width=max(4.0, size + margin))
    axis.imshow(matrix, cmap="PuOr", vmin=0, vmax=1)
    for (top, left), value in np.ndenumerate(matrix):
        if not np.isnan(value):
            shade = "white" if abs(value - 0.5) > 0.35 else "black"
            axis.text(left, top, f"{value:.2f}".lstrip("0"), ha="center", va="center", fontsize=7, color=shade)
    axis.set_xticks(range(len(agents)), names, rotation=45, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(agents)), names)
    axis.grid(False)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    axis.set_title(f"{group}: P(row scores higher than column)", loc="left")
    return figure


@on_paper
def critical_differences(ranking: Ranking, styles: Mapping[str, Look] | None = None) -> Figure:
    """Mean ranks, the best agent on top; a bar at the side joins agents that the test does not tell apart."""
    styles = styles or looks(ranking.agents)
    heights = np.arange(len(ranking.agents))
    figure, ((axis,),) = _panels(1, 1, 1.1 + 0.24 * len(heights))
    names = shortened(ranking.agents, LABEL_WIDTH)
    for height, agent, rank in zip(heights, ranking.agents, ranking.ranks, strict=True):
        look = styles[agent]
        axis.plot(rank, height, look.marker, color=look.colour, markersize=6)
        axis.annotate(f"{rank:.2f}", (rank, height), (6, 0), textcoords="offset points", va="center", fontsize=7.5)
    end = len(heights) + 0.3
    for place, members in enumerate(ranking.groups):
        if len(members) > 1:
            at = end + 0.2 + 0.25 * place
            axis.plot([at, at], [min(members) - 0.2, max(members) + 0.2], color="#333333", linewidth=3, clip_on=False)
    axis.set_yticks(heights, [for_figure(names[agent]) for agent in ranking.agents])
    axis.grid(False, axis="y")
    axis.set(xlim=(0.7, end + 0.2 + 0.25 * len(ranking.groups)), ylim=(len(heights) - 0.4, -0.6))
    axis.set_xticks([tick for tick in axis.get_xticks() if 1 <= tick <= len(heights) and tick == int(tick)])
    axis.set_xlabel("Mean rank (1 is best)")
    axis.set_title(
        f"{ranking.group}: bars join what {_environments(ranking.envs)} do not tell apart\n{ranking.test_in_short}",
        loc="left",
    )
    return figure


@on_paper
def choice_curves(runs: Sequence[Run], against: type[Horizontal] = Rounds) -> Figure:
    """How often each target set or scope had been chosen after t rounds, a panel for each environment and agent.

    What an agent never chose has no line.

    Args:
        runs: finished ones.
        against: as for :func:`regret_curves`.

    Raises:
        ArgumentError: if no run chose anything, or had costs where it is drawn against them.
    """
    runs = _with_costs(runs) if against is CostPaid else runs
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in sorted(runs, key=lambda run: (env_label(run), run.agent)):
        if run.choices:
            groups.setdefault((env_label(run), run.agent), []).append(run)
    if not groups:
        raise ArgumentError("none of the runs chose among target sets or scopes")
    styles = choice_styles([run for group in groups.values() for run in group])
    columns = min(3, len(groups))
    figure, axes = _panels(-(-len(groups) // columns), columns, 2.1)
    short = shortened([agent for _, agent in groups], LABEL_WIDTH)
    for axis, ((env, agent), group) in zip(axes.flat, groups.items(), strict=False):
        frequency_curves(axis, group, styles, against)
        axis.set_title(f"{for_figure(_short(env, 34))}\n{for_figure(short[agent])}", loc="left", fontsize=8)
    for axis in axes.flat[len(groups) :]:
        axis.axis("off")
    shared_legend(figure)
    return figure


@on_paper
def frequency_curves(
    axis: Axes, runs: Sequence[Run], styles: Mapping[str, Look], against: type[Horizontal] = Rounds
) -> None:
    """Draw the frequencies of one agent's choices on one environment against rounds, or what they cost.

    Args:
        axis: where to draw.
        runs: of one agent on one environment.
        styles: see :func:`choice_styles`.
        against: as for :func:`regret_curves`.
    """
    horizontal = against(runs)
    for name, curves in choice_frequencies(runs, list(styles)).items():
        shown = curve(horizontal.values(runs, curves), places=horizontal.places)
        _draw_curve(axis, shown, _short(name, LABEL_WIDTH), styles[name])
    axis.set_ylabel("Share of rounds 1 to $t$")
    axis.set_ylim(-0.02, 1.02)
    _horizontal_axis(axis, horizontal)


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


@on_paper
def mean_curve(axis: Axes, curves: np.ndarray, label: str, look: Look, floor: float = -np.inf) -> None:
    """Draw the mean over seeds against rounds; of fewer than five seeds the single runs too, else a 95 % band.

    Args:
        axis: where to draw.
        curves: shape ``(seeds, rounds)``; rounds in which a seed has NaN are left out.
        label: of the line, for a legend.
        look: colour, dash and marker.
        floor: what lies below is drawn at it, for logarithmic axes.
    """
    _draw_curve(axis, curve(curves, floor), label, look)


def _draw_curve(axis: Axes, shown: Curve, label: str, look: Look) -> None:
    from matplotlib.collections import LineCollection

    step = max(1, len(shown.rounds) // MARKERS_A_LINE)
    first = int(step * (0.31 * len(axis.lines) % 1.0))  # so that markers of lines that coincide do not
    axis.plot(
        shown.rounds,
        shown.mean,
        linestyle=look.linestyle,
        marker=look.marker,
        markevery=(first, step),
        markeredgecolor="white",
        markeredgewidth=0.4,
        color=look.colour,
        label=for_figure(label),
    )
    if shown.low is not None and shown.high is not None:
        axis.fill_between(shown.rounds, shown.low, shown.high, color=look.colour, alpha=0.15, linewidth=0)
    if len(shown.runs):
        lines = [np.column_stack([shown.rounds, run]) for run in shown.runs]
        axis.add_collection(LineCollection(lines, colors=look.colour, linewidths=0.5, alpha=0.4, zorder=1.5))


def scale_to_lines(axis: Axes) -> None:
    """Limit the height of a panel to its means after their first tenth, with a margin.

    Single runs, and what was played at first, would leave the lines flat. Where they are flat after their first tenth,
    the panel shows them from the start. An empty panel stays as it is.
    """
    if not axis.lines:
        return
    lines = [np.asarray(line.get_ydata()) for line in axis.lines]
    heights, all_heights = np.concatenate([line[len(line) // 10 :] for line in lines]), np.concatenate(lines)
    if np.ptp(heights) < 0.01 * np.ptp(all_heights):
        heights = all_heights
    margin = 0.1 * np.ptp(heights) + 1e-9
    axis.set_ylim(heights.min() - margin, heights.max() + margin)


@on_paper
def legend_below(axis: Axes, columns: int = 1) -> None:
    """The legend of one panel, below its axis."""
    from matplotlib.transforms import ScaledTranslation

    figure = axis.get_figure(root=True)
    assert figure is not None
    below = axis.transAxes + ScaledTranslation(0, -0.42, figure.dpi_scale_trans)  # inches: what ticks and title need
    axis.legend(loc="upper left", bbox_to_anchor=(0, 0), bbox_transform=below, borderaxespad=0, ncols=columns)


@on_paper
def shared_legend(figure: Figure) -> None:
    """One legend above all panels, each label once, for which the figure grows."""
    handles = {
        label: handle for axis in figure.axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    if not handles:
        return
    inches = 0.55 + 0.062 * max(map(len, handles))  # of a column: handle and text
    columns = max(1, min(len(handles), int(figure.get_figwidth() / inches)))
    rows = -(-len(handles) // columns)
    columns = -(-len(handles) // rows)  # rows of equal length
    figure.set_figheight(figure.get_figheight() + 0.18 * rows)
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=columns)


def _panels(rows: int, columns: int, height: float, width: float = WIDTH) -> tuple[Figure, Any]:
    """An empty figure, and its panels, shape ``(rows, columns)``, each so many inches high."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height * rows + 0.2), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def _short(text: str, width: int) -> str:
    return shortened([text], width)[text]
