"""Formulas of the pages, written in LaTeX between dollars, become MathML: browsers show it without any script."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', flags=re.DOTALL)
UNKNOWN = re.compile(r"<m\w+>(\\\w+)")
BLOCK = '<div style="overflow-x: auto; overflow-y: hidden">{}</div>'  # a long formula scrolls in a box of its own


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """MkDocs asks: what ``pymdownx.arithmatex`` marked is replaced."""
    return FORMULA.sub(lambda found: mathml(unescape(found[3]), block=found[2] == "["), html)


def mathml(latex: str, block: bool) -> str:
    """A formula as MathML, inside a line or as a block.

    Raises:
        ValueError: for a command that is not known.
    """
    from latex2mathml.converter import convert  # late: the tests of the pages may do without

    converted = convert(latex, display="block" if block else "inline")
    if unknown := UNKNOWN.findall(converted):
        raise ValueError(f"{unknown} in the formula {latex!r}: latex2mathml does not know them")
    return BLOCK.format(converted) if block else converted
