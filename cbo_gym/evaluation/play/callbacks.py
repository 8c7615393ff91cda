"""Callbacks for whoever plays a run: each round, after it was recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbo_gym.task import Action, Observation

READ_ONLY = ("action", "observation", "info", "recommended")


@dataclass(frozen=True)
class PlayedRound:
    """One round of a run, with copies of its own: nothing that is done to it reaches the run.

    Args:
        agent: its label.
        env: its label.
        seed: of the run.
        round: its number, from 1.
        horizon: how many there are.
        action: what was played.
        observation: what came back; arrays can be read, not written.
        reward: the observed one; an array where there are several objectives.
        info: what ``step`` told beside them.
        recommended: what the agent would deploy after this round; None where it was not asked.
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
    """A callback that needs only some rounds of a run, evenly spaced and the last among them, such as a progress bar.

    To copy a round, and to send it from another process, takes longer than a simple agent needs to play it.

    Args:
        callback: Called after these rounds.
        times: Largest number of them.
    """

    callback: Callback
    times: int

    def __call__(self, played: PlayedRound) -> object:
        return self.callback(played)

    def is_due(self, number: int, horizon: int) -> bool:
        """Whether the callback is called after this round, from 1."""
        return number * self.times // horizon > (number - 1) * self.times // horizon


def _copy(thing: Any) -> Any:
    if isinstance(thing, np.ndarray):
        own = thing.copy()
        own.setflags(write=False)
        return own
    return {name: _copy(value) for name, value in thing.items()} if isinstance(thing, Mapping) else thing
