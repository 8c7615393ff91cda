"""Kernels of sums of functions, each of some of the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor

from cbo_gym.agents.surrogates.gp.closed_form import (
    Against,
    CompositeCovariances,
    Covariances,
    Function,
    Prior,
    Pullback,
)
from cbo_gym.agents.surrogates.gp.kernels import LogVariances, SquaredExponential, StackableKernel, VarianceKernel
from cbo_gym.sums import add_up


class AdditiveKernel(StackableKernel):
    """``k = v RBF(x) + sum_i w_i RBF_i(x_i)``, the first two orders that matter of Duvenaud et al. (2011).

    Structural equations are often sums of functions of one parent each. What such a function is then follows from all
    data, whatever the other parents were, where a kernel of all inputs learns only from data that are near in each of
    them. The variances have Gamma(2, 1) priors, the lengthscales BoTorch's for their numbers of inputs.

    Args:
        dim: number of inputs, at least 2.

    References:
        Duvenaud, Nickisch & Rasmussen (2011), Additive Gaussian processes.
    """

    def __init__(self, dim: int) -> None:
        super().__init__(terms=1 + dim)
        self.whole = SquaredExponential(dim)
        self._alone = torch.nn.ModuleList(SquaredExponential(1) for _ in range(dim))

    @property
    def alone(self) -> list[SquaredExponential]:
        """Of the functions of one input each."""
        return cast("list[SquaredExponential]", list(self._alone))

    def numbers(self) -> tuple[Tensor, ...]:
        """The variances, ``(1 + dim,)``, the lengthscales of the function of all inputs, and each of the others."""
        return self.variances.detach(), *self.whole.numbers(), *(one.numbers()[0] for one in self.alone)

    @classmethod
    def against_of(cls, numbers: Sequence[Tensor], data: Tensor) -> Against:
        variances, length, *alone = numbers
        heights = variances[..., None, None]
        together = SquaredExponential.against_of([length], data, heights.select(-3, 0))
        each = SquaredExponential.against_of(  # the functions of one input side by side, as kernels of one stack
            [torch.stack(alone)], _side_by_side(data), heights[..., 1:, :, :].movedim(-3, 0)
        )

        def prior(points: Tensor) -> Prior:
            whole, parts = together(points), each(_side_by_side(points.reshape(*data.shape[:-2], -1, data.shape[-1])))
            cross = whole.cross + parts.cross.sum(0).reshape(whole.cross.shape)

            def pullback(cross_gradient: Tensor, variance_gradient: Tensor) -> Tensor:
                gradient = whole.pullback(cross_gradient, variance_gradient)
                own = cross_gradient.reshape(parts.cross.shape[1:]).expand(parts.cross.shape)
                slopes = parts.pullback(own, variance_gradient)  # which stationary variances do not enter
                return gradient + slopes.squeeze(-1).movedim(0, -1).reshape(gradient.shape)

            return Prior(cross, whole.variance + variances[..., 1:].sum(-1, keepdim=True), pullback)

        return prior

    def among(self, points: Tensor) -> Tensor:
        whole, *alone = self.variances.detach()
        covariance = whole * self.whole.among(points)
        for variance, kernel, column in zip(alone, self.alone, points.split(1, -1), strict=True):
            covariance = covariance + variance * kernel.among(column)
        return covariance

    def draw(self, generator: torch.Generator) -> Function:
        deviations = self.variances.detach().sqrt()
        drawn = [kernel.draw(generator) for kernel in (self.whole, *self.alone)]

        def function(points: Tensor) -> Tensor:
            values = [one(own) for one, own in zip(drawn, [points, *points.split(1, -1)], strict=True)]
            return (deviations * torch.stack(values, -1)).sum(-1)

        return function

    def closed_form(self, points: np.ndarray) -> SumCovariances:
        columns = np.split(points, points.shape[1], axis=1)
        alone = [one.closed_form(own) for one, own in zip(self.alone, columns, strict=True)]
        return SumCovariances(self, [self.whole.closed_form(points), *alone])


def _side_by_side(points: Tensor) -> Tensor:
    """Points ``... x d`` as d sets of points with one coordinate, ``d x ... x 1``."""
    return points.movedim(-1, 0).unsqueeze(-1)


class TwoPartKernel(StackableKernel):
    """``k = v RBF(x_1 ... x_f) + w RBF(x_f+1 ... x_d)``: a function of the first inputs, plus one of the others.

    The variances have Gamma(2, 1) priors, the lengthscales BoTorch's for their numbers of inputs.

    Args:
        dim: number of inputs d, at least 2.
        first: number f of inputs of the first function, from 1 to ``dim - 1``.
    """

    def __init__(self, dim: int, first: int) -> None:
        super().__init__(terms=2)
        self._first = first
        self.near, self.far = SquaredExponential(first), SquaredExponential(dim - first)

    def numbers(self) -> tuple[Tensor, ...]:
        """The variances, ``(2,)``, and the lengthscales of both functions."""
        return self.variances.detach(), *self.near.numbers(), *self.far.numbers()

    @classmethod
    def against_of(cls, numbers: Sequence[Tensor], data: Tensor) -> Against:
        variances, *lengths = numbers
        first = lengths[0].shape[-1]
        parts = [
            SquaredExponential.against_of([length], columns, variances[..., place, None, None])
            for place, (length, columns) in enumerate(zip(lengths, _in_two(data, first), strict=True))
        ]

        def prior(points: Tensor) -> Prior:
            near, far = (part(columns) for part, columns in zip(parts, _in_two(points, first), strict=True))

            def pullback(cross_gradient: Tensor, variance_gradient: Tensor) -> Tensor:
                return torch.cat([part.pullback(cross_gradient, variance_gradient) for part in (near, far)], -1)

            return Prior(near.cross + far.cross, near.variance + far.variance, pullback)

        return prior

    def among(self, points: Tensor) -> Tensor:
        variances, (near, far) = self.variances.detach(), _in_two(points, self._first)
        return variances[0] * self.near.among(near) + variances[1] * self.far.among(far)

    def draw(self, generator: torch.Generator) -> Function:
        near_deviation, far_deviation = self.variances.detach().sqrt()
        near, far = self.near.draw(generator), self.far.draw(generator)

        def function(points: Tensor) -> Tensor:
            first, others = _in_two(points, self._first)
            return near_deviation * near(first) + far_deviation * far(others)

        return function

    def closed_form(self, points: np.ndarray) -> SumCovariances:
        near, far = np.split(points, [self._first], axis=1)
        return SumCovariances(self, [self.near.closed_form(near), self.far.closed_form(far)])


def _in_two(points: Tensor, first: int) -> tuple[Tensor, Tensor]:
    return points[..., :first], points[..., first:]


class SumCovariances(CompositeCovariances):
    """Sums of covariances, each times one of a kernel's variances."""

    def __init__(self, kernel: VarianceKernel, terms: Sequence[Covariances]) -> None:
        self._terms = terms
        super().__init__(LogVariances(kernel), *terms)

    def matrix(self, values: np.ndarray) -> tuple[np.ndarray, Pullback]:
        logs, *own = self.split(values)
        variances = np.exp(logs)
        found = [term.matrix(some) for term, some in zip(self._terms, own, strict=True)]

        def pullback(gradient: np.ndarray) -> np.ndarray:
            sizes = [np.vdot(gradient, matrix) for matrix, _ in found]
            slopes = [variance * pull(gradient) for variance, (_, pull) in zip(variances, found, strict=True)]
            return np.concatenate([sizes * variances, *slopes])

        return add_up(variance * matrix for variance, (matrix, _) in zip(variances, found, strict=True)), pullback
