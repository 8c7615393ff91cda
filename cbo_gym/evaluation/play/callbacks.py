"""Callbacks of ``evaluate`` and ``sweep``, which receive the rounds of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbo_gym.task import Action, Observation

# Fields whose arrays are copied.
COPIED_FIELDS = ("action", "observation", "info", "recommended")


@dataclass(frozen=True)
class PlayedRound:
    """A round of a run; its arrays are read-only copies.

    Args:
        agent: Label of the agent.
        env: Label of the environment.
        seed: Seed of the run.
        round: Number of the round, from 1.
        horizon: Number of rounds.
        action: Action that was played.
        observation: Observation after the action.
        reward: Observed reward; an array if there are several objectives.
        info: ``info`` of ``step``.
        recommended: Action that the agent recommends after this round; None if the agent was not asked for one.
    """

    agent: str
    env: str
    seed: int
    round: int
    horizon: int
    action: Action
    observation: Observation
    reward: Any
    info: Mapping[str, Any]
    recommended: Action | None

    def __post_init__(self) -> None:
        for name in COPIED_FIELDS:
            object.__setattr__(self, name, _copy(getattr(self, name)))


Callback = Callable[[PlayedRound], object]


@dataclass(frozen=True)
class Sampled:
    """A callback, such as a progress bar, that needs only some rounds: evenly spaced ones, including the last.

    It saves time, because copying a round and sending it from another process takes longer than a simple agent needs to
    play it.

    Args:
        callback: Called after these rounds.
        times: Largest number of calls in a run.
    """

    callback: Callback
    times: int

    def __call__(self, played: PlayedRound) -> object:
        return self.callback(played)

    def is_due(self, number: int, horizon: int) -> bool:
        """Return whether round ``number``, counted from 1, is one of the evenly spaced rounds."""
        return number * self.times // horizon > (number - 1) * self.times // horizon


def _copy(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        copied = value.copy()
        copied.setflags(write=False)
        return copied
    return {name: _copy(item) for name, item in value.items()} if isinstance(value, Mapping) else value
