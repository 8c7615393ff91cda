"""Validation of what callers give as an action: real numbers of the right kind, or InvalidAction.

NumPy by itself takes True for 1 and "0.5" for a half, drops imaginary parts and masks, and counts dates in days. The
modes check ranges and shapes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction
from numpy import int64, ndarray

from cbo_gym.errors import FAILURES, ArgumentError, shown

FLOAT = np.dtype(np.float64)
# Largest depth of nested lists; batches of cells have three.
MAX_DEPTH = 4
# Largest count of numbers in an array, and in lists.
MAX_IN_ARRAY = 10_000_000
MAX_IN_LISTS = 300_000
# Sequences to Python, but not of numbers.
BYTES = (str, bytes, bytearray, memoryview)


def as_numbers(given: Any, what: str = "the action") -> np.ndarray:
    """Return an array of floats: ``given`` itself if it is one, else a new one.

    Raises:
        gymnasium.error.InvalidAction: if it holds anything but real numbers.
    """
    # the usual case first, because a step takes a few microseconds
    if type(given) is ndarray:
        if given.size > MAX_IN_ARRAY:
            raise InvalidAction(f"{what} must be at most {MAX_IN_ARRAY} numbers; given shape {given.shape}")
        if given.dtype is FLOAT:
            return given
        if given.dtype.kind in "iu":
            return np.asarray(given, dtype=FLOAT)
    # a number beyond the largest float is infinite, which no space contains
    with np.errstate(over="ignore"):
        return np.asarray(_real(given, f"{what} must be numbers"), dtype=FLOAT)


def given_numbers(what: str, given: Any) -> np.ndarray:
    """Return a new array of floats for an argument that is no action.

    Raises:
        ArgumentError: if it holds anything but real numbers.
    """
    try:
        return as_numbers(given, what).copy()
    except InvalidAction as error:
        raise ArgumentError(str(error)) from error


def as_whole_numbers(given: Any, what: str) -> np.ndarray:
    """Return an array of integers.

    Raises:
        gymnasium.error.InvalidAction: if it has anything but whole numbers; 1.0 is none.
    """
    allowed = f"every {what} must be a whole number"
    array = _real(given, allowed)
    if array.dtype.kind not in "iu":
        raise InvalidAction(f"{allowed}; given {shown(given)}")
    return np.asarray(array, dtype=np.int64)


def as_index(given: Any, count: int, what: str = "the action") -> int:
    """Return a whole number of ``range(count)``.

    Raises:
        gymnasium.error.InvalidAction: if it is anything else.
    """
    index = int(given) if type(given) is int64 else given
    if type(index) is int and 0 <= index < count:
        return index
    allowed = f"{what} must be a whole number from 0 to {count - 1}"
    array = _real(given, allowed)
    if array.dtype.kind in "iu" and array.ndim == 0 and 0 <= array < count:
        return int(array)
    raise InvalidAction(f"{allowed}; given {shown(given)}")


def as_entries(given: Any, keys: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the entries of a dict in the order of the keys, each looked up once.

    Raises:
        gymnasium.error.InvalidAction: if it is no dict, or has other keys.
    """
    cause = None
    try:
        # the usual case first, in a third of the time
        if type(given) is dict and len(given) == len(keys) == 2:
            first, second = keys
            return given[first], given[second]
        if isinstance(given, Mapping) and len(given) == len(keys):
            return tuple([given[key] for key in keys])
    except FAILURES as error:  # a mapping of the caller's may raise anything
        cause = error
    allowed = f"the action must be a dict with the keys {' and '.join(map(repr, keys))} alone"
    raise InvalidAction(f"{allowed}; given {shown(given)}") from cause


def own_copy(space: spaces.Space[Any], given: Any, what: str = "the action") -> Any:
    """Return one action, or a batch of actions, in new arrays.

    Only the type of ``space`` counts: a Dict has entries, a Discrete whole numbers, a MultiBinary bits, and others
    floats. Numbers other than bits stay floats, which decoding refuses.

    Raises:
        gymnasium.error.InvalidAction: if something has another type.
    """
    if isinstance(space, spaces.Dict):
        keys = tuple(space)
        return {key: own_copy(space[key], part, key) for key, part in zip(keys, as_entries(given, keys), strict=True)}
    if isinstance(space, spaces.Discrete):
        whole = as_whole_numbers(given, what.removeprefix("the "))
        return whole.copy() if whole.ndim else int(whole)
    numbers = as_numbers(given, what).copy()
    if isinstance(space, spaces.MultiBinary) and ((numbers == 0.0) | (numbers == 1.0)).all():
        return numbers.astype(space.dtype)
    return numbers


def _real(given: Any, allowed: str) -> np.ndarray:
    """Return an array of real numbers of any dtype; ``allowed`` begins the error message."""
    try:
        array = np.asarray(_checked(given, MAX_DEPTH, itertools.count(1)))
    except FAILURES as error:  # an object of the caller's may raise anything
        raise InvalidAction(f"{allowed}; given {shown(given)} ({shown(error)})") from error
    # whole numbers too large for NumPy have another dtype
    if array.dtype.kind not in "fiu":
        raise InvalidAction(f"{allowed}; given {shown(given)}")
    return array


def _checked(given: Any, depth: int, counter: Iterator[int]) -> Any:
    """Return numbers and arrays of numbers as they are, and sequences as lists of them; raise TypeError for others."""
    if next(counter) > MAX_IN_LISTS:
        raise TypeError(f"lists hold more than {MAX_IN_LISTS} numbers; give an array")
    if type(given) is float or type(given) is int:
        return given
    if isinstance(given, BYTES):
        raise TypeError("text and bytes are not numbers")
    if isinstance(given, Sequence):
        if depth == 0:
            raise TypeError("lists are nested too deeply")
        return [_checked(part, depth - 1, counter) for part in given]
    array = np.asanyarray(given)
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("a masked array may lack numbers")
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{array.dtype} is not a kind of real numbers")
    if array.size > MAX_IN_ARRAY:
        raise TypeError(f"an array of more than {MAX_IN_ARRAY} numbers")
    return array
