"""Checks of arguments that several parts of the package take.

Each raises ArgumentError with the argument's name, what is allowed and what was given.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np

from cbo_gym.errors import ArgumentError, did_you_mean, shown

Given = TypeVar("Given")
Number = TypeVar("Number", bound=float)

# Largest seed of a run or a study, because tables hold a seed in 64 bits.
MAX_SEED = 2**63 - 1
# Largest number of seeds of a sweep.
MAX_SEEDS = 1_000_000
# Largest seed of an environment, for which blind play draws 128 bits.
MAX_NOISE_SEED = 2**128 - 1


def is_whole_number(given: Any) -> bool:
    """Whether it is a whole number of Python or NumPy; not a boolean or a time span."""
    return isinstance(given, int | np.integer) and not isinstance(given, bool | np.timedelta64)


def is_finite_number(given: Any) -> bool:
    """Whether it is a finite number, an int or a float of Python or NumPy; not a string or a boolean."""
    try:
        return (is_whole_number(given) or isinstance(given, float | np.floating)) and math.isfinite(given)
    except OverflowError:  # a whole number too large for a float
        return False


def number_in(string: str) -> float | None:
    """Return the number that a person writes, with a decimal point and without separators; None for anything else."""
    try:
        return None if "_" in string else float(string.replace("\N{MINUS SIGN}", "-"))
    except ValueError:
        return None


def whole_number(what: str, given: Any, at_least: int, at_most: int | None = None) -> int:
    """``given`` as a Python int.

    Args:
        what: Name of the argument.
        given: Value of the argument.
        at_least: Smallest allowed value.
        at_most: Largest allowed value; None for no limit.

    Raises:
        ArgumentError: if it is not a whole number of Python or NumPy, too small or too large.
    """
    if at_most is not None:
        if not (is_whole_number(given) and at_least <= given <= at_most):
            raise ArgumentError(f"{what} must be a whole number from {at_least} to {at_most}; given {shown(given)}")
        return int(given)
    if not is_whole_number(given):
        raise ArgumentError(f"{what} must be a whole number of at least {at_least}; given {shown(given)}")
    if given < at_least:
        raise ArgumentError(f"{what} must be at least {at_least}; given {shown(given)}")
    return int(given)


def seed_number(given: Any, what: str = "seed", at_most: int = MAX_SEED) -> int:
    """A seed as a Python int.

    Raises:
        ArgumentError: unless it is a whole number from 0 to ``at_most``.
    """
    return whole_number(what, given, at_least=0, at_most=at_most)


def require_not_negative(what: str, given: Number) -> Number:
    """Return ``given``; raise ArgumentError unless it is a finite number of at least 0."""
    if not (is_finite_number(given) and given >= 0.0):
        raise ArgumentError(f"{what} must be a finite number of at least 0; given {shown(given)}")
    return given


def require_positive(what: str, given: Number) -> Number:
    """Return ``given``; raise ArgumentError unless it is a finite number above 0."""
    if not (is_finite_number(given) and given > 0.0):
        raise ArgumentError(f"{what} must be a finite number above 0; given {shown(given)}")
    return given


def require_probability(what: str, given: Number) -> Number:
    """Return ``given``; raise ArgumentError unless it lies strictly between 0 and 1."""
    if not (is_finite_number(given) and 0.0 < given < 1.0):
        raise ArgumentError(f"{what} must lie between 0 and 1; given {shown(given)}")
    return given


def require_word(what: str, given: Given, known: Iterable[str]) -> Given:
    """Return ``given``; raise ArgumentError unless it is one of the words ``known``."""
    words = [str(word) for word in known]
    if not isinstance(given, str):
        raise ArgumentError(f"{what} must be one of {words}; given {shown(given)}")
    if given not in words:
        raise ArgumentError(f"{what} must be one of {words}; given {shown(given)}{did_you_mean(given, words)}")
    return given


def require_truth_value(what: str, given: Given) -> Given:
    """Return ``given``; raise ArgumentError unless it is True or False."""
    if not isinstance(given, bool):
        raise ArgumentError(f"{what} must be True or False; given {shown(given)}")
    return given
