"""LinSEM-TS (Varici, Shanmugam, Sattigeri & Tajer 2023): Thompson sampling of the weights of a linear system.

The two vectors of weights of every node have a normal prior N(0, I) and, with a known noise variance, a normal
posterior. A round draws all vectors from the posterior, and plays the subset that is best for these.
"""

from __future__ import annotations

import math

import numpy as np

from cbo_gym._util.arguments import require_positive
from cbo_gym.agents.subsets.base import LinearSEMAgent
from cbo_gym.task import Action, Observation


class LinSEMTS(LinearSEMAgent):
    """Thompson sampling over linear systems. Plays subset mode.

    Args:
        variance: variance of the noise, the factor of the inverse Gram matrices in the posterior; above 0.

    Raises:
        ArgumentError: if the variance is out of range; from ``reset``, if there are more than 17 nodes.
        UnsupportedModeError: from ``reset``, if a node has several parameters.
    """

    def __init__(self, variance: float = 1.0) -> None:
        self.variance = require_positive("variance", variance)

    def act(self, observation: Observation) -> Action:
        model = self.model
        normals = self.rng.standard_normal(model.estimates.shape)[..., None]
        deviations = math.sqrt(self.variance) * (np.linalg.cholesky(model.inverses) @ normals)[..., 0]
        return model.subset(model.network.best(model.estimates + deviations).options)
