"""Masked mode: rounds of a combinatorial semi-bandit."""

from __future__ import annotations

from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.masked.interface import MaskedInterface
from cbo_gym.problems import Problem
from cbo_gym.problems.modes.masked import SuperArms
from cbo_gym.problems.variations.instance import InstanceRules
from cbo_gym.problems.variations.masking import with_random_signals


class SuperArmInstanceRules(InstanceRules):
    """Random transforms in masked mode, in which soft parameters become base arms."""

    @staticmethod
    def prepare(problem: Problem) -> Problem:
        return problem if problem.data(SuperArms) else with_random_signals(problem)


class MaskedDynamics(MaskedInterface, Dynamics):
    """Combinatorial semi-bandit on the signals of a structural causal model.

    Each of N base arms has a random signal b in every round. The super arm x picks at most s of them; the system is
    driven by z = x * b.

    ## Action space
    ``SuperArmSpace(N, s)``, a ``MultiBinary(N)`` of at most s ones. It samples uniformly among all super arms, the
    empty one included.

    ## Observation space
    ``Dict(nodes=Box(n), exogenous=Box(N))``: the observed variables, the reward last, and z, which is zero where the
    arm was not selected; zeros at reset.

    ## Reward
    The value of the reward variable in this round.

    ## Arguments
    ``super_arm_size``: the limit s, 1 to N, or None for the problem's own. A problem whose soft parameters are not a
    super arm becomes a masked one: each parameter is a base arm whose signal is uniform on [0, 1], mapped to native
    units where it is selected; unselected arms stay at the null action. Its own limit is half of the arms, rounded up.

    ## References
    Bauschmann & Maghsudi (2026), Graph structured combinatorial semi-bandit, sec. II.
    """

    instance_rules = SuperArmInstanceRules

    def __init__(self, problem: Problem, *, super_arm_size: int | None = None) -> None:
        super().__init__(self.instance_rules.prepare(problem), super_arm_size=super_arm_size)
