"""A sweep is killed again and again, in all ways; what it leaves is whole, and the end that of an undisturbed one."""

import os
import random
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import pytest

from cbo_gym import sweep
from cbo_gym.evaluation import load_run
from cbo_gym.evaluation.runs.folder import run_files
from tests.trials.helpers import MARK, alive, end_of, essences, say

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
AGENT, ENV, HORIZON, SEEDS, KILLS = "Random", "CBO/Dropwave-v0", 400, 150, 24
COMMAND = [sys.executable, "-c", "from cbo_gym.cli import app; app()", "sweep"]


def workers(mark, parent):
    return [process for process in alive(mark) if process.pid != parent.pid and process.ppid() == parent.pid]


def kill_a_worker(parent, mark):
    found = [process for process in workers(mark, parent) if "serve()" in " ".join(process.cmdline())]
    if not found:
        return False
    random.choice(found).kill()
    time.sleep(0.3)
    return True


def send(signal_number, to_group):
    def kill(parent, mark):
        (os.killpg if to_group else os.kill)(parent.pid, signal_number)
        return True

    return kill


WAYS = {
    "SIGKILL to its group": send(signal.SIGKILL, True),
    "SIGKILL": send(signal.SIGKILL, False),
    "SIGINT to its group": send(signal.SIGINT, True),
    "SIGINT": send(signal.SIGINT, False),
    "SIGTERM": send(signal.SIGTERM, False),
    "SIGKILL to a worker": kill_a_worker,
}


def finished(folder):
    """The files of finished runs, with their bytes; every file that counts as a run is whole."""
    paths = run_files(folder) if folder.is_dir() else []
    return {path: path.read_bytes() for path in paths if load_run(path).status == "finished"}


def test_kills(tmp_path):
    folder, chance = tmp_path / "killed", random.Random(0)
    words = [*COMMAND, str(folder), "-a", AGENT, "-e", ENV, "--seeds", str(SEEDS), "--horizon", str(HORIZON)]
    killed, too_late, changed, left, slowest = dict.fromkeys(WAYS, 0), 0, 0, 0, 0.0
    start = time.monotonic()
    while sum(killed.values()) < KILLS:
        way = list(WAYS)[sum(killed.values()) % len(WAYS)]
        kept, mark = finished(folder), uuid.uuid4().hex
        variables = {**os.environ, MARK: mark, "PYTHONPATH": str(ROOT)}
        parent = subprocess.Popen(
            [*words, "--jobs", "2"], env=variables, start_new_session=True, stdout=-3, stderr=-3, cwd=tmp_path
        )
        deadline = time.monotonic() + chance.uniform(1.0, 4.0)  # it begins after a second
        while time.monotonic() < deadline and parent.poll() is None:
            time.sleep(0.01)
        if parent.poll() is not None or not WAYS[way](parent, mark):
            too_late += 1
            assert too_late < 10
            if len(finished(folder)) == SEEDS:  # again from the beginning
                for path in finished(folder):
                    path.unlink()
                kept = {}
        else:
            killed[way] += 1
        if parent.poll() is None and way == "SIGKILL to a worker":
            assert psutil.Process(parent.pid).is_running(), "a worker's death ended the sweep"
            parent.kill()
        parent.wait(timeout=10)
        began = time.monotonic()
        left += len(end_of(mark))
        slowest = max(slowest, time.monotonic() - began)
        now = finished(folder)
        changed += sum(now.get(path) != content for path, content in kept.items())
    half = len(list(folder.glob(".*")))
    resumed = sweep([AGENT], [ENV], range(SEEDS), folder, horizon=HORIZON, n_jobs=2)
    sweep([AGENT], [ENV], range(SEEDS), tmp_path / "whole", horizon=HORIZON, n_jobs=2)
    same = essences(folder) == essences(tmp_path / "whole")
    say("kills", *(f"{count} by {way}" for way, count in killed.items()), f"{changed} finished runs lost or changed",
        f"{half} half-written files, none of them read", f"{left} processes alive after 5 s",
        f"{slowest:.1f} s until all had ended",
        f"resumed to {resumed}", f"equal to an undisturbed sweep: {same}",
        f"{time.monotonic() - start:.0f} s")  # fmt: skip
    assert (changed, left, resumed["finished"], same) == (0, 0, SEEDS, True)


STOPS = 10


def test_ctrl_c_after_some_runs(tmp_path):
    """As a terminal does it: SIGINT to the whole group, each time after more runs have finished."""
    folder, chance = tmp_path / "runs", random.Random(1)
    words = [*COMMAND, str(folder), "-a", AGENT, "-e", ENV, "--seeds", str(SEEDS), "--horizon", str(HORIZON)]
    changed, left, said, slowest, start = 0, 0, [], 0.0, time.monotonic()
    for stop in range(STOPS):
        kept, mark = finished(folder), uuid.uuid4().hex
        variables = {**os.environ, MARK: mark, "PYTHONPATH": str(ROOT)}
        parent = subprocess.Popen(
            [*words, "--jobs", "2"],
            env=variables,
            start_new_session=True,
            stdout=-1,
            stderr=-1,
            cwd=tmp_path,
            text=True,
        )
        wanted = len(kept) + chance.randint(1, SEEDS // STOPS - 3)
        deadline = time.monotonic() + 60
        while len(list(folder.glob("[!.]*.parquet"))) < wanted:
            assert parent.poll() is None
            assert time.monotonic() < deadline
        time.sleep(chance.uniform(0.0, 0.03))  # a run takes about as long
        began = time.monotonic()
        os.killpg(parent.pid, signal.SIGINT)
        out, error = parent.communicate(timeout=10)
        slowest = max(slowest, time.monotonic() - began)
        left += len(end_of(mark))
        now = finished(folder)
        changed += sum(now.get(path) != content for path, content in kept.items())
        (told,) = re.findall(rf"Stopped\. (\d+) of {SEEDS} runs have ended and are kept in", out)
        said.append((int(told), len(now)))
        unasked = [line for line in error.splitlines() if not line.startswith("runs: ")]  # how far it was
        assert (parent.returncode, unasked) == (130, []), f"stop {stop}: {out}{error}"
        assert len(kept) < wanted <= len(now) < SEEDS
        assert "The same command resumes there" in out
    half = len(list(folder.glob(".*")))
    resumed = sweep([AGENT], [ENV], range(SEEDS), folder, horizon=HORIZON, n_jobs=2)
    sweep([AGENT], [ENV], range(SEEDS), tmp_path / "whole", horizon=HORIZON, n_jobs=2)
    same = essences(folder) == essences(tmp_path / "whole")
    wrong = [pair for pair in said if pair[0] != pair[1]]
    say("Ctrl-C", f"{STOPS} times, after {', '.join(str(told) for told, _ in said)} runs",
        f"{changed} runs lost or changed",
        f"{len(wrong)} counts that are not those of the files", f"{half} half-written files", f"{left} processes left",
        f"{slowest:.1f} s until it had ended", f"resumed to {resumed}", f"equal to an undisturbed sweep: {same}",
        f"{time.monotonic() - start:.0f} s")  # fmt: skip
    assert (changed, left, half, wrong, same) == (0, 0, 0, [], True)
    assert (resumed["finished"], resumed["resumed"]) == (SEEDS, said[-1][1])
