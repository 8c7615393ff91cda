"""A sweep of very many short runs: as fast at its end as at its beginning, and nothing piles up meanwhile."""

import gc
import threading
import time

import numpy as np
import psutil
import pytest

from cbo_gym import Execution, sweep
from tests.trials.helpers import say

pytestmark = pytest.mark.slow

RUNS, WORKERS, HORIZON = 1000, 2, 3
WARM = 100  # runs after which everything that is loaded late has been
MOST = 5  # MiB that may be added between then and the end: 6 KiB a run, and a run has more
# more than before: pipes of the workers, and a file that is written or looked at; for each worker a thread that waits
# and one that watches the call, and three of their pool
MEANWHILE = {"files": 2 * WORKERS + 2, "threads": 2 * WORKERS + 3, "processes": WORKERS}
GRID = {"agents": ["Random"], "envs": ["CBO/Dropwave-v0"], "horizon": HORIZON, "n_jobs": WORKERS}


def held(process):
    """Files, threads, processes and MiB that this process has, and the MiB of each of the workers."""
    workers = process.children()
    return {
        "files": process.num_fds(),
        "threads": threading.active_count(),
        "processes": len(workers),
        "memory": process.memory_info().rss / 2**20,
        "workers' files": max((worker.num_fds() for worker in workers), default=0),
        "workers' memory": max((worker.memory_info().rss / 2**20 for worker in workers), default=0.0),
    }


def test_many_short_runs(tmp_path):
    process, ends, seen = psutil.Process(), [], {}
    sweep(seeds=range(10), folder=tmp_path / "before", **GRID)  # loads what is loaded late
    gc.collect()
    before = held(process)

    def on_run(run):
        assert run.status == "finished", run.error
        ends.append(time.perf_counter())
        if len(ends) % WARM == 0:
            seen[len(ends)] = held(process)

    start = time.perf_counter()
    count = sweep(seeds=range(100, 100 + RUNS), folder=tmp_path / "runs", execution=Execution(on_run=on_run), **GRID)
    seconds = time.perf_counter() - start
    gc.collect()
    after, first, last = held(process), seen[WARM], seen[RUNS - WARM]
    tenths = [RUNS / 10 / np.ptp(part) for part in np.split(np.array(ends), 10)]
    say(f"{RUNS} runs of {HORIZON} rounds", f"{RUNS / seconds:.0f} a second", f"first tenth {tenths[0]:.0f}",
        f"last tenth {tenths[-1]:.0f}", *(f"{what} {first[what]:.4g} -> {last[what]:.4g}" for what in first),
        f"then {after}, before {before}")  # fmt: skip
    assert count == {"finished": RUNS, "failed": 0, "skipped": 0, "resumed": 0}
    for what, most in MEANWHILE.items():
        assert after[what] == before[what], what
        assert max(one[what] for one in seen.values()) <= before[what] + most, what
    for what in ("memory", "workers' memory"):
        assert last[what] - first[what] < MOST, what
    assert after["memory"] - first["memory"] < MOST
    assert last["workers' files"] == first["workers' files"]
