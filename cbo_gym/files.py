"""Writing files so that nobody ever reads a half-written one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path`` to write to; renamed to ``path`` if the block succeeds, else removed.

    The temporary name starts with a dot and keeps the suffix, from which some writers tell the format.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}-{uuid.uuid4().hex}{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
