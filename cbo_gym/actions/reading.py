"""Validation of the actions that callers give: real numbers of the right type, or InvalidAction.

NumPy would read True as 1 and "0.5" as a half, drop imaginary parts and masks, and count dates in days. Ranges and
shapes are checked by the interfaces of the modes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.error import InvalidAction
from numpy import int64, ndarray

from cbo_gym.errors import THIRD_PARTY_ERRORS, ArgumentError, short_repr

FLOAT = np.dtype(np.float64)
# Largest depth of nested lists; batches of cells have three.
MAX_DEPTH = 4
# Largest number of entries of an array, and of nested lists.
MAX_IN_ARRAY = 10_000_000
MAX_IN_LISTS = 300_000
# Sequences in Python, but not of numbers.
BYTES = (str, bytes, bytearray, memoryview)


def as_numbers(value: Any, name: str = "the action") -> np.ndarray:
    """Return an array of floats, ``value`` itself if it is one; raise InvalidAction unless all are real numbers."""
    # An array of floats is the usual case, and comes first because a step takes only a few microseconds.
    if type(value) is ndarray:
        if value.size > MAX_IN_ARRAY:
            raise InvalidAction(f"{name} must be at most {MAX_IN_ARRAY} numbers; given shape {value.shape}")
        if value.dtype is FLOAT:
            return value
        if value.dtype.kind in "iu":
            return np.asarray(value, dtype=FLOAT)
    # A number beyond the largest float is infinite, which no space contains.
    with np.errstate(over="ignore"):
        return np.asarray(_real_array(value, f"{name} must be numbers"), dtype=FLOAT)


def require_numbers(name: str, value: Any) -> np.ndarray:
    """Return an argument that is not an action as a new array; raise ArgumentError unless all are real numbers."""
    try:
        return as_numbers(value, name).copy()
    except InvalidAction as error:
        raise ArgumentError(str(error)) from error


def as_whole_numbers(value: Any, name: str) -> np.ndarray:
    """Return an array of integers; raise InvalidAction for any other number, such as the float 1.0."""
    allowed = f"every {name} must be a whole number"
    array = _real_array(value, allowed)
    if array.dtype.kind not in "iu":
        raise InvalidAction(f"{allowed}; given {short_repr(value)}")
    return np.asarray(array, dtype=np.int64)


def as_index(value: Any, count: int, name: str = "the action") -> int:
    """Return a whole number of ``range(count)``; raise InvalidAction for anything else."""
    index = int(value) if type(value) is int64 else value
    if type(index) is int and 0 <= index < count:
        return index
    allowed = f"{name} must be a whole number from 0 to {count - 1}"
    array = _real_array(value, allowed)
    if array.dtype.kind in "iu" and array.ndim == 0 and 0 <= array < count:
        return int(array)
    raise InvalidAction(f"{allowed}; given {short_repr(value)}")


def as_entries(value: Any, keys: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the entries of a dict in the order of its keys; raise InvalidAction for other keys or no dict."""
    cause = None
    try:
        # The usual case comes first and takes a third of the time.
        if type(value) is dict and len(value) == len(keys) == 2:
            first_key, second_key = keys
            return value[first_key], value[second_key]
        if isinstance(value, Mapping) and len(value) == len(keys):
            return tuple([value[key] for key in keys])
    except THIRD_PARTY_ERRORS as error:
        # A caller's mapping may raise anything.
        cause = error
    allowed = f"the action must be a dict with the keys {' and '.join(map(repr, keys))} alone"
    raise InvalidAction(f"{allowed}, as action_space.sample() has them; given {short_repr(value)}") from cause


def as_choice(value: Any, keys: tuple[str, str], count: int, names: Sequence[str]) -> tuple[int, list[float]]:
    """Return the index and the values, one for each name, of an action that chooses one of ``count`` options.

    Args:
        value: the action, a dict.
        keys: the keys of the index and of the values.
        count: number of options.
        names: names of the values, which are in [0, 1].

    Raises:
        gymnasium.error.InvalidAction: if it is not such an action.
    """
    chosen, numbers = as_entries(value, keys)
    index, values = as_index(chosen, count, keys[0]), as_numbers(numbers, keys[1])
    if values.shape != (len(names),):
        raise InvalidAction(
            f"{keys[1]} must have shape ({len(names)},), one for each of {list(names)}; given shape {values.shape}"
        )
    point: list[float] = values.tolist()
    for number in point:
        if not 0.0 <= number <= 1.0:
            raise InvalidAction(f"the value of {names[point.index(number)]} must lie in [0, 1]; given {number}")
    return index, point


def as_choices(value: Any, keys: tuple[str, str], count: int, width: int) -> tuple[ndarray, ndarray, ndarray]:
    """Return the indices ``(n,)`` and the values ``(n, width)`` of a batch of choices, and whether each is valid."""
    chosen, numbers = as_entries(value, keys)
    chosen, values = as_whole_numbers(chosen, keys[0]), as_numbers(numbers, keys[1])
    if chosen.ndim != 1 or values.shape != (len(chosen), width):
        raise InvalidAction(
            f"{keys[0]} and {keys[1]} must have shapes (n,) and (n, {width}); given {chosen.shape} and {values.shape}"
        )
    inside = (chosen >= 0) & (chosen < count) & ((values >= 0.0) & (values <= 1.0)).all(axis=1)
    return chosen, values, inside


def copy_action(space: spaces.Space[Any], value: Any, name: str = "the action") -> Any:
    """Return one action, or a batch of actions, in new arrays.

    Only the type of ``space`` counts: a Dict has entries, a Discrete whole numbers, a MultiBinary bits, and others
    floats; InvalidAction is raised for other types. If an entry of a MultiBinary is neither 0 nor 1, the numbers stay
    floats, which decoding refuses.
    """
    if isinstance(space, spaces.Dict):
        keys = tuple(space)
        return {
            key: copy_action(space[key], entry, key) for key, entry in zip(keys, as_entries(value, keys), strict=True)
        }
    if isinstance(space, spaces.Discrete):
        integers = as_whole_numbers(value, name.removeprefix("the "))
        return integers.copy() if integers.ndim else int(integers)
    numbers = as_numbers(value, name).copy()
    if isinstance(space, spaces.MultiBinary) and ((numbers == 0.0) | (numbers == 1.0)).all():
        return numbers.astype(space.dtype)
    return numbers


def _real_array(value: Any, allowed: str) -> np.ndarray:
    """Return an array of real numbers of any dtype; ``allowed`` begins the error message."""
    try:
        array = np.asarray(_validate(value, MAX_DEPTH, itertools.count(1)))
    except THIRD_PARTY_ERRORS as error:
        # A caller's object may raise anything.
        raise InvalidAction(f"{allowed}; given {short_repr(value)} ({short_repr(error)})") from error
    # Whole numbers too large for NumPy have another dtype.
    if array.dtype.kind not in "fiu":
        raise InvalidAction(f"{allowed}; given {short_repr(value)}")
    return array


def _validate(value: Any, depth: int, counter: Iterator[int]) -> Any:
    """Return numbers and arrays unchanged, and sequences as nested lists; raise TypeError unless all are numbers."""
    if next(counter) > MAX_IN_LISTS:
        raise TypeError(f"lists have more than {MAX_IN_LISTS} numbers; give an array")
    if type(value) is float or type(value) is int:
        return value
    if isinstance(value, BYTES):
        raise TypeError("strings and bytes are not numbers")
    if isinstance(value, Sequence):
        if depth == 0:
            raise TypeError("lists are nested too deeply")
        return [_validate(entry, depth - 1, counter) for entry in value]
    array = np.asanyarray(value)
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("a masked array may lack numbers")
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{array.dtype} is not a type of real numbers")
    if array.size > MAX_IN_ARRAY:
        raise TypeError(f"an array of more than {MAX_IN_ARRAY} numbers")
    return array
