"""Many runs: the grid of agents, environments and seeds, in parallel, resumable.

Runs are played by processes on this machine or by the workers of a Dask cluster; what comes back is written here, by
the process that asked for the sweep, so that workers need no folder in common. Each run is a call to another process
(:mod:`cbo_gym.evaluation.play.processes`), so that whatever kills it ends that run alone. An agent that is not of this
package has one more process, of its own (:mod:`cbo_gym.evaluation.play.isolated`). A process that made somebody else's
problem is not used again, since that may have changed what a process has once: modules, settings of NumPy and torch,
the working folder, threads.
"""

from __future__ import annotations

import traceback
import warnings
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Any, Literal, get_args

from cbo_gym.agent import UnsupportedModeError
from cbo_gym.arguments import require_word, whole_number
from cbo_gym.errors import ArgumentError, OperationError
from cbo_gym.evaluation.play.callbacks import Callback, PlayedRound, Sampled
from cbo_gym.evaluation.play.grid import Job, plan, seeds_in
from cbo_gym.evaluation.play.isolated import IsolatedAgent
from cbo_gym.evaluation.play.processes import NO_LIMITS, DiedError, Limits, Worker
from cbo_gym.evaluation.play.runner import evaluate
from cbo_gym.evaluation.runs.folder import require_writable, resumed_run
from cbo_gym.evaluation.runs.locking import locked
from cbo_gym.evaluation.runs.machine import process_count
from cbo_gym.evaluation.runs.provenance import played_with
from cbo_gym.evaluation.runs.results import (
    Recommend,
    Run,
    Status,
    name_of,
    readable,
    run_from_bytes,
    run_to_bytes,
    save_run,
)
from cbo_gym.evaluation.runs.revisions import package_stamp
from cbo_gym.evaluation.runs.suite_runs import warn_of_others
from cbo_gym.player import say
from cbo_gym.suites import Suite

Backend = Literal["local", "dask"]
STEP = 0.5  # seconds of a wait; on Windows Ctrl-C is heard only at its end


def sweep(
    agents: Any,
    envs: Any,
    seeds: Iterable[int] | int | None,
    folder: Path | str,
    *,
    horizon: int | None = None,
    recommend: Recommend = "every",
    skip_published: Path | str | None = None,
    n_jobs: int = -1,
    backend: Backend = "local",
    address: str | None = None,
    time_limit: float | None = None,
    memory_limit: float | None = None,
    blind: str | None = None,
    batch: int = 1,
    checkpoint_every: int | None = None,
    callbacks: Iterable[Callback] = (),
    on_start: Callable[[int, int], None] | None = None,
    on_run: Callable[[Run], None] | None = None,
) -> dict[str, int]:
    """Run every agent on every environment with every seed, one process per run at a time.

    A run that is in the folder already is not repeated, so a sweep that was stopped goes on where it was; runs that
    had failed are tried again, and so are those of other versions of the code: of cbo-gym, or of an agent or problem
    of your own. A run that fails is stored with its traceback, or with what ended its process; a pair whose mode does
    not fit is stored as skipped; and the sweep goes on. A file that is damaged is moved to ``damaged`` in the folder,
    with a warning, and its run played again. Of a suite that was edited meanwhile the runs that still belong count;
    a warning names the others. On a cluster a run whose worker is killed is played again by another one.

    An agent that is not of this package plays in a process of its own, which is told the task, observations and
    rewards, and answers with actions; it never holds the environment, the oracle or the seed of the noise.

    Args:
        agents: names or import paths, with parameters: ``"GP-UCB(beta=0.5)"``; ``"*"`` stands for all installed ones.
            Also Specs, classes, instances, and functions without parameters that make one: each run has one of its own.
            What other processes cannot import, as from a notebook's cell, is sent to them by value, and plays in this
            process where it cannot be sent, which a warning says; results call it by the name of its class or function,
            or as a mapping does: ``{"mine, k=3": agent}``.
        envs: environment ids, with parameters where wanted; ``"CBO/Alpine2*"`` stands for all that fit. Also Specs, and
            environments from ``gym.make``, which are made anew. Or a suite, ``cbo_gym.suites.load("survey2026")``.
        seeds: from 0 to 2**63 - 1 each; how many, counted from 0; None for those of the suite.
        folder: where the runs are kept.
        horizon: number of rounds; None for those of the suite, else the registered ones.
        recommend: after which rounds agents are asked for their recommendations, see
            :func:`cbo_gym.evaluation.evaluate`.
        skip_published: folder or file of published results; runs that it has are left out of the grid, whatever code
            they were played with. None leaves nothing out.
        n_jobs: processes at a time; -1 for one per core. Of a cluster, the workers decide.
        backend: ``"local"`` for processes on this machine, which ``"joblib"`` meant before; ``"dask"`` for a cluster.
        address: of the Dask scheduler: ``"tcp://host:8786"``.
        time_limit: seconds that a run may take, the start of its process included; None for any. One that takes
            longer is stored as failed.
        memory_limit: resident memory of a run's process, in MiB; None for any. One that takes more is stored as failed.
        blind: words that nobody but a referee knows, for blind play: instances of the environments and all noise
            follow from them, and tasks name no id; see :mod:`cbo_gym.evaluation.play.blind`. None for play as usual.
        batch: how many actions agents choose at a time, see :func:`cbo_gym.evaluation.evaluate`.
        checkpoint_every: rounds after which a run is written down, beside its file to come, so that one that is cut
            short goes on there when the same sweep is started again. None for runs that begin anew.
        callbacks: each is called in this process with every :class:`PlayedRound` of all runs, one at a time; the rounds
            of runs that are played at once come as they end. What one raises ends the sweep.
        on_start: called once with the number of runs in the grid and of those still to do.
        on_run: called with each run that ends, in the order of ending.

    Returns:
        how many runs of the grid are ``finished``, ``failed`` and ``skipped``, and how many were ``resumed``.

    Raises:
        ArgumentError: before anything runs, if an agent or an environment cannot be made, a seed is none, a limit
            is not above 0, or the backend is unknown or does not go with the address.
        OperationError: before anything runs, if runs cannot be written to the folder; if they no longer can; if the
            cluster is not there or not fit.
    """
    if backend == "joblib":  # as it was called before
        backend = "local"
    require_word("backend", backend, get_args(Backend))
    if (backend == "dask") != (address is not None):
        raise ArgumentError(f"give the address of a scheduler with the backend dask, and only then; given {address!r}")
    seeds = None if seeds is None else seeds_in(seeds)
    hearing = list(callbacks)
    if hearing and address is not None:
        raise ArgumentError("callbacks are called in this process, which the workers of a cluster cannot reach")
    if checkpoint_every is not None:
        whole_number("checkpoint_every", checkpoint_every, at_least=1)
        if address is not None:
            raise ArgumentError(
                "checkpoints are written where a run is played, and a cluster's workers share no folder"
            )
    jobs = plan(agents, envs, seeds, Path(folder), horizon, recommend, skip_published, blind, batch)
    jobs = [replace(job, checkpoint_every=checkpoint_every) for job in jobs]
    if isinstance(envs, Suite) and blind is None:
        warn_of_others(envs, Path(folder), {job.path for job in jobs}, seeds, horizon)
    limits = Limits(time_limit, memory_limit)
    return run_jobs(
        jobs, n_jobs=n_jobs, address=address, limits=limits, callbacks=hearing, on_start=on_start, on_run=on_run
    )


def run_jobs(
    jobs: Sequence[Job],
    *,
    n_jobs: int = -1,
    address: str | None = None,
    limits: Limits = NO_LIMITS,
    callbacks: Sequence[Callback] = (),
    on_start: Callable[[int, int], None] | None = None,
    on_run: Callable[[Run], None] | None = None,
) -> dict[str, int]:
    """Run what :func:`plan` made, of one grid or several; as :func:`sweep` otherwise."""
    at_a_time = process_count(n_jobs)
    for folder in {job.folder for job in jobs}:
        require_writable(folder)
    stored = {job: run.status for job in jobs if (run := resumed_run(job.path)) is not None}
    to_do = [job for job in jobs if stored.get(job, "failed") == "failed"]
    if on_start:
        on_start(len(jobs), len(to_do))
    count = Counter({"finished": 0, "failed": 0, "skipped": 0, "resumed": len(jobs) - len(to_do)})
    count.update(status for status in stored.values() if status != "failed")
    here = partial(_on_this_machine, count=at_a_time, callbacks=callbacks)
    play = here if address is None else partial(_on_cluster, address=address)
    others = 0
    with closing(play(to_do, limits=limits)) as ended:
        for job, played in ended:
            run = _store(job, played)
            count[run.status] += 1
            others += dict(job.sources) != run.sources
            if on_run:
                on_run(run)
    if others:
        warnings.warn(
            f"{others} runs were played with other code than there was when the sweep began: it was edited meanwhile, "
            "or a worker came that has another. They are kept as runs of that code; the same sweep started again plays "
            "them with the code that is there then",
            stacklevel=2,
        )
    return dict(count)


def _store(job: Job, run: Run) -> Run:
    """Store a run under its own name, for code may have been edited since; a finished one that is there stays."""
    path = job.folder / name_of(run)
    try:
        with locked(job.folder):
            if run.status != "finished" and (other := resumed_run(path)) is not None and other.status == "finished":
                return other  # of another sweep of the same
            save_run(path, run)
            return run
    except (OSError, OperationError) as error:
        raise OperationError(
            f"cannot write the run of {job.agent} on {job.env}, seed {job.seed}, to {job.folder}: "
            f"{error.strerror if isinstance(error, OSError) else error}; "
            "the runs that ended before are kept, and the same sweep started again does only the others"
        ) from error


def _on_this_machine(
    jobs: Sequence[Job], *, count: int, limits: Limits, callbacks: Sequence[Callback]
) -> Generator[tuple[Job, Run]]:
    workers = [Worker(limits) for _ in range(min(count, len(jobs)))]
    idle: SimpleQueue[Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    speaking = Lock()
    # Rounds of a run that a worker sends; None for all.
    needed = [one.times for one in callbacks if isinstance(one, Sampled)]
    times = max(needed) if callbacks and len(needed) == len(callbacks) else None

    def hear(played: PlayedRound) -> None:
        with speaking:  # a callback need not bear to be called by two threads
            for callback in callbacks:
                callback(replace(played))  # which makes copies

    def play(job: Job) -> tuple[Job, Run]:
        worker = idle.get()
        try:
            return job, _outcome(
                worker, job, (lambda played: hear(PlayedRound(**played))) if callbacks else None, times
            )
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(max(1, len(workers)))  # each thread waits for a process, and this one hears Ctrl-C
    ended: SimpleQueue[Future[tuple[Job, Run]]] = SimpleQueue()
    here = [job for job in jobs if _plays_here(job)]
    try:
        for job in jobs:
            if not _plays_here(job):
                pool.submit(play, job).add_done_callback(ended.put)
        for job in here:
            yield job, run_job(job, [_sampled(hear, times)] if callbacks else [])
        left = len(jobs) - len(here)
        while left:
            with suppress(Empty):
                yield ended.get(timeout=STEP).result()
                left -= 1
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.close()
        pool.shutdown()


def _plays_here(job: Job) -> bool:
    return job.handed is not None and not job.handed.payload


def _outcome(worker: Worker, job: Job, hear: Callable[[Any], None] | None = None, times: int | None = None) -> Run:
    play = partial(_heard, times=times) if hear else _played
    try:
        content = worker.call(play, job, keep=job.leaves_no_trace, hear=hear)
        return run_from_bytes(b64decode(content), job.path)
    except (DiedError, ArgumentError) as error:
        return _unfinished(job, "failed", str(error))


def _on_cluster(jobs: Sequence[Job], *, address: str, limits: Limits) -> Generator[tuple[Job, Run]]:
    from cbo_gym.evaluation.play.cluster import completed

    if not jobs:  # then no cluster is needed
        return
    if unsent := {str(job.agent) for job in jobs if _plays_here(job)}:
        raise ArgumentError(f"{', '.join(sorted(unsent))} cannot be sent to a cluster's workers; put it into a module")
    play = partial(_on_worker, limits=limits)
    code = dict(stamp for job in jobs for stamp in job.sources) | package_stamp()
    for job, outcome in completed(play, jobs, address, code):
        if isinstance(outcome, Exception):
            outcome = _unfinished(job, "failed", f"{type(outcome).__name__}: {outcome}")
        yield job, outcome


@lru_cache(maxsize=1)  # the process of one that is dropped ends
def _kept_worker(limits: Limits, sources: object) -> Worker:
    return Worker(limits)


def _on_worker(job: Job, limits: Limits) -> Run:
    """On a machine of the cluster: play a job in a process of its worker's, which is kept for the next."""
    return _outcome(_kept_worker(limits, job.sources), job)


def _sampled(callback: Callback, times: int | None) -> Callback:
    return callback if times is None else Sampled(callback, times)


def _heard(job: Job, times: int | None) -> str:
    """In a worker process, play one job and send rounds to the caller: so many of them, or all."""
    return _played(job, [_sampled(lambda played: say(vars(played)), times)])


def _played(job: Job, callbacks: Sequence[Callback] = ()) -> str:
    """In a worker process, play one job; return the content of the run's file in Base64."""
    return b64encode(run_to_bytes(run_job(job, callbacks))).decode()


def run_job(job: Job, callbacks: Sequence[Callback] = ()) -> Run:
    """Play one job in this process."""
    try:
        with _agent(job) as agent:
            run = evaluate(
                agent,
                job.env,
                job.seed,
                horizon=job.horizon,
                recommend=job.recommend,
                batch=job.batch,
                label=str(job.agent),
                secret=job.secret,
                callbacks=callbacks,
                checkpoint=None if job.checkpoint_every is None else job.path.with_suffix(".checkpoint"),
                checkpoint_every=job.checkpoint_every or 1,
            )
        return run if job.handed is None else replace(run, sources=run.sources | dict(job.handed.stamps))
    except UnsupportedModeError as error:
        return _unfinished(job, "skipped", str(error))
    except BaseException:  # an agent's module may raise anything, requests to end the process too
        return _unfinished(job, "failed", traceback.format_exc())


@contextmanager
def _agent(job: Job) -> Iterator[Any]:
    """The agent of a job: one of this package by its name, or an outside one in a process that ends with it."""
    if job.recorded is not None or not job.isolated:
        yield job.recorded or (job.handed.agent() if job.handed else job.agent)
        return
    with closing(IsolatedAgent(job.handed.payload if job.handed else job.agent)) as agent:
        yield agent


def _unfinished(job: Job, status: Status, error: str) -> Run:
    return Run(
        agent=str(job.agent),
        env=str(job.env),
        seed=job.seed,
        horizon=job.horizon,
        recommend=job.recommend,
        batch=job.batch,
        mode=job.mode,
        status=status,
        error=readable(error),
        isolated=job.isolated,
        secret=job.secret,
        sources=dict(job.sources),
        **played_with(),
    )
