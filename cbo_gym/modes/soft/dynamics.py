"""Soft mode: rounds of soft interventions."""

from __future__ import annotations

import numpy as np

from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.soft.interface import SoftInterface
from cbo_gym.task import Action


class SoftDynamics(SoftInterface, Dynamics):
    """Soft interventions: the action is the vector of the mechanisms' parameters.

    ## Action space
    ``Box(0, 1, (q,))``: the parameters of the mechanisms, mapped to native units by the problem. With
    ``max_interventions`` = c at most c of them may differ from the problem's null action.

    ## Observation space
    ``Dict(nodes=Box(n))``: the observed variables in topological order, the reward last; zeros at reset.

    ## Reward
    The value of the reward variable in this round; an array of them with several objectives.

    ## Arguments
    ``max_interventions``: the cardinality limit c, 1 to q, or None.

    ## References
    Function networks: Astudillo & Frazier (2021). Soft interventions: Sussex et al. (2023), sec. 2.
    """

    def known_maximiser(self) -> Action | None:
        best = self.problem.optimal_action
        return None if best is None or self.max_interventions else np.array(best, dtype=np.float64)
