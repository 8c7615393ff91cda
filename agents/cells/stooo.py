"""StoOO (Munos 2014, From bandits to Monte-Carlo tree search, sec. 3.3) and AVE-StoOO (Zhang et al. 2022, Algorithm 2).

Optimistic tree search with the empirical mean of each cell's own rewards: nothing is shared between cells. The leaf
with the highest ``mean + radius + delta(h)`` is played, one that was never played before any other; it is split when
its radius is down to ``delta(h)``. With n the budget, T the draws of the cell and theta the error probability,

* StoOO: ``radius = sqrt(log(n^2 / theta) / (2 T))``, for rewards of single points;
* AVE-StoOO: ``radius = sqrt(2 log(t^2 / theta) / T)``, for rewards that are means over a cell (Eq. 12).

Both recommend "any deepest expanded node"; here it is the one with the highest empirical mean.

Both assume rewards in [0, 1]. ``reward_range`` stretches the radius for others, and ``variation`` then has to be
given in the same units.
"""

from __future__ import annotations

import numpy as np

from cbo_gym.agents.cells.tree_search import TreeSearch, shrinking
from cbo_gym.agents.toolbox.arguments import require_positive, require_probability
from cbo_gym.scm.values import Floats


class AVEStoOO(TreeSearch):
    """StoOO for aggregated feedback.

    Args:
        variation: c in ``delta(h) = c 2^(-h/d)``, above 0.
        error: the error probability theta, between 0 and 1.
        reward_range: length of an interval that holds the rewards, above 0.
        max_depth: cells deeper than d times this are not split.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    def __init__(
        self, variation: float = 14.0, error: float = 0.1, reward_range: float = 1.0, max_depth: int = 50
    ) -> None:
        super().__init__(max_depth)
        require_positive("variation", variation)
        require_probability("error", error)
        require_positive("reward_range", reward_range)
        self.constant, self.error, self.reward_range = variation, error, reward_range

    def setup(self, seed: int) -> None:
        super().setup(seed)
        self._sums = np.zeros(1)

    def estimates(self, nodes: np.ndarray) -> np.ndarray:
        return self._sums[nodes] / np.maximum(self.draws[nodes], 1)

    def radii(self, nodes: np.ndarray, t: int) -> np.ndarray:
        with np.errstate(divide="ignore"):  # a cell that was never played has an infinite radius
            return self.reward_range * np.sqrt(self.squared_radius_of_one_draw(t) / self.draws[nodes])

    def squared_radius_of_one_draw(self, t: int) -> float:
        """The squared radius in round t after a single draw, for rewards in [0, 1]."""
        return 2.0 * float(np.log(t**2 / self.error))

    def variation(self, depth: Floats) -> Floats:
        return shrinking(self.constant, depth, self._dim)

    def learn(self, cell: np.ndarray, reward: float) -> None:
        node = self.tree.find(cell)
        if node is not None:
            self._sums[node] += reward

    def expand(self, node: int) -> None:
        super().expand(node)
        self._sums = np.append(self._sums, np.zeros(len(self.tree) - len(self._sums)))


class StoOO(AVEStoOO):
    """Stochastic optimistic optimisation; it needs the budget, which is the task's horizon."""

    def squared_radius_of_one_draw(self, t: int) -> float:
        return 0.5 * float(np.log(self.task.horizon**2 / self.error))
