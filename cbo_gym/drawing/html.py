"""HTML for notebooks: tables and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEFT = ' style="text-align: left"'


def facts(title: str, values: Iterable[tuple[str, object]]) -> str:
    """Return a title above a table with a row for each name and its value."""
    rows = "".join(
        f"<tr><th{LEFT}>{escape(name)}</th><td{LEFT}>{escape(str(value))}</td></tr>" for name, value in values
    )
    return f"<p><strong>{escape(title)}</strong></p><table>{rows}</table>"


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a title above a table with a header."""
    header_cells = "".join(f"<th{LEFT}>{escape(name)}</th>" for name in header)
    cells_of_rows = ("".join(f"<td{LEFT}>{escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{cells}</tr>" for cells in cells_of_rows)
    head = f"<thead><tr>{header_cells}</tr></thead>"
    return f"<p><strong>{escape(title)}</strong></p><table>{head}<tbody>{body}</tbody></table>"


def svg_of(figure: Figure) -> str:
    """Return a figure as an SVG element, without the XML header of an SVG file."""
    content = StringIO()
    figure.savefig(content, format="svg")
    document = content.getvalue()
    return document[document.index("<svg") :]
