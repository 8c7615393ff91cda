"""Agents against themselves with the true graph."""

import numpy as np
import pytest

from cbo_gym import evaluate, leaderboard
from cbo_gym.evaluation.report.graph_loss import graph_loss_tables, graph_losses
from tests.helpers import Centre

TOY = "CBO/ToyGraph-v0"
WRONG = f"{TOY}(graph='wrong', graph_missing=[('X0', 'X1')], graph_seed=2)"


def test_losses_are_paired_differences_of_scores():
    """Centre plays the last target, X1 where the graph is known and in both others."""
    known = [evaluate(Centre(), TOY, seed, horizon=3) for seed in (0, 1)]
    others = [evaluate(Centre(), env, seed, horizon=3) for env in (WRONG, f"{TOY}(graph='hidden')") for seed in (0, 1)]
    lone = evaluate(Centre(), f"{TOY}(graph='hidden')", 0, horizon=2)
    board = leaderboard([*known, *others, lone])
    losses = graph_losses(board)
    assert losses["graph"].to_list() == ["hidden", "wrong (missing=[('X0', 'X1')], seed=2)"]
    assert losses["env"].unique().to_list() == [f"{TOY}, T=3"]
    assert losses["seeds"].to_list() == [2, 2]
    scores = board.table.select("env", "seed", "score", "average_score")
    for row in losses.iter_rows(named=True):
        told = "hidden" if row["graph"] == "hidden" else "wrong"
        with_graph = scores.filter(scores["env"] == f"{TOY}, T=3").sort("seed")
        without = scores.filter(scores["env"].str.contains(told) & scores["env"].str.ends_with("T=3")).sort("seed")
        for name in ("score", "average_score"):
            difference = with_graph[name].to_numpy() - without[name].to_numpy()
            assert row[name] == pytest.approx(difference.mean())
            assert row[f"{name}_half"] == pytest.approx(
                12.706 * difference.std(ddof=1) / np.sqrt(2), rel=1e-3, abs=1e-9
            )
    shown = graph_loss_tables(board)[f"{TOY}, T=3"]
    header, rows = shown.header, shown.lines
    assert header[:3] == ["agent", "told", "seeds"]
    assert [row[:3] for row in rows] == [["Centre", graph, "2"] for graph in losses["graph"]]


def test_there_are_none_without_both_kinds_of_runs():
    board = leaderboard([evaluate(Centre(), f"{TOY}(graph='hidden')", 0, horizon=2)])
    assert graph_losses(board).is_empty()
    assert graph_loss_tables(board) == {}
