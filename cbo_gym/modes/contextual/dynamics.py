"""Contextual mode: after seeing the round's context, the action chooses a scope and the values of its variables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from cbo_gym.actions import PolicyCodec
from cbo_gym.actions.codec import Actions
from cbo_gym.errors import ArgumentError
from cbo_gym.modes.base import Feedback
from cbo_gym.modes.choice import ChoiceInterface, join_names
from cbo_gym.problems.modes.contextual import Contexts
from cbo_gym.scm.scopes import Scope
from cbo_gym.scm.system import Draws
from cbo_gym.task import ContextualTask, Mode, Observation


class ContextualInterface(ChoiceInterface):
    """Actions that set a scope's variables after the contexts were seen."""

    mode = Mode.CONTEXTUAL
    task_class = ContextualTask
    key = "scope"
    codec_class = PolicyCodec
    looks_ahead = True

    @cached_property
    def contexts(self) -> Contexts:
        if (contexts := self.problem.data(Contexts)) is None:
            raise ArgumentError(f"{self.problem.name} has no contexts, so it has no contextual mode")
        return contexts

    def variable_sets(self) -> Sequence[frozenset[str]]:
        return [frozenset(variable for variable, _ in scope) for scope in self.contexts.scopes]

    def set_names(self) -> Sequence[str]:
        return [name_scope(scope) for scope in self.contexts.scopes]

    def empty_observation(self) -> Observation:
        return {**super().empty_observation(), "context": np.zeros(len(self.contexts.names))}

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Actions:
        """Return no actions: an initial round would have a context, which ``observation["context"]`` does not show.

        Raises:
            ArgumentError: if any are asked for.
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


class ContextualFeedback(ContextualInterface, Feedback):
    """Hard interventions that may depend on the context of the round.

    At the start of a round its exogenous noise is drawn and the un-intervened system is computed; its context
    variables are observed. The intervention then recomputes everything downstream with the same noise.

    ## Action space
    ``Dict(scope=Discrete(n_scopes), values=Box(0, 1, (n_manipulable,)))``: the index of a scope and a value for every
    manipulable variable, mapped to native units by the problem. The scope's variables are set; values of others have
    no effect. A scope also says on which contexts its values may depend; keeping to that is up to the agent.

    ## Observation space
    ``Dict(nodes=Box(n), context=Box(k))``: the observed variables of the round that was played, after the
    intervention, in topological order, the reward last (zeros at reset); and the natural values of the context
    variables in the round that is about to be played.

    ## Reward
    The value of the reward variable in this round. Its expectation is E[Y | x, c] of the action in the context in
    which it is played, and regret is counted from the best policy.

    ## References
    Arsenyan, Grosnit, Bou-Ammar & Dalalyan, Contextual causal Bayesian optimisation, sec. 2 and 3; policy scopes:
    Lee & Bareinboim (2020).
    """

    def before(self, noise: Draws) -> Observation:
        return {"context": self.natural_contexts(noise)}

    def natural_contexts(self, noise: Draws) -> np.ndarray:
        """Return the contexts of rounds, with one more axis than the noise, of length k."""
        values = self.scm.propagate(noise)
        contexts = np.array([values[name] for name in self.contexts.names])
        return contexts if contexts.ndim == 1 else np.moveaxis(contexts, 0, -1)


def name_scope(scope: Scope) -> str:
    """Return ``{X1, X2 | C}``: the variables of a scope and the contexts on which any of them may depend."""
    variables = join_names([variable for variable, _ in scope], "variables")
    contexts = join_names(frozenset().union(*[contexts for _, contexts in scope]), "contexts")
    return "{" + (f"{variables} | {contexts}" if contexts else variables) + "}"


FEEDBACK = ContextualFeedback
