"""Write tables in Markdown and LaTeX for a paper, and results in Markdown into an existing file such as a README."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from cbo_gym._util.files import write_text
from cbo_gym.errors import ArgumentError, printable
from cbo_gym.evaluation.comparison.leaderboard import ALL_MODES, Leaderboard
from cbo_gym.evaluation.comparison.provenance import provenance
from cbo_gym.evaluation.report.tables import (
    MISSING,
    OVERALL,
    SCORE_NOTE,
    SECONDS_NOTE,
    CaptionedTable,
    Cell,
    number,
    overall_table,
)


def marks(name: str) -> tuple[str, str]:
    """Return the first and the last line around the section ``name`` of a Markdown file, which can be replaced."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


BEGIN, END = marks("results")
# Largest number of rows of a floating table; longer tables break over pages.
MAX_FLOATING_ROWS = 40
# Characters that LaTeX would not show literally -> commands.
LATEX_COMMANDS = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    # After the end of a line a bracket would be read as an option.
    "[": "{[}",
    "]": "{]}",
}


def write_results(path: Path, board: Leaderboard) -> None:
    """Replace the section between the lines :data:`BEGIN` and :data:`END` of a file; errors are those of with_part."""
    write_text(path, with_part(path, "results", results(board)))


def with_part(path: Path, name: str, section: str) -> str:
    """Return the content of a file with another section between the :func:`marks` of a name."""
    marker_lines = list(marks(name))
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.is_file() else []
    matches = [(index, line.strip()) for index, line in enumerate(lines) if line.strip() in marker_lines]
    if [mark for _, mark in matches] != marker_lines:
        raise ArgumentError(
            f"{path} must have the lines {marker_lines[0]!r} and {marker_lines[1]!r} once each, in this order"
        )
    (begin, _), (end, _) = matches
    return "".join([*lines[: begin + 1], section, *lines[end:]])


def results(board: Leaderboard) -> str:
    """Return a table for each mode, with scores over its environments and on each, and the origin of the numbers."""
    modes = [group for group in board.groups if group != ALL_MODES]
    notes = f"{SCORE_NOTE} {SECONDS_NOTE}"
    return "\n".join([*(_mode_table(board, mode) for mode in modes), notes, "", escape(provenance(board)), ""])


def write_papers(papers: Mapping[str, Sequence[CaptionedTable]], folder: Path) -> None:
    """Write the tables of each file to ``folder``, in LaTeX and Markdown."""
    for name, tables in papers.items():
        write_text(folder / f"{name}.tex", latex(tables))
        write_text(folder / f"{name}.md", markdown(tables))


def markdown(tables: Iterable[CaptionedTable]) -> str:
    """Format tables in Markdown, each below its caption, with the best values in bold."""
    sections = []
    for caption, table in tables:
        body = [[f"**{escape(str(cell))}**" if cell.best else escape(str(cell)) for cell in row] for row in table.rows]
        sections.append(f"{escape(caption)}\n\n{_format_table(list(map(escape, table.header)), body)}")
    return "\n".join(sections)


def _format_table(header: list[str], rows: list[list[str]]) -> str:
    """Format a table of escaped cells; the first column is aligned to the left, the others to the right."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "".join(f"| {' | '.join(line)} |\n" for line in [header, rule, *rows])


def _mode_table(board: Leaderboard, mode: str) -> str:
    """Return a table with a row for each agent: scores over environments, on each environment, and seconds."""
    rows = board.per_env.filter(pl.col("mode") == mode)
    envs = rows["env"].unique().sort().to_list()
    scores = {(row["agent"], row["env"]): _cell(row, board.seeds) for row in rows.iter_rows(named=True)}
    columns = ("iqm", "average_score", "seconds")
    agents = board.overall.filter(pl.col("group") == mode)["agent"]
    overall_rows = zip(agents, overall_table(board, mode, columns).rows, strict=True)
    overall = {agent: list(map(str, row[-len(columns) :])) for agent, row in overall_rows}
    for agent in rows["agent"].unique().sort():
        overall.setdefault(agent, [MISSING] * len(columns))
    iqm_title, play_title, seconds_title = (OVERALL[name] for name in columns)
    lines = [[mode, iqm_title, play_title, *(env.removeprefix("CBO/") for env in envs), seconds_title]]
    for agent, (iqm, play, seconds) in overall.items():
        lines.append([agent, iqm, play, *(scores.get((agent, env), MISSING) for env in envs), seconds])
    header, *body = [list(map(escape, line)) for line in lines]
    return _format_table(header, body)


def _cell(row: dict[str, Any], seeds: int) -> str:
    """Format a score, followed by the numbers of seeds and of failed runs in brackets if some are missing or failed."""
    remarks = [f"{row['seeds']} of {seeds} seeds"] if 0 < row["seeds"] < seeds else []
    remarks += [f"{row['failed']} failed"] if row["failed"] else []
    score = str(number(row["score"], row["score_half"]))
    return f"{score} ({', '.join(remarks)})" if remarks else score


def escape(string: str) -> str:
    """Escape characters that Markdown would not show literally; it does show underscores inside words."""
    return re.sub(r"[\\|<*`$~&]|(?<!\w)_|_(?!\w)|(?<=\])\(", r"\\\g<0>", printable(string))


def latex(tables: Iterable[CaptionedTable]) -> str:
    """Format tables in LaTeX, each with its caption; a comment names the packages that they need."""
    lines = ["% \\usepackage{booktabs, longtable}"]
    for title, table in tables:
        header, rows = table.header, [list(map(_latex_cell, row)) for row in table.rows]
        columns = "l" + "r" * (len(header) - 1)
        caption = rf"\caption{{{escape_latex(title)}}}"
        titles, *body = (" & ".join(cells) + r" \\" for cells in [list(map(escape_latex, header)), *rows])
        inner = [r"\toprule", titles, r"\midrule"]
        if len(rows) > MAX_FLOATING_ROWS:
            begin, end = [rf"\begin{{longtable}}{{{columns}}}", rf"{caption} \\"], [r"\end{longtable}"]
            # The header is repeated on every page.
            inner.append(r"\endhead")
        else:
            begin = [r"\begin{table}", r"\centering", caption, rf"\begin{{tabular}}{{{columns}}}"]
            end = [r"\end{tabular}", r"\end{table}"]
        lines += [*begin, *inner, *body, r"\bottomrule", *end]
    return "\n".join([*lines, ""])


def _latex_cell(cell: Cell) -> str:
    formatted = str(cell)
    latex = "--" if formatted == MISSING else re.sub(r"(?<![\w.])-(?=\d)", "$-$", escape_latex(formatted))
    return rf"\textbf{{{latex}}}" if cell.best else latex


def escape_latex(string: str) -> str:
    """Escape characters that LaTeX would not show literally."""
    return "".join(LATEX_COMMANDS.get(character, character) for character in printable(string))
