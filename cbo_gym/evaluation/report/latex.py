"""Tables of a paper in LaTeX, for the package booktabs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cbo_gym.errors import printable
from cbo_gym.evaluation.report.paper import PaperTable
from cbo_gym.evaluation.report.tables import MISSING, Cell

LONGEST = 40  # rows of a table that floats; longer ones break over pages
SPECIAL = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "[": "{[}",  # after a line's end it would be read as an option
    "]": "{]}",
}


def latex(tables: Iterable[PaperTable]) -> str:
    """The tables one after another, each with its caption; the packages that they need in a comment."""
    return "\n".join(["% \\usepackage{booktabs, longtable}", *map(_table, tables), ""])


def escape(text: str) -> str:
    """The text as LaTeX shows it letter by letter."""
    return "".join(SPECIAL.get(character, character) for character in printable(text))


def _table(paper: PaperTable) -> str:
    header, rows = paper.table.header, paper.table.rows
    columns = "l" + "r" * (len(header) - 1)
    titles = " & ".join(map(escape, header)) + r" \\"
    body = [" & ".join(map(_cell, cells)) + r" \\" for cells in rows]
    caption = rf"\caption{{{escape(paper.caption)}}}"
    inner = [r"\toprule", titles, r"\midrule"]
    if len(rows) > LONGEST:
        begin, end = [rf"\begin{{longtable}}{{{columns}}}", rf"{caption} \\"], [r"\end{longtable}"]
        inner.append(r"\endhead")  # on every page
    else:
        begin = [r"\begin{table}", r"\centering", caption, rf"\begin{{tabular}}{{{columns}}}"]
        end = [r"\end{tabular}", r"\end{table}"]
    return "\n".join([*begin, *inner, *body, r"\bottomrule", *end])


def _cell(cell: Cell) -> str:
    text = str(cell)
    shown = "--" if text == MISSING else re.sub(r"(?<![\w.])-(?=\d)", "$-$", escape(text))
    return rf"\textbf{{{shown}}}" if cell.best else shown
