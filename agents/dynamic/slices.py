"""The base class of the methods of dynamic mode: trials in a slice, of which the best is implemented."""

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
    """Agent that explores in each slice and, in its last round, implements the action with the best estimate.

    A subclass begins a slice, explores, learns, and estimates the rewards of the rounds of the slice.
    """

    modes = frozenset({Mode.DYNAMIC})
    task: DynamicTask

    def setup(self, seed: int) -> None:
        # Index of the present slice.
        self.slice = -1
        # Number of rounds before the present slice.
        self._first = 0

    def act(self, observation: Observation) -> Action:
        index = min(len(self.history) // self.task.trials, self.task.slices - 1)
        while self.slice < index:
            self.slice += 1
            self._first = min(self.slice * self.task.trials, len(self.history))
            self.begin()
        if self.played and len(self.played) >= self.task.trials - 1:
            return self.recommend()
        return self.explore()

    @property
    def played(self) -> Sequence[Round]:
        """The rounds of the slice."""
        return self.history[self._first :]

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
        """Return the action with the best estimate among the rounds of the slice, of all rounds if it has none."""
        if self.slice < 0 or not self.played:
            return super().recommend()
        return self.played[int(np.argmax(self.slice_estimates()))].action

    def estimated_rewards(self) -> np.ndarray:
        """Return estimates for the rounds of the slice; for earlier ones the observed rewards."""
        rewards = super().estimated_rewards()
        if self.slice >= 0 and self.played:
            rewards[self._first :] = self.slice_estimates()
        return rewards

    def observed_rounds(self, index: int) -> tuple[Round, ...]:
        """Return the observational data of a slice as rounds in which nothing was set; may be empty."""
        series = self.task.observational
        names = [f"{name}_{index}" for name in self.task.nodes]
        if names[0] not in series:
            return ()
        rows = np.stack([series[name] for name in names], axis=-1)
        empty = {"target": np.int64(0), "values": np.full(len(self.task.manipulable), UNSET)}
        return tuple(Round(empty, {"nodes": row}, float(row[-1])) for row in rows)


def slice_view(task: DynamicTask, sets: Sequence[frozenset[str]], initial: Sequence[Round] = ()) -> HardView:
    """Return a slice by itself as a hard task.

    Args:
        task: dynamic.
        sets: target sets; the first one should be empty if there are initial rounds.
        initial: initial data of the agent, whose targets are indices of ``sets``.
    """
    indices = [task.targets.index(target) for target in sets]
    return HardView(task, indices, sets, horizon=task.trials, initial_data=tuple(initial))


def sets_to_explore(task: DynamicTask) -> list[frozenset[str]]:
    """Return the minimal intervention sets of a slice that the task offers, the empty one first."""
    minimal = minimal_intervention_sets(task.diagram, task.reward, task.manipulable)
    return [frozenset(), *(target for target in task.targets if target and target in minimal)]
