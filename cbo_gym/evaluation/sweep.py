"""Many runs: the grid of agents, environments and seeds, in parallel, resumable.

Runs are played by processes on this machine or by the workers of a Dask cluster; what comes back is written here, by
the process that asked for the sweep, so that workers need no folder in common.
"""

from __future__ import annotations

import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args

from cbo_gym.agent import UnsupportedModeError
from cbo_gym.errors import ArgumentError, OperationError
from cbo_gym.evaluation.machine import describe_machine
from cbo_gym.evaluation.results import Run, Status, load_run, run_path, save_run, today
from cbo_gym.evaluation.runner import evaluate
from cbo_gym.registry import entries
from cbo_gym.specs import Spec, create_agent, expand, make_env, usable_agents

TORCH_THREADS = 1  # a process; the parallelism is over runs

Backend = Literal["joblib", "dask"]


@dataclass(frozen=True)
class Job:
    """One cell of the grid, the environment's feedback mode, and the file that its run goes to."""

    agent: Spec
    env: Spec
    seed: int
    horizon: int
    mode: str
    path: Path


def sweep(
    agents: Iterable[str],
    envs: Iterable[str],
    seeds: Iterable[int],
    folder: Path | str,
    *,
    horizon: int | None = None,
    n_jobs: int = -1,
    backend: Backend = "joblib",
    address: str | None = None,
    on_start: Callable[[int, int], None] | None = None,
    on_run: Callable[[Run], None] | None = None,
) -> dict[str, int]:
    """Run every agent on every environment with every seed, one process a run at a time.

    A run that is in the folder already is not repeated, so a sweep that was stopped goes on where it was; runs that
    had failed are tried again. A run that fails is stored with its traceback, a pair whose mode does not fit as
    skipped, and the sweep goes on. On a cluster a run whose worker is killed is played again by another one; a run
    that takes several workers down with it is stored as failed.

    Args:
        agents: names or import paths, with parameters: ``"GP-UCB(beta=0.5)"``; ``"*"`` stands for all installed ones.
        envs: environment ids, with parameters where wanted; ``"CBO/Alpine2*"`` stands for all that fit.
        seeds: at least 0 each.
        folder: where the runs are kept.
        horizon: number of rounds; None for the registered ones.
        n_jobs: processes at a time; -1 for one a core. Of a cluster, the workers decide.
        backend: ``"joblib"`` for processes on this machine, ``"dask"`` for a cluster.
        address: of the Dask scheduler: ``"tcp://host:8786"``.
        on_start: called once with the number of runs in the grid and of those still to do.
        on_run: called with each run that ends, in the order of ending.

    Returns:
        how many runs of the grid are ``finished``, ``failed`` and ``skipped``, and how many were ``resumed``.

    Raises:
        ArgumentError: before anything runs, if an agent or an environment cannot be made, a seed is negative, or the
            backend is unknown or does not go with the address.
        OperationError: if a worker process on this machine is killed, or the cluster is not there or not fit.
    """
    if backend not in get_args(Backend):
        raise ArgumentError(f"no backend is called {backend!r}; choose from {', '.join(get_args(Backend))}")
    if (backend == "dask") != (address is not None):
        raise ArgumentError(f"give the address of a scheduler with the backend dask, and only then; given {address!r}")
    jobs = plan(agents, envs, seeds, Path(folder), horizon)
    return run_jobs(jobs, n_jobs=n_jobs, address=address, on_start=on_start, on_run=on_run)


def run_jobs(
    jobs: Sequence[Job],
    *,
    n_jobs: int = -1,
    address: str | None = None,
    on_start: Callable[[int, int], None] | None = None,
    on_run: Callable[[Run], None] | None = None,
) -> dict[str, int]:
    """Run what :func:`plan` made, of one grid or several; as :func:`sweep` otherwise."""
    if n_jobs == 0:
        raise ArgumentError("give a number of processes, or -1 for one a core; given 0")
    stored = {job: load_run(job.path).status for job in jobs if job.path.exists()}
    to_do = [job for job in jobs if stored.get(job, "failed") == "failed"]
    if on_start:
        on_start(len(jobs), len(to_do))
    count = Counter({"finished": 0, "failed": 0, "skipped": 0, "resumed": len(jobs) - len(to_do)})
    count.update(status for status in stored.values() if status != "failed")
    for job, run in _on_cluster(to_do, address) if address else _on_this_machine(to_do, n_jobs):
        save_run(job.path, run)
        count[run.status] += 1
        if on_run:
            on_run(run)
    return dict(count)


def _on_this_machine(jobs: Sequence[Job], n_jobs: int) -> Iterator[tuple[Job, Run]]:
    # late: slow to import, and needed only here
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    try:
        yield from parallel(delayed(_with_run)(job) for job in jobs)
    except BrokenProcessPool as error:
        raise OperationError(
            "a worker process was killed, perhaps for want of memory; finished runs are kept, "
            "and the same sweep started again does only the others"
        ) from error


def _with_run(job: Job) -> tuple[Job, Run]:
    return job, run_job(job)


def _on_cluster(jobs: Sequence[Job], address: str) -> Iterator[tuple[Job, Run]]:
    from cbo_gym.evaluation.cluster import completed

    if not jobs:  # then no cluster is needed
        return
    for job, outcome in completed(run_job, jobs, address):
        if isinstance(outcome, Exception):
            outcome = _unfinished(job, "failed", f"{type(outcome).__name__}: {outcome}")
        yield job, outcome


def plan(
    agents: Iterable[str],
    envs: Iterable[str],
    seeds: Iterable[int],
    folder: Path,
    horizon: int | None = None,
) -> list[Job]:
    """The grid as a list of jobs, repeated cells left out; raises as :func:`sweep` does."""
    agent_specs = [Spec.parse(text) for text in expand(agents, usable_agents)]
    env_specs = [Spec.parse(text) for text in expand(envs, lambda: [entry.id for entry in entries()])]
    seed_list: Sequence[int] = list(dict.fromkeys(seeds))
    if not (agent_specs and env_specs and seed_list):
        raise ArgumentError("give at least one agent, one environment and one seed")
    if min(seed_list) < 0:
        raise ArgumentError(f"seeds must be at least 0; given {min(seed_list)}")
    for spec in agent_specs:
        create_agent(spec)
    played = {spec: _mode_and_horizon(spec, horizon) for spec in env_specs}
    return [
        Job(agent, env, seed, rounds, mode, run_path(folder, str(agent), str(env), seed, rounds))
        for (env, (mode, rounds)), agent, seed in product(played.items(), agent_specs, seed_list)
    ]


def _mode_and_horizon(spec: Spec, horizon: int | None) -> tuple[str, int]:
    env: Any = make_env(spec, horizon)
    env.close()
    return str(env.unwrapped.mode), env.spec.max_episode_steps


def run_job(job: Job) -> Run:
    """Play one job; called in a worker process."""
    try:
        agent = create_agent(job.agent)
        if torch := sys.modules.get("torch"):  # loaded by now if the agent needs it
            torch.set_num_threads(TORCH_THREADS)
        return evaluate(agent, job.env, job.seed, horizon=job.horizon, label=str(job.agent))
    except UnsupportedModeError as error:
        return _unfinished(job, "skipped", str(error))
    except Exception:
        return _unfinished(job, "failed", traceback.format_exc())


def _unfinished(job: Job, status: Status, error: str) -> Run:
    return Run(
        str(job.agent),
        str(job.env),
        job.seed,
        job.horizon,
        job.mode,
        status=status,
        error=error,
        date=today(),
        machine=describe_machine(),
    )
