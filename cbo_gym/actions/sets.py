"""Conversions of recommendations, which are one action or, with several objectives, a list of actions.

The conversions of each action are those of its codec.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cbo_gym.actions.codec import Action, Codec
from cbo_gym.errors import ArgumentError


def is_set(recommended: Any) -> bool:
    """Return whether a recommendation is a list of actions rather than one action."""
    return isinstance(recommended, list)


def to_record(codec: Codec, recommended: Any) -> Any:
    """Return the record of an action or a list of actions, as envs_registry.yaml writes it."""
    return [codec.to_record(action) for action in recommended] if is_set(recommended) else codec.to_record(recommended)


def to_string(codec: Codec, record: Any) -> str:
    """Return a readable string of a record; for a list of actions, of its first and its last action."""
    is_list_of_records = isinstance(record, list) and record and isinstance(record[0], list | dict)
    if not is_list_of_records:
        return codec.to_string(record)
    first, last = codec.to_string(record[0]), codec.to_string(record[-1])
    return f"{len(record)} actions along the Pareto front, from {first} to {last}"


def to_flat(codec: Codec, recommended: Any) -> list[float]:
    """Return all numbers of an action, or of a list of actions one after another."""
    if not is_set(recommended):
        return codec.to_flat(recommended)
    return [number for action in recommended for number in codec.to_flat(action)]


def from_flat(codec: Codec, numbers: Sequence[float]) -> list[Action]:
    """Return the list of actions of :func:`to_flat`; raise ArgumentError if the count of numbers does not fit."""
    width = len(codec.to_flat(codec.to_action(np.zeros(codec.dim))))
    if not numbers or len(numbers) % width:
        raise ArgumentError(f"a set of actions of {width} numbers each cannot be read from {len(numbers)} numbers")
    return [codec.from_flat(numbers[start : start + width]) for start in range(0, len(numbers), width)]
