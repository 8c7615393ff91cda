"""Stack: several GPs of one structure whose predictions and draws are computed together.

A step of an ascent asks each GP of a network for predictions at a few points. With many GPs, starting small operations
one after another would take most of the time. A stack joins them into one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from cbo_gym.agents.gp.gpytorch_kernel import GPyTorchKernel
from cbo_gym.agents.gp.kernels import Function
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.gp.posterior import Posterior, stack_posteriors


def stack_key(gp: object) -> Hashable:
    """Return the key that GPs must share to be stacked; None for surrogates that cannot be stacked."""
    return gp.kernel.structure if type(gp) is GaussianProcess and not isinstance(gp.kernel, GPyTorchKernel) else None


class Stack:
    """GPs with one :func:`stack_key`, perhaps with different numbers of data."""

    def __init__(self, gps: Sequence[Any]) -> None:
        self._gps = gps
        self._sources: Sequence[Posterior] = ()

    def __getstate__(self) -> dict[str, Any]:
        # The stacked posterior is computed from the GPs again.
        return {"_gps": self._gps, "_sources": ()}

    def posterior(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return posterior means and standard deviations at points ``g x b x d``, ``g x b`` each."""
        return self._update().mean_and_std(points)

    def mean(self, points: Tensor) -> Tensor:
        """Return posterior means at points ``g x b x d``, ``g x b``."""
        return self._update().mean(points)

    def draw(self, generator: torch.Generator) -> Function:
        """Return functions drawn from the posteriors, as :meth:`GaussianProcess.draw`: ``g x b x d`` to ``g x b``."""
        stacked = self._update()
        prior = self._gps[0].kernel.draw(self._theta(), generator, 1)
        prior_at_data = zip(self._gps, prior(stacked.data).squeeze(-1), strict=True)
        weights = [gp.correction(values[: len(gp)], generator) for gp, values in prior_at_data]
        drawn = replace(stacked, weights=pad_sequence(weights, batch_first=True).unsqueeze(-1))

        def function(points: Tensor) -> Tensor:
            blocks = drawn.blocks(drawn.rescale(points))
            return torch.cat([drawn.mean_of_block(x) + drawn.scale * prior(x).squeeze(-1) for x in blocks], 1)

        return function

    def _theta(self) -> Tensor:
        return torch.stack([gp.kernel_theta for gp in self._gps])

    def _update(self) -> Posterior:
        posteriors = [gp.state() for gp in self._gps]
        if not self._sources or any(new is not old for new, old in zip(posteriors, self._sources, strict=True)):
            self._sources = posteriors
            self._stacked = stack_posteriors(posteriors, partial(self._gps[0].kernel.at, self._theta()))
        return self._stacked
