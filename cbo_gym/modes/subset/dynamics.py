"""Subset mode: rounds of a bandit whose arms are subsets of the soft parameters."""

from __future__ import annotations

import numpy as np

from cbo_gym.modes.soft.dynamics import SoftDynamics
from cbo_gym.modes.subset.interface import ENDS, SubsetInterface
from cbo_gym.task import Action


class SubsetDynamics(SubsetInterface, SoftDynamics):
    """A bandit whose arms are the subsets of the soft parameters: each is at its lower or its upper end.

    In a linear SEM the parameters select the nodes under intervention. Other systems are played between the ends of the
    parameters' domains.

    ## Action space
    ``SuperArmSpace(q, q)``, a ``MultiBinary(q)``: 1 if a parameter is at the upper end of its domain, so that its node
    in a linear SEM is under intervention. There are 2^q subsets, or super arms, which are not listed.

    ## Observation space
    ``Dict(nodes=Box(n))``: the observed variables in topological order, the reward last; zeros at reset.

    ## Reward
    The value of the reward variable in this round.

    ## References
    Varici, Shanmugam, Sattigeri & Tajer (2023), sec. 2; Yan & Tajer (2024), sec. 2.
    """

    def known_maximiser(self) -> Action | None:
        best = super().known_maximiser()
        return best.astype(np.int8) if best is not None and np.isin(best, ENDS).all() else None
