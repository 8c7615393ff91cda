"""Pieces of Markdown that several pages are made of."""

from collections.abc import Collection, Iterable, Sequence

# All columns of a table as its left-aligned ones: more than any table has.
ALL = 99


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int | Collection[int] = 1) -> str:
    """Return a table of cells that are escaped already; ``left`` is the number of left-aligned columns, or indices."""
    left = range(left) if isinstance(left, int) else left
    ends = ["---" if i in left else "---:" for i in range(len(header))]
    return "\n".join([f"| {' | '.join(header)} |", f"|{'|'.join(ends)}|", *(f"| {' | '.join(row)} |" for row in rows)])


def fold(summary: str, markdown: str) -> str:
    """Return a part of the page that is folded below its summary."""
    return f"<details markdown>\n<summary>{summary}</summary>\n\n{markdown}\n\n</details>"


def image(path: str, alt: str) -> str:
    """Return a picture for light pages and one for dark pages; the path is without its ending."""
    return f"![{alt}]({path}.svg#only-light)![{alt}]({path}-dark.svg#only-dark)"
