"""Contextual mode: rounds with a context, which is observed before the action."""

from __future__ import annotations

import numpy as np

from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.contextual.interface import ContextualInterface
from cbo_gym.problems.variations.instance import SettingInstanceRules
from cbo_gym.scm.system import Draws
from cbo_gym.task import Observation


class ContextualDynamics(ContextualInterface, Dynamics):
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

    instance_rules = SettingInstanceRules

    def before(self, noise: Draws) -> Observation:
        return {"context": self.natural_contexts(noise)}

    def natural_contexts(self, noise: Draws) -> np.ndarray:
        """Return the contexts of rounds, with one more axis than the noise, of length k."""
        contexts = np.array([*self.scm.natural_values(tuple(self.contexts.names), noise).values()])
        return contexts if contexts.ndim == 1 else np.moveaxis(contexts, 0, -1)
