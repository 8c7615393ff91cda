"""Long work under a progress bar."""

from __future__ import annotations

from collections.abc import Sequence

from cbo_gym._util.progress import progress_bar
from cbo_gym.evaluation.play.sweep import Execution, Job, run_jobs
from cbo_gym.evaluation.runs.results import Run, load_run


def run_with_progress(jobs: Sequence[Job], n_jobs: int = -1) -> list[Run]:
    """Run the jobs of one grid or several, and load their runs; runs that are already stored are not repeated.

    Args:
        jobs: as :func:`cbo_gym.evaluation.play.sweep.plan` makes them.
        n_jobs: processes at a time; -1 for one a core.

    Returns:
        a run for each job, in their order, whatever its status.

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
