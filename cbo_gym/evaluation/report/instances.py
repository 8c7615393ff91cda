"""Who had learnt where the optimum lies: an agent's runs on a system as published beside those on instances of it."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import polars as pl

from cbo_gym.evaluation.compare.leaderboard import Leaderboard, final_numbers
from cbo_gym.evaluation.metrics.aggregate import welch_half_width
from cbo_gym.evaluation.report.tables import Cell, Table, number, table_of
from cbo_gym.evaluation.runs.counted import without_keywords
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.labels import Spec
from cbo_gym.problems.variations.instance import INSTANCE_KEYWORD

SCORES = {"average_score": "play", "score": "recommendation"}
SCHEMA = {
    "env": pl.String,
    "agent": pl.String,
    "score": pl.String,
    "published": pl.Float64,
    "instances": pl.Float64,
    "lost": pl.Float64,
    "lost_half": pl.Float64,
    "published_runs": pl.Int64,
    "instance_runs": pl.Int64,
}
NOTE = (
    "Score on the system as published minus the mean over its instances, on which nobody can know where the optimum "
    "lies; runs are not paired, intervals are Welch's."
)


def instance_losses(board: Leaderboard) -> pl.DataFrame:
    """The scores that agents lose where a system is turned, see :mod:`cbo_gym.problems.variations.instance`.

    Returns:
        a row for each environment and agent with runs on instance 0 and on others, and each score, ``"play"`` and
        ``"recommendation"``: its mean on the system as ``published`` and on all other ``instances``, what is ``lost``,
        the first minus the second, with ``lost_half``, half the width of Welch's 95 % interval (null with one run of a
        kind), and how many runs there are of either.
    """
    found: dict[tuple[str, str], tuple[list[Run], list[Run]]] = defaultdict(lambda: ([], []))
    for run in (run for run in board.runs if not run.secret):
        env, turned = _split(run)
        found[env, run.agent][turned].append(run)
    rows = [
        {"env": env, "agent": agent, "score": what, **_lost(name, *both)}
        for (env, agent), both in sorted(found.items())
        if all(both)
        for name, what in SCORES.items()
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def instance_tables(board: Leaderboard) -> dict[str, Table]:
    """Environment -> the same as a table, for those with runs of both kinds."""
    rows: dict[str, list[list[Cell | str]]] = defaultdict(list)
    for row in instance_losses(board).iter_rows(named=True):
        means = [number(row["published"], None), number(row["instances"], None), number(row["lost"], row["lost_half"])]
        rows[row["env"]].append(
            [row["agent"], row["score"], *means, f"{row['published_runs']}, {row['instance_runs']}"]
        )
    header = ["agent", "score of", "as published", "on instances", "lost", "runs"]
    return {env: table_of(header, own) for env, own in rows.items()}


def _split(run: Run) -> tuple[str, bool]:
    """The environment with its horizon, but without the number of its instance, and whether that is another than 0."""
    turned = Spec.told(run.env).keywords.get(INSTANCE_KEYWORD, 0) != 0
    return f"{without_keywords(run.env, INSTANCE_KEYWORD)}, T={run.horizon}", bool(turned)


def _lost(name: str, published: list[Run], turned: list[Run]) -> dict[str, float | int | None]:
    scores = [final_numbers(part)[name].cast(pl.Float64).to_numpy() for part in (published, turned)]
    means, half = [float(part.mean()) for part in scores], welch_half_width(scores)
    return {
        "published": means[0],
        "instances": means[1],
        "lost": means[0] - means[1],
        "lost_half": None if np.isnan(half) else half,
        "published_runs": len(published),
        "instance_runs": len(turned),
    }
