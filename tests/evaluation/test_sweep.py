import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from cbo_gym import sweep
from cbo_gym.evaluation import Run, load_run, load_runs
from cbo_gym.evaluation.machine import describe_machine
from cbo_gym.evaluation.progress import run_with_progress
from cbo_gym.evaluation.results import run_path, save_run
from cbo_gym.evaluation.sweep import plan
from cbo_gym.registry import entries, find_entry

AGENT = "tests.helpers:Centre"


def finished(folder):
    return [run for run in load_runs(folder) if run.status == "finished"]


def test_a_grid_runs_once(tmp_path):
    ended = []
    arguments = ([AGENT, "Random"], ["CBO/Dropwave-v0", "CBO/ToyGraph-v0"], range(2), tmp_path)
    count = sweep(*arguments, horizon=3, n_jobs=2, on_run=ended.append)
    assert count == {"finished": 8, "failed": 0, "skipped": 0, "resumed": 0}
    assert len(ended) == 8
    assert {(run.agent, run.env, run.seed) for run in finished(tmp_path)} == {
        (agent, env, seed) for agent in arguments[0] for env in arguments[1] for seed in range(2)
    }
    again = sweep(*arguments, horizon=3, n_jobs=2, on_run=ended.append)
    assert again == {"finished": 8, "failed": 0, "skipped": 0, "resumed": 8}
    assert len(ended) == 8


def test_several_grids_run_together_and_once(tmp_path):
    grids = [(["Random"], ["CBO/ToyGraph-v0"]), ([AGENT], ["CBO/Dropwave-v0"]), (["SGB"], ["CBO/ToyGraph-v0"])]
    jobs = [job for agents, envs in grids for job in plan(agents, envs, [1, 0], tmp_path, 3)]
    runs = run_with_progress(jobs, n_jobs=1)
    assert [(run.agent, run.seed) for run in runs] == [(str(job.agent), job.seed) for job in jobs]
    assert [run.status for run in runs] == ["finished"] * 4 + ["skipped"] * 2
    times = [job.path.stat().st_mtime_ns for job in jobs]
    run_with_progress(jobs, n_jobs=1)
    assert [job.path.stat().st_mtime_ns for job in jobs] == times


def test_parallel_runs_equal_a_single_run(tmp_path):
    from cbo_gym import evaluate

    sweep(["Random"], ["CBO/ToyGraph-v0"], [4], tmp_path, horizon=5, n_jobs=2)
    (run,) = finished(tmp_path)
    timings = ["act_seconds", "update_seconds"]
    alone = evaluate("Random", "CBO/ToyGraph-v0", seed=4, horizon=5)
    assert run.table.drop(timings).equals(alone.table.drop(timings))


def test_failures_and_skips_are_recorded_and_the_rest_goes_on(tmp_path):
    bad = ["tests.helpers:Nonsense", "tests.helpers:Raises", "tests.helpers:SoftOnly"]
    count = sweep([*bad, AGENT], ["CBO/Dropwave-v0", "CBO/ToyGraph-v0"], [0], tmp_path, horizon=4, n_jobs=1)
    assert count["failed"] == 4
    assert count["skipped"] == 1
    assert count["finished"] == 3
    by_pair = {(run.agent, run.env): run for run in load_runs(tmp_path)}
    nonsense = by_pair["tests.helpers:Nonsense", "CBO/Dropwave-v0"]
    assert "Traceback" in nonsense.error
    assert "round 3" in nonsense.error
    assert "must lie in [0, 1]; given nan" in nonsense.error
    assert "divided by zero" in by_pair["tests.helpers:Raises", "CBO/ToyGraph-v0"].error
    skipped = by_pair["tests.helpers:SoftOnly", "CBO/ToyGraph-v0"]
    assert "plays soft" in skipped.error
    assert (skipped.mode, skipped.horizon) == ("hard", 4)
    assert all(run.machine == describe_machine() and run.date for run in by_pair.values())


def test_failed_runs_are_tried_again(tmp_path):
    path = run_path(tmp_path, AGENT, "CBO/Dropwave-v0", 0, 3)
    save_run(path, Run(AGENT, "CBO/Dropwave-v0", 0, 3, status="failed", error="the machine went down"))
    assert sweep([AGENT], ["CBO/Dropwave-v0"], [0], tmp_path, horizon=3, n_jobs=1)["finished"] == 1
    assert load_run(path).status == "finished"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"agents": ["Nobody"]}, "no agent is called"),
        ({"envs": ["CBO/Nowhere-v0"]}, "cannot make the environment CBO/Nowhere-v0"),
        ({"seeds": [-1]}, "seeds must be at least 0"),
        ({"seeds": []}, "at least one"),
        ({"horizon": 0}, "horizon must be at least 1"),
    ],
)
def test_bad_grids_are_refused_before_anything_runs(tmp_path, change, message):
    grid = {"agents": [AGENT], "envs": ["CBO/Dropwave-v0"], "seeds": [0], "folder": tmp_path, "horizon": 2} | change
    with pytest.raises(ValueError, match=message):
        sweep(**grid, n_jobs=1)
    assert not list(tmp_path.iterdir())


def test_patterns_stand_for_what_is_installed_and_registered(tmp_path):
    jobs = plan(["Rand*", AGENT, "Random"], ["CBO/Alpine2*", "CBO/BinaryTree-v0(depth=2)"], [0], tmp_path, 3)
    assert {str(job.agent) for job in jobs} == {"Random", AGENT}
    alpines = {entry.id for entry in entries() if entry.id.startswith("CBO/Alpine2")}
    assert {str(job.env) for job in jobs} == alpines | {"CBO/BinaryTree-v0(depth=2)"}
    assert len(jobs) == 2 * (len(alpines) + 1)


def test_jobs_know_the_mode_and_the_registered_horizon(tmp_path):
    (job,) = plan(["Random"], ["CBO/ToyGraph-v0"], [0], tmp_path)
    assert (job.mode, job.horizon) == ("hard", find_entry("CBO/ToyGraph-v0").horizon)
    assert job.path == plan(["Random"], ["CBO/ToyGraph-v0"], [0], tmp_path, job.horizon)[0].path


def test_what_changes_the_run_changes_its_file(tmp_path):
    base = (AGENT, "CBO/Dropwave-v0", 0, 100)
    others = [("Random", *base[1:]), (base[0], "CBO/Dropwave-Noisy-v0", 0, 100), (*base[:2], 1, 100), (*base[:3], 5)]
    assert len({run_path(tmp_path, *what) for what in [base, *others]}) == 5
    assert run_path(tmp_path, *base) == run_path(tmp_path, *base)


def test_a_run_survives_the_disk(tmp_path):
    table = pl.DataFrame({"round": [1, 2], "action": [[0.5], [1.0]], "reward": [0.25, float("nan")]})
    run = Run("A(b='ü')", "CBO/Dropwave-v0", 3, 2, mode="soft", optimum=1.0, choices=("{}", "{X0}"), table=table)
    save_run(tmp_path / "run.parquet", run)
    back = load_run(tmp_path / "run.parquet")
    assert back.table.equals(table, null_equal=True)
    assert (back.agent, back.choices, back.optimum, back.version) == (run.agent, run.choices, 1.0, run.version)
    assert [path.name for path in tmp_path.iterdir()] == ["run.parquet"]


def test_a_write_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def interrupted(self, path, **_):
        Path(path).write_bytes(b"half a fi")
        raise KeyboardInterrupt

    monkeypatch.setattr(pl.DataFrame, "write_parquet", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_run(tmp_path / "run.parquet", Run("A", "E", 0, 1))
    assert list(tmp_path.iterdir()) == []


def test_foreign_files_are_named(tmp_path):
    (tmp_path / "other.parquet").write_bytes(b"not parquet")
    with pytest.raises(ValueError, match=r"other\.parquet is not a result of cbo-gym"):
        list(load_runs(tmp_path))
    with pytest.raises(ValueError, match="there is no folder"):
        list(load_runs(tmp_path / "none"))


def test_a_killed_worker_ends_the_sweep_and_leaves_what_was_finished(tmp_path):
    with pytest.raises(RuntimeError, match="a worker process was killed"):
        sweep([AGENT, "tests.helpers:KillsItsProcess"], ["CBO/Dropwave-v0"], range(6), tmp_path, horizon=3, n_jobs=2)
    kept = finished(tmp_path)
    assert kept
    count = sweep([AGENT], ["CBO/Dropwave-v0"], range(6), tmp_path, horizon=3, n_jobs=2)
    assert count == {"finished": 6, "failed": 0, "skipped": 0, "resumed": len(kept)}


def test_a_killed_sweep_resumes_and_loses_no_finished_run(tmp_path):
    notes, folder = tmp_path / "notes", tmp_path / "runs"
    notes.mkdir()
    agent = f"tests.helpers:Slow(folder={str(notes)!r}, seconds=0.1)"
    code = f"from cbo_gym import sweep; sweep([{agent!r}], ['CBO/Dropwave-v0'], range(8), {str(folder)!r}, " + (
        "horizon=8, n_jobs=2)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    deadline = time.monotonic() + 60
    while len(list(folder.glob("[!.]*.parquet"))) < 3:
        assert time.monotonic() < deadline, "the sweep does not get ahead"
        assert process.poll() is None, "the sweep ended before it could be killed"
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()

    kept = {path: path.read_bytes() for path in folder.glob("[!.]*.parquet")}
    assert 3 <= len(kept) < 8
    assert all(load_run(path).status == "finished" for path in kept)
    begun = len(list(notes.iterdir()))
    assert begun >= len(kept)

    count = sweep([agent], ["CBO/Dropwave-v0"], range(8), folder, horizon=8, n_jobs=2)
    assert count == {"finished": 8, "failed": 0, "skipped": 0, "resumed": len(kept)}
    assert {run.seed for run in finished(folder)} == set(range(8))
    for path, content in kept.items():
        assert path.read_bytes() == content
