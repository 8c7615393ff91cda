"""The building blocks of the surrogates' kernels: stationary kernels, and variances with a prior.

The kernels are GPyTorch modules, with two closed forms besides: between points and data with the gradient in the
points, for searches (``against``), and between the data with that in the hyper-parameters, for fits (``closed_form``).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
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
LENGTHS = (3.0, 6.0)  # shape and rate of a gamma prior of lengthscales, once BoTorch's default
LEAST_LENGTH = 0.01
LARGEST = 700.0  # logarithm of a variance that a line search may try; its exponential is still a number


class SquaredExponential(Kernel):
    """BoTorch's default kernel, with its dimension-scaled lognormal prior of the lengthscales (Hvarfner et al. 2024).

    The exponent ``-|a - b|^2 / 2`` of scaled points is one matrix product, of ``(a, -|a|^2 / 2, 1)`` and
    ``(b, 1, -|b|^2 / 2)``, so that neither values nor gradients take more than two passes over the entries.

    Args:
        dim: number of inputs.
    """

    has_lengthscale = True

    def __init__(self, dim: int) -> None:
        prior, constraint = self.lengths(dim)
        super().__init__(ard_num_dims=dim, lengthscale_prior=prior, lengthscale_constraint=constraint)

    @staticmethod
    def lengths(dim: int) -> tuple[Any, Any]:
        """The lengthscales' prior, and their constraint, which has a lower bound and no transform."""
        usual = get_covar_module_with_dim_scaled_prior(ard_num_dims=dim)
        return usual.lengthscale_prior, usual.raw_lengthscale_constraint

    def log_prior(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        """Log density of lengthscales, and its gradient with respect to their logarithms ``(d,)``."""
        return log_lognormal(logs, *self._lognormal)

    @cached_property
    def _lognormal(self) -> tuple[float, float]:
        """Location and scale of the prior: numbers, since a fit asks for its density hundreds of times."""
        prior: Any = self.lengthscale_prior
        return float(prior.loc), float(prior.scale)

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
        inverse = numbers[0].reciprocal()
        # Far from the origin the product loses digits; without data there is no mean.
        origin = data.mean(-2, keepdim=True).nan_to_num()
        height = data.new_ones(()) if variance is None else variance
        scaled = (data - origin) * inverse
        length = height.log() - 0.5 * scaled.square().sum(-1, keepdim=True)
        right = torch.cat([scaled, torch.ones_like(length), length], -1)

        def prior(points: Tensor) -> Prior:
            own = (points - origin) * inverse
            length = -0.5 * own.square().sum(-1, keepdim=True)
            cross = (torch.cat([own, length, torch.ones_like(length)], -1) @ right.mT).exp_()

            def pullback(gradient: Tensor, _: Tensor) -> Tensor:
                sums = (gradient * cross) @ right[..., :-1]
                return (sums[..., :-1] - sums[..., -1:] * own) * inverse

            return Prior(cross, height.squeeze(-1).expand(cross.shape[:-1]), pullback)

        return prior

    def closed_form(self, points: np.ndarray) -> SquaredExponentials:
        return SquaredExponentials(self, points)

    def among(self, points: Tensor) -> Tensor:
        scaled = points / self.raw_lengthscale.detach()
        return (-0.5 * (scaled.unsqueeze(-2) - scaled.unsqueeze(-3)).square().sum(-1)).exp()

    def draw(self, generator: torch.Generator) -> Function:
        drawn = self.draws(generator, 1)
        return lambda points: drawn(points).squeeze(-1)

    def draws(self, generator: torch.Generator, count: int) -> Function:
        """Functions drawn from its prior, by random Fourier features that they share (Rahimi & Recht 2007).

        They take points ``... x d`` to values ``... x count``.
        """
        lengthscale = self.raw_lengthscale.detach().flatten()
        dim = len(lengthscale)
        normal = torch.randn((count + dim, RANDOM_FEATURES), dtype=torch.float64, generator=generator).to(lengthscale)
        turns = torch.rand(RANDOM_FEATURES, dtype=torch.float64, generator=generator).to(lengthscale)
        weights = (2.0 / RANDOM_FEATURES) ** 0.5 * normal[:count].T
        frequencies = normal[count:] / lengthscale[:, None]
        return lambda points: (points @ frequencies + 2.0 * math.pi * turns).cos() @ weights


class SquaredExponentials(Covariances):
    """Covariances under a squared-exponential kernel; the hyper-parameters are the logarithms of its lengthscales."""

    def __init__(self, kernel: SquaredExponential, points: np.ndarray) -> None:
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
        flat = np.exp(-0.5 * (precisions @ self._squares))

        def pullback(gradient: np.ndarray) -> np.ndarray:
            return precisions * (self._squares @ (gradient.ravel() * flat))

        return flat.reshape(self._side, self._side), pullback


class ShortSquaredExponential(SquaredExponential):
    """The same with a Gamma(3, 6) prior of the lengthscales, BoTorch's default for many years.

    Args:
        dim: number of inputs.
    """

    @staticmethod
    def lengths(dim: int) -> tuple[Any, Any]:
        shape, rate = LENGTHS
        least = GreaterThan(LEAST_LENGTH, transform=None, initial_value=(shape - 1.0) / rate)
        return GammaPrior(shape, rate), least

    def log_prior(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        return log_gamma(logs, *LENGTHS)


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


class StackableKernel(VarianceKernel):
    """A kernel with variances that is a :class:`~cbo_gym.agents.surrogates.gp.closed_form.WithStackedPrior`."""

    @abstractmethod
    def numbers(self) -> tuple[Tensor, ...]:
        """All of its hyper-parameters."""

    @classmethod
    @abstractmethod
    def against_of(cls, numbers: Sequence[Tensor], data: Tensor) -> Against:
        """The prior of one kernel, or of g of them at once, beside data ``n x d`` or ``g x n x d``.

        Args:
            numbers: of :meth:`numbers`, or g of these stacked.
            data: as said.
        """

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: object) -> Tensor:
        prior = self.against(x2)(x1)
        return prior.variance if diag else prior.cross

    def against(self, data: Tensor) -> Against:
        return self.against_of(self.numbers(), data)


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


class ScaledSquaredExponential(VarianceKernel):
    """A variance times a :class:`ShortSquaredExponential` kernel.

    Args:
        dim: number of inputs.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(terms=1)
        self.shape = ShortSquaredExponential(dim)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: object) -> Tensor:
        return self.variances * self.shape.forward(x1, x2, diag=diag)

    def against(self, data: Tensor) -> Against:
        return self.shape.against(data, self.variances.detach().squeeze())

    def closed_form(self, points: np.ndarray) -> ScaledCovariances:
        return ScaledCovariances(LogVariances(self), self.shape.closed_form(points))


def log_gamma(logs: np.ndarray, shape: float, rate: float) -> tuple[float, np.ndarray]:
    """The summed log density of Gamma(shape, rate) variables, and its gradient with respect to their logarithms."""
    numbers = np.exp(logs)
    constant = len(logs) * (shape * math.log(rate) - math.lgamma(shape))
    return float(((shape - 1.0) * logs - rate * numbers).sum()) + constant, shape - 1.0 - rate * numbers
