"""The variables that a policy scope sets, and the contexts on which they depend.

A policy scope is a set of pairs: a variable, and the context variables that the policy for it may use.
"""

from __future__ import annotations

from cbo_gym.scm.scopes import Scope

#: The variables that a scope sets, and the contexts on which any of them may depend.
Members = tuple[frozenset[str], frozenset[str]]


def members(scope: Scope) -> Members:
    """Return the members of a scope."""
    return frozenset(variable for variable, _ in scope), frozenset().union(*[contexts for _, contexts in scope])
