"""Seconds of a study without those of its agent, with 10,000 trials in the log; the agent is the quickest, Random.

They are the processor's, so that other programs do not count, nor does the disk's time to flush a commit.
"""

import time

import pytest
from typer.testing import CliRunner

from cbo_gym.cli import app
from cbo_gym.study import load_study
from tests.support.studies import append, fermenter, simulate

pytestmark = pytest.mark.benchmark(timer=time.process_time)
TRIALS = 10_000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A study of 10,000 finished trials and one that is pending, written at once."""
    path = tmp_path_factory.mktemp("long") / "f.db"
    study = fermenter(path, agent="Random")
    asked = study.ask()
    flat, why = study.trials[0].flat, study.trials[0].why
    events = [("told", {"trial": asked.number, "values": simulate(asked.do), "done": None})]
    for number in range(2, TRIALS + 2):
        trials = [{"number": number, "action": flat, "why": why}]
        events.append(("asked", {"trials": trials, "context": None}))
        if number <= TRIALS:
            events.append(
                ("told", {"trial": number, "values": simulate(asked.do) | {"feed": number / 7}, "done": None})
            )
    append(path, events)
    return path


def test_tell(benchmark, tmp_path):
    study = fermenter(tmp_path / "f.db", agent="Random")
    trials = study.ask(200)
    benchmark.pedantic(
        lambda trial: study.tell(trial, simulate(trial.do)), setup=lambda: ((trials.pop(),), {}), rounds=100
    )
    assert benchmark.stats["median"] < 0.02


def test_tell_behind_a_long_log(benchmark, path):
    study = load_study(storage=path)
    study.tell(study.pending[0], simulate({}))  # and the log is read
    trials = [study.ask() for _ in range(20)]
    benchmark.pedantic(
        lambda trial: study.tell(trial, simulate(trial.do)), setup=lambda: ((trials.pop(),), {}), rounds=20
    )
    assert benchmark.stats["median"] < 0.02


def test_the_table_of_a_long_study(benchmark, path):
    assert len(benchmark.pedantic(lambda: load_study(storage=path).to_frame(), rounds=5)) >= TRIALS
    assert benchmark.stats["median"] < 2.0


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_show_a_long_study(benchmark, path, form):
    done = benchmark.pedantic(lambda: CliRunner().invoke(app, ["study", "show", str(path), *form]), rounds=2)
    assert done.exit_code == 0
    assert benchmark.stats["min"] < 2.0


def test_export_a_long_study(benchmark, path):
    done = benchmark.pedantic(lambda: CliRunner().invoke(app, ["study", "export", str(path)]), rounds=2)
    assert len(done.stdout.splitlines()) > TRIALS
