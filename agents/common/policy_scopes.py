"""The variables that a policy scope sets, and the contexts on which they depend."""

from __future__ import annotations

from cbo_gym.scm.scopes import Scope

# The variables of a scope, and its contexts.
Members = tuple[frozenset[str], frozenset[str]]


def members(scope: Scope) -> Members:
    """Return the variables that a scope sets, and all contexts on which any of them may depend."""
    return frozenset(variable for variable, _ in scope), frozenset().union(*[contexts for _, contexts in scope])
