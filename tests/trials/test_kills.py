"""A sweep is killed again and again, in all ways; what it leaves is whole, and the end that of an undisturbed one."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import uuid

import psutil
import pytest

from cbo_gym import sweep
from cbo_gym.evaluation import load_run
from cbo_gym.evaluation.runs.folder import run_files
from tests.trials.helpers import alive, end_of, environment, essences

pytestmark = pytest.mark.slow

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


class Sweeps:
    """A sweep that is started again and again on one folder, and what is found there after each end."""

    def __init__(self, folder):
        self.folder = folder
        self.kept, self.changed, self.left = {}, 0, 0
        options = f"-a {AGENT} -e {ENV} --seeds {SEEDS} --horizon {HORIZON} --jobs 2"
        self.words = [*COMMAND, folder, *options.split()]

    def begin(self, **streams):
        self.kept, self.mark = finished(self.folder), uuid.uuid4().hex
        how = {"env": environment(self.mark), "start_new_session": True, "text": True, "cwd": self.folder.parent}
        return subprocess.Popen(self.words, **how, **streams)

    def ended(self):
        """Count what is left of the processes, and runs that are lost or changed."""
        self.left += len(end_of(self.mark))
        now = finished(self.folder)
        self.changed += sum(now.get(path) != content for path, content in self.kept.items())
        return now

    def resume(self):
        """Play the rest; return how many runs were there, and how many files are half written."""
        half = len(list(self.folder.glob(".*")))
        whole = self.folder.with_name("whole")
        resumed, _ = (
            sweep([AGENT], [ENV], range(SEEDS), folder, horizon=HORIZON, n_jobs=2) for folder in (self.folder, whole)
        )
        same = essences(self.folder) == essences(whole)
        assert (self.changed, self.left, resumed["finished"], same) == (0, 0, SEEDS, True)
        return resumed["resumed"], half


def test_kills(tmp_path):
    sweeps, chance = Sweeps(tmp_path / "killed"), random.Random(0)
    killed, too_late = dict.fromkeys(WAYS, 0), 0
    while sum(killed.values()) < KILLS:
        way = list(WAYS)[sum(killed.values()) % len(WAYS)]
        parent = sweeps.begin(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + chance.uniform(1.0, 4.0)  # it begins after a second
        while time.monotonic() < deadline and parent.poll() is None:
            time.sleep(0.01)
        if parent.poll() is not None or not WAYS[way](parent, sweeps.mark):
            too_late += 1
            assert too_late < 10
            if len(finished(sweeps.folder)) == SEEDS:  # again from the beginning
                shutil.rmtree(sweeps.folder)
                sweeps.kept = {}
        else:
            killed[way] += 1
        if parent.poll() is None and way == "SIGKILL to a worker":
            assert psutil.Process(parent.pid).is_running(), "a worker's death ended the sweep"
            parent.kill()
        parent.wait(timeout=10)
        sweeps.ended()
    sweeps.resume()


STOPS = 10


def test_ctrl_c_after_some_runs(tmp_path):
    """As a terminal does it: SIGINT to the whole group, each time after more runs have finished."""
    sweeps, chance, counts = Sweeps(tmp_path / "runs"), random.Random(1), []
    for stop in range(STOPS):
        parent = sweeps.begin(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wanted = len(sweeps.kept) + chance.randint(1, SEEDS // STOPS - 3)
        deadline = time.monotonic() + 60
        while len(list(sweeps.folder.glob("[!.]*.parquet"))) < wanted:
            assert parent.poll() is None
            assert time.monotonic() < deadline
        time.sleep(chance.uniform(0.0, 0.03))  # a run takes about as long
        os.killpg(parent.pid, signal.SIGINT)
        out, error = parent.communicate(timeout=10)
        now = sweeps.ended()
        (count,) = re.findall(rf"Stopped\. (\d+) of {SEEDS} runs have ended and are kept in", out)
        counts.append((int(count), len(now)))
        unasked = [line for line in error.splitlines() if not line.startswith("runs: ")]  # how far it was
        assert (parent.returncode, unasked) == (130, []), f"stop {stop}: {out}{error}"
        assert len(sweeps.kept) < wanted <= len(now) < SEEDS
        assert "The same command resumes there" in out
    assert sweeps.resume() == (counts[-1][1], 0)
    assert [pair for pair in counts if pair[0] != pair[1]] == []
