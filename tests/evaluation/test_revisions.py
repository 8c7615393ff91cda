"""The code of a run: revisions that are declared, and hashes of code that is not of the package."""

from dataclasses import replace

import gymnasium as gym
import pytest

from cbo_gym import custom_problem, evaluate, sweep
from cbo_gym.agents import Random
from cbo_gym.envs.registry import find_entry
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation import load_published, load_runs
from cbo_gym.evaluation.comparison.provenance import mixtures
from cbo_gym.evaluation.play.grid import plan
from cbo_gym.evaluation.runs import revisions
from cbo_gym.evaluation.runs.counted import newest
from cbo_gym.evaluation.runs.results import encode_table, name_of, save_run
from cbo_gym.evaluation.runs.revisions import code_of, is_current, parts_of
from cbo_gym.evaluation.store.published import put
from cbo_gym.referee.replay import is_played_alike
from tests.support.runs import play_here, save_runs

ENV = "CBO/Dropwave-v0"
MINE = "from cbo_gym.agents import Random\n\nclass Mine(Random):\n    pass\n"
#: as versions wrote them that took fingerprints of code
FORMER = (
    {ENV: "tree+5f2c1e0b9a77", "cbo_gym.agents.baselines.random": "tree+b0737fc1937c"},
    {"cbo_gym": "0.2.0+5f2c1e0b9a77", "cbo_gym.agents": "0.2.0+b0737fc1937c"},
)


@pytest.fixture(scope="module")
def run():
    return evaluate("Random", ENV, 0, horizon=3)


def declare(monkeypatch, revision):
    """Another revision of the environment."""
    entry = find_entry(ENV).model_copy(update={"revision": revision})
    monkeypatch.setattr(revisions, "find_entry", lambda name: entry if name == ENV else find_entry(name))


def test_a_run_has_the_revisions_of_its_agent_and_its_environment(run, monkeypatch):
    assert run.sources == {ENV: "1", "Random": "1"}
    monkeypatch.setattr(Random, "revision", 2)
    declare(monkeypatch, 3)
    again = evaluate("Random", ENV, 0, horizon=3)
    assert again.sources == {ENV: "3", "Random": "2"}
    assert again.id != run.id
    assert parts_of(again) == {("environment", ENV): "3", ("agent", "Random"): "2"}
    assert not is_current(run)
    assert is_current(again)
    assert newest([again, replace(run, date="2099-01-01T00:00:00+00:00")]) == [again]
    assert "Mixed code of agents: Random (2 codes)" in mixtures([run, again])


def test_environments_made_with_objects_have_their_names_and_a_hash_of_rounds(tmp_path):
    def env_with(optimum, name="Custom"):
        mechanisms = {"y": lambda x, u: u - (x - optimum) ** 2}
        problem = custom_problem(mechanisms, reward="y", noise={"y": 0.1}, actions={"x": (0, 1)}, name=name)
        return gym.make("CBO/Custom-v0", problem=problem)

    first, same, other = (plan("Random", env_with(optimum), 1, tmp_path)[0] for optimum in (0.2, 0.2, 0.3))
    assert str(first.cell.env) == "CBO/Custom-v0(problem=Problem('Custom'))"
    assert first.path == same.path != other.path
    with pytest.raises(ArgumentError, match=r"2 environments have the label .*; give their problems or functions"):
        plan("Random", [env_with(0.2), env_with(0.3)], 1, tmp_path)
    assert len(plan("Random", [env_with(0.2), env_with(0.3, "Other")], 1, tmp_path)) == 2
    adversaries = ([lambda _, move=move: [move]] for move in (0.0, 0.0, 1.0))
    games = [gym.make("CBO/Dropwave-Penny-v0", adversary=adversary) for (adversary,) in adversaries]
    first, same, other = (plan("Random", game, 1, tmp_path)[0].path for game in games)
    assert first == same != other


def test_a_new_revision_is_played_again_and_nothing_else_is(tmp_path, monkeypatch):
    grid = (["Random", "GP-UCB"], [ENV], [0], tmp_path)
    save_runs(tmp_path, play_here(*grid[:2], 1, horizon=2))
    assert sweep(*grid, horizon=2, n_jobs=1)["resumed"] == 2
    monkeypatch.setattr(Random, "revision", 2)
    assert len(list(tmp_path.glob("*.parquet"))) == 2
    assert [job.path.exists() for job in plan(*grid, 2)] == [False, True]


def test_a_third_party_agent_has_the_revision_of_its_base_class_and_a_hash(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_derived_agent.py").write_text(MINE)
    sweep("my_derived_agent:Mine", ENV, 1, tmp_path / "runs", horizon=2, n_jobs=1)
    (isolated,) = load_runs(tmp_path / "runs")
    assert set(isolated.sources) == {ENV, "Random", "my_derived_agent"}
    assert evaluate("my_derived_agent:Mine", ENV, 0, horizon=2).sources == isolated.sources
    assert is_current(isolated)
    monkeypatch.setattr(Random, "revision", 2)
    assert not is_current(isolated)


@pytest.mark.parametrize("former", FORMER)
def test_runs_from_before_count_as_of_the_first_revision(run, former, tmp_path, monkeypatch):
    old = replace(run, sources=former, date="2026-01-01T00:00:00+00:00")
    save_run(tmp_path / "runs" / name_of(old), old)
    assert list(load_runs(tmp_path / "runs")) == [old]
    put(tmp_path / "store" / "mine.parquet", [old])
    (stored,) = load_published(tmp_path / "store")
    assert (stored.id, stored.sources) == (old.id, former)
    assert code_of(old) == run.sources
    assert code_of(replace(old, agent="my_package:Mine", sources=former | {"my_package": "1.0+5f"})) == {
        ENV: "1",
        "my_package": "1.0+5f",
    }
    assert is_played_alike(stored)
    assert not any("code of" in one for one in mixtures([old, run]))
    assert newest([run, old]) == [run]
    monkeypatch.setattr(Random, "revision", 2)
    assert not is_current(old)


def test_what_only_older_versions_wrote_is_passed_by(run, tmp_path):
    names = ("agent", "env", "seed", "horizon", "mode", "date", "status", "optimum", "random_value")
    about = {name: getattr(run, name) for name in names} | {"version": "0.2.0", "sources": FORMER[0]}
    old = replace(run, sources=FORMER[0])
    (tmp_path / name_of(old)).write_bytes(encode_table(run.table, about | {"restamps": [{"why": "", "replayed": 2}]}))
    assert [found.id for found in load_runs(tmp_path)] == [old.id]
