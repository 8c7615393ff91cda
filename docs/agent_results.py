"""Write ``docs/data/agents.csv``, the results on the agents' pages, from a folder of runs (``make agent-results``)."""

from __future__ import annotations

import argparse
from pathlib import Path

import polars as pl

from cbo_gym.evaluation import leaderboard
from cbo_gym.evaluation.tables import provenance

RESULTS = Path(__file__).parent / "data" / "agents.csv"
COLUMNS = ["mode", "env", "agent", "score", "score_half", "average_score", "average_score_half", "seconds"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="that a sweep wrote")
    board = leaderboard(parser.parse_args().folder)
    rows = board.per_env.select(COLUMNS).filter(pl.col("score").is_not_null()).sort("mode", "env", "agent")
    RESULTS.write_text(f"# {provenance(board)}\n{rows.write_csv(float_precision=6)}", encoding="utf-8")


if __name__ == "__main__":
    main()
