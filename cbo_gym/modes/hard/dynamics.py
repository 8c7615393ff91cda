"""Hard mode: rounds of hard interventions."""

from __future__ import annotations

from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.hard.interface import HardInterface
from cbo_gym.problems.variations.instance import SettingInstanceRules
from cbo_gym.task import Action


class HardDynamics(HardInterface, Dynamics):
    """Hard interventions ``do(X_I = x_I)``.

    ## Action space
    ``Dict(target=Discrete(n_targets), values=Box(0, 1, (n_manipulable,)))``: the index of a target set (usually
    one is empty: observe only) and a value for every manipulable variable, mapped to native units by the problem.
    Values of variables outside the chosen set have no effect. Soft parameters, where the problem has any, stay at its
    null action.

    ## Observation space
    ``Dict(nodes=Box(n))``: the observed variables in topological order, the reward last; zeros at reset.

    ## Reward
    The value of the reward variable in this round; an array of them with several objectives.

    ## References
    Aglietti et al. (2020); Sussex et al. (2023), sec. 3, Algorithm 2.
    """

    instance_rules = SettingInstanceRules

    def known_maximiser(self) -> Action | None:
        best = self.problem.optimal_do
        return None if best is None else self.codec.from_record(best)
