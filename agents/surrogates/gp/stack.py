"""Stack: several GPs with equally many data, which predict at once.

A step of an ascent asks each of a network's GPs for a few points. Where there are many of these, most of its time would
go into starting small operations, one after another; stacked they are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from cbo_gym.agents.surrogates.gp.closed_form import Against, WithStackedPrior
from cbo_gym.agents.surrogates.gp.model import GaussianProcess, State
from cbo_gym.agents.surrogates.gp.prediction import stacked

MOST_ENTRIES = 10_000  # covariances of a GP's points and data; with more of them each GP's own matrices are quicker


def kind(gp: object) -> tuple[object, ...] | None:
    """The key that GPs must share to be stacked; None for surrogates that cannot be."""
    if type(gp) is not GaussianProcess or not isinstance(gp.kernel, WithStackedPrior):
        return None
    return gp.dim, type(gp.kernel), *(numbers.shape for numbers in gp.kernel.numbers())


class Stack:
    """GPs of one :func:`kind`."""

    def __init__(self, gps: Sequence[Any]) -> None:
        self._gps = gps
        self._states: list[State] = []

    def __getstate__(self) -> dict[str, Any]:
        return {"_gps": self._gps}  # the rest follows from their states

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._states = []

    def can_predict(self, count: int) -> bool:
        """Whether all have equally many data, and few enough for ``count`` points."""
        sizes = {len(gp) for gp in self._gps}
        return len(sizes) == 1 and 0 < max(sizes) * count <= MOST_ENTRIES

    def posterior(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Means and standard deviations as of :meth:`GaussianProcess.posterior`, for ``g x b x d``: ``g x b`` each."""
        states = [gp.state() for gp in self._gps]
        if not self._states or any(new.given is not old.given for new, old in zip(states, self._states, strict=True)):
            self._states = states
            self._low, self._span = (
                torch.stack(ends)[:, None] for ends in zip(*((state.low, state.span) for state in states), strict=True)
            )
            self._given = stacked([state.given for state in states], self._against())
        return self._given.at_once((points - self._low) / self._span)

    def _against(self) -> Against:
        numbers = zip(*(gp.kernel.numbers() for gp in self._gps), strict=True)
        data = torch.stack([state.points for state in self._states])
        return self._gps[0].kernel.against_of([torch.stack(own) for own in numbers], data)
