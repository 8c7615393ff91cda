"""Two ridge regressions of every node on its causes: on the rounds with an intervention on it, and on the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cbo_gym.agent import UnsupportedModeError
from cbo_gym.scm.linear import LinearNetwork
from cbo_gym.task import Action, SubsetTask


class SwitchedRegressions:
    """Estimates of the two vectors of weights of each node of a linear system, constants included.

    Args:
        task: task of subset mode.
        causes: observed node -> its causes; causes come before effects, the reward last.
        agent: name of the agent, for errors.

    Attributes:
        names: names of the nodes, in the order of ``causes``.
        network: the linear network of the nodes, in the order of ``causes``.
        estimates: weight vectors of each node without (0) and with (1) an intervention on it: the constant, then a
            weight for each cause, ``(N, 2, 1 + most causes)``.
        inverses: inverses of the Gram matrices plus the identity, ``(N, 2, width, width)``.
        log_determinants: log determinants of the Gram matrices, ``(N, 2)``.

    Raises:
        UnsupportedModeError: if a node has several parameters.
    """

    def __init__(self, task: SubsetTask, causes: Mapping[str, Sequence[str]], agent: str) -> None:
        if crowded := [name for name, coordinates in task.action_nodes.items() if len(coordinates) > 1]:
            raise UnsupportedModeError(
                f"{agent} needs nodes with one parameter at most; in {task.env_id} {crowded[0]} has more"
            )
        self.names = names = list(causes)
        self._columns = [task.nodes.index(name) for name in names]
        self._switched = np.array([name in task.action_nodes for name in names])
        self._coordinates = [task.action_nodes[name][0] for name in names if name in task.action_nodes]
        cause_indices = [[names.index(cause) for cause in causes_of_node] for causes_of_node in causes.values()]
        self.network = LinearNetwork(cause_indices, [1 + int(is_switched) for is_switched in self._switched])
        count, width = len(names), self.network.width
        self._rows = np.arange(count)
        self._arguments = np.zeros((count, width), dtype=int)
        self._is_used = np.zeros((count, width))
        for row, causes_of_node in enumerate(self.network.causes):
            self._arguments[row, : len(causes_of_node)] = causes_of_node
            self._is_used[row, : len(causes_of_node)] = 1.0
        self.estimates = np.zeros((count, 2, width))
        self.inverses = np.tile(np.eye(width), (count, 2, 1, 1))
        self.log_determinants = np.zeros((count, 2))
        self._moments = np.zeros((count, 2, width))

    def options(self, actions: np.ndarray) -> np.ndarray:
        """Return the index of each node's weight vector under subsets ``(..., q)``, shape ``(..., N)``."""
        options = np.zeros((*actions.shape[:-1], len(self._switched)), dtype=int)
        options[..., self._switched] = actions[..., self._coordinates]
        return options

    def subset(self, options: np.ndarray) -> Action:
        """Return the action under which nodes have the weight vectors with these indices."""
        action = np.zeros(len(self._coordinates), dtype=np.int8)
        action[self._coordinates] = options[self._switched]
        return action

    def learn(self, action: Action, nodes: np.ndarray) -> None:
        """Add a round by rank-one updates of the inverses."""
        values = np.asarray(nodes, dtype=float)[self._columns]
        arguments = np.concatenate([[1.0], values])[self._arguments] * self._is_used
        selected = self._rows, self.options(np.asarray(action))
        inverses = self.inverses[selected]
        gains = (inverses @ arguments[:, :, None])[:, :, 0]
        scales = 1.0 + (gains * arguments).sum(axis=1)
        self.inverses[selected] = inverses = inverses - gains[:, :, None] * (gains / scales[:, None])[:, None, :]
        self.log_determinants[selected] += np.log(scales)
        self._moments[selected] += values[:, None] * arguments
        self.estimates[selected] = (inverses @ self._moments[selected][:, :, None])[:, :, 0]

    def expected_nodes(self, action: Action) -> dict[int, float]:
        """Return index in ``task.nodes`` -> estimate of the node's expected value under a subset."""
        means = self.network.means(self.estimates, self.options(np.asarray(action))[None])[0]
        return dict(zip(self._columns, means.tolist(), strict=True))
