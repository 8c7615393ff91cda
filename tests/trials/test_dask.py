"""Dask clusters with faults.

Processes are killed, a worker during a run and the scheduler, which comes back; workers lack the agent's
package, have another one, or do not answer; nothing listens at the address, or something other than a scheduler.
"""

import random
import socket
import subprocess
import sys
import threading
import time
import uuid
from contextlib import closing, contextmanager, nullcontext, suppress

import pytest
from distributed import Client

from cbo_gym import Execution, sweep
from cbo_gym.errors import OperationError
from cbo_gym.evaluation import load_run, load_runs
from cbo_gym.evaluation.play import cluster as cluster_module
from cbo_gym.evaluation.runs.folder import run_files
from tests.trials.helpers import ROOT, alive, command, end_of, environment, essences

pytestmark = pytest.mark.slow

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

    def execution(self, **how):
        return Execution("dask", self.address, **how)

    def dask(self, *words, path=()):
        variables, no = environment(self.mark, path), subprocess.DEVNULL
        words = [sys.executable, "-m", "dask", *words]
        return subprocess.Popen(words, env=variables, cwd=self.folder, stdout=no, stderr=no)

    def scheduler(self):
        process = self.dask("scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard", "--no-show")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", self.port)) == 0:
                    return process
            time.sleep(0.1)
        raise AssertionError("the scheduler did not start")

    def worker(self, *path):
        """Start a worker, with these folders before others in the path of modules."""
        options = "--nthreads 1 --no-dashboard --no-nanny --death-timeout 60"
        return self.dask("worker", self.address, *options.split(), path=path)

    def workers(self, *paths):
        """Start a worker with each path, wait for it, and return the addresses in the order of the paths."""
        addresses = []
        with Client(self.address, set_as_default=False) as client:
            for count, path in enumerate(paths, start=1):
                self.worker(path)
                client.wait_for_workers(count, timeout=60)
                addresses += [address for address in client.nthreads() if address not in addresses]
        return addresses


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    end_of(made.mark, 0)


def kept(folder):
    return {path: path.read_bytes() for path in run_files(folder) if load_run(path).status == "finished"}


def test_dask(cluster, tmp_path):
    folder = tmp_path / "runs"
    scheduler, workers = cluster.scheduler(), [cluster.worker(), cluster.worker()]
    ended, killed = [], []

    def on_run(run):
        ended.append(run.seed)
        if len(ended) == 8:
            workers.pop(random.randrange(2)).kill()
            killed.append("worker")
            workers.append(cluster.worker())
        if len(ended) == 20:
            scheduler.kill()
            killed.append("scheduler")

    with pytest.raises(OperationError, match="went away"):
        sweep(folder=folder, execution=cluster.execution(on_run=on_run), **GRID)
    before = kept(folder)
    assert killed == ["worker", "scheduler"]
    assert len(before) >= 20
    for worker in workers:
        worker.kill()
    scheduler.wait()
    left = end_of(cluster.mark)
    scheduler, workers = cluster.scheduler(), [cluster.worker(), cluster.worker()]
    count = sweep(folder=folder, execution=cluster.execution(), **GRID)
    after = kept(folder)
    lost = sum(after.get(path) != content for path, content in before.items())
    sweep(folder=tmp_path / "whole", n_jobs=2, **GRID)
    same = essences(folder) == essences(tmp_path / "whole")
    assert (lost, count["finished"], count["resumed"], same, left) == (0, SEEDS, len(before), True, [])
    assert alive(cluster.mark)


AGENT_OF_ANOTHER_PACKAGE = """
from tests.support.agents import Centre

class Mine(Centre):
    level = {level}
"""
HERE, OTHER, WITHOUT, BROKEN = "here", "other", "without", "broken"


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Folders with a package of an agent: as it is here, another version, none, and none of cbo-gym either."""
    for name, level in ((HERE, 1), (OTHER, 2)):
        (tmp_path / name / "trial_agents").mkdir(parents=True)
        (tmp_path / name / "trial_agents" / "__init__.py").write_text(AGENT_OF_ANOTHER_PACKAGE.format(level=level))
    (tmp_path / WITHOUT).mkdir()
    (tmp_path / BROKEN / "cbo_gym").mkdir(parents=True)
    (tmp_path / BROKEN / "cbo_gym" / "__init__.py").write_text("raise ImportError('half of it is missing')")
    monkeypatch.syspath_prepend(str(tmp_path / HERE))
    yield {name: tmp_path / name for name in (HERE, OTHER, WITHOUT, BROKEN)}
    for name in [name for name in sys.modules if name.partition(".")[0] == "trial_agents"]:
        del sys.modules[name]


@pytest.mark.parametrize("workers", [(HERE, WITHOUT), (BROKEN, WITHOUT, OTHER), (HERE, HERE)])
def test_workers_with_another_package_or_none_are_named_before_anything_is_played(cluster, packages, tmp_path, workers):
    scheduler = cluster.scheduler()
    addresses = cluster.workers(*(packages[name] for name in workers))
    folder = tmp_path / "runs"
    grid = {"folder": folder, "seeds": range(4), "horizon": 3, "execution": cluster.execution()}
    if set(workers) == {HERE}:
        assert sweep(["trial_agents:Mine"], [ENV], **grid)["finished"] == 4
        return
    with pytest.raises(OperationError) as raised:
        sweep(["trial_agents:Mine"], [ENV], **grid)
    error = str(raised.value)
    assert scheduler.poll() is None
    assert not list(folder.iterdir()), "something was played"
    for address, has in zip(addresses, workers, strict=True):
        assert (address in error) == (has != HERE)
    assert ("trial_agents is missing" in error) == (WITHOUT in workers)
    assert ("trial_agents is unreleased+" in error) == (OTHER in workers)
    assert ("half of it is missing" in error) == (BROKEN in workers)
    assert "Install the same on every machine" in error
    assert "start the workers anew" in error


def test_a_run_of_a_worker_that_came_later_with_other_code_is_said_to_be_one(cluster, packages, tmp_path):
    cluster.scheduler()
    cluster.workers(packages[HERE])
    grid = {"folder": tmp_path / "runs", "seeds": range(12), "horizon": 3}
    ended = []

    def on_run(run):
        ended.append(run)
        if len(ended) == 1:
            cluster.worker(packages[OTHER])

    with pytest.warns(UserWarning, match="with other code"):
        sweep(["trial_agents:Mine"], [ENV], execution=cluster.execution(on_run=on_run), **grid)
    assert any(run.sources != ended[0].sources for run in load_runs(tmp_path / "runs"))


def test_a_worker_that_answers_nothing_and_a_cluster_without_workers_are_said(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_module, "JOIN_SECONDS", 3)
    cluster.scheduler()
    grid = {"agents": [AGENT], "envs": [ENV], "seeds": [0], "folder": tmp_path / "runs"}
    grid["execution"] = cluster.execution()
    with pytest.raises(OperationError, match=f"{cluster.address} has no workers"):
        sweep(**grid)
    (address,) = cluster.workers(ROOT)
    (worker,) = (process for process in alive(cluster.mark) if "worker" in process.cmdline())
    worker.suspend()
    start = time.monotonic()
    with pytest.raises(OperationError, match=f"no answer within 3 s \\(on {address}\\)"):
        sweep(**grid)
    seconds = time.monotonic() - start
    worker.resume()
    assert seconds < 10
    assert sweep(**grid)["finished"] == 1


@contextmanager
def listening(answer):
    """The address of something that is no scheduler: it sends this answer and hangs up, or, for None, waits."""
    held = []

    def serve():
        with suppress(OSError):
            while True:
                caller, _ = server.accept()
                caller.sendall(answer or b"")
                held.append(caller) if answer is None else caller.close()

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def of_a_worker(cluster):
    cluster.scheduler()
    (address,) = cluster.workers(ROOT)
    yield address


ADDRESSES = {
    "a port that is none": (lambda: nullcontext("tcp://localhost:99999"), "Port out of range"),
    "HTTP": (lambda: listening(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "something else listens there"),
    "says nothing": (lambda: listening(None), "something else listens there"),
    "a Dask worker": (of_a_worker, "give that of the scheduler"),
}


@pytest.mark.parametrize("what", ADDRESSES)
def test_an_address_without_a_scheduler_is_said_within_ten_seconds(cluster, tmp_path, what):
    made, reason = ADDRESSES[what]
    words = f"sweep runs -a {AGENT} -e {ENV} --seeds 1 --backend dask --address".split()
    with made(cluster) if made is of_a_worker else made() as address:
        start = time.monotonic()
        code, printed, error = command(*words, address, cwd=tmp_path)
        seconds = time.monotonic() - start
    assert (code, printed) == (2, "")
    assert address in error
    assert reason in error
    assert len(error.splitlines()) == 1
    assert not list((tmp_path / "runs").iterdir()), "something was played"
    assert seconds < 10
