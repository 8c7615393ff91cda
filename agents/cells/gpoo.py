"""GPOO: Gaussian Process Optimistic Optimisation (Zhang, Tsuchida & Ong 2022, Algorithm 1).

A tree of cells, with one Gaussian process on the means over cells. A round plays the leaf with the highest
``b = mean + sqrt(beta_t) std + delta(h)``, where h is its depth and ``delta(h)`` bounds the function's variation in it.
The leaf is split if ``delta(h) >= sqrt(beta_t) std`` and ``h <= h_max``.
"""

from __future__ import annotations

import numpy as np

from cbo_gym._util.arguments import require_positive, require_probability, require_word
from cbo_gym.agents.cells.cell_model import BETA_SCHEDULES
from cbo_gym.agents.cells.tree_search import GPTreeSearch, cell_variation
from cbo_gym.scm.values import Floats

# Constant c of the variation if the task states its kernel.
KNOWN_VARIATION = 14.0
# Limit of the number of cells, within the range of floats.
MAX_COUNT = 2**900
# With a fitted kernel, c is such that the cells of an even grid, of this share of the rounds, have this variation, in
# standard deviations of the rewards.
GRID_SHARE, GRID_VARIATION = 0.5, 0.5


class GPOO(GPTreeSearch):
    """Optimistic tree search with a Gaussian process over cells. Plays aggregated tasks.

    Args:
        variation: c in ``delta(h) = c 2^(-h/d)``, above 0. None for 14 with a known kernel, and for
            ``0.5 (N/2)^(1/d)`` standard deviations of the rewards with a fitted one, in N rounds.
        beta: schedule of beta_t, ``"practical"`` or ``"theory"``.
        error: error probability theta in beta_t, between 0 and 1.
        max_depth: h_max in one dimension; in d dimensions cells deeper than d times this are not split.
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
        self._count = min(sum(self.task.arity**h for h in range(self.max_depth * self._dim + 1)), MAX_COUNT)
        if self.constant is not None:
            self._root_variation = self.constant
        elif self.model.fitted:
            self._root_variation = GRID_VARIATION * float((GRID_SHARE * self.task.horizon) ** (1.0 / self._dim))
        else:
            self._root_variation = KNOWN_VARIATION

    def radii(self, nodes: np.ndarray, t: int) -> np.ndarray:
        return np.sqrt(self.beta_at(t)) * self.model.gp.std[nodes]

    def beta_at(self, t: int) -> float:
        return BETA_SCHEDULES[self.beta](t, self.error, self._count)

    def variation(self, depth: Floats) -> Floats:
        return cell_variation(self._root_variation, depth, self._dim)
