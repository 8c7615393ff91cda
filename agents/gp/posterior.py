"""Posterior means and standard deviations of a GP, with their gradients in closed form.

The ascent of an acquisition function evaluates them thousands of times a round. With few points and few data, the
overhead of autograd would cost more than the arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from scipy.linalg import lapack
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from cbo_gym.agents.gp.kernels import CrossCovariance

# Number of covariances computed at a time. In much larger blocks each takes up to three times as long.
BLOCK_ENTRIES = 80_000
# Share of the prior variance below which directions of the data may be left out.
NEGLIGIBLE = 1e-8
# Smallest variance of standardised outputs. It keeps the gradient of the square root finite at data points.
MIN_VARIANCE = 1e-12


@dataclass(frozen=True)
class Posterior:
    """Posterior of one GP given its data, or of g GPs with n data each.

    The outputs are standardised to ``y = (output - location) / scale - constant``. Let W be the inverse of the Cholesky
    factor of the data's covariance, noise included, and k the covariances of a point with the data. The posterior mean
    of y is ``k W'W y``, its variance ``k(x, x) - |W k|^2``. A smaller matrix R may stand in for W in the variance if
    ``|R k| = |W k|``; see :func:`condense`.

    Attributes:
        cross_covariance: function from points to their covariances with the data.
        weights: ``scale W'W y``, ``(n,)`` or ``g x n x 1``.
        offset: ``location + scale constant``, a scalar or ``g x 1``.
        scale: scale of the outputs, a scalar or ``g x 1``.
        root: R, ``r x n`` or ``g x r x n``.
    """

    cross_covariance: CrossCovariance
    weights: Tensor
    offset: Tensor
    scale: Tensor
    root: Tensor

    def mean(self, points: Tensor) -> Tensor:
        """Return posterior means of one GP at points ``... x d`` (or other inputs of ``cross_covariance``)."""
        blocks = self._blocks(points)
        return torch.cat([self.offset + self.cross_covariance(block).cross @ self.weights for block in blocks])

    def mean_and_std(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return means and standard deviations of one GP at points ``... x d``, differentiable in them."""
        if len(blocks := self._blocks(points)) == 1:
            return self.at_once(points)
        means, stds = zip(*map(self.at_once, blocks), strict=True)
        return torch.cat(means), torch.cat(stds)

    def at_once(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return :meth:`mean_and_std` without blocks; for g GPs at points ``g x b x d``, ``g x b`` each."""
        return _MeanAndStd.apply(points, self)

    def means_at_once(self, points: Tensor) -> Tensor:
        """Return the means of g GPs at points ``g x b x d``, ``g x b``."""
        return self.offset + (self.cross_covariance(points).cross @ self.weights).squeeze(-1)

    def mean_and_covariance(self, points: Tensor, covariance: Tensor) -> tuple[Tensor, Tensor]:
        """Return the means at sets of q points, and the covariances within each set.

        The covariances are those of standardised outputs: they are not multiplied by the squared scale.

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
        """Split points ``b x ... x d`` along the first dimension into blocks whose covariances fit a cache."""
        entries = self.weights.numel() * math.prod(points.shape[1:-1])
        return points.split(max(1, BLOCK_ENTRIES // max(1, entries)))


def stack_posteriors(posteriors: Sequence[Posterior], cross_covariance: CrossCovariance) -> Posterior:
    """Return one posterior of g GPs, padded to n data each, which takes points ``g x b x d``.

    Args:
        posteriors: the posteriors of the single GPs.
        cross_covariance: function from points to their covariances with the data of all g GPs.
    """
    weights = pad_sequence([posterior.weights for posterior in posteriors], batch_first=True)
    roots = weights.new_zeros(len(weights), max(len(posterior.root) for posterior in posteriors), weights.shape[1])
    for stacked, posterior in zip(roots, posteriors, strict=True):
        stacked[: len(posterior.root), : posterior.root.shape[1]] = posterior.root
    return Posterior(
        cross_covariance,
        weights.unsqueeze(-1),
        torch.stack([posterior.offset for posterior in posteriors])[:, None],
        torch.stack([posterior.scale for posterior in posteriors])[:, None],
        roots,
    )


def condense(inverse_root: Tensor, covariance: Tensor, noise: Tensor) -> Tensor:
    """Return R of :class:`Posterior` with few rows, for data whose noise hides most directions of their covariance.

    A pivoted Cholesky factor of the prior covariance ends where the variance that it leaves at every datum is a share
    ``NEGLIGIBLE`` of the noise. The covariances of a point with the data lie in the span of its columns, but for parts
    that reduce the prior variance by shares as small.

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
    """Posterior mean and standard deviation; the gradient of the variance with respect to k is ``-2 R'(R k)``."""

    @staticmethod
    def forward(ctx: Any, points: Tensor, posterior: Posterior) -> tuple[Tensor, Tensor]:
        cross, variance, pullback, _ = posterior.cross_covariance(points)
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
