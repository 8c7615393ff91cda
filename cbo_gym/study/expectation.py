"""Expected values under an action, in the units of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cbo_gym.study.forecast import NOTHING, Forecast
from cbo_gym.study.units import Units
from cbo_gym.task import Action

# Standard deviations on either side of a 95 % interval.
WIDTH = 1.96
Ends = tuple[float, float]


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
        forecast: the forecast for a new trial.
    """

    def __init__(
        self,
        values: Mapping[str, float],
        interval: tuple[float, float] | None,
        assumed: Mapping[str, float],
        forecast: Forecast = NOTHING,
    ) -> None:
        super().__init__(values)
        self.interval, self.assumed = interval, dict(assumed)
        self.forecast = forecast

    @property
    def outcomes(self) -> Mapping[str, Ends]:
        """Variable -> the ends of the 95 % interval of its value in a new trial, noise included.

        Empty if the agent has no model that gives them.
        """
        return self.forecast.intervals

    @property
    def probabilities(self) -> Mapping[str, float]:
        """Constraint -> probability that a new trial meets it."""
        return self.forecast.probabilities

    def rows(self, reward: str) -> list[tuple[str, float, Ends | None, Ends | None]]:
        """Return name, expected value, and the 95 % intervals of the mean and of a new outcome of each variable.

        Only the reward has an interval of the mean.
        """
        return [
            (name, value, self.interval if name == reward else None, self.outcomes.get(name))
            for name, value in self.items()
        ]


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
