"""Suites: what the package has, what a broken file says, and sweeps of them."""

from contextlib import nullcontext

import pytest
import yaml

from cbo_gym import sweep
from cbo_gym.envs.registry import entries, find_entry
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation import load_runs, suites
from cbo_gym.evaluation.metrics.registry import METRICS
from cbo_gym.evaluation.play.grid import plan
from cbo_gym.evaluation.suites import Metric, Suite, SuiteError, load, load_all
from tests.support.cli import invoke

GOOD = {
    "name": "mine",
    "title": "Two",
    "description": "Two environments.",
    "environments": ["CBO/Rosenbrock-v0(dim=3)", "CBO/Dropwave-v?"],
    "horizon": 2,
    "seeds": 2,
    "metric": "score",
}
AGENT = "Random"


def written(path, *items):
    path.write_text(yaml.safe_dump(list(items)))
    return path


def test_the_packages_own():
    found = {suite.name: suite for suite in load_all()}
    assert found["all"].labels() == [entry.id for entry in entries()]
    survey = found["survey2026"]
    assert (survey.horizon, survey.metric, len(survey.labels())) == (100, "gap", 14)
    assert set(survey.references) == set(survey.labels())
    papers = [suite.paper for suite in found.values() if suite.paper]
    assert len(set(papers)) == len(papers) == len(found) - 1
    assert set(Metric.__args__) <= {*METRICS, "gap"}
    assert load("survey2026") == survey


def test_nine_of_the_surveys_references_are_more_than_any_action_earns():
    optima = {entry.id: entry.optimum.value for entry in entries()}
    beyond = [env for env, value in load("survey2026").references.items() if value > optima[env] + 0.1]
    assert len(beyond) == 9


def test_environments_are_written_out_and_rounds_are_the_suites_or_those_registered(tmp_path):
    path = written(tmp_path / "s.yaml", {**GOOD, "name": "wrong", "environments": ["CBO/None-v0"]}, GOOD)
    with pytest.raises(SuiteError, match="CBO/None-v0"):
        load("wrong", path)
    mine = load("mine", path)
    assert mine.labels() == ["CBO/Rosenbrock-v0(dim=3)", "CBO/Dropwave-v0"]
    assert mine.rounds("CBO/Dropwave-v0") == 2
    open_ended = mine.model_copy(update={"horizon": None})
    assert open_ended.rounds("CBO/Rosenbrock-v0(dim=3)") == find_entry("CBO/Rosenbrock-v0").horizon
    assert open_ended.rounds("CBO/Nowhere-v0") == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"environments": ["CBO/Dropwav-v0"]}, "suite mine: .*not registered: CBO/Dropwav-v0; did you mean"),
        ({"environments": ["CBO/Nothing*"]}, "suite mine: nothing fits 'CBO/Nothing\\*'"),
        ({"environments": ["CBO/Dropwave-v0(1)"]}, "suite mine: cannot read"),
        ({"environments": []}, "field environments: List should have at least 1 item"),
        ({"seeds": 0}, "field seeds"),
        ({"horizon": "long"}, "field horizon"),
        ({"metric": "fame"}, "field metric"),
        ({"metrc": "gap"}, "did you mean 'metric'"),
        ({"references": {"CBO/Ackley-v0": 0.0}}, "CBO/Ackley-v0 is not one of the environments"),
        ({"references": {"CBO/Dropwave-v0": float("nan")}}, "field references"),
        ({"name": "Not a name"}, "field name"),
        ({"name": None}, "suite 2 has no name"),
        ({"name": "other"}, "the suite other is given twice"),
    ],
)
def test_a_broken_suite_is_named_with_its_field(tmp_path, change, message):
    path = written(tmp_path / "s.yaml", {**GOOD, "name": "other"}, {**GOOD, **change})
    with pytest.raises(SuiteError, match=message):
        load_all(path)


@pytest.mark.parametrize("string", ["name: mine", "- [unclosed", "- !!python/object/apply:os.getcwd []"])
def test_files_that_are_none(tmp_path, string):
    path = tmp_path / "s.yaml"
    path.write_text(string)
    with pytest.raises(SuiteError):
        load("mine", path)
    with pytest.raises(SuiteError, match="cannot read"):
        load("mine", tmp_path / "none.yaml")


def test_a_sweep_of_a_suite(tmp_path):
    jobs = plan(AGENT, Suite(**GOOD), None, tmp_path)
    assert [(str(job.cell.env), job.cell.seed, job.cell.horizon) for job in jobs] == [
        (env, seed, 2) for env in ("CBO/Rosenbrock-v0(dim=3)", "CBO/Dropwave-v0") for seed in range(2)
    ]
    assert len(plan(AGENT, Suite(**GOOD), [0], tmp_path)) == 2
    with pytest.raises(ArgumentError, match="only a suite has default seeds"):
        plan(AGENT, "CBO/Dropwave-v0", None, tmp_path)


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"environments": GOOD["environments"][::-1]}, 4),
        ({"environments": ["CBO/Dropwave-v0", "CBO/Ackley-v0"]}, 2),
        ({"seeds": 1}, 2),
        ({"seeds": 3}, 4),
        ({"horizon": 1}, 0),
    ],
)
def test_of_an_edited_suite_the_runs_that_still_belong_count_and_the_others_are_named(tmp_path, change, kept):
    sweep(AGENT, Suite(**GOOD), None, tmp_path, n_jobs=1)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    message = f"{4 - kept} runs in .* are not of the suite mine as it is played now"
    with pytest.warns(UserWarning, match=message) if kept < 4 else nullcontext():
        assert sweep(AGENT, Suite(**GOOD | change), None, tmp_path, n_jobs=1)["resumed"] == kept
    assert {path: path.read_bytes() for path in before} == before


def test_on_the_command_line(tmp_path, monkeypatch):
    monkeypatch.setattr(suites, "suites_path", lambda: written(tmp_path / "s.yaml", GOOD))
    assert "Example: cbo-gym suites survey2026" in invoke("suites", "--help")
    assert "mine 2 2 2 score Two" in invoke("suites")
    assert "CBO/Dropwave-v0 soft 1" in invoke("suites", "mine")
    words = ["sweep", str(tmp_path / "runs"), "-a", AGENT, "--jobs", "1"]
    assert "2 finished" in invoke(*words, "--suite", "mine", "--seeds", "1", "--horizon", "1")
    assert "give environments by --env, a suite by --suite, or both" in invoke(*words, code=2)
    part = ["--suite", "mine", "-e", "CBO/Drop*", "--first-seed", "100"]
    assert "2 finished" in invoke(*words, *part)
    assert {run.seed for run in load_runs(tmp_path / "runs") if run.horizon == 2} == {100, 101}
    nowhere = invoke(*words, "--suite", "mine", "-e", "CBO/Ackley-v0", code=2)
    assert "the suite mine has no CBO/Ackley-v0" in nowhere
    assert "no suite is called 'min'; did you mean 'mine'?; there are mine" in invoke(*words, "--suite", "min", code=2)
