"""Runs with several objectives: sweeps, published results, replays, leaderboards and reports."""

from contextlib import closing

import numpy as np
import pytest

from cbo_gym import evaluate, leaderboard
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.evaluation import load_published, load_runs, publish
from cbo_gym.evaluation.play.sweep import plan, run_job
from cbo_gym.evaluation.report.page import write_report
from cbo_gym.evaluation.runs.recorded import recorded_actions, with_actions
from cbo_gym.evaluation.runs.results import TIMING_COLUMNS
from cbo_gym.referee.isolated import IsolatedAgent
from cbo_gym.referee.replay import replays
from tests.support.runs import kept

PAID, SURFACE = "CBO/PSAGraph-Cost-v0", "CBO/MOCBO3-v0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    runs = [run_job(job) for job in plan(["Random", "GP-UCB"], [PAID, SURFACE], 1, folder, horizon=3)]
    assert sorted(run.status for run in runs) == ["finished", "finished", "skipped", "skipped"]
    return kept(folder, runs)


def test_leaderboards_and_reports_have_hypervolume_regret_distances_and_fronts(folder, tmp_path):
    board = leaderboard(load_runs(folder))
    table = board.table.filter(board.table["agent"] == "Random")
    assert (table["simple_regret"] > 0).all()
    assert np.isfinite(table["igd_plus"].to_numpy()).all()
    assert (table["gd_plus"] >= 0).all()
    page = write_report(board, tmp_path, formats=()).read_text(encoding="utf-8")
    assert "IGD+" in page
    assert page.count('<figure class="front"') == 2


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
    names = [name for name in run.table.columns if name not in TIMING_COLUMNS]
    assert all(run.table[name].equals(again.table[name], null_equal=True) for name in names)


def test_an_agent_in_a_process_of_its_own_plays_the_same():
    with closing(IsolatedAgent(Spec.parse("Random"))) as agent:
        there = evaluate(agent, PAID, 100, label="Random", horizon=3)
    here = evaluate("Random", PAID, 100, horizon=3)
    assert there.table.drop(TIMING_COLUMNS).equals(here.table.drop(TIMING_COLUMNS), null_equal=True)


def test_a_run_goes_on_from_its_checkpoint(tmp_path):
    whole = evaluate("Random", SURFACE, 101, horizon=6)

    def stop(played):
        if played.round == 4:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        evaluate("Random", SURFACE, 101, horizon=6, checkpoint=path, checkpoint_every=2, callbacks=[stop])
    assert path.exists()
    went_on = evaluate("Random", SURFACE, 101, horizon=6, checkpoint=path, checkpoint_every=2)
    assert went_on.table.drop(TIMING_COLUMNS).equals(whole.table.drop(TIMING_COLUMNS), null_equal=True)
