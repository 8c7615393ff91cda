"""Stores as large as benchmarks grow: what a leaderboard of them takes, in a process that does nothing else."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import cbo_gym
from cbo_gym.evaluation import Run
from cbo_gym.evaluation.store.published import put
from tests.trials.helpers import say

pytestmark = pytest.mark.slow

ROOT = Path(cbo_gym.__file__).parent.parent
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
# By its parent's side: of a child that has ended the system tells the most that it ever had.
MEASURE = """
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run([sys.executable, "-c", *sys.argv[1:]], stdout=subprocess.PIPE, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
kibibytes = used.ru_maxrss / (1024 if sys.platform == "darwin" else 1)
told = {"wall": time.perf_counter() - start, "mebibytes": kibibytes / 1024}
print(json.dumps(json.loads(done.stdout) | told))
"""


def made_up_run(agent, env, seed, rng):
    """A run on an environment with optimum 1, as an agent that learns might play it."""
    expected = 1.0 - rng.uniform(0.2, 1.0) * np.exp(-rng.uniform(0.0, 0.1) * np.arange(ROUNDS)) * rng.random(ROUNDS)
    rounds, instant = np.arange(1, ROUNDS + 1), 1.0 - expected
    best, reward = np.minimum.accumulate(instant), expected + rng.normal(0.0, 0.1, ROUNDS)
    table = pl.DataFrame(
        {
            "round": rounds,
            "reward": reward,
            "instant_regret": instant,
            "simple_regret": best,
            "expected_reward": expected,
            "recommended_reward": 1.0 - best,
            "best_so_far_regret": best,
            "cumulative_regret": np.cumsum(instant),
            "average_regret": np.cumsum(instant) / rounds,
            "average_reward": np.cumsum(expected) / rounds,
            "pseudo_regret": 1.0 - reward,
            "average_pseudo_regret": np.cumsum(1.0 - reward) / rounds,
            **dict.fromkeys(("act_seconds", "update_seconds", "recommend_seconds"), np.full(ROUNDS, 0.01)),
        }
    )
    return Run(
        agent, env, seed, ROUNDS, mode="soft", date="2026-01-01T00:00:00+00:00", optimum=1.0,
        optimum_standard_error=0.0, random_value=0.0, libraries={"numpy": "2.3"}, threads={"openblas": 1}, table=table,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("agents", "envs", "seconds", "mebibytes"), [(16, 20, 16, 1024), (40, 50, 60, 2048)], ids=["16000", "100000"]
)
def test_a_leaderboard_of_many_runs(tmp_path, agents, envs, seconds, mebibytes):
    rng, count = np.random.default_rng(0), agents * envs * SEEDS
    for agent in range(agents):
        name = f"Agent{agent:03}"
        runs = [made_up_run(name, f"CBO/Made{env}-v0", seed, rng) for env in range(envs) for seed in range(SEEDS)]
        put(tmp_path / f"{name.lower()}.parquet", runs)
    size = sum(path.stat().st_size for path in tmp_path.iterdir()) / 2**20
    measured = subprocess.run(
        [sys.executable, "-c", MEASURE, CHILD, str(tmp_path)],
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    )
    told = json.loads(measured.stdout)
    say(f"{count} runs of {ROUNDS} rounds", f"{agents} agents, {envs} environments",
        f"{size:.1f} MiB on disk", f"loaded in {told['load']:.1f} s",
        f"leaderboard in {told['leaderboard']:.1f} s", f"{told['wall']:.1f} s in all",
        f"{told['mebibytes']:.0f} MiB at most")  # fmt: skip
    assert (told["runs"], told["agents"]) == (count, agents)
    assert told["wall"] <= seconds
    assert told["mebibytes"] <= mebibytes
