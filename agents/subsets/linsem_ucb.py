"""LinSEM-UCB (Varici, Shanmugam, Sattigeri & Tajer 2023): optimism about the weights of a linear system.

Every node's two vectors of weights are fitted by ridge regressions. Played is the subset with the greatest expected
reward of any system whose vectors lie in the ellipsoids

    ||w - estimate||_V <= beta,    beta = 1 + std sqrt(2 log(2 N T) + log det V),

V the Gram matrix of a node and option, the identity added, N the number of nodes, T the horizon.

Departures:

* The paper bounds ``log det V`` by ``d log(1 + m^2 T / d)``, d the largest number of causes and m a bound of the nodes'
  norm. Here it is what it is: m is unknown where noise is normal, and the ellipsoids hold either way (Abbasi-Yadkori,
  Pal & Szepesvari 2011, Theorem 2). The radius is taken for noise of the standard deviation that is told, else 1.
* The paper leaves open how the greatest value is found. Here it is exact, without going through the subsets one by
  one, see :mod:`cbo_gym.scm.linear`, and so for 17 nodes at most.
* Every node has a constant, as one more weight; the public program has a node that is always 1.
* Weights are not limited to a norm of 1.
"""

from __future__ import annotations

import math

import numpy as np

from cbo_gym.agents.subsets.base import LinearSEMAgent
from cbo_gym.arguments import require_not_negative
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
        require_not_negative("scale", scale)
        self.scale = scale

    def act(self, observation: Observation) -> Action:
        model = self.model
        chances = 2.0 * math.log(2.0 * len(self.task.nodes) * self.task.horizon)
        widths = 1.0 + np.sqrt(self.noise_variances() * (chances + model.log_determinants))
        ellipsoids = np.square(self.scale * widths)[:, :, None, None] * model.inverses
        return model.subset(model.network.best(model.estimates, ellipsoids).places)
