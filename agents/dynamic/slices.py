"""SliceAgent: the base class of the methods of dynamic mode, and a time slice as a hard task.

A dynamic task has several time slices, with a fixed number of rounds (trials) each. The action of a slice's last round
is *implemented*: later slices depend on it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from cbo_gym.actions.domains import UNSET
from cbo_gym.agent import Agent
from cbo_gym.agents.intervention_sets.hard_view import HardView
from cbo_gym.scm.scopes import minimal_intervention_sets
from cbo_gym.task import Action, DynamicTask, Info, Mode, Observation, Round


class SliceAgent(Agent):
    """Agent that explores in each slice and, in the last round of a slice, plays the action with the best estimate.

    Attributes:
        slice: index of the present slice; -1 before the first action.
    """

    modes = frozenset({Mode.DYNAMIC})
    task: DynamicTask

    def setup(self, seed: int) -> None:
        self.slice = -1
        # Number of rounds before the present slice.
        self._rounds_before = 0

    def act(self, observation: Observation) -> Action:
        index = min(len(self.history) // self.task.trials, self.task.slices - 1)
        while self.slice < index:
            self.slice += 1
            self._rounds_before = min(self.slice * self.task.trials, len(self.history))
            self.begin()
        if self.slice_rounds and len(self.slice_rounds) >= self.task.trials - 1:
            return self.recommend()
        return self.explore()

    @property
    def slice_rounds(self) -> Sequence[Round]:
        """The rounds of the present slice."""
        return self.history[self._rounds_before :]

    @property
    def implemented(self) -> list[Round]:
        """The last round of every earlier slice."""
        trials = self.task.trials
        return [self.history[(index + 1) * trials - 1] for index in range(self.slice)]

    @abstractmethod
    def begin(self) -> None:
        """Prepare for a new slice."""

    @abstractmethod
    def explore(self) -> Action:
        """Return the next trial."""

    @abstractmethod
    def learn(self, past: Round) -> None:
        """Learn from a round of the slice."""

    @abstractmethod
    def slice_estimates(self) -> np.ndarray:
        """Return estimates of E[Y | action] for the rounds of the slice, in their order."""

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        if self.slice >= 0:
            self.learn(self.history[-1])

    def recommend(self) -> Action:
        """Return the action with the best estimate among the rounds of the slice, or of all rounds if it has none."""
        if self.slice < 0 or not self.slice_rounds:
            return super().recommend()
        return self.slice_rounds[int(np.argmax(self.slice_estimates()))].action

    def estimated_rewards(self) -> np.ndarray:
        """Return estimates for the rounds of the slice; for earlier ones the observed rewards."""
        rewards = super().estimated_rewards()
        if self.slice >= 0 and self.slice_rounds:
            rewards[self._rounds_before :] = self.slice_estimates()
        return rewards

    def observed_rounds(self, index: int) -> tuple[Round, ...]:
        """Return the observational data of slice ``index`` as rounds in which nothing was set; may be empty."""
        series = self.task.observational
        names = [f"{name}_{index}" for name in self.task.nodes]
        if names[0] not in series:
            return ()
        rows = np.stack([series[name] for name in names], axis=-1)
        empty = {"target": np.int64(0), "values": np.full(len(self.task.manipulable), UNSET)}
        return tuple(Round(empty, {"nodes": row}, float(row[-1])) for row in rows)


def slice_view(task: DynamicTask, sets: Sequence[frozenset[str]], initial: Sequence[Round] = ()) -> HardView:
    """Return one slice as a hard task.

    Args:
        task: dynamic task.
        sets: target sets of the hard task; the first one must be empty if there are initial rounds.
        initial: initial data of the hard task; their targets are indices in ``sets``.
    """
    indices = [task.targets.index(target) for target in sets]
    return HardView(task, indices, sets, horizon=task.trials, initial_data=tuple(initial))


def sets_to_explore(task: DynamicTask) -> list[frozenset[str]]:
    """Return those minimal intervention sets of a slice that are target sets of the task, the empty one first."""
    minimal = minimal_intervention_sets(task.diagram, task.reward, task.manipulable)
    return [frozenset(), *(target for target in task.targets if target and target in minimal)]
