"""What the surrogates' kernels are made of: the squared-exponential kernel, and variances with a prior.

The kernels are GPyTorch modules, with two closed forms besides: between points and data with the gradient in the
points, for searches (``against``), and between the data with that in the hyper-parameters, for fits (``closed_form``).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.constraints import GreaterThan, Positive
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel
from gpytorch.priors import GammaPrior
from torch import Tensor

from cbo_gym.agents.surrogates.gp.fitting import Composed, Covariances, Hyperparameters, Pullback
from cbo_gym.agents.surrogates.gp.noise import log_lognormal
from cbo_gym.agents.surrogates.gp.prediction import Against, Prior

SHAPE, RATE = 2.0, 1.0  # of the variances' gamma prior
RANDOM_FEATURES = 256  # of a function drawn from a prior
LENGTHS = (3.0, 6.0)  # shape and rate of the gamma prior of a Matern kernel's lengthscales, once BoTorch's default
LEAST_LENGTH = 0.01
LARGEST = 700.0  # logarithm of a variance that a line search may try; its exponential is still a number

Function = Callable[[Tensor], Tensor]  # points ``... x d`` to values ``...``, differentiable


class SquaredExponential(RBFKernel):
    """BoTorch's default kernel, with its dimension-scaled lognormal prior of the lengthscales (Hvarfner et al. 2024).

    The exponent ``-|a - b|^2 / 2`` of scaled points is one matrix product, of ``(a, -|a|^2 / 2, 1)`` and
    ``(b, 1, -|b|^2 / 2)``, so that neither values nor gradients take more than two passes over the entries.

    Args:
        dim: number of inputs.
    """

    def __init__(self, dim: int) -> None:
        usual = get_covar_module_with_dim_scaled_prior(ard_num_dims=dim)
        super().__init__(
            ard_num_dims=dim,
            lengthscale_prior=usual.lengthscale_prior,
            lengthscale_constraint=usual.raw_lengthscale_constraint,
        )

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: object) -> Tensor:
        return torch.ones_like(x1[..., 0]) if diag else self.against(x2)(x1).cross

    def against(self, data: Tensor, variance: Tensor | None = None) -> Against:
        """Its prior beside ``data``, times a variance, which is 1 if None."""
        # the constraint has no transform: raw lengthscales are lengthscales; points far from the origin lose digits
        inverse, centre = self.raw_lengthscale.detach().reciprocal(), data.mean(0)
        height = data.new_ones(()) if variance is None else variance
        scaled = (data - centre) * inverse
        length = height.log() - 0.5 * scaled.square().sum(-1, keepdim=True)
        right = torch.cat([scaled, torch.ones_like(length), length], -1)

        def prior(points: Tensor) -> Prior:
            own = (points - centre) * inverse
            length = -0.5 * own.square().sum(-1, keepdim=True)
            cross = (torch.cat([own, length, torch.ones_like(length)], -1) @ right.T).exp_()

            def pullback(cross_gradient: Tensor, _: Tensor) -> Tensor:
                sums = (cross_gradient * cross) @ right[:, :-1]
                return (sums[..., :-1] - sums[..., -1:] * own) * inverse

            return Prior(cross, height.expand(cross.shape[:-1]), pullback)

        return prior

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

    def closed_form(self, points: np.ndarray) -> SquaredExponentials:
        """Its covariances of points ``n x d``."""
        return SquaredExponentials(self, points)


class Stationary(Covariances):
    """Covariances under a kernel of scaled distances; the hyper-parameters are the logarithms of its lengthscales."""

    def __init__(self, kernel: SquaredExponential | Matern, points: np.ndarray) -> None:
        self._kernel = kernel
        self._squares = np.square(points.T[:, :, None] - points.T[:, None]).reshape(points.shape[1], -1)

    def current(self) -> np.ndarray:
        return self._kernel.raw_lengthscale.detach().log().flatten().cpu().numpy()

    def adopt(self, values: np.ndarray) -> None:
        raw = self._kernel.raw_lengthscale
        raw.data = torch.from_numpy(np.exp(values)).to(raw).reshape(raw.shape)

    def bounds(self) -> list[tuple[float, float]]:
        least = float(self._kernel.raw_lengthscale_constraint.lower_bound)
        return [(math.log(least), math.inf)] * len(self._squares)


class SquaredExponentials(Stationary):
    """Covariances under a squared-exponential kernel."""

    def __init__(self, kernel: SquaredExponential, points: np.ndarray) -> None:
        super().__init__(kernel, points)
        self._prior = float(kernel.lengthscale_prior.loc), float(kernel.lengthscale_prior.scale)

    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        return log_lognormal(values, *self._prior)

    def matrix(self, values: np.ndarray) -> tuple[np.ndarray, Pullback]:
        precisions = np.exp(-2.0 * values)
        flat = np.exp(-0.5 * precisions @ self._squares)

        def pullback(gradient: np.ndarray) -> np.ndarray:
            return precisions * (self._squares @ (gradient.ravel() * flat))

        side = math.isqrt(len(flat))
        return flat.reshape(side, side), pullback


class Matern(MaternKernel):
    """A Matern 5/2 kernel; its lengthscales have a Gamma(3, 6) prior, BoTorch's default for many years.

    Args:
        dim: number of inputs.
    """

    def __init__(self, dim: int) -> None:
        shape, rate = LENGTHS
        super().__init__(
            nu=2.5,
            ard_num_dims=dim,
            lengthscale_prior=GammaPrior(shape, rate),
            lengthscale_constraint=GreaterThan(LEAST_LENGTH, transform=None, initial_value=(shape - 1.0) / rate),
        )

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: object) -> Tensor:
        return torch.ones_like(x1[..., 0]) if diag else self.against(x2)(x1).cross

    def against(self, data: Tensor, variance: Tensor | None = None) -> Against:
        """Its prior beside ``data``, times a variance, which is 1 if None."""
        inverse = self.raw_lengthscale.detach().reciprocal()  # the constraint has no transform
        height = data.new_ones(()) if variance is None else variance
        scaled = data * inverse

        def prior(points: Tensor) -> Prior:
            own = points * inverse
            distances = math.sqrt(5.0) * torch.cdist(own, scaled, compute_mode="donot_use_mm_for_euclid_dist")
            falling = height * torch.exp(-distances)
            linear = 1.0 + distances

            def pullback(cross_gradient: Tensor, _: Tensor) -> Tensor:
                weights = cross_gradient * falling * linear  # d cross = -5/3 weights (own - scaled) d own
                sums = own * weights.sum(-1, keepdim=True) - weights @ scaled
                return (-5.0 / 3.0) * sums * inverse

            cross = falling * (linear + distances.square() / 3.0)
            return Prior(cross, height.expand(cross.shape[:-1]), pullback)

        return prior

    def closed_form(self, points: np.ndarray) -> Materns:
        """Its covariances of points ``n x d``."""
        return Materns(self, points)


class Materns(Stationary):
    """Covariances under a Matern 5/2 kernel."""

    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        return log_gamma(values, *LENGTHS)

    def matrix(self, values: np.ndarray) -> tuple[np.ndarray, Pullback]:
        precisions = np.exp(-2.0 * values)
        distances = np.sqrt(5.0 * (precisions @ self._squares))
        falling = np.exp(-distances)
        linear = 1.0 + distances

        def pullback(gradient: np.ndarray) -> np.ndarray:
            return (5.0 / 3.0) * precisions * (self._squares @ (gradient.ravel() * falling * linear))

        side = math.isqrt(len(falling))
        return (falling * (linear + distances**2 / 3.0)).reshape(side, side), pullback


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
            lambda kernel: kernel.variances,
            lambda kernel, value: kernel.initialize(
                raw_variances=kernel.raw_variances_constraint.inverse_transform(value)
            ),
        )

    @property
    def variances(self) -> Tensor:
        """Shape ``(terms,)``."""
        return self.raw_variances_constraint.transform(self.raw_variances)


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


class Scaled(Composed):
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


class ScaledMatern(VarianceKernel):
    """A variance times the Matern 5/2 kernel.

    Args:
        dim: number of inputs.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(terms=1)
        self.shape = Matern(dim)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: object) -> Tensor:
        return self.variances * self.shape.forward(x1, x2, diag=diag)

    def against(self, data: Tensor) -> Against:
        """Its prior beside ``data``."""
        return self.shape.against(data, self.variances.detach().squeeze())

    def closed_form(self, points: np.ndarray) -> Scaled:
        """Its covariances of points ``n x d``."""
        return Scaled(LogVariances(self), self.shape.closed_form(points))


def log_gamma(logs: np.ndarray, shape: float, rate: float) -> tuple[float, np.ndarray]:
    """The summed log density of Gamma(shape, rate) variables, and its gradient with respect to their logarithms."""
    numbers = np.exp(logs)
    constant = len(logs) * (shape * math.log(rate) - math.lgamma(shape))
    return float(((shape - 1.0) * logs - rate * numbers).sum()) + constant, shape - 1.0 - rate * numbers
