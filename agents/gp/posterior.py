"""Posterior means and standard deviations of a GP, with their gradients in closed form.

The ascent of an acquisition function computes them thousands of times a round. With few points and few data, autograd
would take more time than the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from scipy.linalg import lapack
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from cbo_gym.agents.gp.kernels import CrossCovariance

# Number of covariances computed at a time. In blocks that exceed the cache each takes up to three times as long.
BLOCK_ENTRIES = 80_000
# Ratio of signal to noise variance below which directions of the data may be left out.
NEGLIGIBLE = 1e-8
# Smallest variance of standardised outputs. It keeps the gradient of the square root finite at data points.
MIN_VARIANCE = 1e-12


@dataclass(frozen=True)
class Posterior:
    """Posterior of one GP given its n data, or of g GPs, padded to n data each.

    Points are rescaled to ``(point - low) / span``, outputs are standardised to ``y = (output - location) / scale -
    constant``, with the prior mean ``constant``. Let W be the inverse of the Cholesky factor of the data's covariance,
    noise included, and k the covariances of a point x with the data. The posterior mean of y at x is ``k'W'W y``, its
    variance ``k(x, x) - |W k|^2``. In the variance a smaller matrix R with ``|R k| = |W k|`` may replace W; see
    :func:`condense`.

    Attributes:
        cross_covariance: function from rescaled points to their covariances with the data.
        data: the rescaled points of the data, ``n x d`` or ``g x n x d``.
        weights: ``scale W'W y``, ``(n,)`` or ``g x n x 1``.
        offset: ``location + scale constant``, a scalar or ``g x 1``.
        scale: scale of the outputs, a scalar or ``g x 1``.
        root: W or R, ``r x n`` or ``g x r x n``.
        low: lower ends of the inputs' ranges, ``(d,)`` or ``g x 1 x d``.
        span: widths of the ranges, of the same shape.
    """

    cross_covariance: CrossCovariance
    data: Tensor
    weights: Tensor
    offset: Tensor
    scale: Tensor
    root: Tensor
    low: Tensor
    span: Tensor

    def rescale(self, points: Tensor) -> Tensor:
        """Return points in units in which the data of the last refit span about [0, 1]."""
        return (points - self.low) / self.span

    def mean(self, points: Tensor) -> Tensor:
        """Return the means at points ``... x d`` of one GP, or ``g x b x d`` of g GPs, differentiable by autograd."""
        return self.mean_at_rescaled(self.rescale(points))

    def mean_at_rescaled(self, points: Tensor) -> Tensor:
        """Return :meth:`mean` at points that are rescaled already."""
        return torch.cat([self.mean_of_block(block) for block in self.blocks(points)], self._split_dim)

    def mean_of_block(self, points: Tensor) -> Tensor:
        """Return :meth:`mean_at_rescaled` without division into blocks."""
        mean = self.cross_covariance(points).cross @ self.weights
        return self.offset + (mean if self.weights.dim() == 1 else mean.squeeze(-1))

    def mean_and_std(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations, as :meth:`mean`, with the gradient in closed form."""
        if len(blocks := self.blocks(points)) == 1:
            return _MeanAndStd.apply(points, self)
        means, stds = zip(*(_MeanAndStd.apply(block, self) for block in blocks), strict=True)
        return torch.cat(means, self._split_dim), torch.cat(stds, self._split_dim)

    def mean_and_covariance(self, points: Tensor, covariance: Tensor) -> tuple[Tensor, Tensor]:
        """Return the means of one GP at sets of q points, and the covariances within each set.

        The covariances are those of standardised outputs: they are not multiplied by the squared scale.

        Args:
            points: ``... x q x d``.
            covariance: prior covariances of the points of each set, ``... x q x q``.

        Returns:
            ``... x q`` and ``... x q x q``, differentiable in the points by autograd.
        """
        cross = self.cross_covariance(self.rescale(points)).cross
        projected = cross @ self.root.T
        return cross @ self.weights + self.offset, covariance - projected @ projected.transpose(-1, -2)

    @property
    def _split_dim(self) -> int:
        """The dimension of points along which :meth:`blocks` splits them, after that of the GPs."""
        return min(1, self.weights.dim() - 1)

    def blocks(self, points: Tensor) -> Sequence[Tensor]:
        """Split points into blocks whose covariances fit a cache."""
        dim = self._split_dim
        size = max(1, BLOCK_ENTRIES // max(1, self.weights.numel() * math.prod(points.shape[dim + 1 : -1])))
        return [points] if points.shape[dim] <= size else points.split(size, dim)


def stack_posteriors(
    posteriors: Sequence[Posterior], cross_covariance: Callable[[Tensor], CrossCovariance]
) -> Posterior:
    """Return one posterior of g GPs.

    Args:
        posteriors: the posteriors of the single GPs.
        cross_covariance: function from the data of all GPs, ``g x n x d``, to :attr:`Posterior.cross_covariance`.
    """
    data = pad_sequence([posterior.data for posterior in posteriors], batch_first=True)
    weights = pad_sequence([posterior.weights for posterior in posteriors], batch_first=True)
    roots = weights.new_zeros(len(weights), max(len(posterior.root) for posterior in posteriors), weights.shape[1])
    for stacked, posterior in zip(roots, posteriors, strict=True):
        stacked[: len(posterior.root), : posterior.root.shape[1]] = posterior.root
    offset, scale, low, span = (
        torch.stack([getattr(posterior, name) for posterior in posteriors])[:, None]
        for name in ("offset", "scale", "low", "span")
    )
    return Posterior(cross_covariance(data), data, weights.unsqueeze(-1), offset, scale, roots, low, span)


def condense(inverse_root: Tensor, covariance: Tensor, noise: Tensor) -> Tensor:
    """Return R of :class:`Posterior` with few rows, for data whose noise hides most directions of their covariance.

    A pivoted Cholesky factorisation of the prior covariance ends as soon as the unexplained variance of every datum is
    below ``NEGLIGIBLE`` times the noise. Then the covariances k of a point with the data lie in the span of the
    factor's columns, except for a remainder whose effect on the posterior variance is as small.

    Args:
        inverse_root: W, ``n x n``.
        covariance: prior covariance of the data, ``n x n``.
        noise: smallest variance of the noise of a datum, a scalar.

    Returns:
        ``r x n``, or ``inverse_root`` itself if r would exceed ``n / 2``.
    """
    factor, order, rank, _ = lapack.dpstrf(covariance.cpu().numpy(), tol=NEGLIGIBLE * float(noise), lower=1)
    if 2 * rank > len(inverse_root):
        return inverse_root
    columns = inverse_root.new_empty(len(factor), rank)
    columns[torch.from_numpy(order.astype("int64")) - 1] = torch.from_numpy(factor).tril()[:, :rank].to(columns)
    span = torch.linalg.qr(columns).Q
    return torch.linalg.qr(inverse_root @ span, mode="r").R @ span.T


class _MeanAndStd(torch.autograd.Function):
    """Posterior mean and standard deviation. The gradient of the variance with respect to k is ``-2 R'(R k)``."""

    @staticmethod
    def forward(ctx: Any, points: Tensor, posterior: Posterior) -> tuple[Tensor, Tensor]:
        cross, variance, pullback, _ = posterior.cross_covariance(posterior.rescale(points))
        projected = cross @ posterior.root.mT
        std = (variance - torch.linalg.vector_norm(projected, dim=-1).square_()).clamp_min_(MIN_VARIANCE).sqrt_()
        ctx.save_for_backward(projected, std)
        ctx.posterior, ctx.pullback = posterior, pullback
        mean = cross @ posterior.weights
        mean = mean if posterior.weights.dim() == 1 else mean.squeeze(-1)
        return mean.add_(posterior.offset), posterior.scale * std

    @staticmethod
    def backward(ctx: Any, mean_gradient: Tensor, std_gradient: Tensor) -> tuple[Tensor, None]:
        (projected, std), posterior = ctx.saved_tensors, ctx.posterior
        slope = torch.where(std > MIN_VARIANCE**0.5, posterior.scale * std_gradient / std, torch.zeros_like(std))
        gradient = (projected * -slope.unsqueeze(-1)) @ posterior.root
        weights = posterior.weights if posterior.weights.dim() == 1 else posterior.weights.mT
        gradient.addcmul_(mean_gradient.unsqueeze(-1), weights)
        return ctx.pullback(gradient, 0.5 * slope) / posterior.span, None
