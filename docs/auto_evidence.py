"""Write ``docs/data/auto.csv``: what the published results say of the rules of ``Auto`` (``make readme``).

For every rule and mode, the method that Auto chooses beside each rival: means over the environments that both played
in one published suite, of the score of the last recommendation and of play; and the most seconds that a round of the
choice took there. A row's ``chosen`` is Auto where the row is of a whole mode.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import polars as pl

from cbo_gym import make_task
from cbo_gym.agents.auto.rules import choices
from cbo_gym.evaluation import leaderboard, load_published
from cbo_gym.specs import Spec, make_env

RESULTS = Path(__file__).parent / "data" / "auto.csv"
SUITES = Path(__file__).parent.parent / "results"
FEWEST = 2  # environments in common, below which a rival's mean says little


def scores() -> pl.DataFrame:
    """Suite, mode, environment, agent with its defaults, score and play."""
    boards = []
    for file in sorted(SUITES.glob("*.parquet")):
        board = leaderboard(load_published(suite=file.stem)).per_env
        boards.append(board.with_columns(suite=pl.lit(file.stem)))
    columns = ["suite", "mode", "env", "agent", "score", "average_score", "seconds"]
    rows = pl.concat([board.select(columns) for board in boards]).drop_nulls()
    return rows.filter(~pl.col("agent").str.contains("(", literal=True)).unique(["suite", "env", "agent"])


def chosen(env: str) -> str:
    """What Auto chooses on an environment, as leaderboards name it: ``"CBO/Alpine2-v0, T=100"``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        made = make_env(Spec.parse(env.rpartition(", T=")[0]), None)
    return next(choices(make_task(made, seed=0))).agent


def compared(rows: pl.DataFrame) -> pl.DataFrame:
    """The table of the module's docstring."""
    choices = {env: chosen(env) for env in rows["env"].unique()}
    rows = rows.with_columns(chosen=pl.col("env").replace_strict(choices))
    own = rows.filter(pl.col("agent") == pl.col("chosen")).drop("agent", "chosen")
    pairs = rows.join(own, on=["suite", "mode", "env"], suffix="_chosen")
    pairs = pairs.filter(pl.col("agent") != "Random")
    whole = pairs.with_columns(chosen=pl.lit("Auto"))
    means = [
        pl.col("seconds_chosen").max(),
        pl.len().alias("environments"),
        pl.col("score_chosen").mean(),
        pl.col("score").mean().alias("score_rival"),
        pl.col("average_score_chosen").mean().alias("play_chosen"),
        pl.col("average_score").mean().alias("play_rival"),
    ]
    table = pl.concat([pairs, whole]).filter(pl.col("agent") != pl.col("chosen"))
    table = table.group_by("mode", "chosen", pl.col("agent").alias("rival")).agg(means)
    enough = (pl.col("environments") >= FEWEST) | (pl.col("chosen") != "Auto")
    return table.filter(enough).sort("mode", "chosen", "score_rival", "rival", descending=[False, False, True, False])


if __name__ == "__main__":
    RESULTS.write_text(compared(scores()).write_csv(float_precision=3), encoding="utf-8")
