"""Figures of the pages of results, from published runs: curves of papers, and scores with their intervals."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from environment_pictures import svg_of
from matplotlib.figure import Figure

from cbo_gym.evaluation.report.labels import for_figure, shortened
from cbo_gym.evaluation.report.palette import looks
from cbo_gym.evaluation.report.plots import mean_curve, on_paper, round_axis, scale_to_lines, shared_legend
from cbo_gym.evaluation.runs.results import Run

POINTS = 80  # of a line
COLUMNS = 3
TITLE = 30  # characters
LETTERS = 32  # of the vertical axes' title that fit beside a row


def curve_of(run: Run, quantity: str) -> np.ndarray:
    """A quantity of a paper's figure after each round; NaN in rounds without a recommendation, where it is of one."""
    if quantity == "best_reward":
        return run.optimum - run.table["best_so_far_regret"].to_numpy()
    return run.table[quantity].to_numpy()


@on_paper
def curves_svg(
    played: Mapping[tuple[str, str], Sequence[Run]], quantity: str, title: str, names: Mapping[str, str]
) -> str:
    """The picture of one exhibit.

    Args:
        played: method and environment -> finished runs with the same number of rounds; some may be empty.
        quantity: a column of runs' tables, or ``best_reward``.
        title: of all vertical axes.
        names: environment -> title of its panel; of one that has none its label, shortened.
    """
    envs = list(dict.fromkeys(env for (_, env), runs in played.items() if runs))
    agents = list(dict.fromkeys(agent for (agent, _), runs in played.items() if runs))
    short, styles = shortened((env.removeprefix("CBO/") for env in envs), TITLE), looks(agents)
    rows, columns = -(-len(envs) // COLUMNS), min(len(envs), COLUMNS)
    figure = Figure(figsize=(0.6 + 2.5 * columns, 2.1 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.flat[len(envs) :]:
        axis.axis("off")
    for axis, env in zip(axes.flat, envs, strict=False):
        for agent in agents:
            if runs := played.get((agent, env)):
                mean_curve(axis, thinned(np.stack([curve_of(run, quantity) for run in runs])), agent, styles[agent])
        scale_to_lines(axis)
        axis.set_title(for_figure(names.get(env, short[env.removeprefix("CBO/")])))
        round_axis(axis)
    figure.supylabel(textwrap.fill(title, LETTERS * rows), fontsize=8)
    shared_legend(figure)
    return svg_of(figure)


def thinned(curves: np.ndarray) -> np.ndarray:
    """The curves with a value in so many rounds, the first and the last among them, and NaN in the others."""
    rounds = curves.shape[-1]
    kept = np.unique(np.linspace(0, rounds - 1, POINTS).astype(int))
    found = np.full_like(curves, np.nan)
    found[:, kept] = curves[:, kept]
    return found


class Dot(NamedTuple):
    """A score with the ends of its interval; None where none is known."""

    agent: str
    score: float
    low: float | None
    high: float | None


@on_paper
def dots_svg(title: str, dots: Sequence[Dot]) -> str:
    """A dot with its interval for each agent, the first on top."""
    styles = looks(dot.agent for dot in dots)
    figure = Figure(figsize=(4.3, 0.62 + 0.22 * len(dots)), layout="constrained")
    axis = figure.subplots()
    for place, (agent, score, low, high) in enumerate(dots):
        look = styles[agent]
        if low is not None and high is not None:
            axis.hlines(place, low, high, color=look.colour, linewidth=1.6)
        axis.plot(score, place, look.marker, color=look.colour)
    axis.set_yticks(range(len(dots)), [for_figure(dot.agent) for dot in dots])
    axis.grid(False, axis="y")
    axis.set(xlabel="Interquartile mean of the scores", ylim=(len(dots) - 0.4, -0.6))
    axis.set_xlim(min(0.0, axis.get_xlim()[0]), max(1.0, axis.get_xlim()[1]))
    axis.set_title(for_figure(title), loc="left")
    return svg_of(figure)
