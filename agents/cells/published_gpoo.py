"""PublishedGPOO: GPOO as the program behind the figures of Zhang, Tsuchida & Ong (2022) runs it.

The program (github.com/Mengyanz/GPOO, simulation.py) splits the root at once and plays its children first. In each
later round, the leaf with the highest b-value is split *before* it is played, if GPOO's conditions allow a split, and
the best of the other leaves is played. Confidence radii include the noise of the reward, with 0.05 of the kernel's
variance. This class reproduces Fig. 6 (``examples/reproduce_gpoo.py``); :class:`GPOO` follows the paper's Algorithm 1.
"""

from __future__ import annotations

import math

import numpy as np

from cbo_gym.agents.cells.cell_model import CellModel
from cbo_gym.agents.cells.gpoo import GPOO
from cbo_gym.task import Action, Observation

# Variance of the noise, as a share of the kernel's.
NOISE_SHARE = 0.05


class PublishedGPOO(GPOO):
    """GPOO that splits a leaf before it plays another. Plays aggregated tasks; arguments are those of GPOO."""

    def make_model(self) -> CellModel:
        kernel = self.task.kernel
        return CellModel(self.task, self.fit, noise_std=math.sqrt(NOISE_SHARE * kernel[1]) if kernel else None)

    def setup(self, seed: int) -> None:
        super().setup(seed)
        self.expand(0)
        self._unplayed = list(self.tree.leaves)

    def radii(self, nodes: np.ndarray, t: int) -> np.ndarray:
        return np.sqrt(self.beta_at(t) * (self.model.gp.std[nodes] ** 2 + self.model.hyperparameters.noise_std**2))

    def act(self, observation: Observation) -> Action:
        node = self._unplayed.pop(0) if self._unplayed else self._split_and_choose(len(self.history))
        return self.tree.cells[node].copy()

    def _split_and_choose(self, t: int) -> int:
        """Return the best leaf, or split it and return the second best."""
        best = self.best_leaf(t)
        if not self.may_expand(best, t):
            return best
        others = self.tree.leaves[self.tree.leaves != best]
        self.expand(best)
        return int(others[np.argmax(self.upper_bounds(others, t))])

    def grow(self, node: int, t: int) -> None:
        """Do nothing: :meth:`act` splits cells before a round."""
