"""Expected rewards and optima of a problem in a feedback mode. For evaluation and teaching; agents have no access."""

from __future__ import annotations

from typing import Any

from cbo_gym.errors import ArgumentTypeError
from cbo_gym.feedback import Feedback
from cbo_gym.feedback.adversarial import AdversarialFeedback
from cbo_gym.feedback.contextual import ContextualFeedback
from cbo_gym.oracle.adversarial import AdversarialOracle
from cbo_gym.oracle.contextual import ContextualOracle
from cbo_gym.oracle.plain import Estimate, Optimum, Oracle, Verdict
from cbo_gym.problems.telling import GRAPH_KEYWORDS
from cbo_gym.registry import RecordedOptimum, find_entry

OF_THE_SESSION = ("render_mode", "num_envs", "vectorization_mode", "max_episode_steps")  # Gymnasium puts them there too

__all__ = [
    "AdversarialOracle",
    "ContextualOracle",
    "Estimate",
    "Optimum",
    "Oracle",
    "Verdict",
    "oracle_for",
    "oracle_of",
]


def oracle_for(feedback: Feedback, recorded: RecordedOptimum | None = None) -> Oracle:
    """The oracle of a problem in a mode."""
    if isinstance(feedback, ContextualFeedback):
        return ContextualOracle(feedback, recorded=recorded)
    if isinstance(feedback, AdversarialFeedback):
        return AdversarialOracle(feedback, recorded=recorded)
    return Oracle(feedback, recorded=recorded)


def oracle_of(env: Any) -> Oracle:
    """The oracle of an environment, scalar or vectorised; it knows the recorded optimum of a registered one.

    Raises:
        ArgumentTypeError: if it is no environment of this package.
    """
    base = env.unwrapped
    feedback = getattr(base, "feedback", None)
    if not isinstance(feedback, Feedback):
        raise ArgumentTypeError(f"an oracle needs an environment of cbo_gym; given {type(base).__name__}")
    return oracle_for(feedback, _recorded(base.spec))


def _recorded(spec: Any) -> RecordedOptimum | None:
    """The registry's optimum, if the environment is a registered one as it stands."""
    entry = find_entry(spec.id) if spec is not None else None
    if entry is None:
        return None
    aside = (*OF_THE_SESSION, *GRAPH_KEYWORDS)  # what is told of the graph changes no expected reward
    made_with = {key: value for key, value in spec.kwargs.items() if key not in aside}
    return entry.optimum if made_with == entry.made_with else None
