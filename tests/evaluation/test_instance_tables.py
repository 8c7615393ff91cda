"""Tables of scores lost on instances, which expose agents that know the published optimum."""

import gymnasium as gym
import pytest

from cbo_gym import evaluate
from cbo_gym.agents import Random
from cbo_gym.envs import oracle_of
from cbo_gym.evaluation import leaderboard
from cbo_gym.evaluation.report.tables import instance_tables

ENV = "CBO/Dropwave-v0"


class Remembers(Random):
    """Plays where the optimum of the published system lies."""

    def act(self, observation):
        return oracle_of(gym.make(ENV)).optimum.action


def test_what_was_remembered_is_lost_on_instances():
    runs = [
        evaluate(agent, env, seed, horizon=5, label=type(agent).__name__)
        for agent in (Random(), Remembers())
        for seed in range(100, 105)
        for env in (ENV, f"{ENV}(instance={seed})")
    ]
    board = leaderboard(runs)
    table = instance_tables(board)[f"{ENV}, T=5"]
    rows = {(row[0].formatted, row[1].formatted): row[2:] for row in table.rows}
    assert list(rows) == [(agent, what) for agent in ("Random", "Remembers") for what in ("play", "recommendation")]
    published, instances, lost, counts = rows["Remembers", "play"]
    assert published.value == pytest.approx(1.0)
    assert instances.value < 0.7
    assert lost.value == pytest.approx(published.value - instances.value)
    assert abs(rows["Random", "play"][2].value) < 0.3
    assert rows["Random", "play"][2].detail.startswith("±")
    assert {row[3].formatted for row in rows.values()} == {counts.formatted} == {"5, 5"}
    assert instance_tables(leaderboard(runs[::2])) == {}
