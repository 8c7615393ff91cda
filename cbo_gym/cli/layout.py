"""Tables as lines of text: as wide as they need, or narrowed to a width without losing a word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from rich.cells import cell_len

from cbo_gym.errors import printable

GAP = "  "  # between columns
#: a number with half its interval, an interval in brackets, or what stands between spaces
WORD = re.compile(r"\S+ ± \S+|\[[^\[\]]*\](?!\S)|\S+")
#: a word that is too long for any column may be broken behind these
PIECE = re.compile(r"[^,;:/=.(-]*[,;:/=.(-]+|[^,;:/=.(-]+")
NUMBER = re.compile(r"[-+]?[\d.]|-?$")
NARROWEST = 4


class Lines(NamedTuple):
    """A table: lines of the header, lines of the body, and the columns that found no room."""

    header: list[str]
    body: list[str]
    dropped: list[str]


def layout(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None, droppable: Sequence[str] = ()
) -> Lines:
    """Lay a table out.

    Where the width is short, first titles break between words, then cells do, the widest column first; then columns
    are dropped. A word is broken only if it is longer than half the width, which no column could hold.

    Args:
        header: titles of the columns; all of them empty for a table without.
        rows: as many cells each. What cannot be printed in them is shown as its escape.
        width: in characters; None for as many as it takes.
        droppable: titles of columns that may go, the first to go first; the others stay.
    """
    kept = list(range(len(header)))
    cells = [[printable(cell) for cell in row] for row in [header, *rows]]
    going = [header.index(title) for title in droppable]
    while (widths := _widths([[row[place] for row in cells] for place in kept], width)) is None:
        gone = next((place for place in going if place in kept), None)
        if gone is None:
            widths = _squeezed(len(kept), width or 0)
            break
        kept.remove(gone)
    right = [place > 0 and all(NUMBER.match(row[place]) for row in cells[1:]) for place in kept]
    wrapped = [[wrap(row[place], room) for place, room in zip(kept, widths, strict=True)] for row in cells]
    used = [max(cell_len(line) for cell in column for line in cell) for column in zip(*wrapped, strict=True)]
    lines = [_row_lines(row, used, right) for row in wrapped]
    dropped = [title for place, title in enumerate(header) if place not in kept]
    return Lines(lines[0] if any(header) else [], [line for row in lines[1:] for line in row], dropped)


def wrap(text: str, width: int) -> list[str]:
    """The text in lines of at most ``width`` characters, broken between words where these are short enough."""
    if cell_len(text) <= width:
        return [text]
    lines = [""]
    for word in WORD.findall(text):
        pieces = [word] if cell_len(word) <= width else _pieces(word, width)
        for place, piece in enumerate(pieces):
            joined = lines[-1] + (" " if lines[-1] and not place else "") + piece
            if cell_len(joined) <= width or not lines[-1]:
                lines[-1] = joined
            else:
                lines.append(piece)
    return lines


def _pieces(word: str, width: int) -> list[str]:
    """Parts of a word that fit, divided behind punctuation if possible."""
    parts: list[str] = []
    for piece in PIECE.findall(word):
        while cell_len(piece) > width:
            longest = min(len(piece), width)  # a character takes a cell at least, but for those that combine
            cut = next(n for n in range(longest, 0, -1) if cell_len(piece[:n]) <= width or n == 1)
            parts.append(piece[:cut])
            piece = piece[cut:]
        parts.append(piece)
    return parts


def _longest_word(text: str) -> int:
    return max((cell_len(word) for word in WORD.findall(text)), default=0)


def _widths(columns: Sequence[Sequence[str]], width: int | None) -> list[int] | None:
    """The widths of columns, each a title and its cells; None if they do not fit even at their narrowest."""
    whole = [max(map(cell_len, column)) for column in columns]
    if width is None:
        return whole
    room = width - len(GAP) * (len(columns) - 1)
    if sum(whole) <= room:
        return whole
    least = [min(width // 2, max(map(_longest_word, column))) for column in columns]
    # titles give way before cells do
    widths = [
        max(narrow, max(map(cell_len, column[1:]), default=0)) for narrow, column in zip(least, columns, strict=True)
    ]
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda place: (widths[place] > least[place], widths[place]))
        if widths[widest] <= least[widest]:
            return None
        widths[widest] -= 1
    return widths


def _squeezed(count: int, width: int) -> list[int]:
    """Even widths, for a terminal that is narrower than the words that must stay."""
    return [max(NARROWEST, (width - len(GAP) * (count - 1)) // count)] * count


def _row_lines(cells: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    return [GAP.join(map(_padded, line, widths, right)).rstrip() for line in zip_longest(*cells, fillvalue="")]


def _padded(text: str, width: int, right: bool) -> str:
    space = " " * (width - cell_len(text))
    return space + text if right else text + space
