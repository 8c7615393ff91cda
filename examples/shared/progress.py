"""Runs of a long example, played under a progress bar."""

from __future__ import annotations

from collections.abc import Sequence

from cbo_gym._util.progress import progress_bar
from cbo_gym.evaluation.play.sweep import Execution, Job, run_jobs
from cbo_gym.evaluation.runs.results import Run, load_run


def run_with_progress(jobs: Sequence[Job], n_jobs: int = -1) -> list[Run]:
    """Play the jobs of :func:`cbo_gym.evaluation.play.sweep.plan` whose runs are not stored yet.

    Args:
        jobs: jobs of one grid or several.
        n_jobs: processes at a time; -1 for one per core.

    Returns:
        A run for each job, in their order, whatever its status.

    Raises:
        ArgumentError: if code was edited meanwhile, so that a run is stored as that of other code.
    """
    with progress_bar() as progress:
        bar = progress.add_task("runs", total=len(jobs))
        execution = Execution(
            on_start=lambda total, to_do: progress.advance(bar, total - to_do),
            on_run=lambda run: progress.advance(bar),
        )
        run_jobs(jobs, n_jobs=n_jobs, execution=execution)
    return [load_run(job.path) for job in jobs]
