"""Stock: the nodes that an agent of partial mode has made, which later rounds with the same parameters reuse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbo_gym.task import SAME_INPUT, PartialTask


class Stock:
    """The nodes that have been made, with their values and the parameters on which these depend.

    Args:
        task: the task, whose parts must be made.

    Attributes:
        nodes: all nodes, in topological order.
        entering: whether each parameter enters a node or an ancestor of the node, ``(n, q)``.
    """

    def __init__(self, task: PartialTask) -> None:
        self.nodes = task.nodes
        dim = len(task.action_domains)
        self.entering = np.zeros((len(task.nodes), dim), dtype=bool)
        for index, node in enumerate(task.nodes):
            for ancestor in task.diagram.ancestors([node]):
                self.entering[index, list(task.action_nodes.get(ancestor, ()))] = True
        self._points = np.empty((0, dim))
        self._made = np.empty((0, len(task.nodes)), dtype=bool)
        self._values = np.empty((0, len(task.nodes)))

    def add(self, point: np.ndarray, is_made: np.ndarray, values: np.ndarray) -> None:
        """Add the nodes made in a round: parameters ``(q,)``, truth values and values ``(n,)``."""
        self._points = np.vstack([self._points, point])
        self._made, self._values = np.vstack([self._made, is_made]), np.vstack([self._values, values])

    def values_at(self, point: np.ndarray) -> np.ndarray:
        """Return the last value of each node with parameters ``(q,)``, NaN if it was not made with them, ``(n,)``."""
        equal = np.abs(self._points - point) <= SAME_INPUT
        values = np.full(len(self.nodes), np.nan)
        for index, entering in enumerate(self.entering):
            rounds = np.flatnonzero(self._made[:, index] & equal[:, entering].all(axis=1))
            if len(rounds):
                values[index] = self._values[rounds[-1], index]
        return values

    def parameters_of(self, index: int) -> np.ndarray:
        """Return the parameters with which a node was made, ``(k, q)``, NaN for those that do not enter it."""
        points = np.where(self.entering[index], self._points[self._made[:, index]], np.nan)
        return np.unique(points, axis=0)

    def combinations(self, indices: Sequence[int], limit: int, rng: np.random.Generator) -> np.ndarray:
        """Return at most ``limit`` points with which some nodes were all made, NaN for parameters that enter none."""
        joined = np.full((1, self._points.shape[1]), np.nan)
        for index in indices:
            points, node_points = joined[:, None], self.parameters_of(index)[None]
            differs = np.abs(points - node_points) > SAME_INPUT
            # Comparisons with NaN, a parameter that does not enter, are False.
            joined = np.where(np.isnan(points), node_points, points)[~differs.any(axis=-1)]
            if len(joined) > limit:
                joined = joined[rng.choice(len(joined), limit, replace=False)]
        return joined
