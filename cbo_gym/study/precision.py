"""Precision of measured values: stated standard errors, repeated measurements, and counts such as "37 of 1000"."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl
from scipy.special import ndtri

from cbo_gym._util.summation import add_up
from cbo_gym.errors import ArgumentError, short_repr

# A share as counts.
COUNTS = re.compile(r"\s*(\d{1,15})\s+of\s+(\d{1,15})\s*", re.A)
# Quantile of a 95 % interval.
QUANTILE = float(ndtri(0.975))


class Measurement(NamedTuple):
    """Measured values of a round, and their precision.

    Attributes:
        values: variable -> value; None if it was not measured.
        std: variable -> standard error of its value, for variables for which it is stated.
        counts: variable -> number of trials n, if its value is the share of n trials that had a hit.
    """

    values: Mapping[str, Any]
    std: Mapping[str, float]
    counts: Mapping[str, int]

    def fields(self) -> dict[str, Any]:
        """Return the fields that the log stores: ``values``, and the others unless they are empty."""
        return {name: field for name, field in self._asdict().items() if name == "values" or field}


def read_counts(name: str, value: object) -> tuple[int, int] | None:
    """Return hits and total of a string ``"37 of 1000"``; None for any other value."""
    match = COUNTS.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    hits, total = int(match[1]), int(match[2])
    if not 0 <= hits <= total or total == 0:
        raise ArgumentError(
            f"the value of {name} must be counts, as in '37 of 1000', at least 1 in all; given {short_repr(value)}"
        )
    return hits, total


def error_of_share(share: float, total: float) -> float:
    """Return the standard error of a share: the standard deviation of its posterior from a uniform prior."""
    mean = (share * total + 1.0) / (total + 2.0)
    return math.sqrt(mean * (1.0 - mean) / (total + 3.0))


def wilson(share: float, total: float) -> tuple[float, float]:
    """Return the 95 % interval of a share by Wilson (1927)."""
    squared = QUANTILE**2 / total
    centre = (share + squared / 2.0) / (1.0 + squared)
    half = QUANTILE * math.sqrt(share * (1.0 - share) / total + squared / (4.0 * total)) / (1.0 + squared)
    return max(0.0, centre - half), min(1.0, centre + half)


def mean_and_error(numbers: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean of repeats and its standard error, None for a single number."""
    mean = float(add_up(numbers)) / len(numbers)
    if len(numbers) == 1:
        return mean, None
    squares = float(add_up([(number - mean) ** 2 for number in numbers]))
    return mean, math.sqrt(squares / (len(numbers) - 1) / len(numbers))


def merge_precision(frame: pl.DataFrame, format_number: Callable[[Any], str]) -> pl.DataFrame:
    """Return a study's table without columns of precision, which is appended to the values as words."""
    for column in [name for name in frame.columns if name.startswith("std(")]:
        name, count = column[4:-1], f"count({column[4:-1]})"
        counted = frame[count] if count in frame.columns else [None] * len(frame)
        cells = []
        for value, error, total in zip(frame[name], frame[column], counted, strict=True):
            std, counts = {} if error is None else {name: error}, {} if total is None else {name: total}
            cells.append(format_number(value) + format_precision(name, std, counts, value))
        frame = frame.with_columns(pl.Series(name, cells)).drop(column, count, strict=False)
    return frame


def format_precision(name: str, std: Mapping[str, float], counts: Mapping[str, int], value: Any) -> str:
    """Return the precision of a value in words, after a blank: ``" ± 0.02"``, ``" (37 of 1000: 0.027 to 0.051)"``."""
    if value is None:
        return ""
    if name in counts:
        low, high = wilson(value, counts[name])
        return f" ({round(value * counts[name])} of {counts[name]}: {low:.3g} to {high:.3g})"
    return f" ± {std[name]:.2g}" if name in std else ""
