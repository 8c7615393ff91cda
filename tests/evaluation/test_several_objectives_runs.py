"""Runs with several objectives: sweeps, published results, replays, leaderboards and reports."""

import numpy as np
import pytest

from cbo_gym import evaluate, leaderboard
from cbo_gym.evaluation import load_published, load_runs, publish
from cbo_gym.evaluation.play.sweep import plan, run_job
from cbo_gym.evaluation.report.contents import report_of
from cbo_gym.evaluation.runs.recorded import recorded_actions, with_actions
from cbo_gym.referee.replay import replays
from tests.support.runs import rounds_alike, save_runs

PAID, SURFACE = "CBO/PSAGraph-Cost-v0", "CBO/MOCBO3-v0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    runs = [run_job(job) for job in plan(["Random", "GP-UCB"], [PAID, SURFACE], 1, folder, horizon=3)]
    assert sorted(run.status for run in runs) == ["finished", "finished", "skipped", "skipped"]
    return save_runs(folder, runs)


def test_leaderboards_and_reports_have_hypervolume_regret_distances_and_fronts(folder):
    board = leaderboard(load_runs(folder))
    table = board.table.filter(board.table["agent"] == "Random")
    assert (table["simple_regret"] > 0).all()
    assert np.isfinite(table["igd_plus"].to_numpy()).all()
    assert (table["gd_plus"] >= 0).all()
    for section in report_of(board).envs:
        assert "IGD+" in section.tables["means"].header
        assert section.figures["front"].draw().axes


def test_published_runs_are_replayed(folder):
    path = publish(folder, folder.parent / "store").path
    finished = [run for run in load_published(path) if run.status == "finished"]
    assert len(finished) == 2
    assert "igd_plus" in finished[0].columns
    assert "rewards" not in finished[0].columns  # stores keep no lists
    verdicts = [one.verdict for one in replays(finished[:1])]
    assert verdicts == ["identical"]


def test_recorded_actions_are_replayed():
    """Recommendations grow and shrink, so that rows of them are of several lengths."""
    run = evaluate("Random", SURFACE, 100, horizon=8)
    assert len({len(one) for one in run.table["recommended"]}) > 1
    again = evaluate(recorded_actions(with_actions(run)), SURFACE, 100, horizon=8, label="Random")
    assert rounds_alike(run, again)
