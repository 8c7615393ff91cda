import errno
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from cbo_gym import Execution, evaluate, leaderboard, sweep
from cbo_gym.envs.registry import entries, find_entry
from cbo_gym.evaluation import DamagedRunWarning, load_run, load_runs
from cbo_gym.evaluation.play.sweep import plan, run_job, run_jobs, store_run
from cbo_gym.evaluation.runs.machine import describe_machine, process_count
from cbo_gym.evaluation.runs.results import TIMING_COLUMNS, save_run

AGENT = "tests.support.agents:Centre"


def finished(folder):
    return [run for run in load_runs(folder) if run.status == "finished"]


def test_a_grid_runs_once(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    ended = []
    arguments = (["Random"], ["CBO/Dropwave-v0", "CBO/Ackley-v0"], range(2), tmp_path)
    count = sweep(*arguments, horizon=3, n_jobs=1, execution=Execution(on_run=ended.append))
    assert count == {"finished": 4, "failed": 0, "skipped": 0, "resumed": 0}
    grid = [(env, seed) for env in arguments[1] for seed in range(2)]
    assert [(run.env, run.seed) for run in ended] == grid, "one process plays in the order of the grid"
    assert {(run.env, run.seed) for run in finished(tmp_path)} == set(grid)
    again = sweep(*arguments[:3], f"~/{tmp_path.name}", horizon=3, n_jobs=1, execution=Execution(on_run=ended.append))
    assert again == {"finished": 4, "failed": 0, "skipped": 0, "resumed": 4}
    assert len(ended) == 4
    assert len(leaderboard(f"~/{tmp_path.name}", envs=["CBO/Ackley-v0"]).runs) == 2


def test_parallel_runs_equal_a_single_run(tmp_path):
    sweep(["Random"], ["CBO/ToyGraph-v0"], [4], tmp_path, horizon=5, n_jobs=2)
    (run,) = finished(tmp_path)
    alone = evaluate("Random", "CBO/ToyGraph-v0", seed=4, horizon=5)
    assert run.table.drop(TIMING_COLUMNS).equals(alone.table.drop(TIMING_COLUMNS))
    assert (run.sources, run.libraries, run.machine) == (alone.sources, alone.libraries, alone.machine)
    assert set(run.threads.values()) == {1}, "the parallelism is over runs"


def test_failures_and_skips_are_recorded_and_the_rest_goes_on(tmp_path):
    """Of several grids that run together."""
    soft = (["tests.support.agents:Nonsense", "tests.support.agents:Raises", "Random"], ["CBO/Dropwave-v0"])
    jobs = [job for grid in (soft, (["SGB"], ["CBO/ToyGraph-v0"])) for job in plan(*grid, [0], tmp_path, 4)]
    assert run_jobs(jobs, n_jobs=1) == {"finished": 1, "failed": 2, "skipped": 1, "resumed": 0}
    runs = [load_run(job.path) for job in jobs]
    assert [run.agent for run in runs] == [str(job.agent) for job in jobs]
    nonsense, raises, _, skipped = runs
    assert "Traceback" in nonsense.error
    assert "round 3" in nonsense.error
    assert "must lie in [0, 1]; given nan" in nonsense.error
    assert "divided by zero" in raises.error
    assert skipped.error == "SGB plays masked; CBO/ToyGraph-v0 is hard"
    assert (skipped.mode, skipped.horizon) == ("hard", 4)
    assert all(run.machine == describe_machine() and run.date for run in runs)
    times = [job.path.stat().st_mtime_ns for job in jobs[2:]]
    run_jobs(jobs[2:], n_jobs=1)
    assert [job.path.stat().st_mtime_ns for job in jobs[2:]] == times


DEATHS = {
    "Exits(status=0)": "SystemExit",
    "KillsItsProcess": "SIGKILL",
    "ClosesItsStreams": "ended with status",
}


def test_however_a_run_dies_it_is_a_failed_one_and_the_others_finish(tmp_path):
    bad = [f"tests.support.agents:{agent}" for agent in DEATHS]
    count = sweep([*bad, "Random"], ["CBO/Dropwave-v0"], [0], tmp_path, horizon=3, n_jobs=2)
    assert count == {"finished": 1, "failed": len(bad), "skipped": 0, "resumed": 0}
    errors = {run.agent: run.error for run in load_runs(tmp_path) if run.status == "failed"}
    assert [reason for agent, reason in zip(bad, DEATHS.values(), strict=True) if reason not in errors[agent]] == []


def test_a_run_that_takes_too_long_or_too_much_is_a_failed_one(tmp_path):
    for agent, limit in (("Hangs", {"time_limit": 1}), ("Swallows", {"memory_limit": 700})):
        grid = ([f"tests.support.agents:{agent}"], ["CBO/Dropwave-v0"], [0])
        count = sweep(*grid, tmp_path, horizon=3, n_jobs=1, execution=Execution(**limit))
        assert count["failed"] == 1
    hung, full = sorted(load_runs(tmp_path), key=lambda run: run.agent)
    assert hung.error == "took longer than the time limit of 1 s"
    assert "MiB of memory; the limit is 700 MiB" in full.error


def test_failed_runs_are_tried_again_and_damaged_files_set_aside(tmp_path):
    grid = (["Random"], ["CBO/Dropwave-v0"], range(5), tmp_path)
    sweep(*grid, horizon=3, n_jobs=1)
    cut, flipped, foreign, failed, kept = sorted(tmp_path.glob("*.parquet"))
    save_run(failed, replace(load_run(failed), status="failed", error="went down", table=pl.DataFrame()))
    cut.write_bytes(cut.read_bytes()[:-50])
    content = bytearray(flipped.read_bytes())
    content[100] ^= 1
    flipped.write_bytes(content)
    foreign.write_bytes(kept.read_bytes())
    with pytest.warns(DamagedRunWarning) as said:
        count = sweep(*grid, horizon=3, n_jobs=1)
    assert count == {"finished": 5, "failed": 0, "skipped": 0, "resumed": 1}
    messages = [str(warning.message) for warning in said]
    for path, why in ((cut, "not fit its checksum"), (flipped, "not fit its checksum"), (foreign, "belongs in")):
        assert sum(str(path) in line and why in line and "played again" in line for line in messages) == 1
    assert sorted(path.name for path in (tmp_path / "damaged").iterdir()) == [p.name for p in (cut, flipped, foreign)]
    assert len(finished(tmp_path)) == 5


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_a_folder_that_is_none_is_noticed_before_anything_is_played(tmp_path, where):
    (tmp_path / "file").write_text("text")
    started = []
    execution = Execution(on_start=lambda *n: started.append(n))
    with pytest.raises(RuntimeError, match="give a folder for the runs"):
        sweep(["Random"], ["CBO/Dropwave-v0"], [0], tmp_path / where, horizon=1, execution=execution)
    assert started == []


@pytest.mark.parametrize(("code", "said"), [(errno.ENOSPC, "No space left on device"), (errno.EROFS, "Read-only")])
def test_a_disk_that_takes_nothing_is_noticed_before_anything_is_played(tmp_path, monkeypatch, code, said):
    def refuse(self, content):
        raise OSError(code, os.strerror(code), str(self))

    monkeypatch.setattr(Path, "write_bytes", refuse)
    with pytest.raises(RuntimeError, match=f"cannot write runs to .*: {said}"):
        sweep(["Random"], ["CBO/Dropwave-v0"], [0], tmp_path, horizon=1)


def test_a_disk_that_fills_up_ends_the_sweep_with_what_is_kept(tmp_path, monkeypatch):
    stored = []

    def write(path, run):
        if len(stored) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        stored.append(run)
        save_run(path, run)

    monkeypatch.setattr(sys.modules["cbo_gym.evaluation.play.sweep"], "save_run", write)
    with pytest.raises(RuntimeError, match=r"cannot write the run of .*: No space left on device; the runs that ended"):
        sweep(["Random"], ["CBO/Dropwave-v0"], range(4), tmp_path, horizon=1, n_jobs=1)
    assert len(finished(tmp_path)) == 2


def test_parameters_may_be_lists(tmp_path):
    env = "CBO/Dropwave-Contextual-v0(contexts=[0])"
    (job,) = plan(["Random"], [env, env], [0, 0], tmp_path, 2)
    save_run(job.path, run := run_job(job))
    assert (run.env, run.status) == (env, "finished")
    assert [other.path for other in plan(["Random"], [env], [0], tmp_path, 2)] == [job.path]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"agents": ["Nobody"]}, "no agent is called"),
        ({"envs": ["CBO/Nowhere-v0"]}, "cannot make the environment CBO/Nowhere-v0"),
        ({"agents": ["__main__:Mine"]}, "cannot import the agent '__main__:Mine'"),
        ({"agents": ["Random(x={1, 2})"]}, "a set has no order"),
        ({"seeds": [-1]}, "seeds must be a whole number from 0 to 9223372036854775807; given -1"),
        ({"seeds": [2**63]}, "seeds must be a whole number from 0 to 9223372036854775807; given 9223372036854775808"),
        ({"seeds": "3"}, "seeds must be a whole number from 0"),
        ({"seeds": 2**63}, "seeds must be a whole number from 1 to 1000000"),
        ({"seeds": [1.7]}, "seeds must be a whole number"),
        ({"seeds": []}, "at least one"),
        ({"seeds": 0}, "seeds must be a whole number from 1"),
        ({"horizon": 0}, "horizon must be at least 1"),
        *(({"n_jobs": n}, "give a number of processes, or -1 for one per core; given") for n in (0, 1.5, True, "2")),
    ],
)
def test_bad_grids_are_refused_before_anything_runs(tmp_path, change, message):
    grid = {"agents": ["Random"], "envs": ["CBO/Dropwave-v0"], "seeds": [0], "folder": tmp_path, "horizon": 2} | change
    with pytest.raises(ValueError, match=message):
        sweep(**({"n_jobs": 1} | grid))
    assert not list(tmp_path.iterdir())


def test_numbers_of_processes_below_0_count_down_from_all_cores(monkeypatch):
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    assert [process_count(count) for count in (20, 1, -1, -2, -8, -9)] == [20, 1, 8, 7, 1, 1]


@pytest.mark.parametrize("limit", ["time_limit", "memory_limit"])
def test_a_limit_is_above_zero(limit):
    with pytest.raises(ValueError, match=f"{limit} must be a number above 0"):
        Execution(**{limit: 0})


def test_patterns_stand_for_what_is_installed_and_registered(tmp_path):
    jobs = plan(["Rand*", AGENT, "Random"], ["CBO/Alpine2*", "CBO/BinaryTree-v0(depth=2)"], [0], tmp_path)
    assert {str(job.agent) for job in jobs} == {"Random", AGENT}
    alpines = {entry.id: (entry.mode, entry.horizon) for entry in entries() if entry.id.startswith("CBO/Alpine2")}
    found = {str(job.cell.env): (job.cell.mode, job.cell.horizon) for job in jobs}
    assert found == alpines | {"CBO/BinaryTree-v0(depth=2)": ("soft", find_entry("CBO/BinaryTree-v0").horizon)}
    assert len(jobs) == 2 * len(found)


def test_what_changes_the_run_changes_its_file(tmp_path):
    def paths(agent="Random", env="CBO/Dropwave-v0", seed=0, horizon=100, recommend="every"):
        return [job.path for job in plan([agent], [env], [seed], tmp_path, horizon, recommend)]

    others = [{"agent": "GP-UCB"}, {"env": "CBO/Dropwave-Noisy-v0"}, {"seed": 1}, {"horizon": 5}, {"recommend": "end"}]
    assert len({path for change in [{}, *others] for path in paths(**change)}) == 6
    assert paths() == paths()


KILLED = """
import sys, time
from cbo_gym import sweep
sweep("Random", "CBO/Dropwave-v0", 3, sys.argv[1], horizon=3, n_jobs=1, callbacks=[lambda played: time.sleep(0.3)])
"""


def test_a_killed_sweep_resumes_and_loses_no_finished_run(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", KILLED, tmp_path], start_new_session=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("[!.]*.parquet")):
        assert time.monotonic() < deadline, "the sweep does not get ahead"
        assert process.poll() is None, "the sweep ended before it could be killed"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    kept = {path: path.read_bytes() for path in tmp_path.glob("[!.]*.parquet")}
    assert 1 <= len(kept) < 3
    assert all(load_run(path).status == "finished" for path in kept)
    count = sweep("Random", "CBO/Dropwave-v0", 3, tmp_path, horizon=3, n_jobs=1)
    assert count == {"finished": 3, "failed": 0, "skipped": 0, "resumed": len(kept)}
    assert {run.seed for run in finished(tmp_path)} == set(range(3))
    assert {path: path.read_bytes() for path in kept} == kept


INTERRUPTED = """
import os, signal, threading
from cbo_gym import evaluate, sweep
from cbo_gym.evaluation import load_runs
threading.Timer(3.0, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    sweep([{agent!r}], ["CBO/Dropwave-v0"], range(2), {folder!r}, horizon=3, n_jobs=1)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.slow
def test_ctrl_c_ends_a_sweep_at_once_also_in_the_middle_of_its_only_run(tmp_path):
    code = INTERRUPTED.format(agent="tests.support.agents:Hangs", folder=str(tmp_path / "runs"))
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted\n", done.stderr
    assert time.monotonic() - start < 30


def test_a_failed_run_leaves_a_finished_one_of_another_sweep_alone(tmp_path):
    (job,) = plan(["Random"], ["CBO/Dropwave-v0"], [0], tmp_path, 1)
    run = run_job(job)
    failed = replace(run, status="failed", error="went down", table=pl.DataFrame())
    assert store_run(job, failed) == failed
    for later in (run, failed):
        assert store_run(job, later) == run
    assert load_run(job.path) == run


def test_an_agent_is_known_by_its_base_classes_and_by_what_makes_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_base.py").write_text("from tests.support.agents import Centre\n\nclass Base(Centre):\n    pass\n")
    (tmp_path / "my_child.py").write_text("from my_base import Base\n\nclass Child(Base):\n    pass\n")
    (tmp_path / "my_maker.py").write_text("from cbo_gym.agents import Random\n\ndef make():\n    return Random()\n")
    (tmp_path / ".#my_base.py").symlink_to("nowhere")  # as an editor leaves it
    child, made = plan(["my_child:Child", "my_maker:make"], ["CBO/Dropwave-v0"], [0], tmp_path / "runs", 1)
    assert {"my_base", "my_child", "tests"} <= set(dict(child.sources))
    assert set(dict(made.sources)) == {"CBO/Dropwave-v0", "Random", "my_maker"}
