"""HTML for notebooks: tables and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEFT = ' style="text-align: left"'


def facts(title: str, pairs: Iterable[tuple[str, object]]) -> str:
    """Return a title above a table of names and values."""
    rows = "".join(
        f"<tr><th{LEFT}>{escape(name)}</th><td{LEFT}>{escape(str(value))}</td></tr>" for name, value in pairs
    )
    return f"<p><strong>{escape(title)}</strong></p><table>{rows}</table>"


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a title and titles of columns."""
    titles = "".join(f"<th{LEFT}>{escape(name)}</th>" for name in header)
    lines = "".join("<tr>" + "".join(f"<td{LEFT}>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f"<p><strong>{escape(title)}</strong></p><table><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>"
    )


def svg_of(figure: Figure) -> str:
    """Return a figure as an SVG element, without the header of a file."""
    content = StringIO()
    figure.savefig(content, format="svg")
    document = content.getvalue()
    return document[document.index("<svg") :]
