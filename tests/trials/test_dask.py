"""A Dask cluster of processes that are killed: a worker in the midst of a run, and the scheduler, which comes back."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from cbo_gym import sweep
from cbo_gym.errors import OperationError
from cbo_gym.evaluation import load_run
from cbo_gym.evaluation.folder import run_files
from tests.trials.helpers import MARK, alive, end_of, essences, say

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
AGENT, ENV, HORIZON, SEEDS = "Random", "CBO/Dropwave-v0", 1000, 40
GRID = {"agents": [AGENT], "envs": [ENV], "seeds": range(SEEDS), "horizon": HORIZON}


class Cluster:
    """``dask scheduler`` and two times ``dask worker``."""

    def __init__(self, folder):
        self.folder, self.mark = folder, uuid.uuid4().hex
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"

    def dask(self, *words):
        variables = {**os.environ, MARK: self.mark, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *words], env=variables, cwd=self.folder, stdout=-3, stderr=-3
        )

    def scheduler(self):
        return self.dask("scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard", "--no-show")

    def worker(self):
        return self.dask(
            "worker", self.address, "--nthreads", "1", "--no-dashboard", "--no-nanny", "--death-timeout", "60"
        )


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    end_of(made.mark, 0)


def kept(folder):
    return {path: path.read_bytes() for path in run_files(folder) if load_run(path).status == "finished"}


def test_dask(cluster, tmp_path):
    start, folder = time.monotonic(), tmp_path / "runs"
    scheduler, workers = cluster.scheduler(), [cluster.worker(), cluster.worker()]
    ended, killed = [], []

    def on_run(run):
        ended.append(run.seed)
        if len(ended) == 8:
            victim = workers.pop(random.randrange(2))
            victim.send_signal(signal.SIGKILL)
            killed.append("worker")
            workers.append(cluster.worker())
        if len(ended) == 20:
            scheduler.kill()
            killed.append("scheduler")

    with pytest.raises(OperationError, match="went away"):
        sweep(folder=folder, backend="dask", address=cluster.address, on_run=on_run, **GRID)
    before = kept(folder)
    assert killed == ["worker", "scheduler"]
    assert len(before) >= 20
    for worker in workers:
        worker.kill()
    scheduler.wait()
    left = end_of(cluster.mark)
    scheduler, workers = cluster.scheduler(), [cluster.worker(), cluster.worker()]
    count = sweep(folder=folder, backend="dask", address=cluster.address, **GRID)
    after = kept(folder)
    lost = sum(after.get(path) != content for path, content in before.items())
    sweep(folder=tmp_path / "whole", n_jobs=2, **GRID)
    same = essences(folder) == essences(tmp_path / "whole")
    say("Dask", "1 worker and 1 scheduler killed", f"{len(before)} runs kept", f"{lost} lost or changed",
        f"then {count}", f"equal to an undisturbed sweep: {same}", f"{len(left)} processes left after 5 s",
        f"{time.monotonic() - start:.0f} s")  # fmt: skip
    assert (lost, count["finished"], count["resumed"], same, left) == (0, SEEDS, len(before), True, [])
    assert alive(cluster.mark)
