"""The kernels of the surrogates: squared exponentials, and weighted sums of them.

The lengthscales, and the weights (the variances), have priors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch.constraints import GreaterThan, Positive
from gpytorch.kernels import Kernel
from gpytorch.priors import GammaPrior
from torch import Tensor

from cbo_gym._util.summation import add_up
from cbo_gym.agents.surrogates.gp.closed_form import (
    Bounds,
    Covariances,
    CrossCovariance,
    Function,
    Hyperparameters,
    Prior,
)
from cbo_gym.agents.surrogates.gp.noise import log_lognormal

# Gamma prior of the variances.
VARIANCE_SHAPE, VARIANCE_RATE = 2.0, 1.0
# Number of random Fourier features of a function drawn from a prior.
RANDOM_FEATURES = 256
# Shape and rate of a gamma prior of lengthscales, once BoTorch's default.
LENGTHSCALE_GAMMA = (3.0, 6.0)
MIN_LENGTHSCALE = 0.01
# Limit in a line search; its exponential is still finite.
MAX_LOG_VARIANCE = 700.0


class SquaredExponential(Kernel, Hyperparameters):
    """BoTorch's default kernel, with its dimension-scaled lognormal prior of the lengthscales (Hvarfner et al. 2024).

    The hyper-parameters of a fit are the logarithms of the lengthscales.

    Args:
        dim: number of inputs.
    """

    has_lengthscale = True

    def __init__(self, dim: int) -> None:
        prior, constraint = self.length_prior(dim)
        super().__init__(ard_num_dims=dim, lengthscale_prior=prior, lengthscale_constraint=constraint)

    @staticmethod
    def length_prior(dim: int) -> tuple[Any, Any]:
        """Return the prior of the lengthscales, and their constraint: a lower bound, without a transform."""
        default = get_covar_module_with_dim_scaled_prior(ard_num_dims=dim)
        return default.lengthscale_prior, default.raw_lengthscale_constraint

    @property
    def theta(self) -> np.ndarray:
        return self.raw_lengthscale.detach().log().flatten().cpu().numpy()

    @theta.setter
    def theta(self, values: np.ndarray) -> None:
        raw = self.raw_lengthscale
        raw.data = torch.from_numpy(np.exp(values)).to(raw).reshape(raw.shape)

    @property
    def bounds(self) -> Bounds:
        return [(math.log(float(self.raw_lengthscale_constraint.lower_bound)), math.inf)] * self.raw_lengthscale.numel()

    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        return log_lognormal(values, *self._lognormal)

    @cached_property
    def _lognormal(self) -> tuple[float, float]:
        """Location and scale of the prior, as floats because a fit evaluates its density hundreds of times."""
        prior: Any = self.lengthscale_prior
        return float(prior.loc), float(prior.scale)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: object) -> Tensor:
        return torch.ones_like(x1[..., 0]) if diag else self.cross_covariance(x2)(x1).cross

    def numbers(self) -> tuple[Tensor, ...]:
        # Raw lengthscales are lengthscales, because the constraint has no transform.
        return (self.raw_lengthscale.detach(),)

    def cross_covariance(
        self, data: Tensor, numbers: Sequence[Tensor] | None = None, variance: Tensor | None = None
    ) -> CrossCovariance:
        """Return the covariances of points with data, as in ``WithClosedPrior``.

        The exponent ``-|a - b|^2 / 2`` of scaled points is one matrix product, of ``(a, -|a|^2 / 2, 1)`` and
        ``(b, 1, -|b|^2 / 2)``. Covariances and gradients then take at most two passes over the matrix each.

        Args:
            data: ``n x d`` or ``g x n x d``.
            numbers: the lengthscales, ``1 x d`` or ``g x 1 x d``; None for the kernel's own.
            variance: a factor, a scalar or ``g x 1 x 1``; 1 if None.
        """
        inverse = (numbers or self.numbers())[0].reciprocal()
        # Centre the points, because the product loses digits far from the origin. The mean of no data is NaN.
        origin = data.mean(-2, keepdim=True).nan_to_num()
        factor = data.new_ones(()) if variance is None else variance
        scaled_data = (data - origin) * inverse
        data_exponent = factor.log() - 0.5 * scaled_data.square().sum(-1, keepdim=True)
        data_rows = torch.cat([scaled_data, torch.ones_like(data_exponent), data_exponent], -1)

        def prior(points: Tensor) -> Prior:
            scaled = (points - origin) * inverse
            exponent = -0.5 * scaled.square().sum(-1, keepdim=True)
            cross = (torch.cat([scaled, exponent, torch.ones_like(exponent)], -1) @ data_rows.mT).exp_()

            def pullback(gradient: Tensor, _: Tensor) -> Tensor:
                sums = (gradient * cross) @ data_rows[..., :-1]
                return (sums[..., :-1] - sums[..., -1:] * scaled) * inverse

            return Prior(cross, factor.squeeze(-1).expand(cross.shape[:-1]), pullback)

        return prior

    def covariances_of(self, points: np.ndarray) -> Covariances:
        shape = len(points), len(points)
        squares = np.square(points.T[:, :, None] - points.T[:, None]).reshape(points.shape[1], -1)

        def function(logs: np.ndarray) -> Any:
            precisions = np.exp(-2.0 * logs)
            flat = np.exp(-0.5 * (precisions @ squares))
            return flat.reshape(shape), lambda gradient: [precisions * (squares @ (gradient.ravel() * flat))]

        return Covariances([self], function)

    def covariance(self, points: Tensor) -> Tensor:
        scaled = points / self.raw_lengthscale.detach()
        return (-0.5 * (scaled.unsqueeze(-2) - scaled.unsqueeze(-3)).square().sum(-1)).exp()

    def draw(self, generator: torch.Generator) -> Function:
        functions = self.draw_functions(generator, 1)
        return lambda points: functions(points).squeeze(-1)

    def draw_functions(self, generator: torch.Generator, count: int) -> Function:
        """Draw ``count`` functions from the prior, with the same random Fourier features (Rahimi & Recht 2007).

        The result maps points ``... x d`` to values ``... x count``.
        """
        lengthscale = self.raw_lengthscale.detach().flatten()
        dim = len(lengthscale)
        normal = torch.randn((count + dim, RANDOM_FEATURES), dtype=torch.float64, generator=generator).to(lengthscale)
        phases = torch.rand(RANDOM_FEATURES, dtype=torch.float64, generator=generator).to(lengthscale)
        weights = (2.0 / RANDOM_FEATURES) ** 0.5 * normal[:count].T
        frequencies = normal[count:] / lengthscale[:, None]
        return lambda points: (points @ frequencies + 2.0 * math.pi * phases).cos() @ weights


class ShortSquaredExponential(SquaredExponential):
    """A squared exponential with a Gamma(3, 6) prior of the lengthscales, BoTorch's default for many years."""

    @staticmethod
    def length_prior(dim: int) -> tuple[Any, Any]:
        shape, rate = LENGTHSCALE_GAMMA
        return GammaPrior(shape, rate), GreaterThan(MIN_LENGTHSCALE, transform=None, initial_value=(shape - 1.0) / rate)

    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        return log_gamma(values, *LENGTHSCALE_GAMMA)


class VarianceKernel(Kernel, Hyperparameters):
    """A kernel whose terms each have a variance, with a Gamma(2, 1) prior and the initial value 1.

    The hyper-parameters of a fit are the logarithms of the variances, followed by those of the terms.

    Args:
        terms: number of variances, at least 1.
    """

    def __init__(self, terms: int) -> None:
        super().__init__()
        self.register_parameter("raw_variances", torch.nn.Parameter(torch.zeros(terms)))
        self.register_constraint("raw_variances", Positive(initial_value=1.0))
        self.register_prior("variances_prior", GammaPrior(VARIANCE_SHAPE, VARIANCE_RATE), _variances, _set_variances)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: object) -> Tensor:
        prior = self.cross_covariance(x2)(x1)
        return prior.variance if diag else prior.cross

    def covariance(self, points: Tensor) -> Tensor:
        return self.forward(points, points)

    @property
    def variances(self) -> Tensor:
        """The variances, ``(terms,)``."""
        return self.raw_variances_constraint.transform(self.raw_variances)

    @property
    def theta(self) -> np.ndarray:
        return self.variances.detach().log().cpu().numpy()

    @theta.setter
    def theta(self, values: np.ndarray) -> None:
        raw = self.raw_variances
        raw.data = self.raw_variances_constraint.inverse_transform(torch.from_numpy(np.exp(values)).to(raw))

    @property
    def bounds(self) -> Bounds:
        return [(-math.inf, math.inf)] * self.raw_variances.numel()

    def log_prior(self, values: np.ndarray) -> tuple[float, np.ndarray]:
        return log_gamma(values, VARIANCE_SHAPE, VARIANCE_RATE)

    def scaled_covariances(self, covariances: Covariances, known: np.ndarray | float = 0.0) -> Covariances:
        """Return the variance of a kernel with one term times ``covariances``, plus the constants ``known``."""

        def function(logs: np.ndarray, term_logs: np.ndarray) -> Any:
            variance = math.exp(min(logs[0], MAX_LOG_VARIANCE))
            matrix, pullback = covariances.matrix(term_logs)
            return (
                variance * matrix + known,
                lambda gradient: [variance * np.vdot(gradient, matrix)[None], variance * pullback(gradient)],
            )

        return Covariances([self, covariances], function)


def _variances(kernel: VarianceKernel) -> Tensor:
    return kernel.variances


def _set_variances(kernel: VarianceKernel, value: Tensor) -> None:
    kernel.initialize(raw_variances=kernel.raw_variances_constraint.inverse_transform(value))


class SumKernel(VarianceKernel):
    """``sum_i v_i RBF_i``: squared exponentials, each of a subset of the inputs, with variances v.

    Args:
        dim: number of inputs.
        columns: the inputs of each term.
        rbf: class of the terms.
    """

    def __init__(self, dim: int, columns: Sequence[slice], rbf: type[SquaredExponential] = SquaredExponential) -> None:
        super().__init__(len(columns))
        self.columns = tuple(columns)
        self._terms = torch.nn.ModuleList(rbf(len(range(dim)[inputs])) for inputs in columns)

    @property
    def terms(self) -> list[SquaredExponential]:
        """The squared exponentials."""
        return cast("list[SquaredExponential]", list(self._terms))

    def numbers(self) -> tuple[Tensor, ...]:
        """Return the variances, ``(terms,)``, and the lengthscales of each term."""
        return self.variances.detach(), *(term.raw_lengthscale.detach() for term in self.terms)

    def cross_covariance(self, data: Tensor, numbers: Sequence[Tensor] | None = None) -> CrossCovariance:
        variances, *lengths = numbers or self.numbers()
        priors = [
            term.cross_covariance(data[..., inputs], [length], variances[..., index, None, None])
            for index, (term, inputs, length) in enumerate(zip(self.terms, self.columns, lengths, strict=True))
        ]
        if len(priors) == 1:
            return priors[0]

        def prior(points: Tensor) -> Prior:
            crosses, variances, pullbacks = zip(
                *(term_prior(points[..., inputs]) for term_prior, inputs in zip(priors, self.columns, strict=True)),
                strict=True,
            )

            def pullback(cross_gradient: Tensor, variance_gradient: Tensor) -> Tensor:
                gradient = torch.zeros_like(points)
                for inputs, pull in zip(self.columns, pullbacks, strict=True):
                    gradient[..., inputs] += pull(cross_gradient, variance_gradient)
                return gradient

            return Prior(add_up(crosses[1:], crosses[0]), add_up(variances[1:], variances[0]), pullback)

        return prior

    def covariances_of(self, points: np.ndarray) -> Covariances:
        term_covariances = [
            term.covariances_of(points[:, inputs]) for term, inputs in zip(self.terms, self.columns, strict=True)
        ]
        if len(term_covariances) == 1:
            return self.scaled_covariances(term_covariances[0])

        def function(logs: np.ndarray, *term_logs: np.ndarray) -> Any:
            variances = np.exp(logs)
            matrices, pullbacks = zip(
                *(term.matrix(values) for term, values in zip(term_covariances, term_logs, strict=True)), strict=True
            )

            def gradients(gradient: np.ndarray) -> list[np.ndarray]:
                by_variance = [np.vdot(gradient, matrix) for matrix in matrices]
                by_term = [variance * pull(gradient) for variance, pull in zip(variances, pullbacks, strict=True)]
                return [by_variance * variances, *by_term]

            return add_up(variance * matrix for variance, matrix in zip(variances, matrices, strict=True)), gradients

        return Covariances([self, *term_covariances], function)

    def draw(self, generator: torch.Generator) -> Function:
        deviations = self.variances.detach().sqrt()
        functions = [term.draw(generator) for term in self.terms]

        def function(points: Tensor) -> Tensor:
            values = [draw(points[..., inputs]) for draw, inputs in zip(functions, self.columns, strict=True)]
            return (deviations * torch.stack(values, -1)).sum(-1)

        return function


class ScaledSquaredExponential(SumKernel):
    """A variance times a :class:`ShortSquaredExponential` kernel.

    Args:
        dim: number of inputs.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim, [slice(dim)], ShortSquaredExponential)

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **_: object) -> Tensor:
        return self.variances * self.terms[0].forward(x1, x2, diag=diag)


class TwoPartKernel(SumKernel):
    """``k = v RBF(x_1 ... x_f) + w RBF(x_f+1 ... x_d)``: a function of the first inputs, plus one of the others.

    Args:
        dim: number of inputs d, at least 2.
        first: number f of inputs of the first function, from 1 to ``dim - 1``.
    """

    def __init__(self, dim: int, first: int) -> None:
        super().__init__(dim, [slice(first), slice(first, dim)])


class AdditiveKernel(SumKernel):
    """``k = v RBF(x) + sum_i w_i RBF_i(x_i)``: the orders d and 1 of Duvenaud et al. (2011).

    Structural equations are often sums of functions of one parent each. This kernel learns such a function from all
    data, whatever the values of the other parents. A kernel of all inputs learns only from data that are near in every
    input.

    Args:
        dim: number of inputs, at least 2.

    References:
        Duvenaud, Nickisch & Rasmussen (2011), Additive Gaussian processes.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(dim, [slice(dim), *(slice(index, index + 1) for index in range(dim))])

    def cross_covariance(self, data: Tensor, numbers: Sequence[Tensor] | None = None) -> CrossCovariance:
        variances, joint_length, *single_lengths = numbers or self.numbers()
        factors = variances[..., None, None]
        joint_prior = self.terms[0].cross_covariance(data, [joint_length], factors.select(-3, 0))
        # One stack for the kernels of one input. Any of these terms can compute it, because it takes all lengthscales.
        single_prior = self.terms[1].cross_covariance(
            _split_inputs(data), [torch.stack(single_lengths)], factors[..., 1:, :, :].movedim(-3, 0)
        )

        def prior(points: Tensor) -> Prior:
            joint = joint_prior(points)
            single = single_prior(_split_inputs(points.reshape(*data.shape[:-2], -1, data.shape[-1])))
            cross = joint.cross + single.cross.sum(0).reshape(joint.cross.shape)

            def pullback(cross_gradient: Tensor, variance_gradient: Tensor) -> Tensor:
                gradient = joint.pullback(cross_gradient, variance_gradient)
                single_gradient = cross_gradient.reshape(single.cross.shape[1:]).expand(single.cross.shape)
                # The prior variance is constant, so its gradient is ignored, whatever its shape.
                slopes = single.pullback(single_gradient, variance_gradient)
                return gradient + slopes.squeeze(-1).movedim(0, -1).reshape(gradient.shape)

            return Prior(cross, joint.variance + variances[..., 1:].sum(-1, keepdim=True), pullback)

        return prior

    def covariance(self, points: Tensor) -> Tensor:
        # In SumKernel each term broadcasts over the sets of points.
        return super().cross_covariance(points)(points).cross


def _split_inputs(points: Tensor) -> Tensor:
    """Split points ``... x d`` into d stacked sets of points with one coordinate, ``d x ... x 1``."""
    return points.movedim(-1, 0).unsqueeze(-1)


def log_gamma(logs: np.ndarray, shape: float, rate: float) -> tuple[float, np.ndarray]:
    """Return the log density of Gamma(shape, rate) variables, and its gradient with respect to their logarithms."""
    values = np.exp(logs)
    constant = len(logs) * (shape * math.log(rate) - math.lgamma(shape))
    return float(((shape - 1.0) * logs - rate * values).sum()) + constant, shape - 1.0 - rate * values
