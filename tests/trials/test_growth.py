"""Stores as large as benchmarks grow: what a leaderboard of them takes, in a process that does nothing else."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars import selectors

from cbo_gym import evaluate
from cbo_gym.evaluation.store.published import put
from tests.trials.helpers import python, say

pytestmark = pytest.mark.slow

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
