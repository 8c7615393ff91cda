"""GPTree (Shekhar & Javidi 2018, Gaussian process bandits with adaptive discretization, Algorithm 1).

A tree of cells, with a Gaussian process on the means over cells. A round plays the leaf with the highest index
``I = min(mean + beta_n std, mean' + beta_n std' + V(h - 1)) + V(h)``, where primes mark quantities of its parent, h is
its depth, and ``V(h)`` bounds the function's variation in it. The constants of ``V`` are those of Claims 1 and 2 for
Lipschitz metrics, with C2 = C3 = D = 1.
"""

from __future__ import annotations

import math

import numpy as np

from cbo_gym._util.arguments import require_positive, whole_number
from cbo_gym.agents.cells.cell_model import MAX_CELLS
from cbo_gym.agents.cells.tree_search import GPTreeSearch, cell_variation
from cbo_gym.scm.values import Floats
from cbo_gym.task import Action, Observation

# Hoelder exponent of the metric, and the constants C2, C3 and D.
ALPHA = 0.5
C2 = C3 = METRIC_DIMENSION = 1.0


class GPTree(GPTreeSearch):
    """Tree search with a Gaussian process and a confidence width that the task's horizon fixes. Plays aggregated tasks.

    Args:
        scale: factor of ``beta_n``, above 0.
        slope: size of the root in the metric, above 0; cells of depth h have the size ``slope 2^(-h/d)``.
        confidence: u, above 0; the bounds hold with probability ``1 - exp(-u)``.
        max_nodes: the largest number of nodes of the tree, 1 to 16,384.
        fit: fit the kernel even if the task has one.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    def __init__(
        self,
        scale: float = 0.25,
        slope: float = 0.1,
        confidence: float = 2.0,
        max_nodes: int = 1024,
        fit: bool = False,
    ) -> None:
        super().__init__(max_depth=0, fit=fit)
        self.scale = require_positive("scale", scale)
        self.slope = require_positive("slope", slope)
        self.confidence = require_positive("confidence", confidence)
        self.max_nodes = whole_number("max_nodes", max_nodes, at_least=1, at_most=MAX_CELLS)

    def setup(self, seed: int) -> None:
        super().setup(seed)
        budget = self.task.horizon
        self._width = self.scale * math.sqrt(math.log(budget) + self.confidence)
        self.max_depth = math.floor(math.log(budget) * (1.0 + 1.0 / ALPHA) / (2.0 * ALPHA * math.log(2.0)))

    def radii(self, nodes: np.ndarray, t: int) -> np.ndarray:
        return self._width * self.model.gp.std[nodes]

    def variation(self, depth: Floats) -> Floats:
        depth = np.asarray(depth)
        sizes = cell_variation(self.slope, depth, self._dim)
        inner: Floats = 2.0 * self.confidence + C2 + 2.0 * math.log(self.task.horizon**2 * math.pi**2 / 6.0)
        inner = inner + depth * math.log(self.task.arity) - 4.0 * METRIC_DIMENSION * np.log(sizes)
        return 4.0 * sizes * (np.sqrt(inner) + C3)

    def upper_bounds(self, nodes: np.ndarray, t: int) -> np.ndarray:
        parents, depth = self.tree.parent[nodes], self.tree.depth[nodes]
        own = self.estimates(nodes) + self.radii(nodes, t)
        by_parent = self.estimates(parents) + self.radii(parents, t) + self.variation(np.maximum(depth - 1, 0))
        return np.minimum(own, by_parent) + self.variation(depth)

    def act(self, observation: Observation) -> Action:
        t = len(self.history) + 1
        leaf = self.best_leaf(t)
        while self.may_expand(leaf, t) and len(self.tree) + self.task.arity <= self.max_nodes:
            self.expand(leaf)
            leaf = self.best_leaf(t)
        return self.tree.cells[leaf].copy()

    def grow(self, node: int, t: int) -> None:
        """Do nothing: :meth:`act` splits cells before a round."""
