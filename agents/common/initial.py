"""The start of agents: their first action if there are no data, and which initial data they use."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from cbo_gym.actions.codec import Action
from cbo_gym.agent import Agent
from cbo_gym.agents.common.seeding import seeded_copy
from cbo_gym.task import HardTask, Observation, Round, Task

# Largest number of initial rounds without an intervention; more would hardly improve a Gaussian process.
MAX_OBSERVATIONS = 200


def first_action(task: Task, seed: int) -> Action:
    """Return the action to play without data: set nothing if a hard task allows that, otherwise a random action.

    Rounds in which nothing is set give information about every mechanism.
    """
    limits = task.codec.limits
    if isinstance(task, HardTask) and frozenset() in task.targets and (limits is None or limits.can_set(())):
        return {"target": np.int64(task.targets.index(frozenset())), "values": task.codec.domains.unset.copy()}
    if limits is not None:
        return task.codec.draw(np.random.default_rng(seed))
    return seeded_copy(task.action_space, seed).sample()


def few_observations(task: Task) -> Sequence[Round]:
    """Return the task's initial data, with the first ``MAX_OBSERVATIONS`` of the rounds in which nothing was set."""
    if not isinstance(task, HardTask):
        return task.initial_data
    rounds, observed = [], 0
    for past in task.initial_data:
        is_observed = not task.targets[int(past.action["target"])]
        observed += is_observed
        if not is_observed or observed <= MAX_OBSERVATIONS:
            rounds.append(past)
    return rounds


class SearchAgent(Agent):
    """Base class of agents that begin with :func:`first_action` and then play the result of :meth:`search`."""

    def initial_rounds(self) -> Sequence[Round]:
        return few_observations(self.task)

    def act(self, observation: Observation) -> Action:
        seed = int(self.rng.integers(2**31))
        return self.search(seed) if self.history else self.first(seed)

    def first(self, seed: int) -> Action:
        """Return the action of a first round without data."""
        return first_action(self.task, seed)

    @abstractmethod
    def search(self, seed: int) -> Action:
        """Return the next action, after at least one round."""
