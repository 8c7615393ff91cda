"""Exogenous distributions.

Each is a small frozen dataclass with two ways to draw: ``sample`` from a NumPy generator (fast), and
``from_uniform``, which turns one uniform number into one draw, so that quasi-Monte Carlo points can be used.
They rest on NumPy and ``scipy.special`` alone: importing ``scipy.stats`` takes longer than the whole package.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


def _normal_quantile(uniforms: Array) -> Array:
    from scipy.special import ndtri  # late: a quarter of the package's import time, and rarely needed

    return ndtri(uniforms)


def _require_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a finite number above 0; given {value!r}")


def _require_finite(name: str, value: float) -> None:
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number; given {value!r}")


class Distribution(ABC):
    """A univariate distribution of an exogenous variable."""

    @property
    @abstractmethod
    def mean(self) -> float: ...

    @property
    @abstractmethod
    def std(self) -> float: ...

    @abstractmethod
    def from_uniform(self, uniforms: Array) -> Array:
        """Map independent U(0, 1) numbers to independent draws of the same shape."""

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Array:
        """Independent draws of shape ``size``."""
        return self.from_uniform(rng.random(size))


@dataclass(frozen=True)
class Zero(Distribution):
    """No noise: the constant 0. Takes nothing from the random stream."""

    mean = 0.0
    std = 0.0

    def from_uniform(self, uniforms: Array) -> Array:
        return np.zeros_like(uniforms)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Array:
        return np.zeros(size)


@dataclass(frozen=True)
class Normal(Distribution):
    """The normal distribution; ``std`` is the standard deviation."""

    mean: float = 0.0
    std: float = 1.0

    def __post_init__(self) -> None:
        _require_finite("mean", self.mean)
        _require_positive("std", self.std)

    def from_uniform(self, uniforms: Array) -> Array:
        return self.mean + self.std * _normal_quantile(uniforms)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Array:
        draws = rng.standard_normal(size)
        if self.std != 1.0:
            draws *= self.std
        if self.mean != 0.0:
            draws += self.mean
        return draws


@dataclass(frozen=True)
class Uniform(Distribution):
    """The uniform distribution on ``[low, high]``."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _require_positive("high - low", self.high - self.low)

    @property
    def mean(self) -> float:
        return 0.5 * (self.low + self.high)

    @property
    def std(self) -> float:
        return (self.high - self.low) / math.sqrt(12.0)

    def from_uniform(self, uniforms: Array) -> Array:
        return self.low + (self.high - self.low) * uniforms


@dataclass(frozen=True)
class GaussianMixture(Distribution):
    """A mixture of normals. ``weights`` sum to 1; ``stds`` are standard deviations."""

    weights: Sequence[float]
    means: Sequence[float]
    stds: Sequence[float]

    def __post_init__(self) -> None:
        for field in ("weights", "means", "stds"):  # tuples keep the dataclass hashable
            object.__setattr__(self, field, tuple(float(x) for x in getattr(self, field)))
        if not len(self.weights) == len(self.means) == len(self.stds) >= 1:
            raise ValueError("weights, means and stds must have one entry a component, at least one")
        if min(self.weights) < 0 or not math.isclose(sum(self.weights), 1.0, abs_tol=1e-9):
            raise ValueError(f"weights must be non-negative and sum to 1; given {self.weights}")
        for mean, std in zip(self.means, self.stds, strict=True):
            _require_finite("every mean", mean)
            _require_positive("every std", std)

    @property
    def mean(self) -> float:
        return float(np.dot(self.weights, self.means))

    @property
    def std(self) -> float:
        second = np.square(self.stds) + np.square(self.means)
        return float(np.sqrt(np.dot(self.weights, second) - self.mean**2))

    def from_uniform(self, uniforms: Array) -> Array:
        # The uniform picks the component; what is left of it inside the component's slice is uniform again.
        edges = np.cumsum(self.weights)
        edges[-1] = 1.0
        component = np.searchsorted(edges, uniforms, side="right").clip(max=len(edges) - 1)
        lower = np.concatenate(([0.0], edges[:-1]))
        within = (uniforms - lower[component]) / (edges - lower)[component]
        tiny = np.finfo(float).tiny
        within = np.clip(within, tiny, 1.0 - np.finfo(float).epsneg)
        return np.asarray(self.means)[component] + np.asarray(self.stds)[component] * _normal_quantile(within)


@dataclass(frozen=True)
class Arcsine(Distribution):
    """The arcsine distribution with the given mean and std, on ``mean +- sqrt(2) std``."""

    mean: float = 0.5
    std: float = math.sqrt(0.125)

    def __post_init__(self) -> None:
        _require_finite("mean", self.mean)
        _require_positive("std", self.std)

    def from_uniform(self, uniforms: Array) -> Array:
        return self.mean + math.sqrt(2.0) * self.std * np.sin(np.pi * (uniforms - 0.5))
