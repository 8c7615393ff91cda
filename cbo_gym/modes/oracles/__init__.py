"""Expected rewards and optima of a problem in a feedback mode, for evaluation and teaching, not for agents."""

from __future__ import annotations

from cbo_gym.modes import Feedback
from cbo_gym.modes.adversarial.oracle import AdversarialOracle
from cbo_gym.modes.contextual.oracle import ContextualOracle
from cbo_gym.modes.dynamic.oracle import DynamicOracle
from cbo_gym.modes.oracles.constrained import ConstrainedOracle
from cbo_gym.modes.oracles.plain import Estimate, Optimum, Oracle, Scores
from cbo_gym.modes.oracles.several_objectives import SeveralObjectivesOracle
from cbo_gym.problems.recorded import RecordedOptimum
from cbo_gym.task import Mode

__all__ = [
    "AdversarialOracle",
    "ConstrainedOracle",
    "ContextualOracle",
    "DynamicOracle",
    "Estimate",
    "Optimum",
    "Oracle",
    "Scores",
    "SeveralObjectivesOracle",
    "oracle_for",
]

# Oracles of the modes in which the expected reward of an action depends on the round.
OF_MODES: dict[Mode, type[Oracle]] = {
    Mode.CONTEXTUAL: ContextualOracle,
    Mode.ADVERSARIAL: AdversarialOracle,
    Mode.DYNAMIC: DynamicOracle,
}


def oracle_for(feedback: Feedback, recorded: RecordedOptimum | None = None) -> Oracle:
    """Return the oracle of a problem in a mode."""
    outcomes = feedback.problem.outcomes
    usual = ConstrainedOracle if outcomes.constraints else SeveralObjectivesOracle if outcomes.objectives else Oracle
    return OF_MODES.get(feedback.mode, usual)(feedback, recorded=recorded)
