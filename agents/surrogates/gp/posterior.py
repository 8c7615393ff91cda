"""Posterior means and standard deviations of a GP, with their gradients in closed form.

The ascent of an acquisition function asks for them thousands of times a round, for few points and data, where
autograd would spend more on its bookkeeping than on numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from cbo_gym.agents.surrogates.gp.closed_form import CrossCovariance, Prior, WithClosedPrior

ENTRIES = 80_000  # computed at a time: with many more each costs up to three times as much
NEGLIGIBLE = 1e-8  # share of the prior variance
MIN_VARIANCE = (
    1e-12  # least variance of standardised outputs; keeps the gradient of the square root finite at data points
)


def cross_covariance(kernel: Kernel, data: Tensor) -> CrossCovariance:
    """Return the covariances of points with ``data``, ``n x d``, by autograd unless the kernel has a closed form."""
    if isinstance(kernel, WithClosedPrior):
        return kernel.cross_covariance(data)

    def by_autograd(points: Tensor) -> Prior:
        with torch.enable_grad():
            free = points.detach().reshape(-1, points.shape[-1]).requires_grad_(True)
            outputs = kernel.forward(free, data), kernel.forward(free, free, diag=True)
        cross, variance = (output.detach() for output in outputs)

        def pullback(*gradients: Tensor) -> Tensor:
            pairs = [
                (output, gradient.reshape(output.shape))
                for output, gradient in zip(outputs, gradients, strict=True)
                if output.requires_grad  # a stationary kernel's variance does not
            ]
            differentiable, upstream = zip(*pairs, strict=True)
            return torch.autograd.grad(differentiable, free, upstream)[0].reshape(points.shape)

        return Prior(cross.reshape(*points.shape[:-1], -1), variance.reshape(points.shape[:-1]), pullback)

    return by_autograd


@dataclass(frozen=True)
class Posterior:
    """A GP given its data, or g of them at once.

    The outputs y are standardised, ``(y - location) / scale - constant``. With W the inverse of the Cholesky factor of
    the data's covariance and k the covariances of a point with the data, the mean is ``k W'W y`` and the variance
    ``k(x, x) - |W k|^2``. Any R will do there with ``|R k| = |W k|``.

    Attributes:
        cross_covariance: covariances of points with the data, under the kernel.
        weights: ``W'W y`` times the scale, ``(n,)`` or ``g x n x 1``.
        offset: ``location + scale constant``, a scalar or ``g x 1``.
        scale: scale of the outputs, likewise.
        root: R, ``r x n`` or ``g x r x n``.
    """

    cross_covariance: CrossCovariance
    weights: Tensor
    offset: Tensor
    scale: Tensor
    root: Tensor

    def mean(self, points: Tensor) -> Tensor:
        """Return posterior means of one GP at points ``... x d``, or others that ``cross_covariance`` takes."""
        blocks = self._blocks(points)
        return torch.cat([self.offset + self.cross_covariance(block).cross @ self.weights for block in blocks])

    def mean_and_std(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations of one GP at points ``... x d``, differentiable in them."""
        means, stds = zip(*map(self.at_once, self._blocks(points)), strict=True)
        return torch.cat(means), torch.cat(stds)

    def at_once(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return the same for all points in one go, also of g GPs: ``g x b x d`` to ``g x b`` each."""
        return _MeanAndStd.apply(points, self)

    def mean_and_covariance(self, points: Tensor, covariance: Tensor) -> tuple[Tensor, Tensor]:
        """Return the means at sets of q points, and the covariances in each set, of standardised outputs.

        Args:
            points: ``... x q x d``.
            covariance: prior covariances of the points of each set, ``... x q x q``.

        Returns:
            ``... x q`` and ``... x q x q``, differentiable in the points by autograd.
        """
        cross = self.cross_covariance(points).cross
        projected = cross @ self.root.T
        return cross @ self.weights + self.offset, covariance - projected @ projected.transpose(-1, -2)

    def _blocks(self, points: Tensor) -> tuple[Tensor, ...]:
        """Parts of points ``b x ... x d`` along the first dimension whose covariances stay in the cache."""
        each = len(self.weights) * points[0, ..., 0].numel() if len(points) else 1
        return points.split(max(1, ENTRIES // max(1, each)))


def stack_posteriors(posteriors: Sequence[Posterior], cross_covariance: CrossCovariance) -> Posterior:
    """Return several GPs with n data each as one, whose points are ``g x b x d``, given the prior of all of them."""
    rows = max(len(own.root) for own in posteriors)
    return Posterior(
        cross_covariance,
        torch.stack([own.weights for own in posteriors]).unsqueeze(-1),
        torch.stack([own.offset for own in posteriors])[:, None],
        torch.stack([own.scale for own in posteriors])[:, None],
        torch.stack([torch.nn.functional.pad(own.root, (0, 0, 0, rows - len(own.root))) for own in posteriors]),
    )


def condense(inverse_root: Tensor, covariance: Tensor, noise: Tensor) -> Tensor:
    """Return R of :class:`Posterior` with few rows, where the noise drowns most directions of the data.

    An eigenvector of the prior covariance with eigenvalue l has a product with k of at most ``sqrt(l k(x, x))``, so
    that it takes at most ``l / (l + noise)`` of the prior variance away. Those are left out that take no more than
    ``NEGLIGIBLE`` away together.

    Args:
        inverse_root: W, ``n x n``.
        covariance: prior covariance of the data, ``n x n``.
        noise: variance of the noise, the same for all data, a scalar.

    Returns:
        ``r x n``, or ``inverse_root`` itself where r would be above ``n / 2``.
    """
    values, vectors = torch.linalg.eigh(covariance)
    values = values.clamp_min(0.0)
    vectors = vectors[:, (values / (values + noise)).cumsum(0) > NEGLIGIBLE]
    if 2 * vectors.shape[1] > len(inverse_root):
        return inverse_root
    return torch.linalg.qr(inverse_root @ vectors, mode="r").R @ vectors.T


class _MeanAndStd(torch.autograd.Function):
    """The gradient of the variance with respect to k is ``-2 W'(W k)``."""

    @staticmethod
    def forward(ctx: Any, points: Tensor, posterior: Posterior) -> tuple[Tensor, Tensor]:
        cross, variance, pullback = posterior.cross_covariance(points)
        projected = cross @ posterior.root.mT
        std = (variance - torch.linalg.vector_norm(projected, dim=-1).square_()).clamp_min_(MIN_VARIANCE).sqrt_()
        ctx.save_for_backward(projected, std)
        ctx.posterior, ctx.pullback = posterior, pullback
        mean = cross @ posterior.weights
        return (mean if posterior.weights.dim() == 1 else mean.squeeze(-1)).add_(
            posterior.offset
        ), posterior.scale * std

    @staticmethod
    def backward(ctx: Any, mean_gradient: Tensor, std_gradient: Tensor) -> tuple[Tensor, None]:
        (projected, std), posterior = ctx.saved_tensors, ctx.posterior
        slope = torch.where(std > MIN_VARIANCE**0.5, posterior.scale * std_gradient / std, torch.zeros_like(std))
        gradient = (projected * -slope.unsqueeze(-1)) @ posterior.root
        gradient.addcmul_(
            mean_gradient.unsqueeze(-1), posterior.weights.mT if posterior.weights.dim() > 1 else posterior.weights
        )
        return ctx.pullback(gradient, 0.5 * slope), None
