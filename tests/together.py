"""Small tasks of the modes, agents by family, and runs played in this process."""

from functools import cache

import pytest

from cbo_gym import evaluate
from cbo_gym.evaluation import load_published
from cbo_gym.evaluation.play.grid import cell_of
from cbo_gym.evaluation.play.isolated import IsolatedAgent
from cbo_gym.evaluation.play.sweep import run_job
from cbo_gym.evaluation.runs.results import TIMING_COLUMNS, name_of, save_run

#: one agent of each family, by folders; tests of the others are slow
ONE_A_FAMILY = ("Random", "CBO", "GP-UCB", "GPOO", "SSEM-UCB", "TS", "CoCaBO", "DCBO", "CBO-MW", "CausalParetoSelect")


def by_family(cases, agent_of=lambda case: case):
    """Cases as parameters, those of agents that are not among :data:`ONE_A_FAMILY` marked as slow."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else [case]), marks=[] if fast else [pytest.mark.slow])
        for case in cases
        for fast in [agent_of(case) in ONE_A_FAMILY]
    ]


#: a small task of each mode in which actions can be chosen together
TOGETHER = {
    "soft": "CBO/Dropwave-v0",
    "hard": "CBO/ToyGraph-v0",
    "aggregated": "CBO/GPBandit1-v0",
    "masked": "CBO/SSEMPeriodic-v0",
    "discrete": "CBO/XYZWSTBandit-v0",
}
#: what these play, and nothing else
ALONE = {
    "ParallelBandit": "CBO/ParallelBandit-v0",
    **dict.fromkeys(("CausalParetoSelect", "qNEHVI", "qNEHVI-Sets", "qNEHVI-Network"), "CBO/PSAGraph-Cost-v0"),
}


def kept(folder, runs):
    """A folder of runs as a sweep leaves it, without the processes that a sweep starts."""
    for run in runs:
        save_run(folder / name_of(run), run)
    return folder


def played_here(agents, envs, seeds, **how):
    """The runs of agents, by name, on environments."""
    return [evaluate(agent, env, seed, **how) for agent in agents for env in envs for seed in range(seeds)]


@cache
def all_published():
    """The published runs of the repository, read once."""
    return load_published()


class _Kept(IsolatedAgent):
    """An isolated agent that plays any number of runs in one process."""

    def close(self):
        pass


def check_here(monkeypatch):
    """Submissions are played in this process; a third-party agent still in one of its own, for all runs."""
    monkeypatch.setattr("cbo_gym.evaluation.play.sweep.IsolatedAgent", cache(_Kept))
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


def rounds_alike(one, other):
    return all(
        one.table[name].equals(other.table[name], null_equal=True)
        for name in one.table.columns
        if name not in TIMING_COLUMNS
    )
