"""StoOO (Munos 2014, From bandits to Monte-Carlo tree search, sec. 3.3) and AVE-StoOO (Zhang et al. 2022, Algorithm 2).

Optimistic tree search with the empirical mean of each cell's own rewards; cells share no information. A round plays the
leaf with the highest ``mean + radius + delta(h)``; leaves that were never played come first.
"""

from __future__ import annotations

import math

import numpy as np

from cbo_gym._util.arguments import require_positive, require_probability, require_word
from cbo_gym.agents.cells.tree_search import TreeSearch, cell_variation
from cbo_gym.scm.values import Floats


class StoOO(TreeSearch):
    """Stochastic optimistic optimisation with the task's horizon as its budget. Plays aggregated tasks.

    Args:
        variation: c in ``delta(h) = c 2^(-h/d)``, above 0.
        error: the error probability theta, between 0 and 1.
        reward_range: length of an interval that contains all rewards, above 0.
        max_depth: cells deeper than d times this are not split.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    def __init__(
        self, variation: float = 14.0, error: float = 0.1, reward_range: float = 1.0, max_depth: int = 50
    ) -> None:
        super().__init__(max_depth)
        self.constant = require_positive("variation", variation)
        self.error = require_probability("error", error)
        self.reward_range = require_positive("reward_range", reward_range)

    def setup(self, seed: int) -> None:
        super().setup(seed)
        self._sums = np.zeros(1)

    def unit_radii(self, draws: np.ndarray, t: int) -> np.ndarray:
        """Return confidence radii in round t after ``draws`` plays, if the range of rewards is 1."""
        return np.sqrt(0.5 * math.log(self.task.horizon**2 / self.error) / draws)

    def estimates(self, nodes: np.ndarray) -> np.ndarray:
        return self._sums[nodes] / np.maximum(self.draws[nodes], 1)

    def radii(self, nodes: np.ndarray, t: int) -> np.ndarray:
        # A cell that was never played has an infinite radius.
        with np.errstate(divide="ignore"):
            return self.reward_range * self.unit_radii(self.draws[nodes], t)

    def variation(self, depth: Floats) -> Floats:
        return cell_variation(self.constant, depth, self._dim)

    def learn(self, cell: np.ndarray, reward: float) -> None:
        node = self.tree.find(cell)
        if node is not None:
            self._sums[node] += reward

    def expand(self, node: int) -> None:
        super().expand(node)
        self._sums = np.append(self._sums, np.zeros(len(self.tree) - len(self._sums)))


class AVEStoOO(StoOO):
    """StoOO for aggregated feedback. Plays aggregated tasks.

    Args:
        rule: ``"published"`` for the confidence radii and splits of the authors' program, which depend on the horizon;
            ``"theory"`` for those of Eq. 12. The other arguments are those of StoOO.
    """

    def __init__(
        self,
        variation: float = 14.0,
        error: float = 0.1,
        reward_range: float = 1.0,
        max_depth: int = 50,
        rule: str = "published",
    ) -> None:
        super().__init__(variation, error, reward_range, max_depth)
        self.rule = require_word("rule", rule, ["published", "theory"])

    def unit_radii(self, draws: np.ndarray, t: int) -> np.ndarray:
        if self.rule == "theory":
            return np.sqrt(2.0 * math.log(t**2 / self.error) / draws)
        return 0.5 * math.log(self.task.horizon**2 / self.error) / draws

    def is_known(self, node: int, t: int) -> bool:
        if self.rule == "theory":
            return super().is_known(node, t)
        # The program compares the number of plays itself with the radius.
        return bool(self.draws[node] >= self.unit_radii(self.draws[node], t))
