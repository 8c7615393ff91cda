"""The building blocks of the surrogates' kernels: stationary kernels, and variances with a prior.

The kernels are GPyTorch modules, with two closed forms besides: between points and data with the gradient in the
points, for searches (``against``), and between the data with that in the hyper-parameters, for fits (``closed_form``).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.constraints import GreaterThan, Positive
from gpytorch.kernels import Kernel
from gpytorch.priors import GammaPrior
from torch import Tensor

from cbo_gym.agents.surrogates.gp.closed_form import (
    Against,
    CompositeCovariances,
    Covariances,
    Function,
    Hyperparameters,
    Prior,
    Pullback,
)
from cbo_gym.agents.surrogates.gp.noise import log_lognormal

SHAPE, RATE = 2.0, 1.0  # of the variances' gamma prior
RANDOM_FEATURES = 256  # of a function drawn from a prior
LENGTHS = (3.0, 6.0)  # shape and rate of the gamma prior of a Matern kernel's lengthscales, once BoTorch's default
LEAST_LENGTH = 0.01
LARGEST = 700.0  # logarithm of a variance that a line search may try; its exponential is still a number

Ascent = Callable[[Tensor], Tensor]  # gradients in covariances ``... x n`` to those in scaled points ``... x d``


class StationaryKernel(Kernel):
    """A kernel of the distance of points in units of its lengthscales, 1 where they are equal.

    A subclass says what its covariances are, and what of their gradients is its own: in a squared distance it is minus
    half the ``steepness`` times what ``of_squares`` weighs, and in a point what ``beside`` makes of the same.

    Args:
        dim: number of inputs.
        prior: of the lengthscales, a GPyTorch prior.
        constraint: of the lengthscales, with a lower bound and without a transform.
    """

    has_lengthscale = True
    steepness: float

    def __init__(self, dim: int, prior: Any, constraint: Any) -> None:
        super().__init__(ard_num_dims=dim, lengthscale_prior=prior, lengthscale_constraint=constraint)

    @abstractmethod
    def log_prior(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        """Log density of lengthscales, and its gradient with respect to their logarithms ``(d,)``."""

    @abstractmethod
    def of_squares(self, squares: np.ndarray) -> tuple[np.ndarray, Pullback]:
        """Covariances at squared distances, of any shape, and what weighs gradients with respect to them."""

    @staticmethod
    @abstractmethod
    def beside(data: Tensor, height: Tensor) -> Callable[[Tensor], tuple[Tensor, Ascent]]:
        """Covariances, times ``height``, of scaled points with scaled data, and the gradients in these points."""

    @staticmethod
    def origin(data: Tensor) -> Tensor | float:
        """The point that is subtracted from all points first."""
        return 0.0

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: object) -> Tensor:
        return torch.ones_like(x1[..., 0]) if diag else self.against(x2)(x1).cross

    def against(self, data: Tensor, variance: Tensor | None = None) -> Against:
        """Its prior beside ``data``, times a variance, which is 1 if None."""
        return self.against_of(self.numbers(), data, variance)

    def numbers(self) -> tuple[Tensor, ...]:
        """Its lengthscales, ``1 x d``."""
        return (self.raw_lengthscale.detach(),)  # the constraint has no transform: raw lengthscales are lengthscales

    @classmethod
    def against_of(cls, numbers: Sequence[Tensor], data: Tensor, variance: Tensor | None = None) -> Against:
        """The prior of one kernel, or of g of them at once, beside data ``n x d`` or ``g x n x d``.

        Args:
            numbers: of :meth:`numbers`, or g of these stacked.
            data: as said.
            variance: a scalar, or ``g x 1 x 1``; 1 if None.
        """
        inverse, origin = numbers[0].reciprocal(), cls.origin(data)
        height = data.new_ones(()) if variance is None else variance
        covariances = cls.beside((data - origin) * inverse, height)

        def prior(points: Tensor) -> Prior:
            cross, ascend = covariances((points - origin) * inverse)
            variances = height.squeeze(-1).expand(cross.shape[:-1])
            return Prior(cross, variances, lambda gradient, _: ascend(gradient) * inverse)

        return prior

    def closed_form(self, points: np.ndarray) -> StationaryCovariances:
        """Its covariances of points ``n x d``."""
        return StationaryCovariances(self, points)


class StationaryCovariances(Covariances):
    """Covariances under a stationary kernel; the hyper-parameters are the logarithms of its lengthscales."""

    def __init__(self, kernel: StationaryKernel, points: np.ndarray) -> None:
        self._kernel = kernel
        self._side = len(points)
        self._squares = np.square(points.T[:, :, None] - points.T[:, None]).reshape(points.shape[1], -1)

    def current(self) -> np.ndarray:
        return self._kernel.raw_lengthscale.detach().log().flatten().cpu().numpy()

    def adopt(self, values: np.ndarray) -> None:
        raw = self._kernel.raw_lengthscale
        raw.data = torch.from_numpy(np.exp(values)).to(raw).reshape(raw.shape)

    def bounds(self) -> list[tuple[float, float]]:
        least = float(self._kernel.raw_lengthscale_constraint.lower_bound)
        return [(math.log(least), math.inf)] * len(self._squares)

    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        return self._kernel.log_prior(values)

    def matrix(self, values: np.ndarray) -> tuple[np.ndarray, Pullback]:
        precisions = np.exp(-2.0 * values)
        flat, weigh = self._kernel.of_squares(precisions @ self._squares)

        def pullback(gradient: np.ndarray) -> np.ndarray:
            return self._kernel.steepness * precisions * (self._squares @ weigh(gradient.ravel()))

        return flat.reshape(self._side, self._side), pullback


class SquaredExponential(StationaryKernel):
    """BoTorch's default kernel, with its dimension-scaled lognormal prior of the lengthscales (Hvarfner et al. 2024).

    The exponent ``-|a - b|^2 / 2`` of scaled points is one matrix product, of ``(a, -|a|^2 / 2, 1)`` and
    ``(b, 1, -|b|^2 / 2)``, so that neither values nor gradients take more than two passes over the entries.

    Args:
        dim: number of inputs.
    """

    steepness = 1.0

    def __init__(self, dim: int) -> None:
        usual = get_covar_module_with_dim_scaled_prior(ard_num_dims=dim)
        super().__init__(dim, usual.lengthscale_prior, usual.raw_lengthscale_constraint)
        self._prior = float(usual.lengthscale_prior.loc), float(usual.lengthscale_prior.scale)

    def log_prior(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        return log_lognormal(logs, *self._prior)

    def of_squares(self, squares: np.ndarray) -> tuple[np.ndarray, Pullback]:
        values = np.exp(-0.5 * squares)
        return values, lambda gradient: gradient * values

    @staticmethod
    def origin(data: Tensor) -> Tensor:
        return data.mean(-2, keepdim=True)  # far from the origin the product loses digits

    @staticmethod
    def beside(data: Tensor, height: Tensor) -> Callable[[Tensor], tuple[Tensor, Ascent]]:
        length = height.log() - 0.5 * data.square().sum(-1, keepdim=True)
        right = torch.cat([data, torch.ones_like(length), length], -1)

        def covariances(points: Tensor) -> tuple[Tensor, Ascent]:
            length = -0.5 * points.square().sum(-1, keepdim=True)
            cross = (torch.cat([points, length, torch.ones_like(length)], -1) @ right.mT).exp_()

            def ascend(gradient: Tensor) -> Tensor:
                sums = (gradient * cross) @ right[..., :-1]
                return sums[..., :-1] - sums[..., -1:] * points

            return cross, ascend

        return covariances

    def among(self, points: Tensor) -> Tensor:
        """Prior covariances of points among themselves, ``... x q x d`` to ``... x q x q``; differentiable."""
        scaled = points / self.raw_lengthscale.detach()
        return (-0.5 * (scaled.unsqueeze(-2) - scaled.unsqueeze(-3)).square().sum(-1)).exp()

    def draw(self, generator: torch.Generator) -> Function:
        """A function drawn from its prior."""
        drawn = self.draws(generator, 1)
        return lambda points: drawn(points).squeeze(-1)

    def draws(self, generator: torch.Generator, count: int) -> Function:
        """Functions drawn from its prior, by random Fourier features (Rahimi & Recht 2007), which they share.

        Args:
            generator: of the draws.
            count: of functions.

        Returns:
            points ``... x d`` to values ``... x count``.
        """
        lengthscale = self.raw_lengthscale.detach().flatten()
        dim = len(lengthscale)
        normal = torch.randn((count + dim, RANDOM_FEATURES), dtype=torch.float64, generator=generator).to(lengthscale)
        turns = torch.rand(RANDOM_FEATURES, dtype=torch.float64, generator=generator).to(lengthscale)
        weights = (2.0 / RANDOM_FEATURES) ** 0.5 * normal[:count].T
        frequencies = normal[count:] / lengthscale[:, None]
        return lambda points: (points @ frequencies + 2.0 * math.pi * turns).cos() @ weights


class Matern52(StationaryKernel):
    """A Matern 5/2 kernel; its lengthscales have a Gamma(3, 6) prior, BoTorch's default for many years.

    Args:
        dim: number of inputs.
    """

    steepness = 5.0 / 3.0

    def __init__(self, dim: int) -> None:
        shape, rate = LENGTHS
        least = GreaterThan(LEAST_LENGTH, transform=None, initial_value=(shape - 1.0) / rate)
        super().__init__(dim, GammaPrior(shape, rate), least)

    def log_prior(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        return log_gamma(logs, *LENGTHS)

    def of_squares(self, squares: np.ndarray) -> tuple[np.ndarray, Pullback]:
        distances = np.sqrt(5.0 * squares)
        falling = np.exp(-distances)
        linear = 1.0 + distances
        return falling * (linear + distances**2 / 3.0), lambda gradient: gradient * falling * linear

    @staticmethod
    def beside(data: Tensor, height: Tensor) -> Callable[[Tensor], tuple[Tensor, Ascent]]:
        def covariances(points: Tensor) -> tuple[Tensor, Ascent]:
            distances = math.sqrt(5.0) * torch.cdist(points, data, compute_mode="donot_use_mm_for_euclid_dist")
            falling = height * torch.exp(-distances)
            linear = 1.0 + distances

            def ascend(gradient: Tensor) -> Tensor:
                weights = gradient * falling * linear
                return Matern52.steepness * (weights @ data - points * weights.sum(-1, keepdim=True))

            return falling * (linear + distances.square() / 3.0), ascend

        return covariances


class VarianceKernel(Kernel):
    """A kernel whose terms have variances of their own, each with a Gamma(2, 1) prior and 1 at first.

    Args:
        terms: number of variances, at least 1.
    """

    def __init__(self, terms: int) -> None:
        super().__init__()
        self.register_parameter("raw_variances", torch.nn.Parameter(torch.zeros(terms)))
        self.register_constraint("raw_variances", Positive(initial_value=1.0))
        self.register_prior(
            "variances_prior",
            GammaPrior(SHAPE, RATE),
            _variances,
            _set_variances,
        )

    @property
    def variances(self) -> Tensor:
        """Shape ``(terms,)``."""
        return self.raw_variances_constraint.transform(self.raw_variances)


def _variances(kernel: VarianceKernel) -> Tensor:
    return kernel.variances


def _set_variances(kernel: VarianceKernel, value: Tensor) -> None:
    kernel.initialize(raw_variances=kernel.raw_variances_constraint.inverse_transform(value))


class LogVariances(Hyperparameters):
    """The logarithms of the variances of a kernel's terms."""

    def __init__(self, kernel: VarianceKernel) -> None:
        self._kernel = kernel

    def current(self) -> np.ndarray:
        return self._kernel.variances.detach().log().cpu().numpy()

    def adopt(self, values: np.ndarray) -> None:
        raw, constraint = self._kernel.raw_variances, self._kernel.raw_variances_constraint
        raw.data = constraint.inverse_transform(torch.from_numpy(np.exp(values)).to(raw))

    def bounds(self) -> list[tuple[float, float]]:
        return [(-math.inf, math.inf)] * self._kernel.raw_variances.numel()

    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        return log_gamma(values, SHAPE, RATE)


class ScaledCovariances(CompositeCovariances):
    """A variance times other covariances, plus known ones, ``n x n``."""

    def __init__(self, variance: Hyperparameters, scaled: Covariances, known: np.ndarray | float = 0.0) -> None:
        super().__init__(variance, scaled)
        self._scaled, self._known = scaled, known

    def matrix(self, values: np.ndarray) -> tuple[np.ndarray, Pullback]:
        (log_variance,), own = self.split(values)
        variance = math.exp(min(log_variance, LARGEST))
        scaled, pull = self._scaled.matrix(own)

        def pullback(gradient: np.ndarray) -> np.ndarray:
            return variance * np.concatenate([[np.vdot(gradient, scaled)], pull(gradient)])

        return variance * scaled + self._known, pullback


class ScaledMatern52(VarianceKernel):
    """A variance times the Matern 5/2 kernel.

    Args:
        dim: number of inputs.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(terms=1)
        self.shape = Matern52(dim)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: object) -> Tensor:
        return self.variances * self.shape.forward(x1, x2, diag=diag)

    def against(self, data: Tensor) -> Against:
        """Its prior beside ``data``."""
        return self.shape.against(data, self.variances.detach().squeeze())

    def closed_form(self, points: np.ndarray) -> ScaledCovariances:
        """Its covariances of points ``n x d``."""
        return ScaledCovariances(LogVariances(self), self.shape.closed_form(points))


def log_gamma(logs: np.ndarray, shape: float, rate: float) -> tuple[float, np.ndarray]:
    """The summed log density of Gamma(shape, rate) variables, and its gradient with respect to their logarithms."""
    numbers = np.exp(logs)
    constant = len(logs) * (shape * math.log(rate) - math.lgamma(shape))
    return float(((shape - 1.0) * logs - rate * numbers).sum()) + constant, shape - 1.0 - rate * numbers
