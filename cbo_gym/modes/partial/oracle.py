"""The oracle of partial mode."""

from __future__ import annotations

import numpy as np

from cbo_gym.modes.oracles.plain import Estimate, Oracle, Scores
from cbo_gym.modes.partial.dynamics import PartialDynamics
from cbo_gym.task import Action, Observation


class PartialOracle(Oracle):
    """E[Y | action]: the expected reward if all nodes are bought, else the worth of an unfinished product.

    In a run, a purchase that the budget did not pay for is worth an unfinished product too.
    """

    dynamics: PartialDynamics

    def score(self, played: list[Action], recommended: list[Action], seen: list[Observation]) -> Scores:
        scores = super().score(played, recommended, seen)
        finished = np.array([observation["bought"][-1] > 0.0 for observation in seen[1:]])
        value = np.where(finished, scores.expected.value, self.dynamics.unfinished)
        error = np.where(finished, scores.expected.standard_error, 0.0)
        return scores._replace(expected=Estimate(value, error))
