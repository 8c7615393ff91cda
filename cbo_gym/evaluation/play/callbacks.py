"""Callbacks that receive each round of a run after it is recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbo_gym.task import Action, Observation

READ_ONLY = ("action", "observation", "info", "recommended")


@dataclass(frozen=True)
class PlayedRound:
    """One round of a run; its arrays are read-only copies.

    Args:
        agent: Label of the agent.
        env: Label of the environment.
        seed: Seed of the run.
        round: Number of the round, from 1.
        horizon: Number of rounds.
        action: Action that was played.
        observation: Observation after it.
        reward: Observed reward; an array if there are several objectives.
        info: ``info`` of ``step``.
        recommended: Action that the agent recommends after this round; None if it was not asked for one.
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
        for name in READ_ONLY:
            object.__setattr__(self, name, _copy(getattr(self, name)))


Callback = Callable[[PlayedRound], object]


@dataclass(frozen=True)
class Sampled:
    """A callback that needs only some rounds of a run, evenly spaced and including the last, such as a progress bar.

    Copying a round and sending it from another process takes longer than a simple agent needs to play it.

    Args:
        callback: Called after these rounds.
        times: Largest number of these rounds.
    """

    callback: Callback
    times: int

    def __call__(self, played: PlayedRound) -> object:
        return self.callback(played)

    def is_due(self, number: int, horizon: int) -> bool:
        """Return whether the callback is called after this round, counted from 1."""
        return number * self.times // horizon > (number - 1) * self.times // horizon


def _copy(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        copied = value.copy()
        copied.setflags(write=False)
        return copied
    return {name: _copy(item) for name, item in value.items()} if isinstance(value, Mapping) else value
