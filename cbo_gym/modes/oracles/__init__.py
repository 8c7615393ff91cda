"""Expected rewards and optima of a problem in a feedback mode, for evaluation and teaching, not for agents."""

from __future__ import annotations

from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.oracles.constrained import ConstrainedOracle
from cbo_gym.modes.oracles.plain import Estimate, Optimum, Oracle, Scores
from cbo_gym.modes.oracles.several_objectives import SeveralObjectivesOracle
from cbo_gym.problems.recorded import RecordedOptimum

__all__ = ["ConstrainedOracle", "Estimate", "Optimum", "Oracle", "Scores", "SeveralObjectivesOracle"]


def shared_oracle(dynamics: Dynamics, recorded: RecordedOptimum | None = None) -> Oracle:
    """Return the oracle of a problem in a mode without a specific one."""
    outcomes = dynamics.problem.outcomes
    oracle = ConstrainedOracle if outcomes.constraints else SeveralObjectivesOracle if outcomes.objectives else Oracle
    return oracle(dynamics, recorded=recorded)
