"""Checks and conversions of arguments.

A check that fails raises ArgumentError with the argument's name, the allowed values and the value given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from cbo_gym.errors import ArgumentError, did_you_mean, short_repr

Value = TypeVar("Value")
Number = TypeVar("Number", bound=float)

# Largest seed of a run or a study, because tables hold a seed in 64 bits.
MAX_SEED = 2**63 - 1
# Largest number of seeds of a sweep.
MAX_SEEDS = 1_000_000
# Largest seed of an environment: the referee draws secret seeds of 128 bits.
MAX_NOISE_SEED = 2**128 - 1


def is_whole_number(value: Any) -> bool:
    """Return whether a value is a whole number of Python or NumPy; booleans and time spans are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def is_finite_number(value: Any) -> bool:
    """Return whether a value is a finite int or float of Python or NumPy; strings and booleans are not."""
    try:
        return (is_whole_number(value) or isinstance(value, float | np.floating)) and math.isfinite(value)
    except OverflowError:
        # The whole number is too large for a float.
        return False


def scalar_of(value: Any) -> Any:
    """Return a scalar or a zero-dimensional array of NumPy as a Python object, and any other object unchanged."""
    return value.item() if getattr(value, "ndim", None) == 0 and hasattr(value, "item") else value


def named_values(value: Any) -> Any:
    """Return a mapping, a named tuple, or a row of pandas or of a database as a dictionary.

    Missing values of a pandas row are left out. Any other object is returned unchanged, tables of pandas included.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "_asdict"):
        return value._asdict()
    # A table of pandas has keys too. A lazy table of Polars, which has none, warns if it is asked for its columns.
    if hasattr(value, "keys") and not hasattr(value, "columns"):
        return dict(value.dropna() if hasattr(value, "dropna") else value)
    return value


def number_in(string: str) -> float | None:
    """Read a number with a decimal point and without separators; return None for any other string."""
    try:
        return None if "_" in string else float(string.replace("\N{MINUS SIGN}", "-"))
    except ValueError:
        return None


def whole_number(name: str, value: Any, at_least: int, at_most: int | None = None) -> int:
    """Return ``value`` as a Python int.

    Args:
        name: Name of the argument.
        value: Value of the argument.
        at_least: Smallest allowed value.
        at_most: Largest allowed value; None for no limit.
    """
    if is_whole_number(value) and at_least <= value and (at_most is None or value <= at_most):
        return int(value)
    if at_most is not None:
        allowed = f"a whole number from {at_least} to {at_most}"
    elif is_whole_number(value):
        allowed = f"at least {at_least}"
    else:
        allowed = f"a whole number of at least {at_least}"
    raise ArgumentError(f"{name} must be {allowed}; given {short_repr(value)}")


def seed_number(value: Any, name: str = "seed", at_most: int = MAX_SEED) -> int:
    """Return a seed as a Python int; raise ArgumentError unless it is a whole number from 0 to ``at_most``."""
    return whole_number(name, value, at_least=0, at_most=at_most)


def require_not_negative(name: str, value: Number) -> Number:
    """Return ``value``; raise ArgumentError unless it is a finite number of at least 0."""
    if not (is_finite_number(value) and value >= 0.0):
        raise ArgumentError(f"{name} must be a finite number of at least 0; given {short_repr(value)}")
    return value


def require_positive(name: str, value: Number) -> Number:
    """Return ``value``; raise ArgumentError unless it is a finite number above 0."""
    if not (is_finite_number(value) and value > 0.0):
        raise ArgumentError(f"{name} must be a finite number above 0; given {short_repr(value)}")
    return value


def require_probability(name: str, value: Number) -> Number:
    """Return ``value``; raise ArgumentError unless it is strictly between 0 and 1."""
    if not (is_finite_number(value) and 0.0 < value < 1.0):
        raise ArgumentError(f"{name} must lie between 0 and 1; given {short_repr(value)}")
    return value


def require_word(name: str, value: Value, known: Iterable[str]) -> Value:
    """Return ``value``; raise ArgumentError unless it is in ``known``."""
    allowed = [str(word) for word in known]
    if not isinstance(value, str) or value not in allowed:
        raise ArgumentError(f"{name} must be one of {allowed}; given {short_repr(value)}{did_you_mean(value, allowed)}")
    return value


def require_truth_value(name: str, value: Value) -> Value:
    """Return ``value``; raise ArgumentError unless it is True or False."""
    if not isinstance(value, bool):
        raise ArgumentError(f"{name} must be True or False; given {short_repr(value)}")
    return value
