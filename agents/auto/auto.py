"""Auto: the method that the published results speak for, by what the task tells.

Rules beside their evidence are in :mod:`cbo_gym.agents.auto.rules`. It plays exactly as the method that it chooses.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

import numpy as np

from cbo_gym.agent import Agent, UnsupportedModeError
from cbo_gym.agents.auto.rules import choices
from cbo_gym.agents.zoo import zoo
from cbo_gym.arguments import require_positive
from cbo_gym.task import Action, Info, Mode, Observation, Round, Task


class Auto(Agent):
    """Chooses a method and plays as it does. Plays every task.

    It looks at the mode, at whether the diagram is told and how large it is, at constraints, the reward's composition
    and the signals' family, and at the seconds allowed.

    Args:
        seconds: that a round may take on a machine with two cores, above 0; None for as long as it takes.

    Attributes:
        chosen: published name of the method; None before :meth:`reset`.
        why: the reason.
        player: the method itself.

    Raises:
        ArgumentError: if an argument is out of range.
        UnsupportedModeError: from :meth:`reset`, if no method plays the task.
    """

    modes = frozenset(Mode)
    chosen: str | None = None
    why: str | None = None
    player: Agent

    def __init__(self, seconds: float | None = None) -> None:
        if seconds is not None:
            require_positive("seconds", seconds)
        self.seconds = seconds

    def reset(self, task: Task, seed: int) -> None:
        for rule in choices(task, self.seconds):
            module, _, name = zoo()[rule.agent].partition(":")
            player: Agent = getattr(import_module(module), name)()
            with suppress(UnsupportedModeError):  # some needs show only in the system itself, as arms that are missing
                player.reset(task, seed)
                break
        else:
            raise UnsupportedModeError(f"no method of this package plays {task.env_id}, {task.mode}, as it is told")
        self.task, self.player = task, player
        self.chosen, self.why = rule.agent, rule.why

    @property
    def history(self) -> list[Round]:  # type: ignore[override]
        """The rounds that the method remembers."""
        return self.player.history

    def act(self, observation: Observation) -> Action:
        return self.player.act(observation)

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        self.player.update(action, observation, reward, info)

    def recommend(self) -> Action:
        return self.player.recommend()

    def estimated_rewards(self) -> np.ndarray:
        return self.player.estimated_rewards()

    def estimated_violations(self) -> np.ndarray:
        return self.player.estimated_violations()
