"""What mechanisms take and give."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, TypeVar

import numpy as np

Floats = float | np.ndarray  # a number, or an array of numbers; arrays broadcast together
FloatOrArray = TypeVar("FloatOrArray", float, np.ndarray)  # one of them, the kind that goes in and comes out
Composition = Callable[[Mapping[str, Any]], Any]  # name -> number, array or tensor, to the reward


def is_finite_number(value: object) -> bool:
    """Whether it is a real number, of Python or NumPy, and finite; a text or a truth value is not."""
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number too large for a float
        return False
