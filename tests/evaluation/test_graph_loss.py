"""Scores lost without the true graph."""

import numpy as np

from cbo_gym import evaluate, leaderboard
from cbo_gym.evaluation.report.tables import graph_loss_tables, number
from tests.support.agents import Centre

TOY = "CBO/ToyGraph-v0"
WRONG = f"{TOY}(graph='wrong', graph_missing=[('X0', 'X1')], graph_seed=2)"


def test_losses_are_paired_differences_of_scores():
    """Centre plays the last target, X1 where the graph is known and in both others."""
    known = [evaluate(Centre(), TOY, seed, horizon=3) for seed in range(5)]
    others = [
        evaluate(Centre(), env, seed, horizon=3) for env in (WRONG, f"{TOY}(graph='hidden')") for seed in range(5)
    ]
    lone = evaluate(Centre(), f"{TOY}(graph='hidden')", 0, horizon=2)
    board = leaderboard([*known, *others, lone])
    table = graph_loss_tables(board)[f"{TOY}, T=3"]
    assert table.header[:3] == ["agent", "graph", "seeds"]
    knowledge = ["hidden", "wrong (missing=[('X0', 'X1')], seed=2)"]
    assert [row[:3] for row in table.lines] == [["Centre", graph, "5"] for graph in knowledge]
    scores = board.table.select("env", "seed", "score", "average_score").sort("seed")
    scores = scores.filter(scores["env"].str.ends_with("T=3"))
    for graph, (*_, recommended, played) in zip(("hidden", "wrong"), table.rows, strict=True):
        with_graph = scores.filter(scores["env"] == f"{TOY}, T=3")
        without = scores.filter(scores["env"].str.contains(graph))
        for name, cell in (("score", recommended), ("average_score", played)):
            difference = with_graph[name].to_numpy() - without[name].to_numpy()
            assert cell == number(difference.mean(), 2.776445 * difference.std(ddof=1) / np.sqrt(5))
    assert graph_loss_tables(leaderboard([lone])) == {}, "without both kinds of runs"
