"""Stack: several GPs of one structure, which predict and are drawn from at once.

A step of an ascent asks each of a network's GPs for a few points. With many GPs, most of the time would go into
starting small operations one after another; a stack joins them into one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from cbo_gym.agents.gp.gpytorch_kernel import GPyTorchKernel
from cbo_gym.agents.gp.kernels import Function
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.gp.posterior import BLOCK_ENTRIES, Posterior, stack_posteriors


def stack_key(gp: object) -> Hashable:
    """Return the key that GPs must share to be stacked; None for surrogates that cannot be."""
    return gp.kernel.structure if type(gp) is GaussianProcess and not isinstance(gp.kernel, GPyTorchKernel) else None


class _Rescaled(NamedTuple):
    """The posterior of g GPs at rescaled points ``(x - low) / span``, with ``g x 1 x d`` each."""

    posterior: Posterior
    low: Tensor
    span: Tensor

    def blocks(self, points: Tensor) -> Sequence[Tensor]:
        """Rescaled points ``g x b x d``, split along b so that their covariances fit a cache."""
        inner = (points - self.low) / self.span
        return inner.split(max(1, BLOCK_ENTRIES // max(1, self.posterior.weights.numel())), 1)


class Stack:
    """GPs with one :func:`stack_key`, perhaps with different numbers of data."""

    def __init__(self, gps: Sequence[Any]) -> None:
        self._gps = gps
        self._sources: Sequence[Posterior] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {"_gps": self._gps, "_sources": ()}  # the rest follows from these

    def posterior(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return posterior means and standard deviations at points ``g x b x d``, ``g x b`` each."""
        stacked = self._update()
        means, stds = zip(*map(stacked.posterior.at_once, stacked.blocks(points)), strict=True)
        return torch.cat(means, 1), torch.cat(stds, 1)

    def mean(self, points: Tensor) -> Tensor:
        """Return posterior means at points ``g x b x d``, ``g x b``."""
        stacked = self._update()
        return torch.cat([stacked.posterior.means_at_once(block) for block in stacked.blocks(points)], 1)

    def draw(self, generator: torch.Generator) -> Function:
        """Return functions drawn from the posteriors, as :meth:`GaussianProcess.draw`: ``g x b x d`` to ``g x b``."""
        stacked, first = self._update(), self._gps[0]
        prior = first.kernel.draw(self._theta(), generator, 1)
        values = prior(self._data).squeeze(-1)
        pairs = zip(self._gps, values, strict=True)
        weights = [gp.correction(gp_values[: len(gp)], generator) for gp, gp_values in pairs]
        posterior = replace(stacked.posterior, weights=pad_sequence(weights, batch_first=True).unsqueeze(-1))

        def function(points: Tensor) -> Tensor:
            blocks = stacked.blocks(points)
            scale = posterior.scale
            return torch.cat([posterior.means_at_once(b) + scale * prior(b).squeeze(-1) for b in blocks], 1)

        return function

    def _theta(self) -> Tensor:
        return torch.stack([gp.kernel_theta for gp in self._gps])

    def _update(self) -> _Rescaled:
        states = [gp.state() for gp in self._gps]
        posteriors, data, low, span = zip(*states, strict=True)
        if not self._sources or any(new is not old for new, old in zip(posteriors, self._sources, strict=True)):
            self._sources = posteriors
            self._data = pad_sequence(list(data), batch_first=True)
            cross_covariance = self._gps[0].kernel.at(self._theta(), self._data)
            posterior = stack_posteriors(posteriors, cross_covariance)
            self._stacked = _Rescaled(posterior, torch.stack(low)[:, None], torch.stack(span)[:, None])
        return self._stacked
