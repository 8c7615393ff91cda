"""Oracles of environments, which know expected rewards, with the optimum that the registry records."""

from __future__ import annotations

from typing import Any

from cbo_gym.envs.registry import find_entry
from cbo_gym.errors import ArgumentTypeError
from cbo_gym.modes import oracle_for
from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.oracles import Oracle
from cbo_gym.problems.recorded import RecordedOptimum
from cbo_gym.problems.variations.graph_knowledge import GRAPH_KEYWORDS
from cbo_gym.problems.variations.instance import INSTANCE_KEYWORD

GYMNASIUM_KEYWORDS = ("render_mode", "num_envs", "vectorization_mode", "max_episode_steps")
# Keywords that do not change the optimum, or, as an instance, change it in a known way.
OTHER_KEYWORDS = (*GYMNASIUM_KEYWORDS, *GRAPH_KEYWORDS, "costs", INSTANCE_KEYWORD)


def oracle_of(env: Any) -> Oracle:
    """Return the oracle of an environment, scalar or vectorised, with the registry's optimum if it has one.

    Raises:
        ArgumentTypeError: if it is not an environment of this package.
    """
    base = env.unwrapped
    dynamics = getattr(base, "dynamics", None)
    if not isinstance(dynamics, Dynamics):
        raise ArgumentTypeError(f"an oracle needs an environment of cbo_gym; given {type(base).__name__}")
    return oracle_for(dynamics, _transform_optimum(_find_recorded(base.spec), dynamics))


def _find_recorded(spec: Any) -> RecordedOptimum | None:
    """Return the registry's optimum if the environment is registered and no keyword changes the problem."""
    entry = find_entry(spec.id) if spec is not None else None
    if entry is None:
        return None
    used, registered = (
        {key: value for key, value in keywords.items() if key not in OTHER_KEYWORDS}
        for keywords in (spec.kwargs, entry.make_kwargs)
    )
    return entry.optimum if used == registered else None


def _transform_optimum(recorded: RecordedOptimum | None, dynamics: Dynamics) -> RecordedOptimum | None:
    """Return the optimum of an instance, given that of the published problem."""
    transform = dynamics.truth.problem.transform
    if recorded is None or transform is None:
        return recorded
    scale, to_new = transform.reward.slope, transform.reward.to_new
    changes = {
        "value": float(to_new(recorded.value)),
        "action": dynamics.transform_record(transform, recorded.action),
        "standard_error": scale * recorded.standard_error,
        # A bend changes the distribution of random actions, so that their mean must be estimated again.
        "random_value": float(to_new(recorded.random_value)) if transform.keeps_measure else None,
        "random_standard_error": scale * recorded.random_standard_error,
    }
    return recorded.model_copy(update=changes)
