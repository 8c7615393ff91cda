"""The tables of a paper: an agent or environment a row, the best value of each comparison marked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import polars as pl

from cbo_gym.errors import printable
from cbo_gym.evaluation.compare.leaderboard import ALL_MODES, Leaderboard
from cbo_gym.evaluation.compare.significance import TEST, Ranking, ranking
from cbo_gym.evaluation.report.tables import MISSING, TextTable, choice_table, improvement_table, number, overall_table


class PaperTable(NamedTuple):
    """A table with its caption; ``best`` are places (row, column) of cells to be set in bold."""

    caption: str
    table: TextTable
    best: frozenset[tuple[int, int]] = frozenset()


def paper_tables(board: Leaderboard) -> dict[str, list[PaperTable]]:
    """By the names of the leaderboard's data frames: ``overall``, ``per_env``, ``improvement`` and ``choices``."""
    modes = [group for group in board.groups if group != ALL_MODES]
    return {
        "overall": [_overall(board, group) for group in board.groups],
        "per_env": [_per_env(board, mode) for mode in modes],
        "improvement": [_improvement(board, group) for group in board.groups if _pairs(board, group)],
        "choices": list(_choices(board)),
    }


def _overall(board: Leaderboard, group: str) -> PaperTable:
    table = overall_table(board, group, ["iqm", "score", "average_score", "seconds"])
    agents = board.overall.filter(pl.col("group") == group)
    best = _best_in_columns(
        agents, {3: ("iqm", max), 4: ("score", max), 5: ("average_score", max), 6: ("seconds", min)}
    )
    found = ranking(board, group)
    caption = f"{group.capitalize()}: scores over environments with 95 % intervals"
    if not isinstance(found, Ranking):
        return PaperTable(f"{caption}.", table, best)
    letters, places = found.letters, dict(zip(found.agents, found.ranks, strict=True))
    rows = [
        [*row, f"{places[agent]:.2f}" if agent in places else MISSING, letters.get(agent, MISSING)]
        for agent, row in zip(agents["agent"], table.rows, strict=True)
    ]
    caption += f". Agents that share a letter are not told apart: {TEST}; {found.test_in_short}."
    return PaperTable(caption, TextTable([*table.header, "mean rank", "letters"], rows), best)


def _best_in_columns(
    rows: pl.DataFrame, columns: dict[int, tuple[str, Callable[[Any], float]]]
) -> frozenset[tuple[int, int]]:
    """Places of the best values among the agents with all environments; none where there is nothing to compare."""
    complete = rows.with_row_index().filter(pl.col("envs") == pl.col("of"))
    if complete.height < 2:
        return frozenset()
    return frozenset(
        (int(row), column)
        for column, (name, best) in columns.items()
        for row in complete.filter(pl.col(name) == best(complete[name]))["index"]
    )


def _per_env(board: Leaderboard, mode: str) -> PaperTable:
    """Scores of the recommendation: a row an environment, a column an agent."""
    rows = board.per_env.filter(pl.col("mode") == mode)
    envs, agents = (rows[name].unique().sort().to_list() for name in ("env", "agent"))
    found = {(row["env"], row["agent"]): row for row in rows.iter_rows(named=True)}
    body, best = [], set()
    for place, env in enumerate(envs):
        scores = {column: found.get((env, agent)) for column, agent in enumerate(agents, start=1)}
        known = {column: row["score"] for column, row in scores.items() if row and row["score"] is not None}
        if len(known) > 1:
            best |= {(place, column) for column, score in known.items() if score == max(known.values())}
        body.append([printable(env), *(_score(board, row) for row in scores.values())])
    caption = (
        f"{mode.capitalize()}: score of the recommendation after the last round, mean over {board.seeds} seeds with "
        "half the width of its 95 % t-interval; in brackets the number of seeds where it is another."
    )
    return PaperTable(caption, TextTable(["environment", *map(printable, agents)], body), frozenset(best))


def _score(board: Leaderboard, row: dict[str, Any] | None) -> str:
    if row is None or row["score"] is None:
        return MISSING
    seeds = f" ({row['seeds']})" if row["seeds"] != board.seeds else ""
    return number(row["score"], row["score_half"]) + seeds


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
