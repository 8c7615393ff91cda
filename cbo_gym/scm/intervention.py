"""Interventions on a structural causal model: soft parameters, hard values, or both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cbo_gym.scm.values import Floats

Mask = bool | np.ndarray  # True for the whole batch, or a boolean array of the batch's shape
Values = Floats  # a float for the whole batch, or an array of the batch's shape


_NOTHING: Mapping[str, tuple[Mask, Values]] = {}


class Intervention(NamedTuple):
    """A batch of interventions.

    Everything broadcasts together, and against the noise, by NumPy's rules; a single intervention is a batch of
    shape ``()``.

    Attributes:
        soft: one entry an action coordinate: a number or an array of the batch's shape, in native units.
        hard: variable name -> ``(mask, values)``: where the mask holds, the variable is set to its value and its
            mechanism is cut; elsewhere the mechanism acts. ``True`` as the mask cuts it in the whole batch.
    """

    soft: Sequence[Values] = ()
    hard: Mapping[str, tuple[Mask, Values]] = _NOTHING

    @classmethod
    def do(cls, values: Mapping[str, Values]) -> Intervention:
        """``do(X = x)`` for every item of ``values``, in the whole batch."""
        return cls(hard={name: (True, value) for name, value in values.items()})

    @classmethod
    def parameters(cls, actions: ArrayLike) -> Intervention:
        """Soft parameters from an array of shape ``(..., q)`` in native units."""
        columns = np.moveaxis(np.asarray(actions, dtype=float), -1, 0)
        return cls(soft=tuple(columns))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape to which all entries broadcast; ``()`` for a single intervention."""
        entries = [*self.soft, *(part for pair in self.hard.values() for part in pair)]
        return np.broadcast_shapes(*[np.shape(entry) for entry in entries])

    def broadcast(self, shape: tuple[int, ...]) -> Intervention:
        """The same interventions with every entry an array of ``shape``, behind further axes that it may have."""
        return self._map(lambda entry: np.broadcast_to(entry, np.broadcast_shapes(np.shape(entry), shape)))

    def rows(self, rows: slice) -> Intervention:
        """A slice along the last axis of a batch whose entries are all arrays."""
        return self._map(lambda entry: entry[..., rows])

    def at(self, place: int) -> Intervention:
        """One of a batch, by its place on the last axis; with what it sets, not what others of the batch do."""
        one = self._map(lambda entry: entry[..., place] if np.ndim(entry) else entry)
        return one._replace(hard={name: pair for name, pair in one.hard.items() if np.any(pair[0])})

    def expand(self) -> Intervention:
        """The same batch with an axis added at the end, for broadcasting against many noise draws."""
        return self._map(lambda entry: np.asarray(entry)[..., None])

    def _map(self, function: Callable[[Any], Any]) -> Intervention:
        hard = {name: (function(m), function(v)) for name, (m, v) in self.hard.items()}
        return Intervention([function(column) for column in self.soft], hard)
