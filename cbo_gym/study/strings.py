"""Strings that any database can store and give back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cbo_gym.errors import ArgumentError, short_repr

# Half of a surrogate pair. In arguments and names of files, Python puts one in place of a byte that is not UTF-8.
SURROGATE = re.compile("[\ud800-\udfff]")


def replace_surrogates(string: str) -> str:
    """Replace each half of a surrogate pair by U+FFFD, the replacement character."""
    return SURROGATE.sub("\ufffd", string)


def require_storable(value: Any, label: str = "") -> None:
    """Refuse a value, or mappings and lists of values, with a string that cannot be stored."""
    if isinstance(value, str):
        if SURROGATE.search(value):
            raise ArgumentError(
                f"{label} {short_repr(value)} has bytes that could not be decoded, or half of a surrogate pair; write "
                "it again, in a terminal or a file whose encoding is UTF-8"
            )
        if "\0" in value:
            raise ArgumentError(
                f"{label} {short_repr(value)} has a NUL character, which databases do not store; remove it"
            )
    elif isinstance(value, Mapping):
        for name, item in value.items():
            require_storable(name, f"the name in {label}" if label else "the name")
            require_storable(item, f"{label}.{name}" if label else str(name))
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            require_storable(item, label)
