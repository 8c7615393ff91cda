"""Contextual mode: after seeing the round's context, the action picks a scope and the values that it sets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from cbo_gym.envs.base import NoiseStream
from cbo_gym.envs.choice import ChoiceEnv
from cbo_gym.problems.base import Contexts
from cbo_gym.scm import Intervention
from cbo_gym.scm.model import Noise
from cbo_gym.task import Action, Mode, Observation

if TYPE_CHECKING:
    from cbo_gym.contextual_oracle import ContextualOracle


class ContextualEnv(ChoiceEnv):
    """Contextual causal bandit: hard interventions that may depend on what is seen of the round beforehand.

    At the start of a round its exogenous noise is drawn and the un-intervened system is computed; the context
    variables are read off it. The intervention then recomputes everything downstream with the same noise.

    ## Action space
    ``Dict(scope=Discrete(n_scopes), values=Box(0, 1, (n_manipulable,)))``: the index of a scope and a value for every
    manipulable variable, mapped to native units by the problem. The scope's variables are set; values of others have
    no effect. A scope also says on which contexts its values may depend; keeping to that is up to the agent.

    ## Observation space
    ``Dict(nodes=Box(n), context=Box(k))``: the observed variables of the round that was played, after the
    intervention, in topological order, the reward last (zeros at reset); and the natural values of the context
    variables in the round that is about to be played.

    ## Reward
    The value of the reward variable in this round.

    ## Episode end
    Never terminated; truncated after the registered number of rounds.

    ## Arguments
    ``problem``, ``oracle``, ``render_mode`` and the problem's own parameters, see
    :class:`~cbo_gym.envs.base.CausalBanditEnv`. With ``oracle``, ``expected_reward`` is E[Y | x, c] of the action in
    the context in which it was played, and ``instant_regret`` the expected reward of the best policy less that.

    ## References
    Arsenyan, Grosnit, Bou-Ammar & Dalalyan, Contextual causal Bayesian optimisation, sec. 2 and 3; policy scopes:
    Lee & Bareinboim (2020).
    """

    mode = Mode.CONTEXTUAL
    choice = "scope"

    #: the context of the round about to be played, shape ``(k,)``; the vectorised twin has a row an environment
    context: np.ndarray

    @property
    def contexts(self) -> Contexts:
        if self.problem.contexts is None:
            raise ValueError(f"{self.problem.name} has no contexts, so it has no contextual mode")
        return self.problem.contexts

    def variable_sets(self) -> Sequence[frozenset[str]]:
        return [frozenset(variable for variable, _ in scope) for scope in self.contexts.scopes]

    def empty_observation(self) -> Observation:
        return {**super().empty_observation(), "context": np.zeros(len(self.contexts.names))}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an experiment; the observation holds the context of the first round."""
        observation, info = super().reset(seed=seed, options=options)
        self._noise = NoiseStream(self.scm, self.np_random)
        return self._with_next_context(observation), info

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play one round; the observation holds the context of the next.

        Raises:
            gymnasium.error.InvalidAction: if the action is no element of the action space; nothing changes then.
        """
        observation, reward, terminated, truncated, info = super().step(action)
        return self._with_next_context(observation), reward, terminated, truncated, info

    def _with_next_context(self, observation: Observation) -> Observation:
        assert self._noise is not None
        self.context = self.natural_contexts(self._noise.peek())
        observation["context"] = self.context.copy()
        return observation

    def natural_contexts(self, noise: Noise) -> np.ndarray:
        """The contexts of rounds with this noise, shape ``noise's shape + (k,)``."""
        values = self.scm.propagate(noise)
        contexts = np.array([values[name] for name in self.contexts.names])
        return contexts if contexts.ndim == 1 else np.moveaxis(contexts, 0, -1)

    def oracle_info(self, intervention: Intervention) -> dict[str, Any]:
        expected = self.oracle.mean_given(intervention, self.context).value
        return {"expected_reward": expected[()], "instant_regret": (self.oracle.optimum.value - expected)[()]}

    @cached_property
    def oracle(self) -> ContextualOracle:
        from cbo_gym.contextual_oracle import ContextualOracle

        return ContextualOracle(self)

    def initial_actions(self, rng: np.random.Generator, observational: int, random: int | None) -> Any:
        """None: an initial round would have a context, which ``observation["context"]`` does not hold.

        Raises:
            ValueError: if any are asked for.
        """
        if observational or random:
            raise ValueError(
                f"contextual mode has no initial data; given observational={observational}, random={random}"
            )
        return self.actions_at(0, np.empty((0, len(self._members[0]))))

    def record_action(self, action: Any) -> Any:
        """The optimum is reached by a policy, which is recorded in words."""
        return action

    def restore_action(self, recorded: Any) -> Any:
        return recorded

    def task_fields(self) -> dict[str, Any]:
        return {
            "manipulable": dict(self.problem.manipulable),
            "contexts": tuple(self.contexts.names),
            "scopes": tuple(self.contexts.scopes),
        }
