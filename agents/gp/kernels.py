"""Kernels: prior covariances of functions, with gradients in closed form.

A kernel is an expression of leaves (:class:`SquaredExponential`, :class:`Affine`, :class:`Dot`, :class:`Constant`) and
operations (:mod:`cbo_gym.agents.gp.algebra`). It does not hold its hyper-parameters: they are a vector ``theta``, or
one vector for each of g GPs that are computed together.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from cbo_gym.agents.gp.hyperparameters import Hyperparameters, log_prior

# Number of random Fourier features of a function drawn from a prior.
RANDOM_FEATURES = 256
# Shape and rate of the gamma prior of lengthscales, and its lower bound.
LENGTHSCALE_GAMMA, MIN_GAMMA_LENGTHSCALE = (3.0, 6.0), 0.01
# Lower bound of lengthscales with the lognormal prior, BoTorch's.
MIN_LENGTHSCALE = 0.025

#: Points ``... x d`` -> values of one function, ``...``, or of several, ``... x count``.
Function = Callable[[Tensor], Tensor]


class Covariance(NamedTuple):
    """Covariances of m points with n data.

    Attributes:
        cross: covariances with the data, ``... x m x n``.
        variance: prior variances of the points, ``... x m``.
        to_points: takes gradients with respect to ``cross`` and ``variance`` to those with respect to the points.
        to_theta: takes gradients with respect to ``cross`` to those with respect to ``theta``.
    """

    cross: Tensor
    variance: Tensor
    to_points: Callable[[Tensor, Tensor], Tensor]
    to_theta: Callable[[Tensor], Tensor]


#: Points ``... x m x d`` -> their covariances with the data.
CrossCovariance = Callable[[Tensor], Covariance]


class Kernel(ABC):
    """Prior covariance of functions of d inputs.

    Attributes:
        hyperparameters: the k hyper-parameters, with their priors.
        structure: key that two kernels must share to be computed together, each with its own hyper-parameters.
        broadcasts_gradients: whether ``to_points`` at points ``b x 1 x d`` also takes gradients ``b x s x n``, of s
            samples that share the points.
    """

    hyperparameters: Hyperparameters
    structure: Hashable
    broadcasts_gradients = False

    @abstractmethod
    def at(self, theta: Tensor, data: Tensor, log_scale: Tensor | None = None) -> CrossCovariance:
        """Return the covariances with data as a function of the points.

        Args:
            theta: hyper-parameters, ``(k,)``, or ``g x k`` for g GPs together.
            data: ``n x d``, or ``g x n x d``.
            log_scale: logarithm of a factor by which covariances are multiplied, a scalar or ``(g,)``; None for 1.
        """

    def covariance(self, theta: Tensor, points: Tensor) -> Tensor:
        """Return covariances within sets of points, ``... x q x d`` to ``... x q x q``, differentiable by autograd."""
        return self.at(theta, points)(points).cross

    def log_prior(self, theta: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
        """Return log densities of all hyper-parameters of g GPs, ``g x k``, and their gradients.

        The kernel's come first in ``theta``; ``prior`` has the priors of all, ``g x 5 x k``.
        """
        return log_prior(theta, prior)

    def draw(self, theta: Tensor, generator: torch.Generator, count: int) -> Function:
        """Return ``count`` functions drawn from the prior: points ``... x d`` to values ``... x count``.

        With ``theta`` of shape ``g x k``, ``count`` functions are drawn from each of the g priors, for points
        ``g x b x d``.

        Raises:
            NotImplementedError: if the kernel cannot be drawn from.
        """
        raise NotImplementedError(f"{type(self).__name__} has no draws")

    def features(self, theta: Tensor) -> tuple[int, Function] | None:
        """Return the number f of features whose inner products are covariances, and the map from points to them.

        The map takes ``... x d`` to ``... x f``. None if the kernel has no finite number of features.
        """
        return None

    def set_zeros(self, zeros: Tensor) -> None:  # noqa: B027  (most kernels do not need it)
        """Set the rescaled values, ``(d,)``, of inputs that are 0 in native units; the data fill [0, 1]."""

    def with_categories(self, categories: Mapping[int, int]) -> Kernel:
        """Return the kernel for inputs that include categories.

        Args:
            categories: input -> number of categories, which are equally spaced in [0, 1].

        Raises:
            NotImplementedError: if the kernel cannot have such inputs.
        """
        if categories:
            raise NotImplementedError(f"{type(self).__name__} takes no categories")
        return self

    def with_lengthscale(self, length: float) -> Tensor:
        """Return the initial hyper-parameters, ``(k,)``, with one lengthscale for all inputs."""
        hyperparameters = self.hyperparameters
        return torch.where(hyperparameters.is_lengthscale, math.log(length), hyperparameters.start)


class SquaredExponential(Kernel):
    """``exp(-|x - x'|^2 / 2)`` of inputs in units of their lengthscales, whose logarithms are the hyper-parameters.

    The prior is BoTorch's default, dimension-scaled and lognormal (Hvarfner et al. 2024).

    Args:
        dim: number of inputs.
        lengthscales: the hyper-parameters; None for the default.
    """

    broadcasts_gradients = True

    def __init__(self, dim: int, lengthscales: Hyperparameters | None = None) -> None:
        self.dim = dim
        if lengthscales is None:
            location, scale = math.sqrt(2.0) + 0.5 * math.log(dim), math.sqrt(3.0)
            lengthscales = Hyperparameters.lognormal([location] * dim, [scale] * dim)
            lengthscales.lower[:] = math.log(MIN_LENGTHSCALE)
        lengthscales.is_lengthscale[:] = True
        self.hyperparameters = lengthscales
        self.structure = type(self), dim, tuple(lengthscales.lower.tolist())

    @classmethod
    def with_gamma_prior(cls, dim: int) -> SquaredExponential:
        """Return a kernel with a Gamma(3, 6) prior of the lengthscales, BoTorch's default for many years."""
        lengthscales = Hyperparameters.gamma(*LENGTHSCALE_GAMMA, dim)
        lengthscales.lower[:] = math.log(MIN_GAMMA_LENGTHSCALE)
        return cls(dim, lengthscales)

    def with_categories(self, categories: Mapping[int, int]) -> Kernel:
        return OneHot(self, categories) if categories else self

    def at(self, theta: Tensor, data: Tensor, log_scale: Tensor | None = None) -> CrossCovariance:
        # The exponent of scaled points a and b is one inner product, of (a, -|a|^2 / 2, 1) and (b, 1, -|b|^2 / 2).
        # Therefore covariances and gradients take few passes over the matrix.
        inverse = (-theta).exp().unsqueeze(-2)
        # Centre the points, because the product loses digits far from the origin. The mean of no data is NaN.
        origin = data.mean(-2, keepdim=True).nan_to_num()
        scaled_data = (data - origin) * inverse
        data_exponent = -0.5 * scaled_data.square().sum(-1, keepdim=True)
        data_ones = torch.ones_like(data_exponent)
        variance = theta.new_ones(1) if log_scale is None else log_scale.exp().unsqueeze(-1)
        scaled_exponent = data_exponent if log_scale is None else data_exponent + log_scale[..., None, None]
        rows = torch.cat([scaled_data, data_ones, scaled_exponent], -1)

        def covariance(points: Tensor) -> Covariance:
            scaled, exponent, ones = scaled_data, data_exponent, data_ones
            if points is not data:
                scaled = (points - origin) * inverse
                exponent = -0.5 * scaled.square().sum(-1, keepdim=True)
                ones = torch.ones_like(exponent)
            cross = (torch.cat([scaled, exponent, ones], -1) @ rows.mT).exp_()

            def to_points(gradient: Tensor, _: Tensor) -> Tensor:
                sums = (gradient * cross) @ rows[..., :-1]
                return (sums[..., :-1] - sums[..., -1:] * scaled) * inverse

            def to_theta(gradient: Tensor) -> Tensor:
                weights = gradient * cross
                sums = weights @ rows[..., :-1]
                by_points = (scaled * (sums[..., -1:] * scaled - 2.0 * sums[..., :-1])).sum(-2)
                return by_points + (weights.sum(-2).unsqueeze(-2) @ scaled_data.square()).squeeze(-2)

            return Covariance(cross, variance.expand(cross.shape[:-1]), to_points, to_theta)

        return covariance

    def draw(self, theta: Tensor, generator: torch.Generator, count: int) -> Function:
        """Draw functions that share their random Fourier features (Rahimi & Recht 2007)."""
        shape = (*theta.shape[:-1], count + self.dim, RANDOM_FEATURES)
        normal = torch.randn(shape, dtype=torch.float64, generator=generator).to(theta)
        phases = torch.rand((*shape[:-2], 1, shape[-1]), dtype=torch.float64, generator=generator).to(theta)
        weights = (2.0 / RANDOM_FEATURES) ** 0.5 * normal[..., :count, :].mT
        frequencies = normal[..., count:, :] * (-theta).exp().unsqueeze(-1)
        return lambda points: (points @ frequencies + 2.0 * math.pi * phases).cos() @ weights


class OneHot(Kernel):
    """A squared exponential of numbers and of one-hot encoded categories, which are all at distance 1.

    A categorical input becomes one column for each category, all with the same lengthscale.

    Args:
        kernel: the squared exponential of all inputs, with its hyper-parameters.
        categories: input -> number of categories, which are equally spaced in [0, 1].
    """

    broadcasts_gradients = True

    def __init__(self, kernel: SquaredExponential, categories: Mapping[int, int]) -> None:
        self.hyperparameters = kernel.hyperparameters
        self.structure = kernel.structure, tuple(categories.items())
        self._dim, self._categories = kernel.dim, categories
        # For each column of the encoding, the index of its input.
        self._inputs = torch.tensor(
            [index for index in range(kernel.dim) for _ in range(self._categories.get(index, 1))]
        )
        self._expanded = SquaredExponential(len(self._inputs))

    def _expand(self, points: Tensor) -> Tensor:
        """Return points with one-hot encoded categories, ``... x d`` to ``... x k``."""
        columns = []
        for index, column in enumerate(points.split(1, -1)):
            if (count := self._categories.get(index)) is None:
                columns.append(column)
            else:
                levels = torch.arange(count, device=points.device)
                nearest = (column.detach() * (count - 1)).round().clamp(0, count - 1)
                columns.append((nearest == levels).to(points) * math.sqrt(0.5))
        return torch.cat(columns, -1)

    def _sum(self, gradient: Tensor) -> Tensor:
        """Return the sum of the columns of each input, ``... x k`` to ``... x d``."""
        sums = gradient.new_zeros(*gradient.shape[:-1], self._dim)
        return sums.index_add_(-1, self._inputs.to(gradient.device), gradient)

    def at(self, theta: Tensor, data: Tensor, log_scale: Tensor | None = None) -> CrossCovariance:
        function = self._expanded.at(theta[..., self._inputs], self._expand(data), log_scale)

        def covariance(points: Tensor) -> Covariance:
            inner = function(self._expand(points))

            def to_points(cross: Tensor, variance: Tensor) -> Tensor:
                gradient = self._sum(inner.to_points(cross, variance))
                gradient[..., list(self._categories)] = 0.0
                return gradient

            return inner._replace(to_points=to_points, to_theta=lambda gradient: self._sum(inner.to_theta(gradient)))

        return covariance

    def draw(self, theta: Tensor, generator: torch.Generator, count: int) -> Function:
        drawn = self._expanded.draw(theta[..., self._inputs], generator, count)
        return lambda points: drawn(self._expand(points))


class Affine(Kernel):
    """``w_0 + sum_i w_i x_i x_i'`` of inputs shifted to an origin and divided by a unit, which are not fitted.

    The variances w have Gamma(2, 1) priors. The origin of an input is its native zero or, if the data do not contain
    zero, their end next to it. The unit is the greatest distance of the data from the origin. With another origin c,
    the product x f(z) of the input and a function of others would be (x - c) f(z) + c f(z), a sum of two terms with the
    same f. Under the prior that sum is so improbable that a fit would see no structure in the data.

    Args:
        dim: number of inputs.
    """

    broadcasts_gradients = True

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.structure = type(self), dim
        self.hyperparameters = Hyperparameters.join(
            [Hyperparameters.gamma(2.0, 1.0, 1 + dim), Hyperparameters.flat([0.0] * dim + [1.0] * dim, free=False)]
        )

    def set_zeros(self, zeros: Tensor) -> None:
        origin = zeros.cpu().clamp(0.0, 1.0)
        self.hyperparameters.start[1 + self.dim :] = torch.cat([origin, torch.maximum(origin, 1.0 - origin)])

    def _split(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return w_0, ``... x 1``, then the w_i and the origin and unit of each input, ``... x 1 x d`` each."""
        constant, slopes, origin, unit = theta.split_with_sizes([1, self.dim, self.dim, self.dim], -1)
        return constant.exp(), slopes.exp().unsqueeze(-2), origin.unsqueeze(-2), unit.unsqueeze(-2)

    def at(self, theta: Tensor, data: Tensor, log_scale: Tensor | None = None) -> CrossCovariance:
        constant, slopes, origin, unit = self._split(theta)
        if log_scale is not None:
            factor = log_scale.exp().unsqueeze(-1)
            constant, slopes = constant * factor, slopes * factor.unsqueeze(-1)
        scaled_data = (data - origin) / unit
        weighted = slopes * scaled_data

        def covariance(points: Tensor) -> Covariance:
            scaled = scaled_data if points is data else (points - origin) / unit
            variance = constant + (scaled.square() * slopes).sum(-1)

            def to_points(cross_gradient: Tensor, variance_gradient: Tensor) -> Tensor:
                return (cross_gradient @ weighted + 2.0 * variance_gradient.unsqueeze(-1) * slopes * scaled) / unit

            def to_theta(gradient: Tensor) -> Tensor:
                by_slope = (scaled * (gradient @ weighted)).sum(-2)
                fixed = by_slope.new_zeros(*by_slope.shape[:-1], 2 * self.dim)
                return torch.cat([constant * gradient.sum((-2, -1)).unsqueeze(-1), by_slope, fixed], -1)

            cross = (scaled @ weighted.mT).add_(constant.unsqueeze(-1))
            return Covariance(cross, variance, to_points, to_theta)

        return covariance

    def features(self, theta: Tensor) -> tuple[int, Function]:
        constant, slopes, origin, unit = self._split(theta)

        def function(points: Tensor) -> Tensor:
            intercept = constant.sqrt().unsqueeze(-2).expand(*points.shape[:-1], 1)
            return torch.cat([intercept, slopes.sqrt() * (points - origin) / unit], -1)

        return 1 + self.dim, function


class Dot(Kernel):
    """``sum_i x_i x_i'``, without hyper-parameters."""

    hyperparameters = Hyperparameters.flat([])
    structure = "dot"

    def at(self, theta: Tensor, data: Tensor, log_scale: Tensor | None = None) -> CrossCovariance:
        factor = theta.new_ones(1, 1) if log_scale is None else log_scale.exp()[..., None, None]
        weighted = factor * data

        def covariance(points: Tensor) -> Covariance:
            def to_points(cross_gradient: Tensor, variance_gradient: Tensor) -> Tensor:
                return cross_gradient @ weighted + 2.0 * variance_gradient.unsqueeze(-1) * factor * points

            variance = (factor * points.square()).sum(-1)
            return Covariance(points @ weighted.mT, variance, to_points, lambda gradient: theta)

        return covariance


class Constant(Kernel):
    """The covariance 1 of constant functions, without hyper-parameters."""

    hyperparameters = Hyperparameters.flat([])
    structure = "constant"

    def with_categories(self, categories: Mapping[int, int]) -> Kernel:
        return self

    def at(self, theta: Tensor, data: Tensor, log_scale: Tensor | None = None) -> CrossCovariance:
        factor = theta.new_ones(1) if log_scale is None else log_scale.exp().unsqueeze(-1)

        def covariance(points: Tensor) -> Covariance:
            variance = factor.expand(points.shape[:-1])
            cross = variance.unsqueeze(-1).expand(*points.shape[:-1], data.shape[-2])
            return Covariance(cross, variance, lambda *_: torch.zeros_like(points), lambda gradient: theta)

        return covariance
