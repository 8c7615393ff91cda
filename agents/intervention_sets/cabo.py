"""CaBO: causal Bayesian optimisation that ignores the contexts of a contextual task (Arsenyan et al., sec. 2 and 6).

It is :class:`~cbo_gym.agents.intervention_sets.cbo.CBO` (Aglietti et al. 2020) on the possibly optimal minimal
intervention sets of the diagram (POMIS, Lee & Bareinboim 2018). Contexts are treated like any other variable: their
values are used only after the round. A contextual action chooses a *scope*, a set of variables that may each depend on
some contexts. For each set of variables CaBO plays one scope, with values that do not depend on contexts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbo_gym.agent import Agent
from cbo_gym.agents.common.policy_scopes import members
from cbo_gym.agents.intervention_sets.cbo import CBO, Scaling
from cbo_gym.agents.intervention_sets.hard_view import HardView
from cbo_gym.errors import ArgumentError
from cbo_gym.scm.scopes import pomis
from cbo_gym.task import Action, ContextualTask, Info, Mode, Observation


class CaBO(Agent):
    """CBO on the possibly optimal minimal intervention sets, blind to contexts. Plays contextual tasks.

    Args:
        max_observations: largest number N_max of observations, as for CBO; 1 to 10,000.
        scaling: how epsilon depends on the coverage of the domain and the number N of observations, as for CBO:
            "divide" or "multiply" the coverage by N / N_max.
        in_common: whether all sets share a GP, as for CBO; False for one GP a set, the paper's method.
        device: torch device.

    Attributes:
        cbo: CBO agent that chooses actions, on a hard task whose targets are the possibly optimal sets and the empty
            set.

    Raises:
        ArgumentError: if an argument is out of range; by :meth:`reset` if no scope of the task sets a possibly optimal
            set, or no scope is empty.
    """

    modes = frozenset({Mode.CONTEXTUAL})
    task: ContextualTask

    def __init__(
        self,
        max_observations: int = 60,
        scaling: Scaling = "divide",
        in_common: bool = True,
        device: str = "cpu",
    ) -> None:
        self.cbo = CBO(max_observations=max_observations, scaling=scaling, in_common=in_common, device=device)

    def setup(self, seed: int) -> None:
        task = self.task
        # Set of variables -> index of its first scope; in reverse order, so that the first replaces later ones.
        scope_of = {members(scope)[0]: index for index, scope in reversed([*enumerate(task.scopes)])}
        explored = pomis(task.diagram, task.reward, task.manipulable) & set(scope_of)
        if not explored or frozenset() not in scope_of:
            raise ArgumentError(f"{task.env_id} must offer an empty scope and some possibly optimal intervention set")
        targets = [target for target in scope_of if target in explored | {frozenset()}]
        # The initial data reach CBO through update.
        self._view = HardView(task, [scope_of[target] for target in targets], targets, initial_data=())
        self.cbo.targets = tuple(explored)
        self.cbo.reset(self._view.task, seed)

    def act(self, observation: Observation) -> Action:
        return self._view.from_hard(self.cbo.act(observation))

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        if self._view.has(action):
            self.cbo.update(self._view.to_hard(action), observation, reward, info)

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the posterior of E[reward] over all contexts; ``None`` if CBO does not play an action's scope."""
        if not all(map(self._view.has, actions)):
            return None
        return self.cbo.reward_posterior(list(map(self._view.to_hard, actions)))

    def estimated_rewards(self) -> np.ndarray:
        """Return estimates of E[Y | action] over all contexts; the observed reward if CBO does not play the scope."""
        estimates = super().estimated_rewards()
        in_view = [self._view.has(past.action) for past in self.history]
        if any(in_view):
            estimates[in_view] = self.cbo.estimated_rewards()
        return estimates
