"""Tables of Rich whose columns are as wide as they need, or narrowed to a width between words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from cbo_gym.errors import printable

GAP = 2  # characters between columns
NUMBER = re.compile(r"[-+]?[\d.]|-?$")
NARROWEST = 4


def layout(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None, droppable: Sequence[str] = ()
) -> tuple[Table, list[str]]:
    """Return a table, and the titles of the columns that found no room.

    Where the width is short, first titles break between words, then cells that are no numbers do, the widest column
    first; then columns are dropped. A word is broken only if it is longer than half the width, which no column could
    hold.

    Args:
        header: titles of the columns; all of them empty for a table without.
        rows: as many cells each. What cannot be printed in them is shown as its escape.
        width: in characters; None for as many as it takes.
        droppable: titles of columns that may go, the first to go first; the others stay.
    """
    columns = dict(enumerate([printable(cell) for cell in column] for column in zip(header, *rows, strict=True)))
    dropped: list[str] = []
    while (widths := _widths(list(columns.values()), width)) is None:
        title = next((title for title in droppable if title not in dropped), None)
        if title is None:  # the terminal is narrower than the words that must stay
            widths = [max(NARROWEST, (width or 0) // len(columns) - GAP)] * len(columns)
            break
        dropped.append(title)
        del columns[header.index(title)]
    total = sum(widths) + GAP * (len(widths) - 1)
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=any(header), width=total)
    for (index, (title, *cells)), room in zip(columns.items(), widths, strict=True):
        is_right = index > 0 and _are_numbers(cells)
        table.add_column(Text(title), width=room, justify="right" if is_right else "left", overflow="fold")
    for row in zip(*(cells for _, *cells in columns.values()), strict=True):
        table.add_row(*map(Text, row))
    return table, [title for title in header if title in dropped]


def _are_numbers(cells: Sequence[str]) -> bool:
    return all(map(NUMBER.match, cells))


def _widths(columns: Sequence[Sequence[str]], width: int | None) -> list[int] | None:
    """The widths of columns, each a title and its cells; None if they do not fit even at their narrowest."""
    whole = [max(map(cell_len, column)) for column in columns]
    room = None if width is None else width - GAP * (len(columns) - 1)
    if width is None or room is None or sum(whole) <= room:
        return whole
    least, widths = [], []
    for title, *cells in columns:
        words = [word for text in (title, *([] if _are_numbers(cells) else cells)) for word in text.split()]
        numbers = max(map(cell_len, cells), default=0) if _are_numbers(cells) else 0
        least.append(max(numbers, min(width // 2, max(map(cell_len, words), default=0))))
        # titles give way before cells do
        widths.append(max(least[-1], max(map(cell_len, cells), default=0)))
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda index: (widths[index] > least[index], widths[index]))
        if widths[widest] <= least[widest]:
            return None
        widths[widest] -= 1
    return widths
