"""Figures of the pages of results, from published runs: curves of papers, and scores with their intervals."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from cbo_gym.evaluation.report.palette import for_figure, line_style, line_styles
from cbo_gym.evaluation.report.plots import mean_curve, publication_style, round_axis, scale_to_lines, shared_legend
from cbo_gym.evaluation.runs.results import Run
from website.common.svg import svg_of

POINTS = 80  # number of points of a curve
COLUMNS = 3
TITLE_WIDTH, AXIS_TITLE_WIDTH = 30, 24  # characters in a line
TITLE_LINE_HEIGHT = 0.14  # inches
MIN_WIDTH = 4.2  # inches, above 400 pixels


def curve_of(run: Run, quantity: str) -> np.ndarray:
    """Return a quantity after each round; NaN for quantities of a recommendation in rounds without one."""
    if quantity == "best_reward":
        return run.optimum - run.table["best_so_far_regret"].to_numpy()
    return run.table[quantity].to_numpy()


class Printed(NamedTuple):
    """A number that a paper prints for a number of rounds, and half of its spread, 0 if that is not printed."""

    rounds: int
    mean: float
    half: float


@publication_style
def curves_svg(
    runs_by_cell: Mapping[tuple[str, str], Sequence[Run]],
    quantity: str,
    title: str,
    names: Mapping[str, str],
    printed: Mapping[tuple[str, str], Sequence[Printed]],
) -> str:
    """Return the picture of an exhibit.

    Args:
        runs_by_cell: method and environment -> finished runs with the same number of rounds; some may be empty.
        quantity: a column of runs' tables, or ``best_reward``.
        title: title of all vertical axes.
        names: environment -> title of its panel; its label if it has no title.
        printed: method and environment -> the paper's own numbers, which are drawn over our curves as hollow marks.
    """
    envs = list(dict.fromkeys(env for (_, env), runs in runs_by_cell.items() if runs))
    agents = list(dict.fromkeys(agent for (agent, _), runs in runs_by_cell.items() if runs))
    titles = {env: for_figure(names[env]) if env in names else panel_title(env) for env in envs}
    styles = line_styles(agents)
    axes = _panels(len(envs), 2.1 + TITLE_LINE_HEIGHT * max(title.count("\n") for title in titles.values()), title)
    for axis, env in zip(axes.flat, envs, strict=False):
        for agent in agents:
            if runs := runs_by_cell.get((agent, env)):
                mean_curve(axis, thin_curves(np.stack([curve_of(run, quantity) for run in runs])), agent, styles[agent])
        for agent in agents:
            if marks := printed.get((agent, env)):
                rounds, means, halves = zip(*marks, strict=True)
                axis.errorbar(
                    rounds, means, halves, fmt=styles[agent].marker, color=styles[agent].colour, markerfacecolor="none",
                    markersize=5.0, linestyle="none", elinewidth=0.8, capsize=2.0,
                    label=for_figure(f"{agent}, published"),
                )  # fmt: skip
        scale_to_lines(axis)
        axis.set_title(titles[env])
        round_axis(axis)
    return _finish(axes)


def _panels(count: int, height: float, title: str) -> np.ndarray:
    """Return the axes of panels, with the title of the vertical axes left of each row.

    The figure's own title would be centred on the legend too.
    """
    rows, columns = -(-count // COLUMNS), min(count, COLUMNS)
    figure = Figure(figsize=(max(MIN_WIDTH, 0.6 + 2.5 * columns), height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat[count:]:
        axis.axis("off")
    for axis in axes[:, 0]:
        axis.set_ylabel(textwrap.fill(title, AXIS_TITLE_WIDTH), fontsize=8)
    return axes


def _finish(axes: np.ndarray) -> str:
    figure = axes[0, 0].figure
    figure.align_ylabels(axes[:, 0])
    shared_legend(figure)
    return svg_of(figure)


def panel_title(label: str) -> str:
    """Return an environment's name, with its keywords on separate lines, because panels often differ only by these."""
    name, _, keywords = label.removeprefix("CBO/").partition("(")
    return "\n".join(map(for_figure, [name, *textwrap.wrap(keywords.removesuffix(")"), TITLE_WIDTH)]))


@publication_style
def chosen_svg(runs_by_agent: Mapping[str, Sequence[Run]]) -> str:
    """Draw the share of rounds so far in which each target set or scope was chosen, in a panel for each method.

    Args:
        runs_by_agent: method -> finished runs on one environment, at least one, with the same choices and horizon.
    """
    axes = _panels(len(runs_by_agent), 2.1, "Share of the rounds so far")
    for axis, (agent, runs) in zip(axes.flat, runs_by_agent.items(), strict=False):
        shares = np.stack([shares_chosen(run) for run in runs])
        for index, choice in enumerate(runs[0].choices):
            mean_curve(axis, thin_curves(shares[:, index]), choice, line_style(index))
        axis.set_title(for_figure(agent))
        axis.set_ylim(-0.03, 1.03)
        round_axis(axis)
    return _finish(axes)


def shares_chosen(run: Run) -> np.ndarray:
    """Return the share of rounds so far in which each choice was made, shape ``(choices, rounds)``."""
    chosen = run.table["choice"].to_numpy() == np.arange(len(run.choices))[:, None]
    return chosen.cumsum(axis=1) / np.arange(1, chosen.shape[1] + 1)


def thin_curves(curves: np.ndarray) -> np.ndarray:
    """Keep the values of curves in some rounds, the first and the last among them; the others become NaN."""
    rounds = curves.shape[-1]
    kept = np.unique(np.linspace(0, rounds - 1, POINTS).astype(int))
    thin = np.full_like(curves, np.nan)
    thin[:, kept] = curves[:, kept]
    return thin


@publication_style
def dots_svg(title: str, dots: Mapping[str, tuple[float, float | None, float | None]]) -> str:
    """Draw a dot for the score of each agent, the first on top, and its interval if that is known."""
    styles = line_styles(dots)
    figure = Figure(figsize=(4.3, 0.62 + 0.22 * len(dots)), layout="constrained")
    axis = figure.subplots()
    for index, (agent, (score, low, high)) in enumerate(dots.items()):
        style = styles[agent]
        if low is not None and high is not None:
            axis.hlines(index, low, high, color=style.colour, linewidth=1.6)
        axis.plot(score, index, style.marker, color=style.colour)
    axis.set_yticks(range(len(dots)), list(map(for_figure, dots)))
    axis.grid(False, axis="y")
    axis.set(xlabel="Interquartile mean of the scores", ylim=(len(dots) - 0.4, -0.6))
    axis.set_xlim(min(0.0, axis.get_xlim()[0]), max(1.0, axis.get_xlim()[1]))
    axis.set_title(for_figure(title), loc="left")
    return svg_of(figure)
