"""Write ``docs/data/agents.csv``, the results on the agents' pages, from the published results (``make readme``)."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from cbo_gym.evaluation import Leaderboard, leaderboard, load_published
from cbo_gym.evaluation.report.tables import provenance

RESULTS = Path(__file__).parent / "data" / "agents.csv"
SUITE = "agents"  # file of the published results
COLUMNS = ["mode", "env", "agent", "score", "score_half", "average_score", "average_score_half", "seconds"]


def text(board: Leaderboard) -> str:
    """The text of the file for a leaderboard."""
    rows = board.per_env.select(COLUMNS).filter(pl.col("score").is_not_null()).sort("mode", "env", "agent")
    return f"# {provenance(board)}\n{rows.write_csv(float_precision=6)}"


if __name__ == "__main__":
    RESULTS.write_text(text(leaderboard(load_published(suite=SUITE))), encoding="utf-8")
