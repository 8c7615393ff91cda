"""Expected rewards and optima of a problem in a feedback mode. For evaluation and teaching; agents have no access."""

from __future__ import annotations

from typing import Any

from cbo_gym.errors import ArgumentTypeError
from cbo_gym.feedback import Feedback
from cbo_gym.oracle.adversarial import AdversarialOracle
from cbo_gym.oracle.constrained import ConstrainedOracle
from cbo_gym.oracle.contextual import ContextualOracle
from cbo_gym.oracle.dynamic import DynamicOracle
from cbo_gym.oracle.plain import Estimate, Optimum, Oracle, Verdict
from cbo_gym.problems.telling import GRAPH_KEYWORDS
from cbo_gym.registry import RecordedOptimum, find_entry
from cbo_gym.task import Mode

OF_THE_SESSION = ("render_mode", "num_envs", "vectorization_mode", "max_episode_steps")  # Gymnasium puts them there too

__all__ = [
    "AdversarialOracle",
    "ConstrainedOracle",
    "ContextualOracle",
    "DynamicOracle",
    "Estimate",
    "Optimum",
    "Oracle",
    "Verdict",
    "oracle_for",
    "oracle_of",
]

#: the oracles of modes in which what an action is worth depends on the round
OF_MODES: dict[Mode, type[Oracle]] = {
    Mode.CONTEXTUAL: ContextualOracle,
    Mode.ADVERSARIAL: AdversarialOracle,
    Mode.DYNAMIC: DynamicOracle,
}


def oracle_for(feedback: Feedback, recorded: RecordedOptimum | None = None) -> Oracle:
    """The oracle of a problem in a mode."""
    usual = ConstrainedOracle if feedback.problem.outcomes.constraints else Oracle
    return OF_MODES.get(feedback.mode, usual)(feedback, recorded=recorded)


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
    aside = (*OF_THE_SESSION, *GRAPH_KEYWORDS, "costs")  # neither what is told of the graph nor costs change it
    made_with, registered = (
        {key: value for key, value in one.items() if key not in aside} for one in (spec.kwargs, entry.made_with)
    )
    return entry.optimum if made_with == registered else None
