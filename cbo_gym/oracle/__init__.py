"""Expected rewards and optima of a problem in a feedback mode, for evaluation and teaching, not for agents."""

from __future__ import annotations

from typing import Any

from cbo_gym.errors import ArgumentTypeError
from cbo_gym.feedback import Feedback
from cbo_gym.oracle.adversarial import AdversarialOracle
from cbo_gym.oracle.constrained import ConstrainedOracle
from cbo_gym.oracle.contextual import ContextualOracle
from cbo_gym.oracle.dynamic import DynamicOracle
from cbo_gym.oracle.plain import Estimate, Optimum, Oracle, Scores
from cbo_gym.oracle.several_objectives import SeveralObjectivesOracle
from cbo_gym.problems.variations.graph_knowledge import GRAPH_KEYWORDS
from cbo_gym.problems.variations.instance import INSTANCE_KEYWORD
from cbo_gym.registry import RecordedOptimum, find_entry
from cbo_gym.task import Mode

# Keywords of Gymnasium, and keywords with no effect or a known effect on the optimum.
GYMNASIUM_KEYWORDS = ("render_mode", "num_envs", "vectorization_mode", "max_episode_steps")
IGNORED = (*GYMNASIUM_KEYWORDS, *GRAPH_KEYWORDS, "costs", INSTANCE_KEYWORD)

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
    "oracle_of",
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


def oracle_of(env: Any) -> Oracle:
    """Return the oracle of an environment, scalar or vectorised; it knows the recorded optimum of a registered one.

    Raises:
        ArgumentTypeError: if it is not an environment of this package.
    """
    base = env.unwrapped
    feedback = getattr(base, "feedback", None)
    if not isinstance(feedback, Feedback):
        raise ArgumentTypeError(f"an oracle needs an environment of cbo_gym; given {type(base).__name__}")
    return oracle_for(feedback, _transform_optimum(_find_recorded(base.spec), feedback))


def _find_recorded(spec: Any) -> RecordedOptimum | None:
    """Return the registry's optimum if the environment is registered and no keyword changes the problem."""
    entry = find_entry(spec.id) if spec is not None else None
    if entry is None:
        return None
    own, registered = (
        {key: value for key, value in keywords.items() if key not in IGNORED}
        for keywords in (spec.kwargs, entry.make_kwargs)
    )
    return entry.optimum if own == registered else None


def _transform_optimum(recorded: RecordedOptimum | None, feedback: Feedback) -> RecordedOptimum | None:
    """Return the optimum of an instance, given that of the published problem."""
    transform = feedback.truth.problem.transform
    if recorded is None or transform is None:
        return recorded
    scale, to_new = transform.reward.slope, transform.reward.to_new
    names = [old for old, new in transform.names.items() if new in feedback.problem.action_names]
    changes = {
        "value": float(to_new(recorded.value)),
        "action": transform.record(recorded.action, feedback.mode, names),
        "standard_error": scale * recorded.standard_error,
        # a bend changes the distribution of random actions, so that their mean must be estimated again
        "random_value": float(to_new(recorded.random_value)) if transform.keeps_measure else None,
        "random_standard_error": scale * recorded.random_standard_error,
    }
    return recorded.model_copy(update=changes)
