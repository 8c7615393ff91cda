"""HTML of the report: sections, tables, and how numbers are written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

LONG = 40  # characters of a cell that is broken into lines


def section(name: str, title: str, *parts: str) -> str:
    """A part of the report with its heading.

    Args:
        name: by which links find it.
        title: of the heading, plain text.
        parts: HTML.
    """
    inside = "\n".join(part for part in parts if part)
    heading = f'<h2 id="{name}-title">{title}</h2>'
    return f'<section id="{name}" aria-labelledby="{name}-title">\n{heading}\n{inside}\n</section>'


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text; ``kind`` is its class."""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of plain text that scrolls by itself where it is wider than the page; the first cell names its row.

    Args:
        caption: says what it shows, for those who hear the page too.
        header: titles of the columns.
        rows: of the body.
    """
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in header)
    lines = "\n".join(
        f'<tr><th scope="row">{escape(first)}</th>{"".join(map(_cell, others))}</tr>' for first, *others in rows
    )
    inside = (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{titles}</tr></thead><tbody>\n{lines}\n</tbody></table>"
    )
    return wide(inside, caption)


def _cell(text: str) -> str:
    kind = ' class="text"' if len(text) > LONG else ""
    return f"<td{kind}>{escape(text)}</td>"


def wide(inside: str, label: str) -> str:
    """A box for content wider than the page: it scrolls, also by keys."""
    return f'<div class="wide" role="region" tabindex="0" aria-label="{escape(label)}">{inside}</div>'


def folded(title: str, inside: str) -> str:
    """Content that is shown when its title is clicked."""
    return f"<details><summary>{escape(title)}</summary>\n{inside}\n</details>"


def number(value: Any) -> str:
    """A number, or an interval, as the report writes it; nothing for what is not known."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(number, value)) + "]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
