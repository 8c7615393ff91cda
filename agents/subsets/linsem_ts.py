"""LinSEM-TS (Varici, Shanmugam, Sattigeri & Tajer 2023): Thompson sampling of the weights of a linear system.

Every node's two vectors of weights have a normal prior N(0, I) and, with noise of a known variance, a normal
posterior. In every round all vectors are drawn from it, and the subset is played that is the best for them.
"""

from __future__ import annotations

import math

import numpy as np

from cbo_gym.agents.subsets.base import LinearSEMAgent
from cbo_gym.arguments import require_positive
from cbo_gym.task import Action, Observation


class LinSEMTS(LinearSEMAgent):
    """Thompson sampling over linear systems. Plays subset mode.

    Args:
        variance: of the posterior, a factor of the inverse Gram matrices, above 0.

    Raises:
        ArgumentError: if the variance is out of range; from ``reset``, if there are more than 17 nodes.
        UnsupportedModeError: from ``reset``, if a node has several parameters.
    """

    def __init__(self, variance: float = 1.0) -> None:
        self.variance = require_positive("variance", variance)

    def act(self, observation: Observation) -> Action:
        model = self.model
        numbers = self.rng.standard_normal(model.estimates.shape)[..., None]
        strayed = (np.linalg.cholesky(model.inverses) @ numbers)[..., 0]
        return model.subset(model.network.best(model.estimates + math.sqrt(self.variance) * strayed).places)
