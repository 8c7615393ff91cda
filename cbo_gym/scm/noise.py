"""Distributions of exogenous variables.

Each is a frozen dataclass with two ways to draw: ``sample`` is fast and uses a NumPy generator; ``from_uniform`` maps
uniform numbers to draws, as quasi-Monte Carlo needs. ``scipy.stats`` is not used, because its import takes longer than
that of the whole package.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cbo_gym._util.arguments import is_finite_number, require_positive
from cbo_gym._util.summation import add_up
from cbo_gym.errors import ArgumentError, short_repr

Array = np.ndarray


def _normal_quantile(uniforms: Array) -> Array:
    # Imported here, because it takes a quarter of the package's import time.
    from scipy.special import ndtri

    return ndtri(uniforms)


def _require_finite(name: str, value: float) -> None:
    if not is_finite_number(value):
        raise ArgumentError(f"{name} must be a finite number; given {short_repr(value)}")


def _require_ends(low: float, high: float) -> None:
    _require_finite("low", low)
    _require_finite("high", high)
    require_positive("high - low", high - low)


def _set_tuples(distribution: Distribution, *fields: str) -> None:
    """Check fields of finite numbers, one per component, and store them as tuples, which make the class hashable."""
    for field in fields:
        values = getattr(distribution, field)
        if isinstance(values, str) or not np.iterable(values) or not all(map(is_finite_number, values)):
            raise ArgumentError(f"{field} must be a list of finite numbers; given {short_repr(values)}")
        object.__setattr__(distribution, field, tuple(map(float, values)))
    counts = {len(getattr(distribution, field)) for field in fields}
    if len(counts) > 1 or 0 in counts:
        raise ArgumentError(f"{', '.join(fields)} must have one entry per component, at least one")
    weights = getattr(distribution, "weights", (1.0,))
    if min(weights) < 0 or not math.isclose(add_up(weights), 1.0, abs_tol=1e-9):
        raise ArgumentError(f"weights must be non-negative and sum to 1; given {short_repr(weights)}")


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

    @property
    def atoms(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """Values and their probabilities if there are finitely many; else ``None``."""
        return None

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> Array:
        """Return independent draws of shape ``size``."""
        return self.from_uniform(rng.random(size))


@dataclass(frozen=True)
class Zero(Distribution):
    """No noise: the constant 0. Sampling does not advance the generator."""

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
        require_positive("std", self.std)

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
        _require_ends(self.low, self.high)

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
        _set_tuples(self, "weights", "means", "stds")
        for std in self.stds:
            require_positive("every std", std)

    @property
    def mean(self) -> float:
        return float(np.dot(self.weights, self.means))

    @property
    def std(self) -> float:
        second_moments = np.square(self.stds) + np.square(self.means)
        return float(np.sqrt(np.dot(self.weights, second_moments) - self.mean**2))

    def from_uniform(self, uniforms: Array) -> Array:
        # A uniform number picks the component; its position in the component's slice is uniform again.
        edges = np.cumsum(self.weights)
        edges[-1] = 1.0
        component = np.searchsorted(edges, uniforms, side="right").clip(max=len(edges) - 1)
        lower = np.concatenate(([0.0], edges[:-1]))
        shares = (uniforms - lower[component]) / (edges - lower)[component]
        shares = np.clip(shares, np.finfo(float).tiny, 1.0 - np.finfo(float).epsneg)
        return np.asarray(self.means)[component] + np.asarray(self.stds)[component] * _normal_quantile(shares)


@dataclass(frozen=True)
class Arcsine(Distribution):
    """The arcsine distribution with a given mean and std, on ``mean +- sqrt(2) std``."""

    mean: float = 0.5
    std: float = math.sqrt(0.125)

    def __post_init__(self) -> None:
        _require_finite("mean", self.mean)
        require_positive("std", self.std)

    def from_uniform(self, uniforms: Array) -> Array:
        return self.mean + math.sqrt(2.0) * self.std * np.sin(np.pi * (uniforms - 0.5))


@dataclass(frozen=True)
class TruncatedNormal(Distribution):
    """A normal distribution, truncated to ``[low, high]``.

    ``location`` and ``scale`` are the mean and the standard deviation of the normal distribution before truncation.
    """

    location: float = 0.5
    scale: float = 0.25
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _require_finite("location", self.location)
        require_positive("scale", self.scale)
        _require_ends(self.low, self.high)

    @cached_property
    def _probabilities(self) -> tuple[float, float]:
        """Probabilities of the normal distribution below ``low``, and from ``low`` to ``high``."""
        from scipy.special import ndtr

        below = float(ndtr((self.low - self.location) / self.scale))
        return below, float(ndtr((self.high - self.location) / self.scale)) - below

    def _densities(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return ``low`` and ``high`` in standard units, and the density of the truncated standard normal at both."""
        low, high = (self.low - self.location) / self.scale, (self.high - self.location) / self.scale
        constant = math.sqrt(2.0 * math.pi) * self._probabilities[1]
        return (low, high), (math.exp(-0.5 * low**2) / constant, math.exp(-0.5 * high**2) / constant)

    @property
    def mean(self) -> float:
        _, (left, right) = self._densities()
        return self.location + self.scale * (left - right)

    @property
    def std(self) -> float:
        (low, high), (left, right) = self._densities()
        return self.scale * math.sqrt(1.0 + low * left - high * right - (left - right) ** 2)

    def from_uniform(self, uniforms: Array) -> Array:
        below, between = self._probabilities
        draws = self.location + self.scale * _normal_quantile(below + between * uniforms)
        return np.clip(draws, self.low, self.high)


@dataclass(frozen=True)
class Empirical(Distribution):
    """A distribution with a piecewise linear quantile function.

    ``quantiles`` ascend at equal steps of probability from 0 to 1; equal neighbours make an atom.
    """

    quantiles: Sequence[float]

    def __post_init__(self) -> None:
        _set_tuples(self, "quantiles")
        if len(self.quantiles) < 2 or not np.all(np.diff(self.quantiles) >= 0):
            raise ArgumentError(
                f"quantiles must be at least two numbers in ascending order; given {short_repr(self.quantiles)}"
            )

    @property
    def _intervals(self) -> tuple[Array, Array]:
        return np.array(self.quantiles[:-1]), np.array(self.quantiles[1:])

    @property
    def mean(self) -> float:
        left, right = self._intervals
        return float(np.mean(0.5 * (left + right)))

    @property
    def std(self) -> float:
        left, right = self._intervals
        second_moments = (left**2 + left * right + right**2) / 3.0
        return math.sqrt(max(float(second_moments.mean()) - self.mean**2, 0.0))

    def from_uniform(self, uniforms: Array) -> Array:
        return np.interp(uniforms, np.linspace(0.0, 1.0, len(self.quantiles)), self.quantiles)


@dataclass(frozen=True)
class Discrete(Distribution):
    """Finitely many values. ``weights`` are their probabilities and sum to 1; some may be 0."""

    values: Sequence[float]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        _set_tuples(self, "values", "weights")

    @property
    def mean(self) -> float:
        return float(np.dot(self.weights, self.values))

    @property
    def std(self) -> float:
        return float(np.sqrt(np.dot(self.weights, np.square(np.array(self.values) - self.mean))))

    @property
    def atoms(self) -> tuple[Sequence[float], Sequence[float]]:
        return self.values, self.weights

    def from_uniform(self, uniforms: Array) -> Array:
        edges = np.cumsum(self.weights)[:-1]
        return np.asarray(self.values)[np.searchsorted(edges, uniforms, side="right")]


@dataclass(frozen=True)
class DistributionFamily:
    """A prior over the parameters of a distribution.

    Args:
        kind: class of the distribution, or another function that makes one from keyword arguments.
        ranges: parameter -> ``(low, high)``; the parameters are independent and uniform in their ranges.
    """

    kind: Callable[..., Distribution]
    ranges: Mapping[str, tuple[float, float]]

    def draw(self, rng: np.random.Generator) -> Distribution:
        """Draw a distribution."""
        return self.kind(**{name: rng.uniform(low, high) for name, (low, high) in self.ranges.items()})


def multiply(distribution: Distribution, factor: float) -> Distribution | None:
    """Return the distribution of a nonzero ``factor`` times a draw; ``None`` for a class of another module."""
    match distribution:
        case Zero():
            return distribution
        case Normal(mean, std):
            return Normal(factor * mean, abs(factor) * std)
        case Uniform(low, high):
            return Uniform(*sorted((factor * low, factor * high)))
        case GaussianMixture(weights, means, stds):
            return GaussianMixture(weights, [factor * mean for mean in means], [abs(factor) * std for std in stds])
        case Arcsine(mean, std):
            return Arcsine(factor * mean, abs(factor) * std)
        case TruncatedNormal(location, scale, low, high):
            ends = sorted((factor * low, factor * high))
            return TruncatedNormal(factor * location, abs(factor) * scale, *ends)
        case Empirical(quantiles):
            return Empirical(sorted(factor * quantile for quantile in quantiles))
        case Discrete(values, weights):
            return Discrete([factor * value for value in values], weights)
    return None
