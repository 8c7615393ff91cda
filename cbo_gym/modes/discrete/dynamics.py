"""Discrete mode: rounds of a bandit with finitely many arms."""

from __future__ import annotations

from collections import defaultdict

from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.discrete.interface import DiscreteInterface
from cbo_gym.problems.modes.discrete import arms_of
from cbo_gym.problems.variations.instance import InstanceRules
from cbo_gym.scm.units import Unit


class ArmInstanceRules(InstanceRules):
    """Random transforms in discrete mode: variables are reflected within the values that arms set."""

    keeps_reward = True
    prices_from_zero = True

    def units(self) -> dict[str, Unit]:
        values_by_name = defaultdict[str, list[float]](list)
        for arm in arms_of(self.problem):
            for name, value in arm.items():
                values_by_name[name].append(value)
        ranges = {name: (min(values), max(values)) for name, values in values_by_name.items()}
        varying = {name: (low, high) for name, (low, high) in ranges.items() if high > low}
        return {name: Unit(span, span, reflected=True) for name, span in varying.items() if self.rng.random() < 0.5}


class DiscreteDynamics(DiscreteInterface, Dynamics):
    """A bandit with finitely many arms, each of them a hard intervention ``do(X_I = x_I)``.

    ## Action space
    ``Discrete(K)``: the index of an intervention in the problem's list, which agents know. Soft parameters stay at the
    problem's null action.

    ## Observation space
    ``Dict(nodes=Box(n))``: the observed variables in topological order, the reward last; zeros at reset.

    ## Reward
    The value of the reward variable in this round, in [0, 1].

    ## References
    Lattimore, Lattimore & Reid (2016), sec. 2; Lee & Bareinboim (2018), sec. 2.
    """

    instance_rules = ArmInstanceRules
