"""Stack: several GPs with equally many data, which predict at once.

A step of an ascent asks each of a network's GPs for a few points. Where there are many of these, most of its time would
go into starting small operations, one after another; stacked they are one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from cbo_gym.agents.surrogates.gp.closed_form import WithClosedPrior
from cbo_gym.agents.surrogates.gp.model import GaussianProcess, State
from cbo_gym.agents.surrogates.gp.posterior import stack_posteriors

MAX_ENTRIES = 10_000  # covariances of a GP's points and data; with more of them each GP's own matrices are quicker


def stack_key(gp: object) -> Hashable:
    """Return the key that GPs must share to be stacked; None for surrogates that cannot be."""
    if type(gp) is not GaussianProcess or not isinstance(gp.kernel, WithClosedPrior):
        return None
    return gp.dim, type(gp.kernel), *(numbers.shape for numbers in gp.kernel.numbers())


class Stack:
    """GPs with one :func:`stack_key`."""

    def __init__(self, gps: Sequence[Any]) -> None:
        self._gps = gps
        self._states: list[State] = []

    def __getstate__(self) -> dict[str, Any]:
        return {"_gps": self._gps, "_states": []}  # the rest follows from their states

    def can_predict(self, count: int) -> bool:
        """Return whether all have equally many data, and few enough for ``count`` points."""
        sizes = {len(gp) for gp in self._gps}
        return len(sizes) == 1 and 0 < max(sizes) * count <= MAX_ENTRIES

    def posterior(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return posterior means and standard deviations at points ``g x b x d``, ``g x b`` each."""
        states = [gp.state() for gp in self._gps]
        if not self._states or any(
            new.posterior is not old.posterior for new, old in zip(states, self._states, strict=True)
        ):
            self._states = states
            posteriors, data, low, span = zip(*states, strict=True)
            self._low, self._span = torch.stack(low)[:, None], torch.stack(span)[:, None]
            numbers = [torch.stack(own) for own in zip(*(gp.kernel.numbers() for gp in self._gps), strict=True)]
            self._posterior = stack_posteriors(
                posteriors, self._gps[0].kernel.cross_covariance(torch.stack(data), numbers)
            )
        return self._posterior.at_once((points - self._low) / self._span)
