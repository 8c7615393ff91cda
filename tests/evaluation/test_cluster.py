import sys
import threading
from importlib.metadata import version

import pytest
from distributed import LocalCluster
from typer.testing import CliRunner

from cbo_gym import Execution, evaluate, sweep
from cbo_gym.cli import app
from cbo_gym.evaluation import load_runs
from cbo_gym.evaluation.play import cluster as cluster_module
from cbo_gym.evaluation.runs import revisions
from cbo_gym.evaluation.runs.results import TIMING_COLUMNS


@pytest.fixture(scope="module")
def cluster():
    """A cluster whose workers are threads of this process; trials start processes, and kill some of them."""
    options = {"threads_per_worker": 1, "processes": False, "protocol": "tcp", "dashboard_address": ":0"}
    with LocalCluster(n_workers=2, **options) as running:
        yield running


def test_the_command_line_plays_on_a_cluster_as_on_this_machine(cluster, tmp_path):
    """A run that kills its process is recorded as failed."""
    killed = "tests.support.agents:KillsItsProcess"
    words = ["sweep", str(tmp_path), "-a", "Random", "-a", killed, "-e", "CBO/Dropwave-v0"]
    options = ["--seeds", "1", "--horizon", "3", "--backend", "dask", "--address", cluster.scheduler_address]
    done = CliRunner().invoke(app, [*words, *options])
    assert done.exit_code == 1, done.output
    assert "1 finished, 1 failed" in done.output
    run, failed = sorted(load_runs(tmp_path), key=lambda run: run.agent)
    alone = evaluate("Random", "CBO/Dropwave-v0", seed=0, horizon=3)
    assert run.table.drop(TIMING_COLUMNS).equals(alone.table.drop(TIMING_COLUMNS))
    assert (failed.agent, failed.status) == (killed, "failed")
    assert "SIGKILL" in failed.error


def test_a_missing_dask_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(RuntimeError, match=r"pip install '\.\[dask\]'"):
        sweep(["Random"], ["CBO/Dropwave-v0"], [0], tmp_path, execution=Execution("dask", "tcp://127.0.0.1:9"))


def test_workers_with_several_threads_are_refused(tmp_path):
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as crowded,
        pytest.raises(RuntimeError, match="--nthreads 1"),
    ):
        sweep(["Random"], ["CBO/Dropwave-v0"], [0], tmp_path, execution=Execution("dask", crowded.scheduler_address))
    assert not list(tmp_path.iterdir())


def test_other_versions_on_the_workers_are_refused(cluster, tmp_path, monkeypatch):
    own = version("cbo-gym")
    here = threading.get_ident()
    monkeypatch.setattr(revisions, "_version_of", lambda _: "other" if threading.get_ident() == here else own)
    with pytest.raises(RuntimeError, match=r"cbo_gym is .*\+.*, here it is other\+.* \(on tcp://.*, tcp://.*\)"):
        sweep(["Random"], ["CBO/Dropwave-v0"], [0], tmp_path, execution=Execution("dask", cluster.scheduler_address))


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("tcp://127.0.0.1:9", "nothing listens there"),
        ("127.0.0.1:9", "nothing listens there"),
        ("tcp://no-such-host.invalid:8786", r"there is no host called no-such-host\.invalid"),
        ("localhost", "missing port number"),
        ("http://127.0.0.1:9", "unknown address scheme"),
        *((word, r"an address is tcp://HOST:PORT") for word in ("", "cluster")),
    ],
)
def test_a_scheduler_that_is_not_there_is_named(tmp_path, monkeypatch, address, reason):
    monkeypatch.setattr(cluster_module, "ANSWER_SECONDS", 0.2)
    with pytest.raises(RuntimeError, match=f"no Dask scheduler answers at {address!r}: .*{reason}"):
        sweep(["Random"], ["CBO/Dropwave-v0"], [0], tmp_path, execution=Execution("dask", address))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "dask"}, "give the address"),
        ({"address": "tcp://127.0.0.1:9"}, "give the address"),
        ({"backend": "slurm"}, "must be one of \\['local', 'dask'\\]"),
    ],
)
def test_backend_and_address_go_together(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        Execution(**options)
