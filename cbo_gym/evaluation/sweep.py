"""Many runs: the grid of agents, environments and seeds, in parallel, resumable."""

from __future__ import annotations

import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from cbo_gym.agent import UnsupportedModeError
from cbo_gym.evaluation.results import Run, Status, load_run, run_path, save_run
from cbo_gym.evaluation.runner import evaluate, make_env
from cbo_gym.evaluation.specs import Spec, create_agent

TORCH_THREADS = 1  # a process; the parallelism is over runs


@dataclass(frozen=True)
class Job:
    """One cell of the grid and the file that its run goes to."""

    agent: Spec
    env: Spec
    seed: int
    horizon: int | None
    path: Path


def sweep(
    agents: Iterable[str],
    envs: Iterable[str],
    seeds: Iterable[int],
    folder: Path | str,
    *,
    horizon: int | None = None,
    n_jobs: int = -1,
    on_start: Callable[[int, int], None] | None = None,
    on_run: Callable[[Run], None] | None = None,
) -> dict[str, int]:
    """Run every agent on every environment with every seed, one process a run.

    A run that is in the folder already is not repeated, so a sweep that was stopped goes on where it was; runs that
    had failed are tried again. A run that fails is stored with its traceback, a pair whose mode does not fit as
    skipped, and the sweep goes on.

    Args:
        agents: names or import paths, with parameters: ``"GP-UCB(beta=0.5)"``.
        envs: environment ids, with parameters where wanted.
        seeds: at least 0 each.
        folder: where the runs are kept.
        horizon: number of rounds; None for the registered ones.
        n_jobs: processes at a time; -1 for one a core.
        on_start: called once with the number of runs in the grid and of those still to do.
        on_run: called with each run that ends, in the order of ending.

    Returns:
        how many runs of the grid are ``finished``, ``failed`` and ``skipped``, and how many were ``resumed``.

    Raises:
        ValueError: before anything runs, if an agent or an environment cannot be made, or a seed is negative.
        RuntimeError: if a worker process is killed.
    """
    # late: slow to import, and needed only here
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    jobs = plan(agents, envs, seeds, Path(folder), horizon)
    stored = {job: load_run(job.path).status for job in jobs if job.path.exists()}
    to_do = [job for job in jobs if stored.get(job, "failed") == "failed"]
    if on_start:
        on_start(len(jobs), len(to_do))
    count = Counter({"finished": 0, "failed": 0, "skipped": 0, "resumed": len(jobs) - len(to_do)})
    count.update(status for status in stored.values() if status != "failed")
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    try:
        for run in parallel(delayed(run_job)(job) for job in to_do):
            count[run.status] += 1
            if on_run:
                on_run(run)
    except TerminatedWorkerError as error:
        raise RuntimeError(
            "a worker process was killed, perhaps for want of memory; finished runs are kept in "
            f"{folder}, and the same sweep started again does only the others"
        ) from error
    return dict(count)


def plan(
    agents: Iterable[str],
    envs: Iterable[str],
    seeds: Iterable[int],
    folder: Path,
    horizon: int | None = None,
) -> list[Job]:
    """The grid as a list of jobs, repeated cells left out; raises as :func:`sweep` does."""
    agent_specs = [Spec.parse(text) for text in dict.fromkeys(agents)]
    env_specs = [Spec.parse(text) for text in dict.fromkeys(envs)]
    seed_list: Sequence[int] = list(dict.fromkeys(seeds))
    if not (agent_specs and env_specs and seed_list):
        raise ValueError("give at least one agent, one environment and one seed")
    if min(seed_list) < 0:
        raise ValueError(f"seeds must be at least 0; given {min(seed_list)}")
    for spec in agent_specs:
        create_agent(spec)
    for spec in env_specs:
        make_env(spec, horizon).close()
    return [
        Job(agent, env, seed, horizon, run_path(folder, str(agent), str(env), seed, horizon))
        for env, agent, seed in product(env_specs, agent_specs, seed_list)
    ]


def run_job(job: Job) -> Run:
    """Play one job and store what came of it; called in a worker process."""
    try:
        agent = create_agent(job.agent)
        if torch := sys.modules.get("torch"):  # loaded by now if the agent needs it
            torch.set_num_threads(TORCH_THREADS)
        run = evaluate(agent, job.env, job.seed, horizon=job.horizon, label=str(job.agent))
    except UnsupportedModeError as error:
        run = _unfinished(job, "skipped", str(error))
    except Exception:
        run = _unfinished(job, "failed", traceback.format_exc())
    save_run(job.path, run)
    return run


def _unfinished(job: Job, status: Status, error: str) -> Run:
    return Run(str(job.agent), str(job.env), job.seed, job.horizon or 0, status=status, error=error)
