"""GA-LCB (Yan & Tajer 2024): learns a linear system's graph by single interventions, then eliminates subsets.

First, the empty subset and every single node are played in turn, ``rounds`` times each. Node j is a descendant of node
i if the intervention on i changes the mean of j by more than half of ``strength``. The Lasso selects the causes of a
node among its ancestors and the nodes whose interventions have no effect. Then phases play the subsets with wide
bounds, and eliminate those whose upper bound is below the best one.
"""

from __future__ import annotations

import math
from itertools import compress

import numpy as np

from cbo_gym._util.arguments import require_positive, whole_number
from cbo_gym.agent import Agent
from cbo_gym.agents.subsets.base import LinearSEMAgent, enumerable_space
from cbo_gym.task import Action, Info, Observation

MAX_SUBSETS = 2**14


class GALCB(LinearSEMAgent):
    """Phased elimination of subsets on a graph that it learns. Plays subset mode, up to 14 parameters.

    Args:
        rounds: number of plays of the empty subset, and of each single node, in the first part; at least 1.
        strength: smallest effect of an intervention on the mean of a descendant, above 0.
        penalty: penalty of the Lasso, in the units of the node's values, above 0.
        scale: factor of the widths, above 0; the published program has 0.1, the theory more than 10.

    Attributes:
        causes: node -> its learned causes; empty before they are learned.
        active: the subsets that are not eliminated, 0/1 vectors, shape ``(n, q)``.

    Raises:
        ArgumentError: if an argument is out of range; from ``reset``, if there are more subsets than 16,384.
        UnsupportedModeError: from ``reset``, if a node has several parameters.
    """

    causes: dict[str, list[str]]
    active: np.ndarray

    def __init__(self, rounds: int = 500, strength: float = 0.5, penalty: float = 0.1, scale: float = 0.1) -> None:
        self.rounds = whole_number("rounds", rounds, at_least=1)
        self.strength = require_positive("strength", strength)
        self.penalty = require_positive("penalty", penalty)
        self.scale = require_positive("scale", scale)

    def setup(self, seed: int) -> None:
        space = enumerable_space(self.task, MAX_SUBSETS, "GA-LCB enumerates all subsets")
        self.fit_to({name: [] for name in self.task.nodes})
        self.causes, self.active = {}, space.all()
        # The empty subset, and each node alone.
        self._first_subsets = np.concatenate([np.zeros((1, space.arms)), np.eye(space.arms)]).astype(np.int8)
        self._phase = 1

    def act(self, observation: Observation) -> Action:
        rounds = len(self.history)
        if not self.causes and rounds < self.rounds * len(self._first_subsets):
            return self._first_subsets[rounds % len(self._first_subsets)]
        if not self.causes:
            self._learn_graph()
        while len(self.active) > 1:
            upper, widths = self._bounds()
            is_wide = widths >= self._node_bounds[-1] * 2.0**-self._phase
            if is_wide.any():
                is_precise = widths.max() < self._node_bounds[-1] / math.sqrt(self.task.horizon)
                return self.active[int(upper.argmax()) if is_precise else self.rng.choice(np.flatnonzero(is_wide))]
            self.active = self.active[upper >= upper.max() - self._node_bounds[-1] * 2.0 ** (1 - self._phase)]
            self._phase += 1
        return self.active[0]

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        # With one subset left, the model is no longer used.
        if self.causes and len(self.active) == 1:
            Agent.update(self, action, observation, reward, info)
        else:
            super().update(action, observation, reward, info)

    def recommend(self) -> Action:
        return super().recommend() if self.causes else Agent.recommend(self)

    def _learn_graph(self) -> None:
        actions = np.array([past.action for past in self.history])
        nodes = np.array([past.observation["nodes"] for past in self.history])
        means = [nodes[(actions == subset).all(axis=1)].mean(axis=0) for subset in self._first_subsets]
        names, count = self.task.nodes, len(self.task.nodes)
        # Whether the row's node affects the column's.
        affects = np.zeros((count, count), dtype=bool)
        for name, (coordinate,) in self.task.action_nodes.items():
            node = names.index(name)
            affects[node] = np.abs(means[1 + coordinate] - means[0]) > 0.5 * self.strength
            affects[node, node] = False
        affects[-1] = False
        descendant_counts = affects.sum(axis=1)
        # A node without visible effects may be a cause of all others.
        descendant_counts[descendant_counts == 0] = count
        descendant_counts[-1] = 0
        order = np.argsort(-descendant_counts, kind="stable").tolist()
        switched = self.model.options(actions)
        for rank, node in enumerate(order):
            candidates = []
            if descendant_counts[node] < count:
                earlier = order[:rank]
                candidates = [cause for cause in earlier if descendant_counts[cause] == count or affects[cause, node]]
            is_cause = self._causes_among(nodes[:, candidates], nodes[:, node], switched[:, node] == 0)
            self.causes[names[node]] = [names[cause] for cause in compress(candidates, is_cause)]
        self.fit_to(self.causes)
        # Bounds of the absolute values of the nodes.
        self._node_bounds = np.ones(count)
        for node, causes in enumerate(self.model.network.causes):
            self._node_bounds[node] += self._node_bounds[[column - 1 for column in causes[1:]]].sum()

    def _causes_among(self, candidates: np.ndarray, values: np.ndarray, unchanged: np.ndarray) -> np.ndarray:
        """Return a mask ``(k,)`` of the candidates that the Lasso selects as causes of a node.

        Args:
            candidates: values of the candidates, ``(rounds, k)``.
            values: values of the node, ``(rounds,)``.
            unchanged: mask of the rounds to use, in which no intervention changed the node's mechanism, ``(rounds,)``.
        """
        if not candidates.shape[1]:
            return np.zeros(0, dtype=bool)
        # Imported here, because it is slow to import and needed once per run.
        from sklearn.linear_model import Lasso

        columns = candidates[unchanged]
        spread = np.maximum(columns.std(axis=0), np.finfo(float).tiny)
        return Lasso(alpha=self.penalty).fit((columns - columns.mean(axis=0)) / spread, values[unchanged]).coef_ != 0.0

    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the upper bounds of the expected rewards of active subsets, and their widths, ``(n,)`` each."""
        model, options = self.model, self.model.options(self.active)
        means = np.ones((len(options), len(model.names) + 1))
        means[:, 1:] = model.network.means(model.estimates, options)
        widths = np.zeros_like(means)
        for i, causes in enumerate(model.network.causes):
            inverses = model.inverses[i, :, : len(causes), : len(causes)]
            # A norm for each subset and option of the node.
            norms = np.sqrt(((means[:, causes] @ inverses) * means[:, causes]).sum(axis=-1))
            bound = np.linalg.norm(self._node_bounds[np.array(causes[1:], int) - 1])
            added = self.scale * (norms + np.sqrt(np.linalg.eigvalsh(inverses)[:, -1:]) * bound)
            widths[:, i + 1] = widths[:, causes].sum(axis=1) + added[options[:, i], np.arange(len(options))]
        return means[:, -1] + widths[:, -1], widths[:, -1]
