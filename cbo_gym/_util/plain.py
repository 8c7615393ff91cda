"""Plain data as JSON: numbers, strings, lists, tuples, dicts and arrays of numbers. Reading it runs no code.

A value of a type that JSON lacks is stored as an object whose only key is the kind of the value.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np

from cbo_gym.errors import ArgumentError

_JSON_TYPES = frozenset((type(None), bool, int, float, str))
# Kinds of NumPy's types of numbers (float, integer, unsigned, boolean), and the names of these types.
_NUMBERS = "fiub"
_DTYPE = re.compile(rf"[<>|][{_NUMBERS}]\d+")


def write_plain(value: Any) -> bytes:
    """Write a value as JSON; raise ArgumentError if it is not plain data."""
    return json.dumps(_encode(value), separators=(",", ":")).encode()


def read_plain(data: bytes) -> Any:
    """Read a value that :func:`write_plain` wrote; raise ArgumentError if the bytes are anything else."""
    try:
        return json.loads(data, object_hook=_decode)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ArgumentError(f"this is not plain data: {type(error).__name__}: {error}") from error


def _encode(value: Any) -> Any:
    if type(value) in _JSON_TYPES:
        return value
    match value:
        case list():
            return [_encode(item) for item in value]
        case tuple():
            return {"tuple": [_encode(item) for item in value]}
        case Mapping():
            return {"map": [[_encode(key), _encode(item)] for key, item in value.items()]}
        case np.ndarray() | np.generic() if value.dtype.kind in _NUMBERS:
            kind = "array" if isinstance(value, np.ndarray) else "number"
            return {kind: [value.dtype.str, list(value.shape), b64encode(value.tobytes()).decode()]}
    raise ArgumentError(f"an object of type {type(value).__qualname__} is not plain data")


def _decode(tagged: dict[str, Any]) -> Any:
    """Return the value that a JSON object stands for; its content is already decoded."""
    ((kind, content),) = tagged.items()
    match kind:
        case "tuple":
            return tuple(content)
        case "map":
            return dict(content)
        case "array" | "number":
            name, shape, data = content
            if not _DTYPE.fullmatch(name):
                raise ValueError(f"arrays of {name} are not allowed")
            array = np.frombuffer(b64decode(data), name).reshape(shape).copy()
            return array if kind == "array" else array[()]
    raise ValueError(f"unknown kind {kind!r}")
