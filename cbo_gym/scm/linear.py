"""Linear networks with one or two vectors of weights per node, and the best choice of a vector for each node.

The value of node i is ``w_i . (1, values of its causes)`` plus noise of mean zero, where ``w_i`` is one of two vectors.
The expected value of the last node is linear in every ``w_i``, with the total effect of node i as the factor. So the
best choice gives each node the vector with the largest expected value of that node if its effect is positive, and the
smallest if it is negative, given the values of its causes. One pass from causes to effects finds the choice for given
signs of the effects; there is a pass for each pattern of signs. The same holds if each vector may vary in an ellipsoid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cbo_gym.errors import ArgumentError

MAX_NODES = 17


class Choice(NamedTuple):
    """The index of the chosen vector of each node, shape ``(N,)``, and the expected value of the last node."""

    options: np.ndarray
    value: float


class LinearNetwork:
    """Nodes in topological order with their causes.

    Args:
        causes: the indices of the causes of each node, all smaller than its own index.
        options: the number of vectors of weights of each node, 1 or 2.

    Attributes:
        causes: columns of the constant and of the causes of each node, in arrays with a constant 1 before all nodes.
        width: width of the arrays of weights, 1 + the largest number of causes.

    Raises:
        ArgumentError: if there are more than 17 nodes.
    """

    def __init__(self, causes: Sequence[Sequence[int]], options: Sequence[int]) -> None:
        if len(causes) > MAX_NODES:
            raise ArgumentError(f"the best choice is known of at most {MAX_NODES} nodes; given {len(causes)}")
        self.causes = [[0, *(cause + 1 for cause in causes_of_node)] for causes_of_node in causes]
        self.options = list(options)
        self.width = max(map(len, self.causes))
        *upper, self._last = range(len(causes))
        # Nodes that cause only the last node. Both signs of each are tried in every pass over the inner nodes.
        self._ends = [node for node in upper if not any(node in causes_of_node for causes_of_node in causes[:-1])]
        self._inner = [node for node in upper if node not in self._ends]
        self._signs = 1 - 2 * _binary_patterns(len(self._inner))
        self._end_patterns = _binary_patterns(len(self._ends))

    def means(self, weights: np.ndarray, choices: np.ndarray) -> np.ndarray:
        """Return the expected values of all nodes for choices of vectors ``(n, N)``; weights as for :meth:`best`."""
        values = np.ones((len(choices), len(self.causes) + 1))
        for i, columns in enumerate(self.causes):
            values[:, i + 1] = (values[:, columns] * weights[i, choices[:, i], : len(columns)]).sum(axis=1)
        return values[:, 1:]

    def best(self, weights: np.ndarray, ellipsoids: np.ndarray | None = None) -> Choice:
        """Return the choice of vectors with the largest expected value of the last node.

        Args:
            weights: weights of each node and option, the constant's first, then its causes', shape ``(N, 2, width)``;
                the entries after those of a node's causes and options are ignored.
            ellipsoids: matrices A of each node and option, ``(N, 2, width, width)``: the vector may be any w with
                ``(w - weights)' A^-1 (w - weights) <= 1``; None for known vectors.
        """
        # One row for each pattern of signs.
        rows = np.arange(len(self._signs))
        values = np.ones((len(rows), len(self.causes) + 1))
        options = np.zeros((len(rows), len(self.causes)), dtype=int)
        for sign, i in zip(self._signs.T, self._inner, strict=True):
            mean, spread = self._mean_and_spread(i, values, weights, ellipsoids)
            bounds = sign[:, None] * mean + spread
            options[:, i] = bounds.argmax(axis=1)
            values[:, i + 1] = sign * bounds[rows, options[:, i]]
        arguments = np.repeat(values[:, None, :], len(self._end_patterns), axis=1)
        # In a pattern of the end nodes, 0 is a node's highest value and 1 its lowest.
        extreme_options = np.empty((2, len(rows), len(self._ends)), dtype=int)
        for end, i in enumerate(self._ends):
            mean, spread = self._mean_and_spread(i, values, weights, ellipsoids)
            highest, lowest = mean + spread, mean - spread
            extreme_options[:, :, end] = highest.argmax(axis=1), lowest.argmin(axis=1)
            extremes = np.stack([highest.max(axis=1), lowest.min(axis=1)], axis=1)
            arguments[:, :, i + 1] = extremes[:, self._end_patterns[:, end]]
        mean, spread = self._mean_and_spread(self._last, arguments, weights, ellipsoids)
        bounds = mean + spread
        row, pattern, option = np.unravel_index(int(bounds.argmax()), bounds.shape)
        chosen = options[row]
        chosen[self._ends] = extreme_options[self._end_patterns[pattern], row, np.arange(len(self._ends))]
        chosen[self._last] = option
        return Choice(chosen, float(bounds[row, pattern, option]))

    def _mean_and_spread(
        self, node: int, values: np.ndarray, weights: np.ndarray, ellipsoids: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | float]:
        """Return a node's expected value under each option, ``(..., options)``, and the ellipsoid's half-width."""
        columns, options = self.causes[node], self.options[node]
        arguments = values[..., columns]
        mean = arguments @ weights[node, :options, : len(columns)].T
        if ellipsoids is None:
            return mean, 0.0
        matrices = ellipsoids[node, :options, : len(columns), : len(columns)]
        squares = [((arguments @ matrix) * arguments).sum(axis=-1) for matrix in matrices]
        return mean, np.sqrt(np.stack(squares, axis=-1))


def _binary_patterns(count: int) -> np.ndarray:
    """Return all patterns of 0 and 1, shape ``(2**count, count)``."""
    return np.arange(2**count)[:, None] >> np.arange(count) & 1
