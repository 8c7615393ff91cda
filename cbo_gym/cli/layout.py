"""Tables of Rich whose columns are as wide as their cells, or narrower if the terminal is.

Rich alone would break words and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from cbo_gym.errors import printable

# Number of characters between columns.
GAP = 2
# A cell that begins like a number, is a dash or is empty.
NUMBER = re.compile(r"[-+]?[\d.]|-?$")
# Smallest width of a column of words.
MIN_COLUMN_WIDTH = 4


def layout(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None, droppable: Sequence[str] = ()
) -> tuple[Table, list[str]]:
    """Return a table, and the titles of the columns that do not fit.

    If the table is too wide, titles are broken between words, then cells that are not numbers, in the widest column
    first; then columns are dropped. A word is broken only if it is longer than half the width.

    Args:
        header: titles of the columns; all empty for a table without titles.
        rows: rows with a cell per column. Characters that cannot be printed are shown as escapes.
        width: width in characters; None for no limit.
        droppable: titles of columns that may be dropped, the first dropped first.
    """
    columns = dict(enumerate([printable(cell) for cell in column] for column in zip(header, *rows, strict=True)))
    dropped: list[str] = []
    while (widths := _widths(list(columns.values()), width)) is None:
        title = next((title for title in droppable if title not in dropped), None)
        if title is None:
            # The terminal is narrower than the words that must stay.
            widths = [max(MIN_COLUMN_WIDTH, (width or 0) // len(columns) - GAP)] * len(columns)
            break
        dropped.append(title)
        del columns[header.index(title)]
    total = sum(widths) + GAP * (len(widths) - 1)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=any(header), width=total)
    for (index, (title, *cells)), column_width in zip(columns.items(), widths, strict=True):
        is_right = index > 0 and _are_numbers(cells)
        table.add_column(Text(title), width=column_width, justify="right" if is_right else "left", overflow="fold")
    for row in zip(*(cells for _, *cells in columns.values()), strict=True):
        table.add_row(*map(Text, row))
    return table, [title for title in header if title in dropped]


def _are_numbers(cells: Sequence[str]) -> bool:
    return all(map(NUMBER.match, cells))


def _widths(columns: Sequence[Sequence[str]], width: int | None) -> list[int] | None:
    """Return the widths of columns, each a title and its cells; None if they do not fit even at their narrowest."""
    full_widths, gaps = [max(map(cell_len, column)) for column in columns], GAP * (len(columns) - 1)
    if width is None or sum(full_widths) + gaps <= width:
        return full_widths
    min_widths, widths = [], []
    for title, *cells in columns:
        cells_width = max(map(cell_len, cells), default=0)
        are_numbers = _are_numbers(cells)
        words = [word for string in (title, *([] if are_numbers else cells)) for word in string.split()]
        longest = min(width // 2, max(map(cell_len, words), default=0))
        min_widths.append(max(longest, cells_width if are_numbers else 0))
        # Titles are narrowed before cells are.
        widths.append(max(min_widths[-1], cells_width))
    while sum(widths) + gaps > width:
        # The widest column that can be narrowed.
        widest = max(range(len(widths)), key=lambda index: (widths[index] > min_widths[index], widths[index]))
        if widths[widest] <= min_widths[widest]:
            return None
        widths[widest] -= 1
    return widths
