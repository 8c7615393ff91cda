"""The leaderboard as a few tables inside a Markdown file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.leaderboard import ALL_MODES, Leaderboard
from cbo_gym.evaluation.tables import MISSING, SCORE_NOTE, SECONDS_NOTE, number, overall_table, provenance
from cbo_gym.files import write_text

BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def write_results(path: Path, board: Leaderboard) -> None:
    """Put :func:`results` between the lines :data:`BEGIN` and :data:`END` of a file; the rest of it stays.

    Raises:
        ArgumentError: if the file is missing, or has not each of the two lines once, in this order.
    """
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    before, begin, rest = text.partition(BEGIN)
    inside, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in inside + after or END in before + after:
        raise ArgumentError(f"{path} must have the lines {BEGIN!r} and {END!r} once each, in this order")
    write_text(path, f"{before}{BEGIN}\n{results(board)}{END}{after}")


def results(board: Leaderboard) -> str:
    """A table a mode, with the scores over its environments and on each; below them where the numbers come from."""
    modes = [group for group in board.groups if group != ALL_MODES]
    notes = f"{SCORE_NOTE} {SECONDS_NOTE}"
    return "\n".join([*(_mode_table(board, mode) for mode in modes), notes, "", _escape(provenance(board)), ""])


def _mode_table(board: Leaderboard, mode: str) -> str:
    rows = board.per_env.filter(pl.col("mode") == mode)
    envs = rows["env"].unique().sort().to_list()
    cells = {(row["agent"], row["env"]): _cell(row) for row in rows.iter_rows(named=True)}
    overall = overall_table(board, mode, ["iqm", "average_score", "seconds"])
    header = [mode, *overall.header[2:4], *(env.removeprefix("CBO/") for env in envs), overall.header[4]]
    ranked = {agent: numbers for agent, _, *numbers in overall.rows}
    ranked |= {agent: [MISSING] * 3 for agent in rows["agent"].unique().sort() if agent not in ranked}
    body = [
        [agent, iqm, play, *(cells.get((agent, env), MISSING) for env in envs), seconds]
        for agent, (iqm, play, seconds) in ranked.items()
    ]
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "".join(f"| {' | '.join(map(_escape, line))} |\n" for line in [header, rule, *body])


def _cell(row: dict[str, Any]) -> str:
    score = number(row["score"], row["score_half"])
    return f"{score} ({row['failed']} failed)" if row["failed"] else score


def _escape(text: str) -> str:
    return text.replace("|", r"\|")
