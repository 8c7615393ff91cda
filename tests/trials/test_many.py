"""Many short runs are as fast at the end as at the beginning, nothing piles up, and large stores are read soon."""

import gc
import json
import threading
import time
from dataclasses import replace

import numpy as np
import polars as pl
import psutil
import pytest
from polars import selectors

from cbo_gym import Execution, evaluate, sweep
from cbo_gym.evaluation.store.published import put
from tests.trials.helpers import python, say

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


ROUNDS, SEEDS = 50, 50
CHILD = """
import json, sys, time
start = time.perf_counter()
from cbo_gym import leaderboard
from cbo_gym.evaluation import load_published
runs = load_published(sys.argv[1])
loaded = time.perf_counter()
board = leaderboard(runs)
print(json.dumps({"runs": board.table.height, "agents": board.overall["agent"].n_unique(),
    "load": loaded - start, "leaderboard": time.perf_counter() - loaded}))
"""
# run by the parent: of a child that has ended the system knows the most memory that it ever had
MEASURE = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run([sys.executable, "-c", *sys.argv[1:]], stdout=subprocess.PIPE, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
kibibytes = used.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
measured = {"wall": time.perf_counter() - start, "mebibytes": kibibytes / 1024}
print(json.dumps(json.loads(done.stdout) | measured))
"""


def like(run, agent, env, seed, rng):
    """A run with the same columns and other numbers."""
    table = run.table.with_columns(selectors.float() * pl.Series(rng.uniform(0.5, 1.0, ROUNDS)))
    return replace(run, agent=agent, env=env, seed=seed, table=table)


@pytest.mark.parametrize(
    ("agents", "envs", "seconds", "mebibytes"), [(16, 20, 16, 1024), (40, 50, 60, 2048)], ids=["16000", "100000"]
)
def test_a_leaderboard_of_many_runs(tmp_path, agents, envs, seconds, mebibytes):
    rng, count = np.random.default_rng(0), agents * envs * SEEDS
    real = evaluate("Random", "CBO/Dropwave-v0", 0, horizon=ROUNDS)
    for agent in range(agents):
        name = f"Agent{agent:03}"
        runs = [like(real, name, f"CBO/Made{env}-v0", seed, rng) for env in range(envs) for seed in range(SEEDS)]
        put(tmp_path / f"{name.lower()}.parquet", runs)
    size = sum(path.stat().st_size for path in tmp_path.iterdir()) / 2**20
    measured = json.loads(python("-c", MEASURE, CHILD, tmp_path).stdout)
    say(f"{count} runs of {ROUNDS} rounds", f"{agents} agents, {envs} environments",
        f"{size:.1f} MiB on disk", f"loaded in {measured['load']:.1f} s",
        f"leaderboard in {measured['leaderboard']:.1f} s", f"{measured['wall']:.1f} s in all",
        f"{measured['mebibytes']:.0f} MiB at most")  # fmt: skip
    assert (measured["runs"], measured["agents"]) == (count, agents)
    assert measured["wall"] <= seconds
    assert measured["mebibytes"] <= mebibytes
