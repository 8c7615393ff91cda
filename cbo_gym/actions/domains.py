"""Conversion of action coordinates between the unit interval [0, 1] and native units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cbo_gym.scm.values import Interval, Number


class Scale(NamedTuple):
    """Native interval of one coordinate: its lower end and its length."""

    low: float
    span: float

    def to_native(self, value: Number) -> Number:
        """Return the native value of a coordinate in [0, 1]."""
        low, span = self
        return low + span * value

    def to_unit(self, native: Number) -> Number:
        """Return the coordinate of a native value; outside [0, 1] if the value is outside the interval."""
        return (native - self.low) / self.span


@dataclass(frozen=True)
class SelectedScale:
    """Mechanism of a masked parameter: its native value, or the native value of ``null`` if it is not selected.

    The first argument is the masked signal, which is 0 if the parameter is not selected; the third, the noise, is
    ignored.
    """

    low: float
    span: float
    null: float

    def __call__(self, signal: Number, selected: Number, _: Number) -> Number:
        return self.low + self.span * (signal + (1.0 - selected) * self.null)


class Domains:
    """Native intervals of action coordinates, which are in [0, 1].

    Args:
        intervals: name -> native ``(low, high)``, in the order of the coordinates; or a sequence of intervals, whose
            coordinates are named ``a0``, ``a1``, ...

    Attributes:
        names: names of the coordinates.
        named: whether the caller gave the names.
        intervals: native ``(low, high)`` of each coordinate.
        scales: conversion of each coordinate.
    """

    def __init__(self, intervals: Mapping[str, Interval] | Sequence[Interval]) -> None:
        self.named = isinstance(intervals, Mapping)
        pairs = intervals.values() if isinstance(intervals, Mapping) else intervals
        self.intervals: tuple[Interval, ...] = tuple((low, high) for low, high in pairs)
        numbered = tuple(f"a{i}" for i in range(len(self.intervals)))
        self.names: tuple[str, ...] = tuple(intervals) if isinstance(intervals, Mapping) else numbered
        self.scales = tuple(Scale(low, high - low) for low, high in self.intervals)
        self._low, self._span = np.asarray(self.scales, dtype=float).reshape(-1, 2).T

    def __len__(self) -> int:
        return len(self.intervals)

    def to_native(self, columns: Iterable[Number]) -> list[Number]:
        """Return native values, given one number or array for each coordinate.

        Floats are not converted to arrays, because this is called in every step.
        """
        # Callers have checked the number of columns.
        return [low + span * column for (low, span), column in zip(self.scales, columns)]  # noqa: B905

    def points_to_native(self, points: ArrayLike) -> np.ndarray:
        """Return native values of points of shape ``(..., q)``."""
        return self._low + self._span * np.asarray(points, dtype=float)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domains) and (self.names, self.intervals) == (other.names, other.intervals)

    def __hash__(self) -> int:
        return hash((self.names, self.intervals))

    def __repr__(self) -> str:
        return f"Domains({dict(zip(self.names, self.intervals, strict=True)) if self.named else self.intervals})"
