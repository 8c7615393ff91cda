"""Output of commands: tables, JSON and CSV."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeGuard

import typer
from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from cbo_gym._util.files import csv_cell
from cbo_gym.cli.layout import layout
from cbo_gym.errors import ArgumentError, printable

#: Prints results. Lines are broken at the width of a terminal, but not in a pipe.
console = Console(soft_wrap=not sys.stdout.isatty())

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document, and nothing else, to standard output.")
]
CsvOption = Annotated[
    bool, typer.Option("--csv", help="Print CSV with a header, and nothing else, to standard output.")
]
# Hints where hidden columns can be found.
SEE_CSV, SEE_JSON = "--csv has them", "--json has them"


def require_one_format(as_json: bool, as_csv: bool) -> None:
    """Raise ArgumentError if both options are given."""
    if as_json and as_csv:
        raise ArgumentError("give one of --json and --csv, not both")


def say(line: str, style: str = "", *, soft_wrap: bool = False) -> None:
    """Print a line of results, without interpreting markup.

    Args:
        line: the line. Characters that cannot be printed are shown as escapes.
        style: style of Rich.
        soft_wrap: whether to leave line breaks to the terminal, so that a path can be copied.
    """
    console.print(Text(printable(line), style), highlight=False, soft_wrap=soft_wrap or None)


def print_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    droppable: Sequence[str] = (),
    hidden: Sequence[str] = (),
) -> list[str]:
    """Print a table. In a terminal it fits the width; in a pipe it is as wide as its content.

    Args:
        title: line above the table; empty for none. A table with a title has an empty line below it.
        header: titles of the columns; all empty for a table without titles.
        rows: rows with a cell per column.
        droppable: titles of columns that may be hidden in a narrow terminal, in this order.
        hidden: titles of columns that are always hidden.

    Returns:
        The titles of droppable columns that were hidden, for :func:`print_hidden`.
    """
    shown = [index for index, name in enumerate(header) if name not in hidden]
    header, rows = [header[index] for index in shown], [[row[index] for index in shown] for row in rows]
    table, dropped = layout(header, rows, _width(), [name for name in droppable if name not in hidden])
    if title:
        say(title, "bold")
    for segments in Segment.split_lines(console.render(table)):
        line = Text.assemble(*((segment.text, segment.style or "") for segment in segments))
        line.rstrip()
        console.print(line, soft_wrap=True, highlight=False)
    if title:
        console.print()
    return dropped


def hidden_columns(
    tables: Iterable[tuple[Sequence[str], Sequence[Sequence[str]]]], droppable: Sequence[str]
) -> list[str]:
    """Return the droppable columns that at least one of several tables must hide, so that all can hide the same.

    A table is a pair of its header and its rows.
    """
    hidden = set[str]()
    for header, rows in tables:
        hidden.update(layout(header, rows, _width(), [title for title in droppable if title in header])[1])
    return [title for title in droppable if title in hidden]


def _width() -> int | None:
    return console.width if sys.stdout.isatty() else None


def print_hidden(titles: Sequence[str], hint: str) -> None:
    """Print which columns are hidden, and a hint where they can be found."""
    if titles:
        say(f"Hidden to fit the width: {', '.join(dict.fromkeys(titles))}; {hint}.", "dim")


def print_json(document: object) -> None:
    """Print a document as JSON, with null for numbers that are not finite."""
    sys.stdout.write(json.dumps(_finite(document), indent=2) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def flatten(document: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield each value of a document with its path: ``("graph.0.node", "X0")``. A list of strings is one value."""
    if isinstance(document, Mapping):
        items: Iterable[tuple[object, object]] = document.items()
    elif isinstance(document, list) and not _is_strings(document):
        items = enumerate(document)
    else:
        yield path, document
        return
    for key, value in items:
        yield from flatten(value, f"{path}.{key}" if path else str(key))


def _is_strings(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def print_csv(header: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Print rows as CSV, each as soon as it is available.

    A list of strings is joined by commas; other lists and mappings are written as JSON. Strings that a spreadsheet
    would run as formulas are escaped.
    """
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([_cell(row[name]) for name in header])
        sys.stdout.flush()


def _cell(value: object) -> object:
    if isinstance(value, str):
        return csv_cell(value)
    if _is_strings(value):
        return csv_cell(", ".join(value))
    return json.dumps(_finite(value)) if isinstance(value, list | dict) else value
