"""LinSEM-UCB (Varici, Shanmugam, Sattigeri & Tajer 2023): optimism about the weights of a linear system.

The two vectors of weights of every node are fitted by ridge regressions. A round plays the subset with the greatest
expected reward of any system whose vectors w lie in the ellipsoids ``||w - estimate||_V <= 1 + std sqrt(2 log(2 N T) +
log det V)``, where V is the Gram matrix plus the identity, and N and T are the numbers of nodes and rounds.
"""

from __future__ import annotations

import math

import numpy as np

from cbo_gym._util.arguments import require_not_negative
from cbo_gym.agents.subsets.base import LinearSEMAgent
from cbo_gym.task import Action, Observation


class LinSEMUCB(LinearSEMAgent):
    """Upper confidence bounds over linear systems. Plays subset mode.

    Args:
        scale: factor of the ellipsoids' radius, at least 0; the theory has 1.

    Raises:
        ArgumentError: if the scale is out of range; from ``reset``, if there are more than 17 nodes.
        UnsupportedModeError: from ``reset``, if a node has several parameters.
    """

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = require_not_negative("scale", scale)

    def act(self, observation: Observation) -> Action:
        model = self.model
        log_term = 2.0 * math.log(2.0 * len(self.task.nodes) * self.task.horizon)
        noise = self.task.noise or {}
        stds = [noise[name].std if name in noise else 1.0 for name in model.names]
        radii = 1.0 + np.sqrt(np.square(stds)[:, None] * (log_term + model.log_determinants))
        ellipsoids = np.square(self.scale * radii)[:, :, None, None] * model.inverses
        return model.subset(model.network.best(model.estimates, ellipsoids).options)
