"""A problem's data for contextual mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.problems.base import ModeData, ProblemStatement
from cbo_gym.problems.transform import CONTEXTS, SETS, Transform
from cbo_gym.scm.scopes import Scope, scope_diagram

# Arrays by the names of variables.
Columns = Mapping[str, np.ndarray]
MAX_SCOPES = 1024


@dataclass(frozen=True)
class Contexts(ModeData):
    """The variables observed before acting, and the noise given their values, for the contextual mode of a problem.

    Args:
        names: the context variables: observed, never set, not the reward. An agent sees the values that they have when
            nothing is set.
        scopes: the policy scopes that may be played. A scope says which variables a policy sets, and on which contexts
            the value of each may depend.
        noise_given: function that draws noise given the contexts, for the exogenous variables whose distribution the
            contexts change; other noise keeps its distribution. Its arguments are the contexts' values, and
            independent U(0, 1) numbers for every noisy variable: arrays by name that broadcast together. It returns
            arrays by name. None if the mechanisms are unknown.
        best_response: function from the contexts' values to the native values of an intervention that maximises E[Y |
            x, c] over all scopes; it sets the same variables in every context. None if theory gives none.
        policy_description: ``best_response`` in words; None without one.
        value: exact E[Y] under ``best_response``; None if it is unknown.
    """

    names: Sequence[str]
    scopes: Sequence[Scope]
    noise_given: Callable[[Columns, Columns], Columns] | None = None
    best_response: Callable[[Columns], Columns] | None = None
    policy_description: str | None = None
    value: float | None = None

    def check(self, problem: ProblemStatement) -> None:
        if problem.scm.action_dim:
            raise ArgumentError("a problem with contexts takes no soft parameters; make them variables that may be set")
        free = [name for name in problem.scm.nodes[:-1] if name not in problem.manipulable]
        if unknown := [name for name in self.names if name not in free]:
            raise ArgumentError(f"{unknown} cannot be contexts; choose from {free}")
        if not 1 <= len(self.scopes) <= MAX_SCOPES:
            raise ArgumentError(f"give at least one scope, and at most {MAX_SCOPES}; given {len(self.scopes)}")
        for scope in self.scopes:
            self._check_scope(scope, problem)

    def transform(self, transform: Transform) -> Contexts:
        names, transformed = transform.names, _TransformedPolicy(transform, self)
        scopes = [
            frozenset((names[name], transform.rename(contexts)) for name, contexts in scope) for scope in self.scopes
        ]
        return replace(
            self,
            names=transform.shuffle([names[name] for name in self.names], CONTEXTS),
            scopes=transform.shuffle(scopes, SETS),
            noise_given=transformed.noise_given,
            best_response=transformed.best_response if self.best_response else None,
            policy_description=self.policy_description and transform.describe_policy(self.policy_description),
            value=None if self.value is None else float(transform.reward.to_new(self.value)),
        )

    def _check_scope(self, scope: Scope, problem: ProblemStatement) -> None:
        # Sort, so that errors do not depend on the hash seed.
        for variable, contexts in sorted(scope, key=itemgetter(0)):
            if variable not in problem.manipulable:
                raise ArgumentError(f"a scope cannot set {variable!r}; choose from {list(problem.manipulable)}")
            if unknown := sorted(contexts.difference(self.names)):
                raise ArgumentError(f"{unknown} cannot be contexts of {variable}; choose from {list(self.names)}")
        # Raises for a cycle.
        scope_diagram(problem.scm.diagram, scope)


@dataclass(frozen=True)
class _TransformedPolicy:
    """``noise_given`` and ``best_response`` of contexts, in new names and units."""

    transform: Transform
    contexts: Contexts

    def _old_contexts(self, contexts: Columns) -> Columns:
        """Return the contexts in old names and units."""
        return {
            name: self.transform.unit(name).to_old(contexts[self.transform.names[name]]) for name in self.contexts.names
        }

    def noise_given(self, contexts: Columns, uniforms: Columns) -> Columns:
        assert self.contexts.noise_given is not None, "a played problem knows its mechanisms"
        old_uniforms = {name: uniforms[new] for name, new in self.transform.names.items() if new in uniforms}
        noise = self.contexts.noise_given(self._old_contexts(contexts), old_uniforms)
        return {self.transform.names[name]: draws for name, draws in noise.items()}

    def best_response(self, contexts: Columns) -> Columns:
        assert self.contexts.best_response is not None
        response = self.contexts.best_response(self._old_contexts(contexts))
        return {self.transform.names[name]: self.transform.unit(name).to_new(x) for name, x in response.items()}
