"""sweep: play a grid of agents, environments and seeds in parallel; a sweep that was stopped resumes.

Each run is a call to another process (:mod:`cbo_gym._util.processes`), on this machine or by a worker of a Dask
cluster, so that a failure of a run does not end the others. The process that called :func:`sweep` writes the results,
so workers need no shared folder. A third-party agent has a further process (:mod:`cbo_gym.referee.isolated`). A process
that made a third-party problem is not used again, because the problem may have changed its global state: modules,
settings of NumPy and torch, the working directory, threads.
"""

from __future__ import annotations

import traceback
import warnings
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, local
from typing import Any, Literal, get_args

from cbo_gym._util.arguments import require_word, whole_number
from cbo_gym._util.files import expand_home
from cbo_gym._util.processes.channel import DiedError
from cbo_gym._util.processes.serving import send_to_caller
from cbo_gym._util.processes.worker import NO_LIMITS, Limits, Worker
from cbo_gym.agent import UnsupportedModeError
from cbo_gym.errors import ArgumentError, OperationError, abridge
from cbo_gym.evaluation.play.callbacks import Callback, PlayedRound, Sampled
from cbo_gym.evaluation.play.grid import Job, plan, seeds_in
from cbo_gym.evaluation.play.players import isolate
from cbo_gym.evaluation.play.runner import evaluate
from cbo_gym.evaluation.runs.folder import require_writable, resumed_run
from cbo_gym.evaluation.runs.interactive_code import INTERACTIVE
from cbo_gym.evaluation.runs.locking import lock_folder
from cbo_gym.evaluation.runs.machine import process_count
from cbo_gym.evaluation.runs.provenance import provenance_fields
from cbo_gym.evaluation.runs.results import Recommend, Run, Status, name_of, run_from_bytes, run_to_bytes, save_run
from cbo_gym.evaluation.runs.revisions import package_stamp
from cbo_gym.evaluation.runs.suite_runs import warn_of_others
from cbo_gym.evaluation.suites import Suite

Backend = Literal["local", "dask"]
# More than the rounds of any run.
ALL_ROUNDS = 2**31
# Seconds between two looks for Ctrl-C, because on Windows it does not interrupt a wait.
WAIT_SECONDS = 0.5


@dataclass(frozen=True)
class Execution:
    """Settings of a sweep: backend, limits, checkpoints, blind play, skipped runs and progress callbacks.

    Args:
        backend: ``"local"`` for processes on this machine; ``"dask"`` for a cluster.
        address: Address of the Dask scheduler: ``"tcp://host:8786"``.
        time_limit: Seconds that a run may take, the start of its process included; None for no limit. A run that takes
            longer is stored as failed.
        memory_limit: Resident memory of a run's process in MiB; None for no limit. A run that uses more is stored as
            failed.
        checkpoint_every: Rounds between checkpoints, which are written next to a run's file, so that a run that was
            interrupted resumes there. None for no checkpoints.
        blind: Secret words of a referee for blind play: instances of the environments and all noise follow from them,
            and tasks name no id; see :mod:`cbo_gym.evaluation.play.seeds`. None for ordinary play.
        skip_published: Folder or file of published results, whose runs are left out of the grid, whatever their code.
            None leaves nothing out.
        on_start: Called once with the number of runs in the grid and the number still to play.
        on_run: Called with each run that ends, in the order of ending.

    Raises:
        ArgumentError: if a limit is not above 0, the backend is unknown, the address is missing or given without need,
            or checkpoints are wanted on a cluster.
    """

    backend: Backend = "local"
    address: str | None = None
    time_limit: float | None = None
    memory_limit: float | None = None
    checkpoint_every: int | None = None
    blind: str | None = None
    skip_published: Path | str | None = None
    on_start: Callable[[int, int], object] | None = None
    on_run: Callable[[Run], object] | None = None

    def __post_init__(self) -> None:
        require_word("backend", self.backend, get_args(Backend))
        if (self.backend == "dask") != (self.address is not None):
            raise ArgumentError(
                f"give the address of a scheduler with the backend dask, and only then; given {self.address!r}"
            )
        if self.checkpoint_every is not None:
            whole_number("checkpoint_every", self.checkpoint_every, at_least=1)
            if self.address is not None:
                raise ArgumentError(
                    "checkpoints are written where a run is played, and a cluster's workers share no folder"
                )
        # This raises an error for an invalid limit.
        _ = self.limits

    @property
    def limits(self) -> Limits:
        """Limits of a run."""
        return Limits(self.time_limit, self.memory_limit)


ON_THIS_MACHINE = Execution()


def sweep(
    agents: Any,
    envs: Any,
    seeds: Iterable[int] | int | None,
    folder: Path | str,
    *,
    horizon: int | None = None,
    recommend: Recommend = "every",
    batch: int = 1,
    n_jobs: int = -1,
    callbacks: Iterable[Callback] = (),
    execution: Execution = ON_THIS_MACHINE,
) -> dict[str, int]:
    """Play every agent on every environment with every seed, each run in a separate process, and store the runs.

    A run that is already in the folder is not played again, so a sweep that was stopped resumes. Runs that failed are
    played again, and so are runs of other code, whether of cbo-gym or of your own agent or problem. A run that fails is
    stored with its traceback, or with the reason why its process ended. If an agent does not play the mode of an
    environment, its runs are stored as skipped. A damaged file is moved to ``damaged`` in the folder, with a warning,
    and its run is played again. If a suite was edited since the sweep began, a warning names the stored runs that no
    longer belong to it. On a cluster, a run whose worker is killed is played again by another worker.

    A third-party agent plays in a separate process, which receives the task, observations and rewards, and answers with
    actions; this process never holds the environment, the oracle or the seed of the noise.

    Args:
        agents: Names or import paths, with parameters: ``"GP-UCB(beta=0.5)"``; ``"*"`` stands for all installed agents.
            Also Specs, classes, instances, and functions without parameters that make an agent: each run has its own.
            An agent that other processes cannot import, such as one from a notebook, is sent to them by value; if it
            cannot be sent, it plays in this process, with a warning. Results name it by its class or function, or by
            the key of a mapping: ``{"mine, k=3": agent}``.
        envs: Environment ids, optionally with parameters; ``"CBO/Alpine2*"`` stands for all ids that match. Also Specs,
            and environments from ``gym.make``, which are made again. Or a suite,
            ``cbo_gym.evaluation.suites.load("survey2026")``.
        seeds: Seeds from 0 to 2**63 - 1; or their number, counted from 0; None for those of the suite.
        folder: Folder in which the runs are stored.
        horizon: Number of rounds; None for that of the suite, else the registered one.
        recommend: Rounds after which agents are asked for recommendations, see :func:`cbo_gym.evaluation.evaluate`.
        batch: Number of actions that agents choose at a time, see :func:`cbo_gym.evaluation.evaluate`.
        n_jobs: Processes at a time; -1 for one per core. On a cluster, the workers decide.
        callbacks: Each is called in this process with every :class:`PlayedRound` of all runs, one call at a time. An
            exception in a callback ends the sweep.
        execution: Limits, cluster, checkpoints, blind play and progress.

    Returns:
        The numbers of runs of the grid that are ``finished``, ``failed`` and ``skipped``, and that were ``resumed``.

    Raises:
        ArgumentError: before anything runs, if an agent or an environment cannot be made, a seed is invalid, or there
            are callbacks on a cluster.
        OperationError: before anything runs, if runs cannot be written to the folder; during the sweep, if runs can
            no longer be written, or if the cluster is not available or has other code.
    """
    seeds = None if seeds is None else seeds_in(seeds)
    callbacks = list(callbacks)
    if callbacks and execution.address is not None:
        raise ArgumentError("callbacks are called in this process, which the workers of a cluster cannot reach")
    folder, blind = expand_home(folder), execution.blind
    jobs = plan(agents, envs, seeds, folder, horizon, recommend, execution.skip_published, blind, batch)
    if isinstance(envs, Suite) and blind is None:
        warn_of_others(envs, folder, {job.path for job in jobs}, seeds, horizon)
    return run_jobs(jobs, n_jobs=n_jobs, callbacks=callbacks, execution=execution)


def run_jobs(
    jobs: Sequence[Job], *, n_jobs: int = -1, callbacks: Sequence[Callback] = (), execution: Execution = ON_THIS_MACHINE
) -> dict[str, int]:
    """Play the jobs of one or several calls of :func:`plan` and store their runs; return what :func:`sweep` returns."""
    processes = process_count(n_jobs)
    for folder in {job.folder for job in jobs}:
        require_writable(folder)
    stored = {job: run.status for job in jobs if (run := resumed_run(job.path)) is not None}
    to_do = [job for job in jobs if stored.get(job, "failed") == "failed"]
    if execution.on_start:
        execution.on_start(len(jobs), len(to_do))
    counts = Counter({"finished": 0, "failed": 0, "skipped": 0, "resumed": len(jobs) - len(to_do)})
    counts.update(status for status in stored.values() if status != "failed")
    to_do = [replace(job, checkpoint_every=execution.checkpoint_every) for job in to_do]
    if execution.address is None:
        playing = _on_this_machine(to_do, processes, execution.limits, callbacks)
    else:
        playing = _on_cluster(to_do, execution.address, execution.limits)
    # Number of runs whose code was edited during the sweep.
    edited = 0
    with closing(playing) as outcomes:
        for job, played in outcomes:
            run = store_run(job, played)
            counts[run.status] += 1
            if dict(job.sources) != run.sources:
                edited += 1
            if execution.on_run:
                execution.on_run(run)
    if edited:
        warnings.warn(
            f"{edited} runs were played with other code than at the start of the sweep: it was edited, or a "
            "worker with other code joined. They are stored as runs of that code; the same sweep started again plays "
            "them with the current code",
            stacklevel=2,
        )
    return dict(counts)


def play_jobs(
    jobs: Sequence[Job], *, limits: Limits = NO_LIMITS, on_run: Callable[[Run], object] | None = None
) -> list[Run]:
    """Play jobs in processes on this machine; return their runs in the order of the jobs, and store nothing."""
    runs: dict[int, Run] = {}
    with closing(_on_this_machine(jobs, process_count(-1), limits, ())) as outcomes:
        for job, run in outcomes:
            runs[id(job)] = run
            if on_run:
                on_run(run)
    return [runs[id(job)] for job in jobs]


def store_run(job: Job, run: Run) -> Run:
    """Store a run under the name of its code, which may be newer than the job's, and return the stored run."""
    path = job.folder / name_of(run)
    try:
        with lock_folder(job.folder):
            # Another sweep with the same grid may have finished this run.
            stored = None if run.status == "finished" else resumed_run(path)
            if stored is not None and stored.status == "finished":
                return stored
            save_run(path, run)
            return run
    except (OSError, OperationError) as error:
        raise OperationError(
            f"cannot write the run of {job.agent} on {job.cell.env}, seed {job.cell.seed}, to {job.folder}: "
            f"{error.strerror if isinstance(error, OSError) else error}; "
            "the runs that ended before are kept, and the same sweep started again does only the others"
        ) from error


def _on_this_machine(
    jobs: Sequence[Job], processes: int, limits: Limits, callbacks: Sequence[Callback]
) -> Generator[tuple[Job, Run]]:
    """Yield jobs with their runs in the order of ending."""
    workers: list[Worker] = []
    thread, callback_lock = local(), Lock()
    # Largest number of rounds of a run that a callback needs.
    times = max((callback.times if isinstance(callback, Sampled) else ALL_ROUNDS for callback in callbacks), default=0)

    def call_back(played: PlayedRound) -> None:
        # Callbacks need not be thread-safe.
        with callback_lock:
            for callback in callbacks:
                # replace() copies the arrays.
                callback(replace(played))

    def start_worker() -> None:
        thread.worker = Worker(limits)
        workers.append(thread.worker)

    def play(job: Job) -> tuple[Job, Run]:
        return job, _play_in_worker(thread.worker, job, times, lambda played: call_back(PlayedRound(**played)))

    # Each thread of the pool waits for one process, so that this thread can receive Ctrl-C.
    pool = ThreadPoolExecutor(processes, initializer=start_worker)
    ended: SimpleQueue[Future[tuple[Job, Run]]] = SimpleQueue()
    local_jobs = [job for job in jobs if _plays_here(job)]
    try:
        for job in jobs:
            if not _plays_here(job):
                pool.submit(play, job).add_done_callback(ended.put)
        for job in local_jobs:
            yield job, run_job(job, [Sampled(call_back, times)] if times else [])
        remaining = len(jobs) - len(local_jobs)
        while remaining:
            with suppress(Empty):
                yield ended.get(timeout=WAIT_SECONDS).result()
                remaining -= 1
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.close()
        pool.shutdown()


def _plays_here(job: Job) -> bool:
    """Return whether the agent of a job plays in this process, because it cannot be pickled."""
    return job.facts.sent is not None and not job.facts.sent.payload


def _play_in_worker(worker: Worker, job: Job, times: int = 0, on_round: Callable[[Any], None] | None = None) -> Run:
    """Play a job in a worker's process, and pass at most ``times`` rounds to ``on_round``."""
    try:
        play = partial(_play_and_encode, times=times)
        content = worker.call(play, job, keep=job.leaves_no_trace, on_message=on_round)
        return run_from_bytes(b64decode(content), job.path)
    except (DiedError, ArgumentError) as error:
        return _unfinished_run(job, "failed", str(error))


def _on_cluster(jobs: Sequence[Job], address: str, limits: Limits) -> Generator[tuple[Job, Run]]:
    """Yield jobs with their runs in the order of ending."""
    from cbo_gym.evaluation.play.cluster import map_on_cluster

    # Without jobs no cluster is needed.
    if not jobs:
        return
    if unsent := {str(job.agent) for job in jobs if _plays_here(job)}:
        raise ArgumentError(
            f"{', '.join(sorted(unsent))} cannot be sent to a cluster's workers; define it in an importable module"
        )
    play = partial(_on_worker, limits=limits)
    stamps = dict(stamp for job in jobs for stamp in job.sources) | package_stamp()
    # Agents, problems and functions that are objects are sent with the jobs.
    code = {name: stamp for name, stamp in stamps.items() if not stamp.startswith(INTERACTIVE)}
    for job, outcome in map_on_cluster(play, jobs, address, code):
        if isinstance(outcome, Exception):
            outcome = _unfinished_run(job, "failed", f"{type(outcome).__name__}: {outcome}")
        yield job, outcome


# The cache holds one worker; when another replaces it, its process ends.
@lru_cache(maxsize=1)
def _kept_worker(limits: Limits, sources: object) -> Worker:
    return Worker(limits)


def _on_worker(job: Job, limits: Limits) -> Run:
    """Play a job on a machine of the cluster, in a separate process that is kept for the next job."""
    return _play_in_worker(_kept_worker(limits, job.sources), job)


def _play_and_encode(job: Job, times: int) -> str:
    """Play a job in a worker's process, and send at most ``times`` rounds to its caller; return the run as Base64."""
    callbacks = [Sampled(lambda played: send_to_caller(vars(played)), times)] if times else []
    return b64encode(run_to_bytes(run_job(job, callbacks))).decode()


def run_job(job: Job, callbacks: Sequence[Callback] = ()) -> Run:
    """Play one job in this process."""
    try:
        with _agent(job) as agent:
            run = evaluate(
                agent,
                job.cell.env,
                job.cell.seed,
                horizon=job.cell.horizon,
                recommend=job.recommend,
                batch=job.batch,
                label=str(job.agent),
                secret=job.cell.secret,
                callbacks=callbacks,
                checkpoint=None if job.checkpoint_every is None else job.path.with_suffix(".checkpoint"),
                checkpoint_every=job.checkpoint_every or 1,
            )
        return replace(run, sources=run.sources | dict(sent.stamps)) if (sent := job.facts.sent) else run
    except UnsupportedModeError as error:
        return _unfinished_run(job, "skipped", str(error))
    # An agent's module may raise anything, SystemExit too.
    except BaseException:
        return _unfinished_run(job, "failed", traceback.format_exc())


@contextmanager
def _agent(job: Job) -> Iterator[Any]:
    """Yield the agent of a job; the process of a third-party agent ends with the block."""
    sent = job.facts.sent
    if job.recorded is not None:
        yield job.recorded
    elif job.facts.isolated:
        with closing(isolate(sent.payload if sent else job.agent)) as agent:
            yield agent
    else:
        yield sent.agent() if sent else job.agent


def _unfinished_run(job: Job, status: Status, error: str) -> Run:
    return Run(
        agent=str(job.agent),
        env=str(job.cell.env),
        seed=job.cell.seed,
        horizon=job.cell.horizon,
        recommend=job.recommend,
        batch=job.batch,
        mode=job.cell.mode,
        status=status,
        error=abridge(error),
        isolated=job.facts.isolated,
        secret=job.cell.secret,
        sources=dict(job.sources),
        **provenance_fields(),
    )
