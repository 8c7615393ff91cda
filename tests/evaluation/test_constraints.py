"""Runs under constraints: what counts, and how the leaderboard shows it."""

import numpy as np
import pytest

from cbo_gym import evaluate
from cbo_gym.agent import Agent
from cbo_gym.evaluation import leaderboard
from cbo_gym.evaluation.metrics.regret import penalized_rewards
from cbo_gym.evaluation.report.tables import env_table
from cbo_gym.evaluation.runs.results import CONSTRAINT_COLUMNS, load_run, name_of, save_run
from cbo_gym.task import Mode

ENV = "CBO/CCBOSynthetic1-v0"


class Scripted(Agent):
    """Sets Z to -1, which is feasible, X to -1.1, which is not, and X to 0.1; recommends what it played last."""

    modes = frozenset({Mode.HARD})
    script = ((2, [0.5, 0.0]), (1, [0.38, 0.5]), (1, [0.62, 0.5]))

    def act(self, observation):
        played = len(self.history) - len(self.task.initial_data)
        target, values = self.script[played % 3]
        return {"target": np.int64(target), "values": np.array(values)}

    def recommend(self):
        return self.history[-1].action


@pytest.fixture(scope="module")
def run():
    return evaluate(Scripted(), ENV, 0, horizon=3)


def test_an_infeasible_action_counts_as_a_random_one(run, tmp_path):
    table, gap = run.table, run.optimum - run.random_value
    assert table["feasible"].to_list() == [True, False, True]
    np.testing.assert_allclose(table["violation"], [0.0, np.exp(1.1) - 1, 0.0], atol=1e-2)
    assert table["expected_reward"][1] > run.optimum  # and yet it earns nothing
    assert table["instant_regret"][1] == pytest.approx(gap)
    assert table["instant_regret"][0] == pytest.approx(run.optimum - table["expected_reward"][0])
    assert (table["best_so_far_regret"] >= 0.0).all()
    assert table["recommended_feasible"].to_list() == [True, False, True]
    assert table["simple_regret"][1] == pytest.approx(gap)
    save_run(tmp_path / name_of(run), run)
    assert load_run(tmp_path / name_of(run)).table.equals(table)
    missed = np.array([[0.0, 0.0], [0.0, 0.2]])
    np.testing.assert_array_equal(penalized_rewards(np.array([3.0, 9.0]), missed, 1.0), [3.0, 1.0])
    np.testing.assert_array_equal(penalized_rewards(np.array([3.0, 9.0]), None, 1.0), [3.0, 9.0])


def test_the_leaderboard_scores_it_0_and_shows_the_share(run):
    free = evaluate("Random", "CBO/ToyGraph-v0", 0, horizon=3)
    assert not set(CONSTRAINT_COLUMNS) & set(free.table.columns)
    board = leaderboard([run, free])
    row = board.per_env.filter(agent="Scripted").row(0, named=True)
    assert row["feasible_share"] == pytest.approx(2 / 3)
    earned = run.optimum - run.table["average_regret"][-1]
    assert row["average_score"] == pytest.approx((earned - run.random_value) / (run.optimum - run.random_value))
    shown = env_table(board, f"{ENV}, T=3")
    assert (shown.header[-1], shown.lines[0][-1]) == ("feasible actions", "0.6667")
    assert "feasible actions" not in env_table(board, "CBO/ToyGraph-v0, T=3").header
    long = evaluate(Scripted(), ENV, 0, horizon=20)
    row = leaderboard([long]).per_env.row(0, named=True)
    assert row["score"] == 0.0, "the last recommendation is infeasible"
    assert 0.0 <= row["gap_20"] < 1.0
    assert 0.0 <= row["survey_gap_20"] <= 1.0
    assert long.initial_expected < long.optimum
