"""TreeSearch: optimism over a tree of cells, the loop that GPOO, StoOO, AVE-StoOO and GPTree share (Munos 2014).

Every leaf has a bound ``b = estimate + confidence radius + delta(h)``, where ``delta(h) = c 2^(-h/d)`` bounds the
variation of the function in a cell of depth h. Each round plays the leaf with the highest bound, and splits its cell if
the radius is no more than the variation.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from cbo_gym._util.arguments import require_truth_value, whole_number
from cbo_gym.agent import Agent
from cbo_gym.agents.cells.cell_model import CellModel
from cbo_gym.agents.cells.partition import PartitionTree
from cbo_gym.scm.values import Floats
from cbo_gym.task import Action, AggregatedTask, Info, Mode, Observation

MAX_DEPTH = 100


class TreeSearch(Agent):
    """Base class: the tree, its growth, and the choice of leaves. Plays aggregated tasks.

    Args:
        max_depth: h_max in one dimension, 0 to 100; in d dimensions cells deeper than d times this are not split.

    Attributes:
        tree: the cells so far.
        draws: number of plays of each node of the tree, shape ``(m,)``.
    """

    modes = frozenset({Mode.AGGREGATED})
    task: AggregatedTask
    tree: PartitionTree
    draws: np.ndarray

    def __init__(self, max_depth: int) -> None:
        self.max_depth = whole_number("max_depth", max_depth, at_least=0, at_most=MAX_DEPTH)

    def setup(self, seed: int) -> None:
        self._dim = self.task.action_space.shape[-1]  # type: ignore[index]
        self.tree = PartitionTree(self._dim, self.task.arity)
        self.draws = np.zeros(1, dtype=int)

    @abstractmethod
    def estimates(self, nodes: np.ndarray) -> np.ndarray:
        """Return estimated mean rewards of nodes, of the same shape."""

    @abstractmethod
    def learn(self, cell: np.ndarray, reward: float) -> None:
        """Update the estimates with a round."""

    @abstractmethod
    def radii(self, nodes: np.ndarray, t: int) -> np.ndarray:
        """Return confidence radii of nodes in round t, counted from 1."""

    @abstractmethod
    def variation(self, depth: Floats) -> Floats:
        """Return ``delta(h)`` for depths h."""

    def upper_bounds(self, nodes: np.ndarray, t: int) -> np.ndarray:
        """Return the b-values of nodes in round t."""
        return self.estimates(nodes) + self.radii(nodes, t) + self.variation(self.tree.depth[nodes])

    def is_known(self, node: int, t: int) -> bool:
        """Return whether a leaf's confidence radius is at most the variation in its cell."""
        return bool(self.radii(np.array([node]), t)[0] <= self.variation(self.tree.depth[node]))

    def may_expand(self, node: int, t: int) -> bool:
        """Return whether a leaf is known well enough to be split, and not too deep."""
        return bool(self.tree.depth[node] <= self.max_depth * self._dim) and self.is_known(node, t)

    def grow(self, node: int, t: int) -> None:
        """Split the leaf that was played in round t if :meth:`may_expand` allows it."""
        if self.may_expand(node, t):
            self.expand(node)

    def expand(self, node: int) -> None:
        """Split a leaf."""
        children = self.tree.expand(node)
        self.draws = np.append(self.draws, np.zeros(len(children), dtype=int))

    def best_leaf(self, t: int) -> int:
        """Return the leaf with the highest b-value, the oldest one in a tie."""
        leaves = self.tree.leaves
        return int(leaves[np.argmax(self.upper_bounds(leaves, t))])

    def act(self, observation: Observation) -> Action:
        return self.tree.cells[self.best_leaf(len(self.history) + 1)].copy()

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        self.learn(action, float(reward))
        # The tree lacks some cells of the initial data.
        if (node := self.tree.find(action)) is not None:
            self.draws[node] += 1
            if self.tree.is_leaf[node]:
                self.grow(node, len(self.history))

    def recommend(self) -> Action:
        candidates = self.tree.deepest_expanded()
        return self.tree.cells[candidates[np.argmax(self.estimates(candidates))]].copy()


class GPTreeSearch(TreeSearch):
    """Base class of the searches whose estimates come from a Gaussian process over cells.

    Args:
        fit: fit the kernel even if the task has one.

    Attributes:
        model: the process, which tracks the nodes of the tree.
    """

    model: CellModel

    def __init__(self, max_depth: int, fit: bool) -> None:
        super().__init__(max_depth)
        self.fit = require_truth_value("fit", fit)

    def setup(self, seed: int) -> None:
        super().setup(seed)
        self.model = self.make_model()
        self.model.gp.track(self.tree.cells)

    def make_model(self) -> CellModel:
        """Make the process, without data."""
        return CellModel(self.task, self.fit)

    def estimates(self, nodes: np.ndarray) -> np.ndarray:
        return self.model.gp.mean[nodes]

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray]:
        return self.model.posterior(np.stack(actions))

    def learn(self, cell: np.ndarray, reward: float) -> None:
        self.model.add(cell, reward)

    def expand(self, node: int) -> None:
        size = len(self.tree)
        super().expand(node)
        self.model.gp.track(self.tree.cells[size:])


def cell_variation(constant: float, depth: Floats, dim: int) -> Floats:
    """Return ``c 2^(-h/d)``: the variation in a cell after h splits of the longest edge."""
    return constant * 2.0 ** (-np.asarray(depth) / dim)
