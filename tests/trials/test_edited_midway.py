"""The suite, or the registry, is edited while a sweep of it lies half done: what still belongs counts, no more."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from cbo_gym.evaluation import load_runs
from tests.trials.helpers import ROOT, command, environment, essences, say

pytestmark = pytest.mark.slow

ENVS, ROUNDS, SEEDS = ("CBO/Dropwave-v0", "CBO/ToyGraph-v0"), 300, 20
SWEEP = ["sweep", "runs", "-a", "Random", "--suite", "mine", "--jobs", "2"]
STOPPED_AFTER = 25  # runs, all of the first environment among them


def suite(envs=ENVS, rounds=ROUNDS, seeds=SEEDS, name="mine"):
    listed = "".join(f"    - {env}\n" for env in envs)
    head = f"- name: {name}\n  title: Mine\n  description: My own.\n"
    return f"{head}  environments:\n{listed}  horizon: {rounds}\n  seeds: {seeds}\n  metric: score\n"


@dataclass
class Checkout:
    """A package whose suites and registry may be edited, and the runs that its sweep left."""

    top: Path

    @property
    def runs(self):
        return self.top / "runs"

    def options(self):
        return {"cwd": self.top, "env": environment(PYTHONPATH=str(self.top))}

    def invoke(self, *words):
        """Exit status, and all that is printed, messages after the output."""
        code, printed, errors = command(*words, **self.options())
        return code, f"{printed}{errors}"

    def sweep(self):
        return self.invoke(*SWEEP)

    def write(self, string):
        (self.top / "suites.yaml").write_text(string)


def checkout(top):
    (top / "cbo_gym").symlink_to(ROOT / "cbo_gym")
    shutil.copy(ROOT / "envs_registry.yaml", top)
    there = Checkout(top)
    there.write(suite())
    return there


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Runs of a sweep that was stopped half way, whose suite was edited meanwhile."""
    there = checkout(tmp_path_factory.mktemp("stopped"))
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True}
    process = subprocess.Popen([sys.executable, "-m", "cbo_gym", *SWEEP], **there.options(), **streams)
    deadline = time.monotonic() + 120
    while (ended := len(list(there.runs.glob("[!.]*.parquet")))) < STOPPED_AFTER:
        assert process.poll() is None
        assert time.monotonic() < deadline
        if ended:  # what is edited while it runs counts only when it is started again
            there.write("edited")
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert STOPPED_AFTER <= len(list(load_runs(there.runs))) < SEEDS * len(ENVS)
    return there


@pytest.fixture
def half(stopped, tmp_path):
    """The same, to be edited and gone on with."""
    there = checkout(tmp_path)
    shutil.copytree(stopped.runs, there.runs)
    return there


def belonging(folder, envs, rounds, seeds):
    return sum(run.env in envs and run.horizon == rounds and run.seed < seeds for run in load_runs(folder))


@pytest.mark.parametrize(
    ("envs", "rounds", "seeds"),
    [
        (ENVS, ROUNDS, SEEDS),
        (ENVS[::-1], ROUNDS, SEEDS),
        ((*ENVS, "CBO/Rosenbrock-v0"), ROUNDS, SEEDS),
        (ENVS[:1], ROUNDS, SEEDS),
        (ENVS[1:], ROUNDS, SEEDS),
        (ENVS, ROUNDS - 1, SEEDS),
        (ENVS, ROUNDS, SEEDS - 15),
        (ENVS, ROUNDS, SEEDS + 2),
        (["CBO/Dropwave-v0(noise_std=0.1)"], ROUNDS, SEEDS),
    ],
    ids=["nothing", "order", "one more", "one less", "the first less", "rounds", "fewer seeds", "more seeds", "noise"],
)
def test_an_edited_suite(half, envs, rounds, seeds):
    before = essences(half.runs)
    kept = belonging(half.runs, envs, rounds, seeds)
    half.write(suite(envs, rounds, seeds))
    code, output = half.sweep()
    assert code == 0, output
    runs = len(envs) * seeds
    others = len(before) - kept
    say(f"an edited suite of {len(envs)} environments, {rounds} rounds, {seeds} seeds", f"{kept} runs kept",
        f"{runs - kept} played", f"{others} others")  # fmt: skip
    assert f"{runs} finished, 0 failed, 0 skipped; {kept} of them were there already" in output
    after = essences(half.runs)
    assert {name: after[name] for name in before} == before
    assert belonging(half.runs, envs, rounds, seeds) == runs
    warned = [line for line in output.splitlines() if "are not of the suite mine as it is played now" in line]
    assert len(warned) == (others > 0), output
    assert all(f"{others} runs in runs" in line for line in warned)


def test_an_edited_registry(half):
    """Its code is another then: all is played again, and a leaderboard says what it takes of which."""
    registry, before = half.top / "envs_registry.yaml", essences(half.runs)
    registry.write_text(registry.read_text().replace("- id: CBO/ToyGraph-v0\n", "- id: CBO/Toy-v0\n"))
    code, output = half.sweep()
    assert (code, essences(half.runs)) == (2, before)
    assert "CBO/ToyGraph-v0" in output
    half.write(suite(ENVS[:1], seeds=5))
    code, output = half.sweep()
    assert code == 0, output
    assert "5 finished, 0 failed, 0 skipped; 0 of them were there already" in output
    assert before.items() <= essences(half.runs).items()
    code, output = half.invoke("leaderboard", "runs", "-e", ENVS[0])
    assert "Mixed cbo_gym:" in output
    assert "Left out: 5 runs that were played again later" in output


CARD = "agent: Random\nsuite: mine\npaper: none\ncode: none\ncontact: none\nhardware: none\n"


@pytest.mark.parametrize(
    ("edited", "said"),
    [
        (
            suite((*ENVS, "CBO/Rosenbrock-v0")),
            "Random on CBO/Rosenbrock-v0: the suite mine has 20 seeds; missing",
        ),
        (suite(rounds=ROUNDS + 1), f"the suite mine has {ROUNDS + 1} rounds there"),
        (suite(seeds=SEEDS + 1), f"the suite mine has {SEEDS + 1} seeds; missing are {SEEDS}"),
        (suite(seeds=SEEDS - 1), f"the suite mine has no seeds {SEEDS - 1}"),
    ],
    ids=["one more", "rounds", "more seeds", "fewer seeds"],
)
def test_a_submission_of_a_suite_that_was_edited_since(half, edited, said):
    assert half.sweep()[0] == 0
    publish = ["publish", "runs", "--suite", "mine", "--store", "store", "--submission"]
    code, output = half.invoke(*publish)
    assert code == 0, output
    assert "differences" not in output
    half.write(edited)
    code, output = half.invoke(*publish)
    assert code == 0, output
    assert said in output
    assert "check-submission refuses the file" in output
    (half.top / "card.yaml").write_text(CARD)
    code, output = half.invoke("check-submission", "store/mine.parquet", "--card", "card.yaml")
    say("a submission of an edited suite", output.strip().splitlines()[-1])
    assert code == 1
    assert said in output
    assert "cannot enter as it is" in output
