"""The rounds of many runs: what is asked of a few columns is not paid for with tables of all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

Array = np.ndarray


class Rounds(ABC):
    """The rounds of a finished run, elsewhere than in a table until that is asked for."""

    __slots__ = ()

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Those of the table."""

    @property
    @abstractmethod
    def kind(self) -> Hashable:
        """Rounds of one kind can be stacked by any of them."""

    @abstractmethod
    def table(self) -> pl.DataFrame:
        """The table, made anew each time."""

    @abstractmethod
    def stacked(self, others: Sequence[Any], names: Sequence[str]) -> dict[str, Array]:
        """Columns of several rounds of this kind and as many rows, shape ``(runs, rounds)``; null is NaN."""

    def release(self) -> None:  # noqa: B027  (there is nothing to drop of most)
        """Drop from memory what can be read again."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Elsewhere, as in another process, there is the table."""
        return _itself, (self.table(),)


def _itself(table: pl.DataFrame) -> pl.DataFrame:
    return table


class DeferredTable:
    """The attribute of an object whose value is a table, or the :class:`Rounds` that make one when it is asked for."""

    name: str

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            raise AttributeError(self.name)  # as of any field without a default
        held = instance.__dict__[self.name]
        return held.table() if isinstance(held, Rounds) else held

    def __set__(self, instance: Any, value: Any) -> None:
        instance.__dict__[self.name] = value


class Lists:
    """Columns of lists, laid end to end: what a row has of them is a slice.

    Args:
        frame: with columns of lists alone; cells may be null.
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        self.names = frame.columns
        self.height = frame.height
        lengths = {name: frame[name].list.len() for name in self.names}
        self._there = {name: length.is_not_null().to_numpy() for name, length in lengths.items()}
        self.lengths = {name: length.fill_null(0).to_numpy().astype(np.int64) for name, length in lengths.items()}
        self._starts = {name: np.cumsum(length) - length for name, length in self.lengths.items()}
        self.flat = {name: frame[name].filter(lengths[name] > 0).explode().rechunk() for name in self.names}
        self._numbers: dict[str, Array] = {}

    @cached_property
    def kinds(self) -> Array:
        """A number for each row, the same where the same columns are not null."""
        bits = [self._there[name].astype(np.int64) << place for place, name in enumerate(self.names)]
        return np.sum([np.zeros(self.height, dtype=np.int64), *bits], axis=0)

    def present(self, kind: int) -> tuple[str, ...]:
        """The columns that rows of a kind have."""
        return tuple(name for place, name in enumerate(self.names) if kind >> place & 1)

    def of_row(self, row: int) -> dict[str, pl.Series]:
        """The values of a row, by column; null is left out."""
        return {
            name: self.flat[name].slice(self._starts[name][row], self.lengths[name][row])
            for name in self.present(int(self.kinds[row]))
        }

    def of_rows(self, name: str, rows: Array, length: int) -> Array:
        """The values of rows in a column, all of one length, shape ``(rows, length)``; null is NaN."""
        found: Array = self._of(name)[self._starts[name][rows][:, None] + np.arange(length)]
        return found

    def last(self, name: str, row: int) -> float:
        """The last value of a row in a column, of which it has at least one."""
        return float(self._of(name)[self._starts[name][row] + self.lengths[name][row] - 1])

    def _of(self, name: str) -> Array:
        if name not in self._numbers:
            flat = self.flat[name]
            self._numbers[name] = (flat.cast(pl.Float64) if flat.null_count() else flat).to_numpy()
        return self._numbers[name]
