"""Output of the commands: tables for people, JSON and CSV for programs."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, TypeGuard

import typer
from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from cbo_gym.cli.layout import layout
from cbo_gym.errors import ArgumentError, printable
from cbo_gym.files import csv_text

#: of results; lines break only on a terminal
console = Console(soft_wrap=not sys.stdout.isatty())

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document, and nothing else, to standard output.")
]
CsvOption = Annotated[
    bool, typer.Option("--csv", help="Print CSV with a header, and nothing else, to standard output.")
]
CSV_HAS_THEM, JSON_HAS_THEM = "--csv has them", "--json has them"


class Format(StrEnum):
    """For whom a command prints."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"


def chosen_format(as_json: bool, as_csv: bool) -> Format:
    """The format that the two options ask for.

    Raises:
        ArgumentError: if both are given.
    """
    if as_json and as_csv:
        raise ArgumentError("give one of --json and --csv, not both")
    return Format.JSON if as_json else Format.CSV if as_csv else Format.TEXT


def say(text: str, style: str = "", *, whole: bool = False) -> None:
    """A line of results; brackets in it are no markup.

    Args:
        text: what is said. What cannot be printed in it is shown as its escape.
        style: as Rich names it.
        whole: leave it to the terminal to break the line, so that a path can be copied.
    """
    console.print(Text(printable(text), style), highlight=False, soft_wrap=whole or None)


def print_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    droppable: Sequence[str] = (),
    without: Sequence[str] = (),
) -> list[str]:
    """Print a table as wide as the terminal allows, or in a pipe as it needs.

    Args:
        title: stands above it; with one an empty line follows.
        header: titles of the columns; all empty for none.
        rows: as many cells each.
        droppable: titles of columns that may be left out where the terminal is narrow, the first to go first.
        without: titles of columns that are left out.

    Returns:
        the titles that were left out, for :func:`left_out`.
    """
    kept = [place for place, name in enumerate(header) if name not in without]
    header, rows = [header[place] for place in kept], [[row[place] for place in kept] for row in rows]
    table, dropped = layout(header, rows, _width(), [name for name in droppable if name not in without])
    if title:
        say(title, "bold")
    for line in Segment.split_lines(console.render(table)):
        text = Text.assemble(*((part.text, part.style or "") for part in line))
        text.rstrip()
        console.print(text, soft_wrap=True, highlight=False)
    if title:
        console.print()
    return dropped


def too_wide(tables: Iterable[tuple[Sequence[str], Sequence[Sequence[str]]]], droppable: Sequence[str]) -> list[str]:
    """The columns for which one of several tables has no room, so that all of them can go without.

    Args:
        tables: the header and the rows of each.
        droppable: as of :func:`print_table`.
    """
    dropped = {
        name
        for header, rows in tables
        for name in layout(header, rows, _width(), [one for one in droppable if one in header])[1]
    }
    return [name for name in droppable if name in dropped]


def _width() -> int | None:
    return console.width if sys.stdout.isatty() else None


def left_out(titles: Sequence[str], elsewhere: str) -> None:
    """Say once which columns found no room, and where they are to be found."""
    if titles:
        say(f"Hidden to fit the width: {', '.join(dict.fromkeys(titles))}; {elsewhere}.", "dim")


def print_json(document: object) -> None:
    """Print a document as JSON, numbers that are not finite as null."""
    sys.stdout.write(json.dumps(_finite(document), indent=2) + "\n")


def _finite(part: Any) -> Any:
    if isinstance(part, float):
        return part if math.isfinite(part) else None
    if isinstance(part, Mapping):
        return {str(key): _finite(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [_finite(value) for value in part]
    return part


def flat(part: object, path: str = "") -> Iterator[tuple[str, object]]:
    """A document as pairs of a path and a value: ``("graph.0.node", "X0")``; lists of texts are one value."""
    if isinstance(part, Mapping):
        inner: Iterable[tuple[object, object]] = part.items()
    elif isinstance(part, list) and not _is_texts(part):
        inner = enumerate(part)
    else:
        yield path, part
        return
    for key, value in inner:
        yield from flat(value, f"{path}.{key}" if path else str(key))


def _is_texts(part: object) -> TypeGuard[list[str]]:
    return isinstance(part, list) and all(isinstance(one, str) for one in part)


def print_csv(header: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Print rows as CSV, each as soon as it is there. Lists of texts are joined by commas, other ones are JSON.

    Texts are written as :func:`cbo_gym.files.csv_text` has them; numbers stay numbers.
    """
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([_cell(row[name]) for name in header])
        sys.stdout.flush()


def _cell(value: object) -> object:
    if isinstance(value, str):
        return csv_text(value)
    if _is_texts(value):
        return csv_text(", ".join(value))
    return json.dumps(_finite(value)) if isinstance(value, list | dict) else value
