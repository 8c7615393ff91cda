"""IGP-UCB (Chowdhury & Gopalan 2017) over super arms, as in the comparison of Bauschmann & Maghsudi (2026), sec. V, G1.

The reward is modelled by a Gaussian process with a squared-exponential kernel on the 0/1 vectors of the super arms.
Every round plays the super arm with the highest ``mean + beta_t std``, where
``beta_t = B + R sqrt(2 (gamma_t + 1 + ln(1 / delta)))``. B bounds the norm of the reward function, R is the scale of
its noise and gamma_t the information gained so far.
"""

from __future__ import annotations

import math

import numpy as np

from cbo_gym._util.arguments import require_positive, require_probability
from cbo_gym.agents.super_arms.base import SuperArmAgent
from cbo_gym.task import Action, Info, Observation

# Number of rounds with random super arms, which give the units of the rewards.
INITIAL_ROUNDS = 10


class IGPUCB(SuperArmAgent):
    """Upper confidence bound on a Gaussian process over super arms. Plays masked tasks.

    Args:
        lengthscale: lengthscale of the kernel, above 0; two super arms that differ in d base arms are ``sqrt(d)``
            apart.
        delta: probability with which the bounds may fail, between 0 and 1.

    Raises:
        ArgumentError: if an argument is out of range; from ``reset``, if there are too many super arms.
    """

    def __init__(self, lengthscale: float = 8.0, delta: float = 0.1) -> None:
        self.lengthscale = require_positive("lengthscale", lengthscale)
        self.delta = require_probability("delta", delta)

    def setup(self, seed: int) -> None:
        super().setup(seed)
        self._mean = np.zeros(len(self.super_arms))
        self._variance = np.ones(len(self.super_arms))
        # Row t is the covariance of all super arms with the t-th observation given the earlier ones, divided by its
        # standard deviation: a column of the Cholesky factor.
        self._factor = np.empty((INITIAL_ROUNDS, len(self.super_arms)), dtype=np.float32)
        # Standardised rewards.
        self._values: list[float] = []
        self._information = self._squared_surprises = 0.0

    def update(self, action: Action, observation: Observation, reward: float, info: Info) -> None:
        super().update(action, observation, reward, info)
        if len(self.history) < INITIAL_ROUNDS:
            return
        rewards = np.array([past.reward for past in self.history])
        if len(self.history) == INITIAL_ROUNDS:
            self._location, self._scale = rewards.mean(), max(rewards.std(), 1e-9 * max(1.0, np.abs(rewards).max()))
            self._regulariser = max(float(np.abs(rewards - self._location).max()) / self._scale, 1e-3)
        conditioned = len(self._values)
        for row, value in zip(self.played[conditioned:], rewards[conditioned:].tolist(), strict=True):
            self._condition(row, (value - self._location) / self._scale)

    def _condition(self, row: int, value: float) -> None:
        """Condition on the standardised reward of the super arm of one row."""
        count = len(self._values)
        if count == len(self._factor):
            self._factor = np.concatenate([self._factor, np.empty_like(self._factor)])
        earlier = self._factor[:count]
        differing = (self.super_arms != self.super_arms[row]).sum(axis=1)
        covariance = np.exp(-0.5 * differing / self.lengthscale**2) - earlier[:, row] @ earlier
        deviation = math.sqrt(self._variance[row] + self._regulariser)
        surprise = (value - self._mean[row]) / deviation
        self._information += 0.5 * math.log1p(self._variance[row] / self._regulariser)
        gain = covariance / deviation
        self._factor[count] = gain
        self._values.append(value)
        self._squared_surprises += surprise**2
        self._mean += gain * surprise
        self._variance = np.maximum(self._variance - gain**2, 0.0)

    def act(self, observation: Observation) -> Action:
        if len(self.history) < INITIAL_ROUNDS:
            return self.best(self.rng.random(len(self.super_arms)))
        width = math.sqrt(2.0 * (self._information + 1.0 + math.log(1.0 / self.delta)))
        beta = self._norm() + math.sqrt(self._regulariser) * width
        return self.best(self._mean + beta * np.sqrt(self._variance))

    def _norm(self) -> float:
        """Return the norm |f| of the posterior mean f, by sum of surprises^2 = |f|^2 + |values - f|^2 / lambda."""
        residuals = np.array(self._values) - self._mean[self.played]
        return math.sqrt(max(self._squared_surprises - float(residuals @ residuals) / self._regulariser, 0.0))

    def estimated_rewards(self) -> np.ndarray:
        """Return posterior means of the super arms played."""
        if len(self.history) < INITIAL_ROUNDS:
            return super().estimated_rewards()
        return self._location + self._scale * self._mean[self.played]
