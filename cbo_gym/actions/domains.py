"""Domains: the one place where coordinates in [0, 1] become native units, and native units coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

Interval = tuple[float, float]
Number = Any  # a float, or an array or tensor of floats


class Domains:
    """Native intervals of named coordinates that run over [0, 1].

    Args:
        intervals: name -> native ``(low, high)``, in the order of the coordinates; a sequence where the coordinates
            have no names of their own. They are then called ``a0``, ``a1``, ...

    Attributes:
        names: one a coordinate.
        named: whether the names are the coordinates' own.
        intervals: native ``(low, high)`` of each.
    """

    def __init__(self, intervals: Mapping[str, Interval] | Sequence[Interval]) -> None:
        self.named = isinstance(intervals, Mapping)
        pairs = intervals.values() if isinstance(intervals, Mapping) else intervals
        self.intervals: tuple[Interval, ...] = tuple((low, high) for low, high in pairs)
        own = tuple(intervals) if isinstance(intervals, Mapping) else ()
        self.names: tuple[str, ...] = own or tuple(f"a{i}" for i in range(len(self.intervals)))
        self._scales = tuple((low, high - low) for low, high in self.intervals)
        self._low, self._span = np.asarray(self._scales, dtype=float).reshape(-1, 2).T

    def __len__(self) -> int:
        return len(self.intervals)

    def to_native(self, columns: Iterable[Number]) -> list[Number]:
        """Native values of one number or array a coordinate; plain numbers stay plain, and fast."""
        return [low + span * column for (low, span), column in zip(self._scales, columns, strict=True)]

    def points_to_native(self, points: Any) -> np.ndarray:
        """Native values of points of shape ``(..., q)``."""
        return self._low + self._span * np.asarray(points, dtype=float)

    def one_to_native(self, place: int, value: Number) -> Number:
        """The native value of one coordinate."""
        low, span = self._scales[place]
        return low + span * value

    def one_to_unit(self, place: int, native: Number) -> Number:
        """The coordinate in [0, 1] of a native value; outside where the value lies outside the domain."""
        low, span = self._scales[place]
        return (native - low) / span

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domains) and (self.names, self.intervals) == (other.names, other.intervals)

    def __hash__(self) -> int:
        return hash((self.names, self.intervals))

    def __repr__(self) -> str:
        return f"Domains({dict(zip(self.names, self.intervals, strict=True)) if self.named else self.intervals})"
