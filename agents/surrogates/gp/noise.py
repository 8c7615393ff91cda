"""Noise of a GP's standardised outputs: its variance at points, and the hyper-parameters that it depends on."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

LEVEL_PRIOR = (-4.0, 1.0)  # mean and standard deviation of the log variance, as BoTorch's
NO_NOISE = 1e-6  # variance: too small to matter, enough for a stable Cholesky factor
MIN_VARIANCE = 1e-4  # BoTorch's lower limit
USUAL_NOISE = math.exp(-1.0)  # median share of the outputs' variance that is noise, where much of it is noise


class Noise(ABC):
    """The noise's variance, given k hyper-parameters.

    Attributes:
        theta: the present hyper-parameters, shape ``(k,)``.
    """

    theta: np.ndarray

    def set_data(self, points: np.ndarray, unit: float) -> None:  # noqa: B027  (only some subclasses need it)
        """Take the points of a fit, ``n x d``, and the unit by which their outputs are divided."""

    @property
    @abstractmethod
    def bounds(self) -> list[tuple[float, float]]:
        """Lower and upper bound of each hyper-parameter."""

    @abstractmethod
    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the log density of the hyper-parameters' prior, and its gradient ``(k,)``."""

    @abstractmethod
    def at(self, points: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """Return variances at points ``n x d``, ``(n,)``, and their pullback: gradients ``(n,)`` to ``(k,)``."""


class KnownNoise(Noise):
    """Noise whose standard deviation is known, in the outputs' own units, at least 0."""

    def __init__(self, std: float) -> None:
        self._std = std
        self._variance = NO_NOISE
        self.theta = np.empty(0)

    def set_data(self, points: np.ndarray, unit: float) -> None:
        self._variance = max(NO_NOISE, (self._std / unit) ** 2)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return []

    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        return 0.0, values

    def at(self, points: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        return np.full(len(points), self._variance), lambda gradient: values


class NoiseLevel(Noise):
    """Noise of one variance, whose logarithm is the hyper-parameter; its prior is lognormal.

    Args:
        location: mean of the logarithm.
        scale: its standard deviation.
        lower: lower bound of the variance.
        start: the initial variance; the prior's mode if None.
    """

    def __init__(
        self,
        location: float = LEVEL_PRIOR[0],
        scale: float = LEVEL_PRIOR[1],
        lower: float = MIN_VARIANCE,
        start: float | None = None,
    ) -> None:
        self._location, self._scale, self._lower = location, scale, lower
        self.theta = np.array([location - scale**2 if start is None else math.log(start)])

    def expect(self, variance: float, scale: float) -> None:
        """Set the prior to one with this mode of the variance and this standard deviation of its logarithm."""
        self._location, self._scale = math.log(variance) + scale**2, scale

    @property
    def bounds(self) -> list[tuple[float, float]]:
        return [(math.log(self._lower), math.inf)]

    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        return log_lognormal(values, self._location, self._scale)

    def at(self, points: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        variances = np.full(len(points), np.exp(values[0]))
        return variances, lambda gradient: np.array([gradient @ variances])


def usual_noise() -> NoiseLevel:
    """Return noise that is expected to be a large part of the outputs' variance, where BoTorch expects a fiftieth.

    It takes more data until a few lucky outputs are mistaken for a peak.
    """
    return NoiseLevel(math.log(USUAL_NOISE), 1.0, lower=MIN_VARIANCE, start=USUAL_NOISE)


def log_lognormal(logs: np.ndarray, location: float, scale: float) -> tuple[float, np.ndarray]:
    """Return the summed log density of lognormal variables, and its gradient with respect to their logarithms.

    It is the density of the variables themselves, as in GPyTorch's priors, so the mode is at
    ``location - scale^2``.
    """
    standardised = (logs - location) / scale
    constant = len(logs) * (math.log(scale) + 0.5 * math.log(2.0 * math.pi))
    return -0.5 * float(standardised @ standardised) - float(logs.sum()) - constant, -standardised / scale - 1.0
