"""Sums whose last digit depends neither on the version of Python nor on whether numbers or arrays are added."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add
from typing import Any


def add_up(terms: Iterable[Any]) -> Any:
    """Return the sum of numbers, arrays or tensors, added one by one from left to right.

    Since Python 3.12 the built-in ``sum`` compensates for the rounding of floats, but not of arrays.
    """
    return reduce(add, terms, 0)
