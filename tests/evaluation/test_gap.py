"""GAP and PA-GAP by hand, and in leaderboards and reports."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import polars as pl
import pytest

from cbo_gym import evaluate, leaderboard, make_task
from cbo_gym.envs import oracle_of
from cbo_gym.evaluation import load_run
from cbo_gym.evaluation.metrics.gap import GAPS, gap, gap_over_time, gaps_of, path_aware_gap
from cbo_gym.evaluation.report.contents import report_of
from cbo_gym.evaluation.report.tables import gap_tables
from cbo_gym.evaluation.runs.results import save_run

HALFWAY = [0.0, 2.0, 1.0, 6.0]  # of the way from 2 to 10: nothing, nothing, nothing, half


@pytest.mark.parametrize(
    ("values", "initial", "reference", "gap_by_hand", "path_by_hand"),
    [
        # i = 0, 0, 0, 1/2 and t* = 4 of B = 4
        (HALFWAY, 2.0, 10.0, (0.5 + 0.0) / 1.75, 0.5 * (1 / 4) / 4),
        # i = 1/4, 1/2, 1/2, 1/2 and t* = 2
        ([4.0, 6.0, 6.0, 3.0], 2.0, 10.0, (0.5 + 2 / 4) / 1.75, (0.25 * 4 + 0.5 * (3 + 2 + 1)) / 4 / 4),
        # the ends of the scales
        *(([1.0] * rounds, 0.0, 1.0, 1.0, (rounds + 1) / (2 * rounds)) for rounds in (1, 4, 100)),
        *(([-1.0] * rounds, 0.0, 1.0, 0.0, 0.0) for rounds in (1, 4, 100)),
        # luck beyond the reference is cut off, but tells when it came
        ([1.0, 3.0], 0.0, 2.0, (1.0 + 0.0) / 1.5, (0.5 * 2 / 2 + 1.0 * 1 / 2) / 2),
        # a start at the reference or beyond, as the survey has it: all of the way with any improvement, else none
        ([1.0, 2.5], 2.0, 2.0, 1.0 / 1.5, 0.25),
        ([2.5, 1.0], 2.0, 2.0, 1.0, 0.75),
        ([1.0, 2.0], 2.0, 1.0, 0.0, 0.0),
        ([1.0, 2.5], 2.0, 1.0, 1.0 / 1.5, 0.25),
        # an improvement by rounding is none
        ([0.5, 0.5 + 1e-12], 0.0, 1.0, (0.5 + 1 / 2) / 1.5, 0.5 * 0.75),
    ],
)
def test_by_hand(values, initial, reference, gap_by_hand, path_by_hand):
    for function, by_hand in ((gap, gap_by_hand), (path_aware_gap, path_by_hand)):
        assert function(values, initial, reference) == pytest.approx(by_hand)
        many = function([[values[::-1], values]], initial, reference)
        assert many.shape == (1, 2)
        assert many[0, 1] == pytest.approx(by_hand)


def test_over_time_every_slice_counts_by_itself():
    values, initial, slices = [*HALFWAY, 4.004, 5.0, 1.0], [2.0] * 4 + [4.0] * 3, [1] * 4 + [2] * 3
    reference = [10.0] * 4 + [5.0] * 3
    # an improvement of 0.4 % is none, so in the second slice t* = 2 of B = 3
    np.testing.assert_allclose(
        gap_over_time(values, initial, reference, slices), [0.5 / 1.75, (1.0 + 1 / 3) / (1.0 + 2 / 3)]
    )
    # the best is reached in round 2 of the first slice, and never in the second
    rewards, whole = [0.0, 1.0, 0.5, 1.0, 0.25, 0.5, 0.5, 0.5], 1.0 + 3.0 / 4.0
    found = gap_over_time(rewards, [0.0] * 8, [1.0] * 8, np.repeat([0, 1], 4))
    assert found == pytest.approx([(1.0 + 2.0 / 4.0) / whole, (0.5 + 2.0 / 4.0) / whole])
    (beyond,) = gap_over_time([7.0, 8.0], [4.0] * 2, [5.0] * 2, [3, 3])
    assert beyond == pytest.approx(1.0), "luck beyond the reference is the whole way, and came at once"


@pytest.fixture(scope="module")
def played():
    return evaluate("Random", "CBO/SurveyHealthcare-v0", 3, horizon=20)


def test_what_a_run_keeps_of_its_start(played, tmp_path):
    env = gym.make("CBO/SurveyHealthcare-v0")
    initial = make_task(env, 3).initial_data
    expected = oracle_of(env).expected_rewards([past.action for past in initial[-4:]]).value  # one observed, three set
    assert played.initial_expected == pytest.approx(expected.max(), abs=1e-6)
    assert played.initial_reward == max(past.reward for past in initial[-3:])
    save_run(tmp_path / "r.parquet", played)
    assert load_run(tmp_path / "r.parquet").initial_reward == played.initial_reward
    without = evaluate("Random", "CBO/SurveyChain-Contextual-v0", 0, horizon=20)
    assert without.initial_expected == without.initial_reward == without.random_value
    assert gaps_of(without)["gap_20"] > 0.0


def test_both_versions_of_one_run(played):
    found = gaps_of(played)
    assert list(found) == list(GAPS)
    expected = played.table["expected_reward"].to_numpy()
    assert found["gap_20"] == pytest.approx(gap(expected, played.initial_expected, played.optimum))
    rewards = played.table["reward"].to_numpy()
    assert found["survey_pa_gap_20"] == path_aware_gap(rewards, played.initial_reward, -4.0401)
    assert found["gap_50"] is found["survey_gap_100"] is None


def test_columns_tables_and_report(played):
    runs = [replace(played, agent=agent, seed=seed) for agent in "AB" for seed in range(5)]
    long = replace(played, agent="A", seed=5, initial_expected=None, initial_reward=None)
    board = leaderboard(runs)
    assert board.per_env["gap_20"].to_list() == [pytest.approx(gaps_of(played)["gap_20"])] * 2
    assert board.per_env["gap_100"].to_list() == [None, None]
    row = board.overall.row(0, named=True)
    assert row["survey_gap_20"] == row["survey_gap_20_low"] == pytest.approx(gaps_of(played)["survey_gap_20"])
    assert leaderboard([*runs, long]).overall.filter(pl.col("agent") == "A")["gap_20"].to_list() == [None]
    tables = gap_tables(board)
    assert list(tables) == [
        "Hard, over environments: expected",
        "Hard, over environments: the survey's convention",
        "CBO/SurveyHealthcare-v0, T=20: expected",
        "CBO/SurveyHealthcare-v0, T=20: the survey's convention",
    ]
    shown = tables["CBO/SurveyHealthcare-v0, T=20: expected"]
    header, rows = shown.header, shown.lines
    assert header == ["agent", "GAP at 20", "PA-GAP at 20"]
    assert [row[0] for row in rows] == ["A", "B"]
    assert [(section.file, len(section.tables)) for section in report_of(board).special] == [("gap", 4)]
    assert gap_tables(leaderboard([replace(played, env="CBO/ToyGraph-v0")])) == {}, "of another suite"
