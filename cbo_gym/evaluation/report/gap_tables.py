"""GAP and PA-GAP as tables, for the environments of suites that are compared by them."""

from __future__ import annotations

import polars as pl

from cbo_gym.evaluation.compare.leaderboard import Leaderboard
from cbo_gym.evaluation.metrics.gap import BUDGETS, EXPECTED, SURVEY
from cbo_gym.evaluation.report.tables import Cell, Table, number, table_of, with_interval
from cbo_gym.suites import is_compared_by

GAP_NOTE = (
    "Improvement over the initial data towards the optimum, at the end and how early (GAP) and over the whole path "
    "(PA-GAP, about 0.5 at most), after so many rounds; higher is better. Expected: of expected rewards, with the true "
    "optimum. Survey's convention: of the best reward observed, noise included, with the references of Huang et al. "
    "(2026); only to be compared with its tables."
)
VERSIONS = {EXPECTED: "expected", SURVEY: "the survey's convention"}


def gap_tables(board: Leaderboard) -> list[tuple[str, Table]]:
    """Titles and tables: each group over its environments, then each environment; none without such a suite.

    Environments over which a group is averaged are all of the board's, so its tables are of boards that hold nothing
    else.
    """
    compared = [env for env in board.per_env["env"].unique() if is_compared_by("gap", env.rpartition(", T=")[0])]
    rows = board.per_env.filter(pl.col("env").is_in(compared))
    tables = []
    if rows.height and rows.height == board.per_env.height:
        for group in board.groups:
            agents = board.overall.filter(pl.col("group") == group)
            tables += _tables(f"{group.capitalize()}, over environments", agents, "{}_low")
    for env in rows["env"].unique().sort():
        tables += _tables(str(env), rows.filter(pl.col("env") == env), "{}_half")
    return tables


def _tables(title: str, rows: pl.DataFrame, spread: str) -> list[tuple[str, Table]]:
    """One for each version that any row has a number of."""
    tables = []
    for version, named in VERSIONS.items():
        columns = {
            f"{version}{name}_{budget}": f"{text} at {budget}"
            for name, text in (("gap", "GAP"), ("pa_gap", "PA-GAP"))
            for budget in BUDGETS
            if rows[f"{version}{name}_{budget}"].count()
        }
        if columns:
            body = [[row["agent"], *(_cell(row, name) for name in columns)] for row in rows.iter_rows(named=True)]
            tables.append((f"{title}: {named}", table_of(["agent", *columns.values()], body)))
    return tables


def _cell(row: dict[str, float | None], name: str) -> Cell:
    if f"{name}_half" in row:
        return number(row[name], row[f"{name}_half"])
    return with_interval(row[name], row[f"{name}_low"], row[f"{name}_high"])
