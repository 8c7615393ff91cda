"""Ridge regressions of every node on its causes: one of rounds in which the node was switched, one of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cbo_gym.agent import UnsupportedModeError
from cbo_gym.scm.linear import LinearNetwork
from cbo_gym.task import Action, SubsetTask


class SwitchedRegressions:
    """The two vectors of weights of each node of a linear system, constants included, and how well they are known.

    Args:
        task: in subset mode.
        causes: of every observed node its causes, effects after causes, the reward last.
        agent: who asks, for errors.

    Attributes:
        names: of the nodes, in the order of ``causes``.
        network: the nodes in the order of ``causes``.
        estimates: of each node and option, shape ``(N, 2, 1 + most causes)``: the constant, then a weight a cause.
        inverses: of the Gram matrices, the identity added, ``(N, 2, width, width)``.
        log_determinants: of the Gram matrices, ``(N, 2)``.

    Raises:
        UnsupportedModeError: if a node has several parameters.
    """

    def __init__(self, task: SubsetTask, causes: Mapping[str, Sequence[str]], agent: str) -> None:
        if crowded := [name for name, own in task.action_nodes.items() if len(own) > 1]:
            raise UnsupportedModeError(
                f"{agent} needs nodes with one parameter at most; in {task.env_id} {crowded[0]} has more"
            )
        self.names = names = list(causes)
        self._columns = [task.nodes.index(name) for name in names]
        self._switched = np.array([name in task.action_nodes for name in names])
        self._coordinates = [task.action_nodes[name][0] for name in names if name in task.action_nodes]
        own_causes = [[names.index(cause) for cause in own] for own in causes.values()]
        self.network = LinearNetwork(own_causes, [1 + int(one) for one in self._switched])
        count, width = len(names), self.network.width
        self._rows = np.arange(count)
        self._arguments = np.zeros((count, width), dtype=int)
        self._used = np.zeros((count, width))
        for row, own in enumerate(self.network.causes):
            self._arguments[row, : len(own)], self._used[row, : len(own)] = own, 1.0
        self.estimates = np.zeros((count, 2, width))
        self.inverses = np.tile(np.eye(width), (count, 2, 1, 1))
        self.log_determinants = np.zeros((count, 2))
        self._moments = np.zeros((count, 2, width))

    def places(self, actions: np.ndarray) -> np.ndarray:
        """Which vector each node has under subsets ``(..., q)``: ``(..., N)``."""
        found = np.zeros((*actions.shape[:-1], len(self._switched)), dtype=int)
        found[..., self._switched] = actions[..., self._coordinates]
        return found

    def subset(self, places: np.ndarray) -> Action:
        """The action that gives nodes these vectors."""
        action = np.zeros(len(self._coordinates), dtype=np.int8)
        action[self._coordinates] = places[self._switched]
        return action

    def learn(self, action: Action, nodes: np.ndarray) -> None:
        """Take in a round; inverses change by a matrix of rank one each."""
        values = np.asarray(nodes, dtype=float)[self._columns]
        arguments = np.concatenate([[1.0], values])[self._arguments] * self._used
        own = self._rows, self.places(np.asarray(action))
        inverses = self.inverses[own]
        gains = (inverses @ arguments[:, :, None])[:, :, 0]
        scales = 1.0 + (gains * arguments).sum(axis=1)
        self.inverses[own] = inverses = inverses - gains[:, :, None] * (gains / scales[:, None])[:, None, :]
        self.log_determinants[own] += np.log(scales)
        self._moments[own] += values[:, None] * arguments
        self.estimates[own] = (inverses @ self._moments[own][:, :, None])[:, :, 0]

    def expected(self, action: Action) -> dict[int, float]:
        """Estimates of the nodes' expected values under a subset, by their places in ``nodes``."""
        means = self.network.means(self.estimates, self.places(np.asarray(action))[None])[0]
        return dict(zip(self._columns, means.tolist(), strict=True))
