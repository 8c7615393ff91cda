"""Made-up runs, with numbers that can be checked by hand, and runs played in this process."""

from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl

from cbo_gym import evaluate
from cbo_gym.evaluation import Run
from cbo_gym.evaluation.play.grid import cell_of
from cbo_gym.evaluation.play.sweep import run_job
from cbo_gym.evaluation.runs.results import TIMING_COLUMNS, name_of, save_run
from cbo_gym.evaluation.suites import Suite
from cbo_gym.referee.isolated import IsolatedAgent


def made_up_run(agent, seed, rewards, env="CBO/Dropwave-v0", mode="soft", **more):
    """Return a run on an environment with optimum 1 and random value 0."""
    rewards = np.array(rewards, dtype=float)
    rounds = np.arange(1, len(rewards) + 1)
    table = pl.DataFrame(
        {
            "recommended_reward": rewards,
            "average_regret": np.cumsum(1 - rewards) / rounds,
            "simple_regret": 1 - rewards,
            "best_so_far_regret": np.minimum.accumulate(1 - rewards),
            "cumulative_regret": np.cumsum(1 - rewards),
            "average_reward": np.cumsum(rewards) / rounds,
            "act_seconds": np.full(len(rewards), 0.25),
            "update_seconds": np.full(len(rewards), 0.5),
            "recommend_seconds": np.full(len(rewards), 0.125),
        }
    )
    return Run(agent, env, seed, len(rewards), mode=mode, optimum=1.0, random_value=0.0, table=table, **more)


def choosing_run(agent, seed, chosen, names=("{X1 | C}", "{X2 | C}", "{}")):
    run = made_up_run(agent, seed, [0.5] * len(chosen), env="CBO/CoCaFig1-v0")
    return replace(run, choices=names, table=run.table.with_columns(pl.Series("choice", chosen)))


def save_runs(folder, runs):
    """Save runs in a folder as a sweep does, but without starting processes; return the folder."""
    for run in runs:
        save_run(folder / name_of(run), run)
    return folder


def play_here(agents, envs, seeds, **how):
    """Play agents on environments in this process; return the runs."""
    return [evaluate(agent, env, seed, **how) for agent in agents for env in envs for seed in range(seeds)]


class _Kept(IsolatedAgent):
    """An isolated agent that plays any number of runs in one process."""

    def close(self):
        pass


def check_here(monkeypatch):
    """Play submissions in this process, and a third-party agent in one other process for all of its runs."""
    monkeypatch.setattr("cbo_gym.evaluation.play.sweep.isolate", cache(_Kept))
    for module in ("referee", "replay"):
        monkeypatch.setattr(f"cbo_gym.referee.{module}.play_jobs", _play_jobs)
        monkeypatch.setattr(f"cbo_gym.referee.{module}.guarded_cells", lambda: cell_of)


def _play_jobs(jobs, *, on_run=None, **_):
    runs = []
    for job in jobs:
        runs.append(run_job(job))
        if on_run is not None:
            on_run(runs[-1])
    return runs


def rounds_alike(first, second):
    return all(
        first.table[name].equals(second.table[name], null_equal=True)
        for name in first.table.columns
        if name not in TIMING_COLUMNS
    )


STRICT = Suite(
    name="strict", title="t", description="d", environments=["CBO/Dropwave-v0"], horizon=2, seeds=2, metric="score",
    verdict_seeds="publication",
)  # fmt: skip
