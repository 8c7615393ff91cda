"""Expected rewards in partial mode, in which a round may leave the product unfinished."""

from __future__ import annotations

import numpy as np

from cbo_gym.modes.oracles.plain import Estimate, Oracle, Scores
from cbo_gym.modes.partial.dynamics import PartialDynamics
from cbo_gym.task import Action, Observation


class PartialOracle(Oracle):
    """E[Y | action]: the expected reward if all nodes are bought, else the reward of an unfinished product.

    In a run, a purchase beyond the budget has the reward of an unfinished product too.
    """

    dynamics: PartialDynamics

    def score(self, actions: list[Action], recommended: list[Action], observations: list[Observation]) -> Scores:
        scores = super().score(actions, recommended, observations)
        finished = np.array([observation["bought"][-1] > 0.0 for observation in observations[1:]])
        value = np.where(finished, scores.expected.value, self.dynamics.unfinished)
        error = np.where(finished, scores.expected.standard_error, 0.0)
        return scores._replace(expected=Estimate(value, error))
