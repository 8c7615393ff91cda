"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

ALL = 99  # columns, more than any table has


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int | Collection[int] = 1) -> str:
    """Return a table of escaped cells whose columns ``left``, the first so many or these indices, are left-aligned."""
    left = range(left) if isinstance(left, int) else left
    ends = ["---" if i in left else "---:" for i in range(len(header))]
    return "\n".join([f"| {' | '.join(header)} |", f"|{'|'.join(ends)}|", *(f"| {' | '.join(row)} |" for row in rows)])
