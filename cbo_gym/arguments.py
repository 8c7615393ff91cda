"""Checks of arguments that several parts of the package take."""

from __future__ import annotations

from typing import Any

import numpy as np

from cbo_gym.errors import ArgumentError


def is_whole_number(given: Any) -> bool:
    """Whether it is a whole number, Python's or NumPy's: a boolean or a span of time is none."""
    return isinstance(given, int | np.integer) and not isinstance(given, bool | np.timedelta64)


def whole_number(what: str, given: Any, at_least: int) -> int:
    """``given`` as Python's own int.

    Raises:
        ArgumentError: if it is no whole number, Python's or NumPy's, or too small.
    """
    if not is_whole_number(given):
        raise ArgumentError(f"{what} must be a whole number of at least {at_least}; given {given!r}")
    if given < at_least:
        raise ArgumentError(f"{what} must be at least {at_least}; given {given!r}")
    return int(given)
