"""Objects as HTML for a notebook: a table of facts, other tables, and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from io import StringIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEFT = ' style="text-align: left"'


def facts(title: str, pairs: Iterable[tuple[str, object]]) -> str:
    """A title, and lines of a name and a value."""
    rows = "".join(
        f"<tr><th{LEFT}>{escape(name)}</th><td{LEFT}>{escape(str(value))}</td></tr>" for name, value in pairs
    )
    return f"<p><strong>{escape(title)}</strong></p><table>{rows}</table>"


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with titles of its columns."""
    titles = "".join(f"<th{LEFT}>{escape(name)}</th>" for name in header)
    lines = "".join("<tr>" + "".join(f"<td{LEFT}>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f"<p><strong>{escape(title)}</strong></p><table><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table>"
    )


def svg_of(figure: Figure) -> str:
    """A figure as the text of an SVG, without the head that a file has."""
    content = StringIO()
    figure.savefig(content, format="svg")
    text = content.getvalue()
    return text[text.index("<svg") :]
