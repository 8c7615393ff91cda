"""The cost of not being told the true graph: an agent's runs against its own on the same task with it known."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import polars as pl

from cbo_gym.evaluation.compare.leaderboard import Leaderboard, final_numbers
from cbo_gym.evaluation.metrics.aggregate import half_width
from cbo_gym.evaluation.report.tables import Cell, Table, number, table_of
from cbo_gym.evaluation.runs.counted import without_keywords
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.problems.variations.graph_knowledge import GRAPH_KEYWORDS
from cbo_gym.specs import Spec

LOST = {"score": "of recommendation", "average_score": "of play"}
SCHEMA = {
    "env": pl.String,
    "graph": pl.String,
    "agent": pl.String,
    "seeds": pl.Int64,
    **{f"{name}{end}": pl.Float64 for name in LOST for end in ("", "_half")},
}


def graph_losses(board: Leaderboard) -> pl.DataFrame:
    """The scores that agents lose where they are told less than the true graph, or something wrong.

    Seeds are paired: noise and the agent's own randomness are the same, and so are the initial observations as far as
    the sets that may be set are.

    Returns:
        a row for each environment and agent with runs of both kinds: ``env`` with its horizon, but not what is told;
        ``graph``, what is told; ``agent``; the number of paired ``seeds``; and for the score of the recommendation,
        ``score``, and that of play, ``average_score``, the mean of the score with the graph known minus the score
        without, and ``<name>_half``, half the width of its 95 % t-interval (null with one seed).
    """
    scores = {_key(run): run for run in board.runs}
    pairs: dict[tuple[str, str, str], list[tuple[Run, Run]]] = defaultdict(list)
    for (env, told, horizon, agent, seed), run in scores.items():
        known = scores.get((env, "", horizon, agent, seed))
        if told and known is not None:
            pairs[f"{env}, T={horizon}", told, agent].append((known, run))
    rows = [
        {"env": env, "graph": told, "agent": agent, **_lost(runs)} for (env, told, agent), runs in sorted(pairs.items())
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


def graph_loss_tables(board: Leaderboard) -> dict[str, Table]:
    """Environment -> the same as a table, for those with runs that can be compared."""
    rows: dict[str, list[list[Cell | str]]] = defaultdict(list)
    for row in graph_losses(board).iter_rows(named=True):
        lost = [number(row[name], row[f"{name}_half"]) for name in LOST]
        rows[row["env"]].append([row["agent"], row["graph"], str(row["seeds"]), *lost])
    return {env: table_of(["agent", "told", "seeds", *LOST.values()], own) for env, own in rows.items()}


def _key(run: Run) -> tuple[str, str, int, str, int]:
    """Environment, what is told of its graph (nothing if it is known), horizon, agent and seed."""
    spec = Spec.told(run.env)
    told = {name: value for name, value in spec.parameters if name in GRAPH_KEYWORDS}
    env = without_keywords(run.env, *GRAPH_KEYWORDS)
    if told.pop("graph", "known") == "known":
        return env, "", run.horizon, run.agent, run.seed
    return env, _text(spec), run.horizon, run.agent, run.seed


def _text(spec: Spec) -> str:
    """``wrong (missing=1, seed=3)``."""
    more = [f"{name.removeprefix('graph_')}={value!r}" for name, value in spec.parameters if name in GRAPH_KEYWORDS[1:]]
    return f"{spec.keywords['graph']} ({', '.join(more)})" if more else str(spec.keywords["graph"])


def _lost(pairs: list[tuple[Run, Run]]) -> dict[str, float | int | None]:
    found: dict[str, float | int | None] = {"seeds": len(pairs)}
    known, told = (final_numbers(runs) for runs in zip(*pairs, strict=True))
    for name in LOST:
        values = (known[name] - told[name]).to_numpy()
        half = float(half_width(values))
        found |= {name: float(values.mean()), f"{name}_half": None if np.isnan(half) else half}
    return found
