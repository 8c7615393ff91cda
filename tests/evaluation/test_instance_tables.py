"""Tables over instances: who had learnt where the optimum lies."""

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym import evaluate
from cbo_gym.agents import Random
from cbo_gym.evaluation import leaderboard
from cbo_gym.evaluation.report.instances import instance_losses, instance_tables
from cbo_gym.oracle import oracle_of

ENV = "CBO/Dropwave-v0"


class Remembers(Random):
    """Plays where the optimum of the published system lies."""

    def act(self, observation):
        return oracle_of(gym.make(ENV)).optimum.action


@pytest.fixture(scope="module")
def board():
    runs = [
        evaluate(agent, env, seed, horizon=5, label=type(agent).__name__)
        for agent in (Random(), Remembers())
        for seed in (100, 101)
        for env in (ENV, f"{ENV}(instance={seed})")
    ]
    return leaderboard(runs)


def test_what_was_remembered_is_lost_on_instances(board):
    found = instance_losses(board)
    rows = {(row["agent"], row["score"]): row for row in found.iter_rows(named=True)}
    knows = rows["Remembers", "play"]
    assert knows["published"] == pytest.approx(1.0)
    assert knows["instances"] < 0.7
    assert knows["lost"] == pytest.approx(knows["published"] - knows["instances"])
    assert abs(rows["Random", "play"]["lost"]) < 0.3
    assert all((row["published_runs"], row["instance_runs"]) == (2, 2) for row in rows.values())


def test_the_interval_is_that_of_two_means(board):
    row = instance_losses(board).row(0, named=True)
    assert row["lost_half"] > 0
    table = instance_tables(board)[f"{ENV}, T=5"]
    assert [line[:2] for line in table.lines] == [
        [agent, what] for agent in ("Random", "Remembers") for what in ("play", "recommendation")
    ]


def test_without_instances_there_is_no_table():
    runs = [evaluate("Random", ENV, seed, horizon=2) for seed in (100, 101)]
    assert instance_tables(leaderboard(runs)) == {}
    assert np.isnan(instance_losses(leaderboard(runs))["lost"].to_numpy()).size == 0
