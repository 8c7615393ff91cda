"""Formulas of the pages, in LaTeX between dollars, as MathML, which browsers show without a script."""

import re
from html import unescape
from xml.etree import ElementTree

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', flags=re.DOTALL)
NAMESPACE = "http://www.w3.org/1998/Math/MathML"
UNKNOWN = re.compile(r"<m\w+>(\\\w+)")
BLOCK = '<div class="formula">{}</div>'  # a long formula scrolls in a box of its own


def with_mathml(html: str) -> str:
    """Replace the formulas that ``pymdownx.arithmatex`` has marked."""
    return FORMULA.sub(lambda match: mathml(unescape(match[3]), block=match[2] == "["), html)


def mathml(latex: str, block: bool) -> str:
    """Return a formula as MathML, inside a line or as a block.

    Raises:
        ValueError: if latex2mathml does not know a command.
    """
    converted = convert(latex, display="block" if block else "inline")
    if unknown := UNKNOWN.findall(converted):
        raise ValueError(f"{unknown} in the formula {latex!r}: latex2mathml does not know them")
    return BLOCK.format(_with_limits_below(converted)) if block else converted


def _with_limits_below(converted: str) -> str:
    """Set the ranges of max and min below them, as TeX does in a block."""
    ElementTree.register_namespace("", NAMESPACE)
    tree = ElementTree.fromstring(converted)
    for node in tree.iter(f"{{{NAMESPACE}}}msub"):
        if node[0].text in {"max", "min"}:
            node.tag = f"{{{NAMESPACE}}}munder"
    return ElementTree.tostring(tree, encoding="unicode")
