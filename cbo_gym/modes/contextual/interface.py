"""Contextual mode: after seeing the round's context, the action chooses a scope and the values of its variables.

A scope is a set of variables to set, each with the contexts on which its value may depend.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from cbo_gym.actions import PolicyCodec
from cbo_gym.actions.codec import Actions
from cbo_gym.errors import ArgumentError
from cbo_gym.modes.base.choice import ChoiceInterface, join_names
from cbo_gym.problems.modes.contextual import Contexts
from cbo_gym.scm.scopes import Scope
from cbo_gym.task import ContextualTask, Mode, Observation


class ContextualInterface(ChoiceInterface):
    """Actions that set the variables of a scope, chosen after the contexts have been observed."""

    mode = Mode.CONTEXTUAL
    trial_description = "some variables, after contexts were observed"
    task_class = ContextualTask
    key = "scope"
    codec_class = PolicyCodec
    observes_before = True

    @cached_property
    def contexts(self) -> Contexts:
        if (contexts := self.problem.data(Contexts)) is None:
            raise ArgumentError(
                f"{self.problem.name} has no contexts, so it has no contextual mode; give them as contexts of "
                "custom_problem or of a study: ['age']"
            )
        return contexts

    @property
    def context_names(self) -> Sequence[str]:
        return self.contexts.names

    def variable_sets(self) -> Sequence[frozenset[str]]:
        return [frozenset(variable for variable, _ in scope) for scope in self.contexts.scopes]

    def set_names(self) -> Sequence[str]:
        return [name_scope(scope) for scope in self.contexts.scopes]

    def empty_observation(self) -> Observation:
        return {**super().empty_observation(), "context": np.zeros(len(self.contexts.names))}

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Actions:
        """Return no actions, because contextual mode has no initial data; refuse to make initial rounds.

        ``observation["context"]`` is the next round's context, so an initial round could not show its own.
        """
        if observational or random:
            raise ArgumentError(
                f"contextual mode has no initial data; given observational={observational}, random={random}"
            )
        return self.actions_at(0, np.empty((0, len(self.codec.sets[0]))))

    def task_fields(self) -> dict[str, Any]:
        return {
            **super().task_fields(),
            "contexts": tuple(self.contexts.names),
            "scopes": tuple(self.contexts.scopes),
        }


def name_scope(scope: Scope) -> str:
    """Return ``{X1, X2 | C}``: the variables of a scope and the contexts on which any of them may depend."""
    variables = join_names([variable for variable, _ in scope], "variables")
    contexts = join_names(frozenset().union(*[contexts for _, contexts in scope]), "contexts")
    return "{" + (f"{variables} | {contexts}" if contexts else variables) + "}"
