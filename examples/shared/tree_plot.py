"""Figures of a tree search on [0, 1], such as GPOO's: the tree of cells, and its estimates over the function.

They follow Zhang, Tsuchida & Ong (2022), Fig. 1 and 5. Everything is drawn on the caller's axes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.report.palette import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GRID = np.linspace(0.0, 1.0, 2001)
FUNCTION, CELL, POSTERIOR, EDGE = COLOURS[3], COLOURS[0], COLOURS[5], "#b8c0c8"
#: Colours and markers of nodes by the number of their plays: 0, 1, more.
DRAWS = {"not played": (COLOURS[5], "o"), "played once": (COLOURS[1], "s"), "played more often": (COLOURS[6], "^")}

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class TreeSnapshot:
    """A tree of cells of [0, 1] during a search; arrays have an entry for each node.

    Args:
        lower: lower ends of the cells.
        upper: upper ends of the cells.
        depth: depths of the nodes, 0 for the root.
        parent: index of the parent of each node; 0 for the root, which is its own parent.
        is_leaf: whether the node has no children.
        draws: how often the node was played.
        estimate: estimated mean reward of the cell.
        radius: confidence radius of the estimate.
        variation: delta(h), how much the function may vary in the cell.

    Raises:
        ArgumentError: if the arrays differ in length.
    """

    lower: np.ndarray
    upper: np.ndarray
    depth: np.ndarray
    parent: np.ndarray
    is_leaf: np.ndarray
    draws: np.ndarray
    estimate: np.ndarray
    radius: np.ndarray
    variation: np.ndarray

    def __post_init__(self) -> None:
        lengths = {name: len(array) for name, array in vars(self).items()}
        if len(set(lengths.values())) != 1:
            raise ArgumentError(f"every array needs one entry a node; given lengths {lengths}")

    @property
    def centre(self) -> np.ndarray:
        return 0.5 * (self.lower + self.upper)


def draw_tree(axis: Axes, tree: TreeSnapshot) -> None:
    """Draw the nodes at the centres of their cells, the root on top, coloured by the number of plays."""
    from matplotlib.collections import LineCollection
    from matplotlib.ticker import MaxNLocator

    points = np.column_stack([tree.centre, tree.depth])
    edges = np.stack([points, points[tree.parent]], axis=1)[1:]
    axis.add_collection(LineCollection(list(edges), colors=EDGE, linewidths=0.7, zorder=1))
    classes = np.minimum(tree.draws, len(DRAWS) - 1)
    for count, (label, (colour, marker)) in enumerate(DRAWS.items()):
        chosen = points[classes == count]
        axis.scatter(chosen[:, 0], chosen[:, 1], s=13, color=colour, marker=marker, label=label, linewidths=0, zorder=2)
    axis.set(ylabel="Depth h", xlim=(-0.01, 1.01), ylim=(tree.depth.max() + 0.6, -0.6))
    axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    axis.grid(True, axis="y", alpha=0.25)


def draw_cells(axis: Axes, tree: TreeSnapshot, function: Function) -> None:
    """Draw the function, and for every leaf its estimate (line), confidence interval (dark) and variation (light)."""
    leaves = np.flatnonzero(tree.is_leaf)
    leaves = leaves[np.argsort(tree.lower[leaves])]
    edges = np.append(tree.lower[leaves], tree.upper[leaves[-1]])
    estimate, radius = tree.estimate[leaves], tree.radius[leaves]
    outer = radius + tree.variation[leaves]
    for width, alpha, label in ((outer, 0.16, "with variation $\\delta(h)$"), (radius, 0.42, "confidence interval")):
        axis.stairs(
            estimate + width, edges, baseline=estimate - width, fill=True, color=CELL, alpha=alpha, label=label, lw=0
        )
    axis.hlines(estimate, edges[:-1], edges[1:], color=CELL, linewidth=1.4, label="estimate of a cell")
    _draw_function(axis, function)


def draw_posterior(
    axis: Axes,
    mean: np.ndarray,
    std: np.ndarray,
    cells: np.ndarray,
    rewards: np.ndarray,
    function: Function,
) -> None:
    """Draw the function, the posterior over points, and the rewards at the centres of the cells played.

    Args:
        axis: axis to draw on.
        mean: means of the posterior at the points :data:`GRID`.
        std: standard deviations of the posterior at the same points.
        cells: lower and upper ends of the cells played, shape ``(t, 2)``.
        rewards: rewards of these cells, shape ``(t,)``.
        function: the reward function.
    """
    axis.fill_between(GRID, mean - 2 * std, mean + 2 * std, color=POSTERIOR, alpha=0.22, lw=0, label="posterior, 2 std")
    axis.plot(GRID, mean, color=POSTERIOR, linewidth=1.4, label="posterior mean")
    axis.scatter(cells.mean(axis=1), rewards, s=9, color="#333333", alpha=0.7, linewidths=0, zorder=3, label="rewards")
    _draw_function(axis, function)


def _draw_function(axis: Axes, function: Function) -> None:
    values = function(GRID)
    axis.plot(GRID, values, color=FUNCTION, linewidth=1.4, label="reward function", zorder=4)
    margin = 0.35 * (values.max() - values.min())
    axis.set(xlabel="Action", ylabel="Reward", xlim=(-0.01, 1.01))
    axis.set_ylim(values.min() - margin, values.max() + margin)
