"""CaBO: causal Bayesian optimisation in a world with contexts, which it ignores (Arsenyan et al., sec. 2 and 6).

It is :class:`~cbo_gym.agents.intervention_sets.cbo.CBO` (Aglietti et al. 2020) on the possibly optimal minimal
intervention sets of the diagram (Lee & Bareinboim 2018): contexts are variables like others, seen only after the round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from gymnasium import spaces

from cbo_gym.actions import ChoiceCodec
from cbo_gym.agent import Agent
from cbo_gym.agents.common.policy_scopes import members
from cbo_gym.agents.intervention_sets.cbo import CBO, Scaling
from cbo_gym.errors import ArgumentError
from cbo_gym.scm.scopes import pomis
from cbo_gym.task import Action, ContextualTask, HardTask, Info, Mode, Observation, Task


class CaBO(Agent):
    """CBO on the possibly optimal minimal intervention sets, blind to contexts. Plays contextual tasks.

    Args:
        max_observations: as for CBO; 1 to 10,000.
        scaling: "divide" or "multiply" the coverage by N / N_max.
        in_common: as for CBO; False for one GP a set, the paper's method.
        device: torch device.

    Attributes:
        cbo: plays for it, on a hard task in which each possibly optimal set is a target.

    Raises:
        ArgumentError: if an argument is out of range; by :meth:`reset` if the task offers none of the sets, or no empty
            scope.
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
        scope_of = {members(scope)[0]: index for index, scope in reversed([*enumerate(task.scopes)])}
        explored = pomis(task.diagram, task.reward, task.manipulable) & set(scope_of)
        if not explored or frozenset() not in scope_of:
            raise ArgumentError(f"{task.env_id} must offer an empty scope and some possibly optimal intervention set")
        targets = tuple(target for target in scope_of if target in explored | {frozenset()})
        self._scopes = [scope_of[target] for target in targets]
        assert isinstance(task.action_space, spaces.Dict)
        choices = spaces.Dict({"target": spaces.Discrete(len(targets)), "values": task.action_space["values"]})
        self.cbo.targets = tuple(explored)
        names = [task.codec.choices[index] for index in self._scopes]
        common = {field.name: getattr(task, field.name) for field in fields(Task)}
        common |= {"mode": Mode.HARD, "action_space": choices, "initial_data": ()}  # which update hands on
        common["codec"] = ChoiceCodec(choices, task.codec.domains, "target", targets, names)
        hard = HardTask(**common, manipulable=task.manipulable, targets=targets)
        self.cbo.reset(hard, seed)

    def act(self, observation: Observation) -> Action:
        action = self.cbo.act(observation)
        return {"scope": np.int64(self._scopes[int(action["target"])]), "values": action["values"]}

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        if int(action["scope"]) in self._scopes:
            self.cbo.update(self._with_target(action), observation, reward, info)

    def _with_target(self, action: Action) -> Action:
        return {"target": np.int64(self._scopes.index(int(action["scope"]))), "values": action["values"]}

    def reward_posterior(self, actions: Sequence[Action]) -> tuple[np.ndarray, np.ndarray] | None:
        """Beliefs about E[reward], averaged over all contexts."""
        known = [action for action in actions if int(action["scope"]) in self._scopes]
        return self.cbo.reward_posterior(list(map(self._with_target, known))) if len(known) == len(actions) else None

    def estimated_rewards(self) -> np.ndarray:
        """Estimates of E[Y | action] over all contexts; of a round in a scope that it never plays the reward seen."""
        estimates = super().estimated_rewards()
        known = [int(past.action["scope"]) in self._scopes for past in self.history]
        if any(known):
            estimates[known] = self.cbo.estimated_rewards()
        return estimates
