"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

ALL = 99  # columns, and more than any table has


def table(header: Sequence[str], rows: Iterable[Sequence[str]], texts: int | Collection[int] = 1) -> str:
    """A table of Markdown, the first columns, or those at these places, to the left; cells are escaped already."""
    left = range(texts) if isinstance(texts, int) else texts
    ends = ["---" if place in left else "---:" for place in range(len(header))]
    return "\n".join([f"| {' | '.join(header)} |", f"|{'|'.join(ends)}|", *(f"| {' | '.join(row)} |" for row in rows)])
