"""Sets of actions in the forms of a codec: what is recommended where there are several objectives is a list of actions.

What is no list is one action, whose forms are those of the codec itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cbo_gym.actions.codec import Action, Codec
from cbo_gym.errors import ArgumentError


def is_set(given: Any) -> bool:
    """Whether this is a list of actions, and no action."""
    return isinstance(given, list)


def to_record(codec: Codec, given: Any) -> Any:
    """As envs_registry.yaml writes it."""
    return [codec.to_record(action) for action in given] if is_set(given) else codec.to_record(given)


def is_record_of_set(record: Any) -> bool:
    """Whether :func:`to_record` wrote it of a list."""
    return isinstance(record, list) and bool(record) and isinstance(record[0], list | dict)


def to_text(codec: Codec, record: Any) -> str:
    """A record in words; of a long list the first and the last action."""
    if not is_record_of_set(record):
        return codec.to_text(record)
    first, last = codec.to_text(record[0]), codec.to_text(record[-1])
    return f"{len(record)} actions along the Pareto front, from {first} to {last}"


def to_flat(codec: Codec, given: Any) -> list[float]:
    """All numbers, those of one action after those of the other."""
    if not is_set(given):
        return codec.to_flat(given)
    return [number for action in given for number in codec.to_flat(action)]


def from_flat(codec: Codec, numbers: Sequence[float]) -> list[Action]:
    """The list that :func:`to_flat` wrote.

    Raises:
        ArgumentError: if the numbers are not those of some actions.
    """
    width = len(codec.to_flat(codec.to_action(np.zeros(codec.dim))))
    if not numbers or len(numbers) % width:
        raise ArgumentError(f"a set of actions of {width} numbers each cannot be made of {len(numbers)} numbers")
    return [codec.from_flat(numbers[start : start + width]) for start in range(0, len(numbers), width)]
