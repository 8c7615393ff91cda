"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

ALL = 99  # columns, more than any table has


def table(header: Sequence[str], rows: Iterable[Sequence[str]], texts: int | Collection[int] = 1) -> str:
    """A table of escaped cells; ``texts``, the first so many columns or those at these indices, are left-aligned."""
    left = range(texts) if isinstance(texts, int) else texts
    ends = ["---" if i in left else "---:" for i in range(len(header))]
    return "\n".join([f"| {' | '.join(header)} |", f"|{'|'.join(ends)}|", *(f"| {' | '.join(row)} |" for row in rows)])
