"""GPOO: Gaussian Process Optimistic Optimisation (Zhang, Tsuchida & Ong 2022, Algorithm 1).

A tree of cells and one Gaussian process on the means over cells. A round plays the leaf with the highest
``b = mean + sqrt(beta_t) std + delta(h)`` and splits it if ``delta(h) >= sqrt(beta_t) std``, and ``h <= h_max``.
"""

from __future__ import annotations

import numpy as np

from cbo_gym._util.arguments import require_positive, require_probability, require_word
from cbo_gym.agents.cells.cell_model import BETA_SCHEDULES
from cbo_gym.agents.cells.tree_search import GPTreeSearch, cell_variation
from cbo_gym.scm.values import Floats

KNOWN_VARIATION = 14.0
# Limit of the number of cells, within the range of floats.
MAX_COUNT = 2**900
# Share of the budget for an even grid.
GRID_SHARE = 0.5
# Variation in the grid's cells, in standard deviations of the rewards.
GRID_VARIATION = 0.5


class GPOO(GPTreeSearch):
    """Optimistic tree search with a Gaussian process over cells.

    Args:
        variation: c in ``delta(h) = c 2^(-h/d)``, above 0; None for 14 with a known kernel, and for
            ``0.5 (N/2)^(1/d)`` standard deviations of the rewards with a fitted one.
        beta: schedule of beta_t, ``"practical"`` or ``"theory"``.
        error: theta in beta_t, between 0 and 1.
        max_depth: h_max in one dimension, d times this in d: cells deeper than that are not split.
        fit: fit the kernel even if the task has one.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    def __init__(
        self,
        variation: float | None = None,
        beta: str = "practical",
        error: float = 0.1,
        max_depth: int = 10,
        fit: bool = False,
    ) -> None:
        super().__init__(max_depth, fit)
        self.constant = None if variation is None else require_positive("variation", variation)
        self.beta = require_word("beta", beta, sorted(BETA_SCHEDULES))
        self.error = require_probability("error", error)

    def setup(self, seed: int) -> None:
        super().setup(seed)
        cells = sum(self.task.arity**h for h in range(self.max_depth * self._dim + 1))
        self._count = min(cells, MAX_COUNT)

    def radii(self, nodes: np.ndarray, t: int) -> np.ndarray:
        beta = BETA_SCHEDULES[self.beta](t, self.error, self._count)
        return np.sqrt(beta) * self.model.gp.std[nodes]

    def variation(self, depth: Floats) -> Floats:
        even_grid = GRID_VARIATION * float((GRID_SHARE * self.task.horizon) ** (1.0 / self._dim))
        return cell_variation(self.constant or (even_grid if self.model.fitted else KNOWN_VARIATION), depth, self._dim)
