"""Reading what is handed over as an action: real numbers of the right kind, looked at once, or InvalidAction.

Feedback, environments and wrappers read every action here. NumPy by itself takes True for 1 and "0.5" for a half,
drops imaginary parts and masks, and counts dates in days. What is said of an action's range and shape is up to the
mode that it belongs to.
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
DEEPEST = 4  # axes of nested lists that are followed; batches of cells have three
MOST = 10_000_000  # numbers in an array
MOST_IN_LISTS = 300_000  # which are looked at one by one
BYTES = (str, bytes, bytearray, memoryview)  # sequences to Python, but not of numbers


def as_numbers(given: Any, what: str = "the action") -> np.ndarray:
    """An array of floats: ``given`` itself where it is one, else a new one.

    Raises:
        gymnasium.error.InvalidAction: if it holds anything but real numbers.
    """
    if type(given) is ndarray:  # an ordinary one, as most are: a step takes a few microseconds
        if given.size > MOST:
            raise InvalidAction(f"{what} must be at most {MOST} numbers; given shape {given.shape}")
        if given.dtype is FLOAT:
            return given
        if given.dtype.kind in "iu":
            return np.asarray(given, dtype=FLOAT)
    with np.errstate(over="ignore"):  # a number beyond the largest float is infinite, which no space contains
        return np.asarray(_real(given, f"{what} must be numbers"), dtype=FLOAT)


def given_numbers(what: str, given: Any) -> np.ndarray:
    """A new array of the floats of an argument that is no action.

    Raises:
        ArgumentError: if it holds anything but real numbers.
    """
    try:
        return as_numbers(given, what).copy()
    except InvalidAction as error:
        raise ArgumentError(str(error)) from error


def as_whole_numbers(given: Any, what: str) -> np.ndarray:
    """An array of integers.

    Raises:
        gymnasium.error.InvalidAction: if it holds anything but whole numbers; 1.0 is none.
    """
    allowed = f"every {what} must be a whole number"
    found = _real(given, allowed)
    if found.dtype.kind not in "iu":
        raise InvalidAction(f"{allowed}; given {shown(given)}")
    return np.asarray(found, dtype=np.int64)


def as_index(given: Any, count: int, what: str = "the action") -> int:
    """One of ``range(count)``.

    Raises:
        gymnasium.error.InvalidAction: if it is anything else.
    """
    index = int(given) if type(given) is int64 else given
    if type(index) is int and 0 <= index < count:
        return index
    allowed = f"{what} must be a whole number from 0 to {count - 1}"
    found = _real(given, allowed)
    if found.dtype.kind in "iu" and found.ndim == 0 and 0 <= found < count:
        return int(found)
    raise InvalidAction(f"{allowed}; given {shown(given)}")


def as_entries(given: Any, keys: tuple[str, ...]) -> tuple[Any, ...]:
    """The entries of a dict, in the order of the keys; each is looked up once.

    Raises:
        gymnasium.error.InvalidAction: if it is no dict, or has other keys.
    """
    try:
        if type(given) is dict and len(given) == len(keys) == 2:  # as most are, in a third of the time
            first, second = keys
            return given[first], given[second]
        if isinstance(given, Mapping) and len(given) == len(keys):
            return tuple([given[key] for key in keys])
    except FAILURES as error:  # KeyError, or whatever a mapping of the caller's raises
        raise InvalidAction(_other_keys(given, keys)) from error
    raise InvalidAction(_other_keys(given, keys))


def own_copy(space: spaces.Space[Any], given: Any, what: str = "the action") -> Any:
    """One action, or a batch of them, in arrays that are shared with nobody.

    Only the kind of ``space`` counts here: entries of a Dict, whole numbers of a Discrete, bits of a MultiBinary,
    elsewhere floats. What is no bit stays a float, for decoding to refuse.

    Raises:
        gymnasium.error.InvalidAction: if something is of another kind.
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
    """An array of real numbers of any kind; ``allowed`` says what is, for the message."""
    try:
        found = np.asarray(_refuse_others(given, DEEPEST, itertools.count(1)))
    except FAILURES as error:  # of the conversion, or whatever an object of the caller's raises
        raise InvalidAction(f"{allowed}; given {shown(given)} ({shown(error)})") from error
    if found.dtype.kind not in "fiu":  # whole numbers too large for NumPy
        raise InvalidAction(f"{allowed}; given {shown(given)}")
    return found


def _refuse_others(given: Any, depth: int, number: Iterator[int]) -> Any:
    """Numbers and arrays of numbers as they are, sequences as lists of such; every thing has the next ``number``."""
    if next(number) > MOST_IN_LISTS:
        raise TypeError(f"lists hold more than {MOST_IN_LISTS} numbers; give an array")
    if type(given) is float or type(given) is int:
        return given
    if isinstance(given, Sequence) and not isinstance(given, BYTES):
        if depth == 0:
            raise TypeError("lists are nested too deeply")
        return [_refuse_others(part, depth - 1, number) for part in given]
    if isinstance(given, BYTES):
        raise TypeError("text and bytes are not numbers")
    found = np.asanyarray(given)
    if isinstance(found, np.ma.MaskedArray):
        raise TypeError("a masked array may lack numbers")
    if found.dtype.kind not in "fiu":
        raise TypeError(f"{found.dtype} is not a kind of real numbers")
    if found.size > MOST:
        raise TypeError(f"an array of more than {MOST} numbers")
    return found


def _other_keys(given: Any, keys: tuple[str, ...]) -> str:
    return f"the action must be a dict with the keys {' and '.join(map(repr, keys))} alone; given {shown(given)}"
