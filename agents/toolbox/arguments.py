"""Checks of arguments that many agents take. Each raises ArgumentError with the name, what is allowed and what came."""

from __future__ import annotations

import math
from collections.abc import Iterable

from cbo_gym.errors import ArgumentError, did_you_mean


def require_not_negative(name: str, value: float) -> None:
    """Raise ArgumentError unless ``value`` is a finite number of at least 0."""
    if not (math.isfinite(value) and value >= 0.0):
        raise ArgumentError(f"{name} must be a finite number of at least 0; given {value!r}")


def require_positive(name: str, value: float) -> None:
    """Raise ArgumentError unless ``value`` is a finite number above 0."""
    if not (math.isfinite(value) and value > 0.0):
        raise ArgumentError(f"{name} must be a finite number above 0; given {value!r}")


def require_probability(name: str, value: float) -> None:
    """Raise ArgumentError unless ``value`` lies strictly between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise ArgumentError(f"{name} must lie between 0 and 1; given {value!r}")


def require_word(name: str, value: str, known: Iterable[str]) -> None:
    """Raise ArgumentError unless ``value`` is one of the words ``known``."""
    words = list(known)
    if value not in words:
        raise ArgumentError(f"{name} must be one of {words}; given {value!r}{did_you_mean(value, words)}")
