"""The tables of a paper, each with its caption; the best value of each comparison is marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import polars as pl

from cbo_gym.errors import printable
from cbo_gym.evaluation.compare.leaderboard import ALL_MODES, Leaderboard
from cbo_gym.evaluation.compare.significance import TEST, Ranking
from cbo_gym.evaluation.report.tables import (
    Table,
    choice_table,
    improvement_table,
    overall_table,
    score_table,
    with_ranks,
)

OVERALL = ("iqm", "score", "average_score", "seconds")  # columns that fit a page


class PaperTable(NamedTuple):
    """A table with its caption; its best cells are to be set in bold."""

    caption: str
    table: Table


def paper_tables(board: Leaderboard, rankings: Mapping[str, Ranking | str]) -> dict[str, list[PaperTable]]:
    """By the names of the leaderboard's data frames: ``overall``, ``per_env``, ``improvement`` and ``choices``.

    Args:
        board: the leaderboard.
        rankings: group -> the ranking of its agents.
    """
    modes = [group for group in board.groups if group != ALL_MODES]
    return {
        "overall": [_overall(board, group, rankings[group]) for group in board.groups],
        "per_env": [_per_env(board, mode) for mode in modes],
        "improvement": [_improvement(board, group) for group in board.groups if _pairs(board, group)],
        "choices": list(_choices(board)),
    }


def _overall(board: Leaderboard, group: str, found: Ranking | str) -> PaperTable:
    tested = (
        f" Agents that share a letter are not told apart: {TEST}; {found.test_in_short}."
        if isinstance(found, Ranking)
        else ""
    )
    caption = f"{group.capitalize()}: scores over environments with 95 % intervals.{tested}"
    return PaperTable(caption, with_ranks(overall_table(board, group, OVERALL), found))


def _per_env(board: Leaderboard, mode: str) -> PaperTable:
    caption = (
        f"{mode.capitalize()}: score of the recommendation after the last round, mean over {board.seeds} seeds with "
        "half the width of its 95 % t-interval; in brackets the number of seeds where it is another."
    )
    return PaperTable(caption, score_table(board, mode))


def _pairs(board: Leaderboard, group: str) -> int:
    return board.improvement.filter(pl.col("group") == group).height


def _improvement(board: Leaderboard, group: str) -> PaperTable:
    caption = (
        f"{group.capitalize()}: probability that a run of the agent in the row scores higher than one in the column."
    )
    return PaperTable(caption, improvement_table(board, group))


def _choices(board: Leaderboard) -> Iterator[PaperTable]:
    for env in board.choices["env"].unique().sort():
        yield PaperTable(f"{printable(env)}: share of rounds in which each was chosen.", choice_table(board, env))
