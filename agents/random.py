"""Random: uniformly random actions, the yardstick of every other agent.

The action space's own distribution is used: uniform over the box, over the sets of coordinates that a limit allows,
over target sets or scopes, or over super arms, whatever the mode.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from gymnasium import spaces

from cbo_gym.agent import Agent
from cbo_gym.task import Action, Mode, Observation


def seeded_copy(space: spaces.Space[Any], seed: int) -> spaces.Space[Any]:
    """A copy of ``space`` with a random stream of its own; the original's is left alone."""
    copy = deepcopy(space)
    copy.seed(seed)
    return copy


class Random(Agent):
    """Uniformly random actions, in every mode; it recommends the action with the best reward seen."""

    modes = frozenset(Mode)

    def setup(self, seed: int) -> None:
        self._space = seeded_copy(self.task.action_space, seed)

    def act(self, observation: Observation) -> Action:
        return self._space.sample()
