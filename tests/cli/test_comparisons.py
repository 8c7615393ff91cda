"""Runs compared with those of others, JSON of a run, and forecasts from published runs."""

import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import cbo_gym
from cbo_gym import leaderboard
from cbo_gym.evaluation import load_run, publish
from cbo_gym.evaluation.play.forecast import PUBLISHED, SAME, forecast
from cbo_gym.evaluation.play.sweep import plan
from cbo_gym.evaluation.store.published import package_store, resolve
from tests.support.cli import as_json, invoke
from tests.support.runs import play_here, save_runs

ENV, OTHER = "CBO/Dropwave-v0", "CBO/ToyGraph-v0"
CENTRE = "tests.support.agents:Centre"


@pytest.fixture(scope="module")
def indices(tmp_path_factory):
    """A folder of mine, one of others on more environments, and these published."""
    folder = tmp_path_factory.mktemp("places")
    mine, theirs, store = folder / "mine", folder / "theirs", folder / "store"
    save_runs(mine, play_here([CENTRE], [ENV], 2, horizon=3))
    save_runs(theirs, play_here(["Random"], [ENV, OTHER], 2, horizon=3))
    save_runs(theirs, play_here(["Random"], [ENV], 1, horizon=5))
    publish(theirs, store, "others")
    return mine, theirs, store


def test_runs_of_others_are_compared_on_my_environments(indices):
    mine, *others = indices
    for other in others:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            board = leaderboard(mine, beside=other)
        # Neither other environments nor other numbers of rounds.
        assert set(board.per_env["env"]) == {f"{ENV}, T=3"}
        assert set(board.per_env["agent"]) == {"Random", CENTRE}
    assert {row["agent"] for row in as_json("leaderboard", mine, "--with", other)["overall"]} == {"Random", CENTRE}
    found = cbo_gym.compare(mine, CENTRE, "Random", beside=other)
    assert found.per_env["seeds"].to_list() == [2, 2]
    assert as_json("compare", mine, CENTRE, "Random", "--with", other)["overall"] == found.overall.to_dicts()


def test_published_results_of_the_package_have_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_runs(Path("mine"), play_here([CENTRE], ["CBO/Dropwave-v0"], 1, horizon=100))
    board = leaderboard("mine", beside="mcbo2023", agents=["Random", CENTRE])
    assert set(board.per_env["agent"]) == {"Random", CENTRE}
    assert resolve("results") == package_store()
    Path("mine").rename("results")
    with pytest.warns(UserWarning, match="results is a folder here; .* has the published results of the package"):
        leaderboard("results", beside="results")


def test_what_differs_is_said(indices, tmp_path):
    mine, theirs, _ = indices
    save_runs(tmp_path / "longer", play_here([CENTRE], [ENV], 1, horizon=4))
    with pytest.warns(UserWarning, match=rf"{ENV} \(3 or 5 there, 4 here\); play yours with the horizon that is there"):
        leaderboard(tmp_path / "longer", beside=[theirs])
    run = load_run(next(theirs.glob("*.parquet")))
    elsewhere = [replace(run, sources=run.sources | {run.env: "tree+other"})]
    with pytest.warns(UserWarning, match=rf"other code: environment {run.env} \(1 there, tree\+other here\);"):
        leaderboard(elsewhere, beside=theirs)
    with pytest.warns(UserWarning, match="no finished run on any of the 1 environments"):
        leaderboard([replace(run, env="CBO/Ackley-v0")], beside=mine)


def test_a_dry_run_guesses_from_published_runs(indices, tmp_path, monkeypatch):
    _, _, store = indices
    jobs = plan("Random", ENV, 2, tmp_path / "new", 7)
    assert forecast(jobs).unknown == 2
    (pair,) = forecast(jobs, store).pairs
    assert pair.source == f"{SAME}{PUBLISHED}"
    assert pair.seconds > 0.0
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(store)
    assert "same environment, published" in invoke("sweep", "new", "-a", "Random", "-e", ENV, "--seeds", 2, "--dry-run")
    assert not (tmp_path / "new").exists()


def test_runs_in_batches_from_the_command_line(tmp_path):
    options = "--seeds 1 --horizon 6 --checkpoint-every 2 --batch 2"
    invoke("sweep", tmp_path, "-a", "Random", "-e", ENV, *options.split())
    assert [path.suffix for path in tmp_path.iterdir() if path.name[0] != "."] == [".parquet"]
    document = as_json("run", "Random", ENV, "--horizon", 3, "--batch", 2)
    assert (document["agent"], document["env"], document["batch"], document["horizon"]) == ("Random", ENV, 2, 3)
    assert [row["round"] for row in document["rounds"]] == [1, 2, 3]
    assert document["seconds_a_round"] > 0.0
