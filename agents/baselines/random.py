"""Random: uniformly random actions, the baseline of every other agent.

The distribution is that of the action space: uniform over the box, over the sets of at most ``max_interventions``
coordinates, over target sets or scopes, or over super arms. With limits it is that of the codec, because the space does
not know limits.
"""

from __future__ import annotations

from typing import Any

from cbo_gym.agent import Agent
from cbo_gym.agents.common.seeding import seeded_copy
from cbo_gym.task import Action, Mode, Observation


class Random(Agent):
    """Uniformly random actions, in every mode; it recommends the action with the best reward seen."""

    modes = frozenset(Mode)
    several_objectives = True
    takes_missing = True
    takes_mixed_domains = True
    takes_limits = True

    def setup(self, seed: int) -> None:
        self._space = seeded_copy(self.task.action_space, seed)

    def act(self, observation: Observation) -> Action:
        codec = self.task.codec
        return self._space.sample() if codec.limits is None else codec.draw(self.rng)

    def act_given_pending(
        self, observation: Observation, pending: Any, count: int = 1, contexts: Any = None, measured: Any = None
    ) -> list[Action]:
        return [self.act(observation) for _ in range(count)]
