"""Interventions on a structural causal model: soft parameters, hard values, or both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cbo_gym.scm.values import Floats

# True for the whole batch, or a boolean array of the batch's shape.
Mask = bool | np.ndarray
# A float for the whole batch, or an array of the batch's shape.
Values = Floats

_NOTHING: Mapping[str, tuple[Mask, Values]] = {}


class Intervention(NamedTuple):
    """A batch of interventions.

    All entries broadcast together, and against the noise; a single intervention is a batch of shape ``()``.

    Attributes:
        soft: one entry per action coordinate: a number or an array of the batch's shape, in native units.
        hard: variable name -> ``(mask, values)``: where the mask is true, the variable is set to its value instead of
            its mechanism's. The mask ``True`` sets it in the whole batch.
    """

    soft: Sequence[Values] = ()
    hard: Mapping[str, tuple[Mask, Values]] = _NOTHING

    @classmethod
    def do(cls, values: Mapping[str, Values]) -> Intervention:
        """Return ``do(X = x)`` for every item of ``values``, in the whole batch."""
        return cls(hard={name: (True, value) for name, value in values.items()})

    @classmethod
    def parameters(cls, actions: ArrayLike) -> Intervention:
        """Return soft parameters from an array of shape ``(..., q)`` in native units."""
        columns = np.moveaxis(np.asarray(actions, dtype=float), -1, 0)
        return cls(soft=tuple(columns))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape to which all entries broadcast; ``()`` for a single intervention."""
        entries = [*self.soft, *(entry for pair in self.hard.values() for entry in pair)]
        return np.broadcast_shapes(*[np.shape(entry) for entry in entries])

    def broadcast(self, shape: tuple[int, ...]) -> Intervention:
        """Return the batch with every entry broadcast to ``shape``; further leading axes of an entry are kept."""
        return self._map(lambda entry: np.broadcast_to(entry, np.broadcast_shapes(np.shape(entry), shape)))

    def rows(self, rows: slice) -> Intervention:
        """Return a slice along the last axis of a batch whose entries are all arrays."""
        return self._map(lambda entry: entry[..., rows])

    def at(self, index: int) -> Intervention:
        """Return one intervention of a batch, by its index on the last axis, without variables that it does not set."""
        single = self._map(lambda entry: entry[..., index] if np.ndim(entry) else entry)
        return single._replace(hard={name: pair for name, pair in single.hard.items() if np.any(pair[0])})

    def expand(self) -> Intervention:
        """Return the batch with a new last axis, for broadcasting against many noise draws."""
        return self._map(lambda entry: np.asarray(entry)[..., None])

    def _map(self, function: Callable[[Any], Any]) -> Intervention:
        hard = {name: (function(m), function(v)) for name, (m, v) in self.hard.items()}
        return Intervention([function(column) for column in self.soft], hard)
