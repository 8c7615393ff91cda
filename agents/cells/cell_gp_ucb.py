"""CellGPUCB: plain GP-UCB (Srinivas et al. 2010) over a fixed set of cells, to compare with the tree searches.

The candidates are all cells of the K-ary partition down to the greatest depth that ``max_cells`` allows. The Gaussian
process and the confidence widths ``sqrt(beta_t)`` are those of GPOO; there is no tree search and no ``delta(h)``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbo_gym._util.arguments import require_probability, require_truth_value, require_word, whole_number
from cbo_gym.agent import Agent
from cbo_gym.agents.cells.cell_model import BETA_SCHEDULES, MAX_CELLS, CellModel
from cbo_gym.agents.cells.partition import PartitionTree
from cbo_gym.task import Action, AggregatedTask, Info, Mode, Observation


class CellGPUCB(Agent):
    """Upper confidence bound on a Gaussian process over cells. Plays aggregated tasks.

    Args:
        beta: schedule of beta_t, ``"practical"`` or ``"theory"``.
        error: error probability theta in beta_t, between 0 and 1.
        max_cells: the largest number of candidates, 1 to 16,384.
        fit: fit the kernel even if the task has one.

    Raises:
        ArgumentError: if an argument is out of range.
    """

    modes = frozenset({Mode.AGGREGATED})
    task: AggregatedTask

    def __init__(self, beta: str = "practical", error: float = 0.1, max_cells: int = 2048, fit: bool = False) -> None:
        self.beta = require_word("beta", beta, sorted(BETA_SCHEDULES))
        self.error = require_probability("error", error)
        self.fit = require_truth_value("fit", fit)
        self.max_cells = whole_number("max_cells", max_cells, at_least=1, at_most=MAX_CELLS)

    def setup(self, seed: int) -> None:
        arity = self.task.arity
        tree = PartitionTree(self.task.action_space.shape[-1], arity)  # type: ignore[index]
        while len(tree) + arity * len(tree.leaves) <= self.max_cells:
            for leaf in tree.leaves:
                tree.expand(int(leaf))
        self._candidates = tree.cells
        self.model = CellModel(self.task, self.fit)
        self.model.gp.track(self._candidates)

    def act(self, observation: Observation) -> Action:
        beta = BETA_SCHEDULES[self.beta](len(self.history) + 1, self.error, len(self._candidates))
        bounds = self.model.gp.mean + np.sqrt(beta) * self.model.gp.std
        return self._candidates[np.argmax(bounds)].copy()

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        self.model.add(action, float(reward))

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray]:
        return self.model.posterior(np.stack(actions))

    def estimated_rewards(self) -> np.ndarray:
        """Return posterior means of the cells played, in the rewards' units."""
        return self.model.posterior(np.stack([past.action for past in self.history]))[0]
