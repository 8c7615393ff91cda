"""Expected rewards and optima of a problem in a feedback mode, for evaluation and teaching, not for agents."""

from __future__ import annotations

from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.oracles.constrained import ConstrainedOracle
from cbo_gym.modes.oracles.plain import Estimate, Optimum, Oracle, Scores
from cbo_gym.modes.oracles.several_objectives import SeveralObjectivesOracle
from cbo_gym.problems.recorded import RecordedOptimum

__all__ = ["ConstrainedOracle", "Estimate", "Optimum", "Oracle", "Scores", "SeveralObjectivesOracle"]


def shared_oracle(dynamics: Dynamics, recorded: RecordedOptimum | None = None) -> Oracle:
    """Return the oracle of a problem in a mode that has no oracle of its own."""
    if dynamics.problem.outcomes.constraints:
        return ConstrainedOracle(dynamics, recorded=recorded)
    if dynamics.problem.outcomes.objectives:
        return SeveralObjectivesOracle(dynamics, recorded=recorded)
    return Oracle(dynamics, recorded=recorded)
