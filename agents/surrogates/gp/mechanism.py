"""The kernel of a mechanism: a smooth function of everything, plus one that is affine in the parents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cbo_gym.agents.surrogates.gp.closed_form import Covariances, CrossCovariance, Function, Prior
from cbo_gym.agents.surrogates.gp.kernels import SquaredExponential, SumKernel, VarianceKernel


class MechanismKernel(VarianceKernel):
    """Prior of a mechanism: a smooth function of everything, plus one that is affine in the parents.

    ``k = v RBF(parents, actions) + (w_0 + sum_i w_i x_i x_i') RBF'(actions)`` with BoTorch's dimension-scaled prior
    of the lengthscales and Gamma(2, 1) priors of the variances v and w. Structural equations are often sums or
    products of a parent and a function of the action. The affine part lets these extrapolate to values of the parent
    that were never seen, which optimisation in a chain asks for all the time; a stationary kernel falls back to the
    mean there, with a variance that is far too small.

    In the affine part a parent is counted from its native zero, or from the end of its data next to that, in units of
    the farthest value: a product of the parent and a function of the action is then one term. Counted from the least
    value it would be the difference of two, which is so improbable that the data are taken for a function without
    structure.

    Args:
        dim: number of inputs.
        parents: number of parents, from 1 to ``dim - 1``; they are the first inputs.
    """

    def __init__(self, dim: int, parents: int) -> None:
        super().__init__(terms=2 + parents)  # v, w_0 and the w_i
        self._parents = parents
        self.origin, self.reach = torch.zeros(parents).double(), torch.ones(parents).double()
        self.smooth, self.modulation = SquaredExponential(dim), SquaredExponential(dim - parents)

    def set_origin(self, zeros: Tensor) -> None:
        self.origin = zeros[: self._parents].clamp(0.0, 1.0)
        self.reach = torch.maximum(self.origin, 1.0 - self.origin)

    def numbers(self) -> tuple[Tensor, ...]:
        """Return the variances, both lengthscales, and the origins and units of the parents, ``(parents,)`` each."""
        return self.variances.detach(), *self.smooth.numbers(), *self.modulation.numbers(), self.origin, self.reach

    def cross_covariance(self, data: Tensor, numbers: Sequence[Tensor] | None = None) -> CrossCovariance:
        variances, length, modulating, *units = numbers or self.numbers()
        origin, reach = (own.unsqueeze(-2) for own in units)
        count = self._parents
        smooth = self.smooth.cross_covariance(data, [length], variances[..., 0, None, None])
        modulation = self.modulation.cross_covariance(data[..., count:], [modulating])
        constant, slopes = variances[..., 1, None], variances[..., None, 2:]
        weights = slopes * (data[..., :count] - origin) / reach

        def prior(points: Tensor) -> Prior:
            parents, actions = (points[..., :count] - origin) / reach, points[..., count:]
            if actions.dim() == 3 and (actions == actions[:, :1]).all():  # so it is in all samples of a rollout
                actions = actions[:, :1]
            smooth_prior, modulation_prior = smooth(points), modulation(actions)
            affine = (parents @ weights.mT).add_(constant.unsqueeze(-1))
            own = constant + (parents.square() * slopes).sum(-1)

            def pullback(cross_gradient: Tensor, variance_gradient: Tensor) -> Tensor:
                gradient = smooth_prior.pullback(cross_gradient, variance_gradient)
                slope = (cross_gradient * modulation_prior.cross) @ weights
                gradient[..., :count] += (slope + 2.0 * variance_gradient.unsqueeze(-1) * slopes * parents) / reach
                gradient[..., count:] += modulation_prior.pullback(cross_gradient * affine, variance_gradient)
                return gradient

            return Prior(
                torch.addcmul(smooth_prior.cross, affine, modulation_prior.cross), smooth_prior.variance + own, pullback
            )

        return prior

    def draw(self, generator: torch.Generator) -> Function:
        count, deviations = self._parents, self.variances.detach().sqrt()
        smooth = self.smooth.draw(generator)
        modulations = self.modulation.draw_functions(generator, count + 1)

        def function(points: Tensor) -> Tensor:
            parents = (points[..., :count] - self.origin) / self.reach
            factors = torch.cat([torch.ones_like(points[..., :1]), parents], -1)
            affine = (deviations[1:] * factors * modulations(points[..., count:])).sum(-1)
            return deviations[0] * smooth(points) + affine

        return function

    def covariances_of(self, points: np.ndarray) -> Covariances:
        count = self._parents
        smooth, modulation = self.smooth.covariances_of(points), self.modulation.covariances_of(points[:, count:])
        parents = (points[:, :count] - self.origin.cpu().numpy()) / self.reach.cpu().numpy()
        columns = np.column_stack([np.ones(len(parents)), parents]).T
        products = (columns[:, :, None] * columns[:, None]).reshape(len(columns), -1)

        def function(logs: np.ndarray, smooth_values: np.ndarray, modulation_values: np.ndarray) -> Any:
            smooth_variance, *_ = variances = np.exp(logs)
            near, pull_near = smooth.matrix(smooth_values)
            factor, pull_factor = modulation.matrix(modulation_values)
            affine = (variances[1:] @ products).reshape(near.shape)

            def gradients(gradient: np.ndarray) -> list[np.ndarray]:
                terms = np.concatenate([[np.vdot(gradient, near)], products @ (gradient * factor).ravel()])
                return [terms * variances, pull_near(gradient * smooth_variance), pull_factor(gradient * affine)]

            return smooth_variance * near + affine * factor, gradients

        return Covariances([self, smooth, modulation], function)


def mechanism_kernel(dim: int, parents: int) -> MechanismKernel | SumKernel:
    """Return the kernel of a mechanism with ``dim`` inputs, the first of which are ``parents``.

    Without actions there is the smooth part alone: a trend that a few noisy values suggest would send the search to
    the end of the parent's domain, and be sure of it.
    """
    return MechanismKernel(dim, parents) if dim > parents else SumKernel(dim, [slice(dim)])
