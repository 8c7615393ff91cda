"""Checks of arguments that several parts of the package take."""

from __future__ import annotations

from typing import Any

import numpy as np

from cbo_gym.errors import ArgumentError


def whole_number(what: str, given: Any, at_least: int) -> int:
    """``given`` as Python's own int.

    Raises:
        ArgumentError: if it is no whole number, Python's or NumPy's, or too small.
    """
    # To isinstance a boolean is an int, and a span of time a NumPy integer.
    whole = isinstance(given, int | np.integer) and not isinstance(given, bool | np.timedelta64)
    if not whole:
        raise ArgumentError(f"{what} must be a whole number of at least {at_least}; given {given!r}")
    if given < at_least:
        raise ArgumentError(f"{what} must be at least {at_least}; given {given!r}")
    return int(given)
