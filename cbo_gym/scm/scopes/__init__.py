"""Sets of variables to intervene on, and contexts to observe first, that suffice for every SCM on a diagram."""

from cbo_gym.scm.scopes.intervention_sets import (
    confounded_territory,
    interventional_border,
    is_minimal,
    minimal_among,
    minimal_intervention_sets,
    pomis,
)
from cbo_gym.scm.scopes.pareto_sets import pareto_sets, supported_sets
from cbo_gym.scm.scopes.policy_scopes import Scope, mixed_policy_scopes, pomps, scope_diagram

__all__ = [
    "Scope",
    "confounded_territory",
    "interventional_border",
    "is_minimal",
    "minimal_among",
    "minimal_intervention_sets",
    "mixed_policy_scopes",
    "pareto_sets",
    "pomis",
    "pomps",
    "scope_diagram",
    "supported_sets",
]
