"""The main object in the process of a third-party agent: it makes the agent and passes on the calls of the evaluator.

The process receives tasks, observations and rewards, but never an environment, an oracle or the seed of a run's noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import cloudpickle

from cbo_gym.actions.reading import copy_action
from cbo_gym.agent_registry.cards import agent_card
from cbo_gym.agent_registry.finding import agent_of, create_agent, find_agent, modes_of
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.task import Task

# The modules in which an agent is defined, ``"modules"``, and its feedback modes, ``"modes"``.
Description = dict[str, list[str]]


class Player:
    """An agent, and the calls of :class:`~cbo_gym.referee.isolated.IsolatedAgent`, which return plain data."""

    def __init__(self) -> None:
        self._agent: Any = None
        self._space: Any = None
        self._has_objectives = False

    def card(self, name: str) -> dict[str, Any]:
        """Return an agent's card."""
        return asdict(agent_card(name))

    def make(self, label: str) -> Description:
        """Make the agent that a label names, and describe it."""
        spec = Spec.parse(label)
        self._agent = create_agent(spec)
        factory = find_agent(spec.name)
        return self._description({getattr(factory, "__module__", "builtins")}, modes_of(factory))

    def unpickle(self, packed: bytes) -> Description:
        """Unpickle the agent, and describe it."""
        self._agent = agent_of(cloudpickle.loads(packed))
        return self._description(set(), modes_of(self._agent))

    def _description(self, modules: set[str], modes: Sequence[str]) -> Description:
        modules |= {base.__module__ for base in type(self._agent).__mro__}
        return {"modules": sorted(map(str, modules)), "modes": list(modes)}

    def reset(self, task: Task, seed: int) -> None:
        self._begin(task)
        self._agent.reset(task, seed=seed)

    def restore(self, state: bytes, task: Task) -> None:
        self._begin(task)
        self._agent.restore(state, task)

    def _begin(self, task: Task) -> None:
        self._space, self._has_objectives = task.action_space, bool(task.objectives)

    def act(self, observation: Any) -> Any:
        return copy_action(self._space, self._agent.act(observation))

    def act_batch(self, observation: Any, count: int) -> list[Any]:
        return [copy_action(self._space, action) for action in self._agent.act_batch(observation, count)]

    def update(self, *played: Any) -> None:
        self._agent.update(*played)

    def state(self) -> str:
        return self._agent.state().hex()

    def recommend(self) -> Any:
        recommended = self._agent.recommend()
        # For several objectives an agent recommends a set of actions.
        if self._has_objectives:
            return [copy_action(self._space, action) for action in recommended]
        return copy_action(self._space, recommended)


_player = Player()


def play(question: tuple[str, tuple[Any, ...]]) -> Any:
    """Call a method of this process's :class:`Player`."""
    name, arguments = question
    return getattr(_player, name)(*arguments)
