"""Pareto fronts: what agents recommended at the end of their runs beside the front that is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from cbo_gym.evaluation.report.labels import for_figure
from cbo_gym.evaluation.report.palette import GREY, Look
from cbo_gym.evaluation.report.plots import WIDTH, on_paper, shared_legend
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.fronts import non_dominated
from cbo_gym.labels import Spec
from cbo_gym.problems import build_problem
from cbo_gym.registry import find_entry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECOMMENDED = "recommended_rewards"
HEIGHT = 2.6  # inches, of a panel


def has_fronts(runs: Sequence[Run]) -> bool:
    """Whether there is a front to draw: runs hold what they recommended, and the environment is a registered one."""
    return all(RECOMMENDED in run.columns for run in runs) and _known(runs[0].env) is not None


@on_paper
def draw_fronts(env: str, runs: Sequence[Run], styles: Mapping[str, Look]) -> Figure:
    """Expected rewards of what was recommended after the last round, all seeds, a panel a pair of objectives.

    Args:
        env: the environment's name, as the title has it.
        runs: of it, for which :func:`has_fronts`.
        styles: of the agents.
    """
    from matplotlib.figure import Figure

    known = _known(runs[0].env)
    assert known is not None, "has_fronts was asked"
    names, front = known
    pairs = list(combinations(range(len(names)), 2))
    figure = Figure(figsize=(WIDTH, HEIGHT), layout="constrained")
    axes = figure.subplots(1, max(2, len(pairs)), squeeze=False)[0]
    for axis, (one, other) in zip(axes, pairs, strict=False):
        order = np.argsort(front[:, one])
        axis.plot(
            front[order, one],
            front[order, other],
            linestyle="none" if len(names) > 2 else "-",
            marker="." if len(names) > 2 else None,
            color=GREY,
            label="Pareto front",
        )
        for agent, points in _recommended(runs, len(names)):
            look = styles[agent]
            axis.plot(
                points[:, one],
                points[:, other],
                linestyle="none",
                marker=look.marker,
                markersize=3.5,
                color=look.colour,
                label=for_figure(agent),
            )
        axis.set(xlabel=names[one], ylabel=names[other])
    for axis in axes[len(pairs) :]:
        axis.set_axis_off()
    axes[0].set_title(for_figure(env), loc="left")
    shared_legend(figure)
    return figure


def _recommended(runs: Sequence[Run], objectives: int) -> Iterator[tuple[str, np.ndarray]]:
    """Agent by agent the vectors of all its seeds, those left out that others of the same seed dominate."""
    found: dict[str, list[np.ndarray]] = {}
    for run in runs:
        vectors = np.array(run.table[RECOMMENDED][-1].to_list()).reshape(-1, objectives)
        found.setdefault(run.agent, []).append(vectors[non_dominated(vectors)])
    for agent, parts in found.items():
        yield agent, np.concatenate(parts)


def _known(env: str) -> tuple[list[str], np.ndarray] | None:
    """The names of a registered environment's objectives, and its recorded front; None of any other."""
    entry = find_entry(env) if Spec.parse(env).name == env else None
    if entry is None or entry.optimum is None or not entry.optimum.front:
        return None
    objectives = build_problem(entry.problem).outcomes.objectives
    names = [one.name if one.sign > 0 else f"-{one.name}" for one in objectives]
    return names, np.array(entry.optimum.front)
