"""Expected values under an action, in the units of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cbo_gym.study.units import Units
from cbo_gym.task import Action

# Standard deviations on either side of a 95 % interval.
WIDTH = 1.96


class Band(NamedTuple):
    """Means and the ends of 95 % intervals, in the study's units, with ``low <= high`` in either direction."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Expectation(dict[str, float]):
    """Expected values of the reward and of the variables that the agent models, by name.

    Attributes:
        interval: the ends of the reward's 95 % interval, without the noise of a trial; None if the agent has no
            model that gives one.
        assumed: null values of the parameters that were not named.
    """

    def __init__(
        self, values: Mapping[str, float], interval: tuple[float, float] | None, assumed: Mapping[str, float]
    ) -> None:
        super().__init__(values)
        self.interval, self.assumed = interval, dict(assumed)

    def rows(self, reward: str) -> list[tuple[str, float, tuple[float, float] | None]]:
        """Return name, expected value and 95 % interval of each variable; only the reward has an interval."""
        return [(name, value, self.interval if name == reward else None) for name, value in self.items()]


def expected_rewards(units: Units, agent: Any, actions: Sequence[Action]) -> Band | None:
    """Return the expected rewards of actions with their intervals; None if the agent cannot predict all of them."""
    reward_posterior = getattr(agent, "reward_posterior", None)
    posterior = None if reward_posterior is None else reward_posterior(list(actions))
    if posterior is None:
        return None
    mean, std = posterior
    native = np.vectorize(units.native_reward, otypes=[float])
    ends = np.sort([native(mean - WIDTH * std), native(mean + WIDTH * std)], axis=0)
    if units.reward_range is not None:
        ends = np.clip(ends, *units.reward_range)
    return Band(native(mean), ends[0], ends[1])
