"""run, sweep: agents play."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.markup import escape
from rich.table import Table

from cbo_gym.cli.application import AGENT_HELP, ENV_HELP, PATTERN_HELP, STOPPED, Horizon, app, console
from cbo_gym.errors import ArgumentError

if TYPE_CHECKING:
    from cbo_gym.evaluation.results import Recommend, Run
    from cbo_gym.evaluation.sweep import Backend

RecommendOption = Annotated[
    str,
    typer.Option(
        help="When agents are asked for a recommendation: after [b]every[/b] round, those that are [b]powers[/b] of "
        "two and the last, or at the [b]end[/b]. It costs some of them a fit, and counts among their seconds."
    ),
]


@app.command()
def run(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help=AGENT_HELP)],
    env_id: Annotated[str, typer.Argument(metavar="ENV_ID", help=ENV_HELP)],
    seed: Annotated[int, typer.Option(min=0, help="Of the noise, the initial data and the agent.")] = 0,
    horizon: Horizon = None,
    recommend: RecommendOption = "every",
    out: Annotated[Path | None, typer.Option(help="Also write the rounds to this Parquet file.")] = None,
) -> None:
    """Run one agent on one environment and print its regrets.

    Example: [b]cbo-gym run GP-UCB CBO/Dropwave-v0 --horizon 30[/b]
    """
    from cbo_gym.evaluation.folder import require_writable
    from cbo_gym.evaluation.results import save_run
    from cbo_gym.evaluation.runner import evaluate
    from cbo_gym.progress import progress_bar

    if out is not None:
        if out.is_dir():
            raise ArgumentError(f"{out} is a folder; give a file for the run")
        require_writable(out.parent)
    with progress_bar() as progress:
        bar = progress.add_task("rounds", total=None)
        result = evaluate(
            agent,
            env_id,
            seed,
            horizon=horizon,
            recommend=cast("Recommend", recommend),  # which it checks
            on_round=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    if out is not None:
        save_run(out, result)
    _print_run(result)


def _print_run(result: Run) -> None:
    from cbo_gym.evaluation.results import SECONDS

    rounds = result.table.height
    shown = sorted({1, rounds, *(max(1, round(rounds * part / 10)) for part in range(1, 10))})
    columns = {
        "reward": "reward",
        "expected_reward": "E[Y | action]",
        "average_regret": "average regret",
        "best_so_far_regret": "best so far",
        "simple_regret": "simple regret",
    }
    title = f"{result.agent} on {result.env}, seed {result.seed}; optimum {result.optimum:.6g}"
    table = Table("round", *columns.values(), title=escape(title), title_justify="left", box=None)
    for number in shown:
        row = result.table.row(number - 1, named=True)
        table.add_row(str(number), *("-" if row[name] is None else f"{row[name]:.5g}" for name in columns))
    console.print(table)
    parts = ", ".join(f"{name.partition('_')[0]} {result.table[name].to_numpy().mean():.3g}" for name in SECONDS)
    console.print(f"[dim]{result.seconds_a_round:.3g} s a round: {parts}[/dim]")


@app.command()
def sweep(
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where the runs are kept.")],
    agents: Annotated[list[str], typer.Option("--agent", "-a", help=AGENT_HELP + PATTERN_HELP)],
    envs: Annotated[list[str], typer.Option("--env", "-e", help=ENV_HELP + PATTERN_HELP)],
    seeds: Annotated[int, typer.Option(min=1, help="Number of seeds, counted from 0.")] = 5,
    horizon: Horizon = None,
    jobs: Annotated[int, typer.Option(help="Processes at a time on this machine; -1 for one a core.")] = -1,
    backend: Annotated[
        str, typer.Option(help="[b]joblib[/b]: processes on this machine. [b]dask[/b]: workers of a cluster.")
    ] = "joblib",
    address: Annotated[
        str | None, typer.Option(help="Of the Dask scheduler: [b]tcp://host:8786[/b]. Its workers run what you name.")
    ] = None,
    recommend: RecommendOption = "every",
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds that a run may take; one that takes longer counts as failed.")
    ] = None,
    memory_limit: Annotated[
        float | None, typer.Option(help="MiB of memory that a run may use; one that uses more counts as failed.")
    ] = None,
) -> None:
    """Run a grid of agents, environments and seeds in parallel.

    Stopped or killed, the same command goes on where it was: finished runs are kept, failed ones tried again. Runs of
    other code are played again: of another version of cbo-gym, or after you edited your agent. Exits with status 1 if
    a run failed, 130 if it was stopped. On a cluster a run whose worker dies is played again by another; this process
    writes FOLDER, so no shared disk is needed.

    Example: [b]cbo-gym sweep results -a Random -a GP-UCB -e CBO/Dropwave-v0 -e CBO/ToyGraph-v0[/b]
    """
    from cbo_gym.evaluation.results import last_line
    from cbo_gym.evaluation.sweep import sweep as run_sweep
    from cbo_gym.progress import progress_bar

    with progress_bar() as progress:
        bar = progress.add_task("runs", total=None)

        def start(total: int, to_do: int) -> None:
            progress.update(bar, total=total, completed=total - to_do)

        def end(finished: Run) -> None:
            progress.advance(bar)
            if finished.status == "failed":
                what = f"{finished.agent} on {finished.env}, seed {finished.seed}"
                reason = last_line(finished.error)
                progress.console.print(f"[red]failed:[/red] {escape(what)}: {escape(reason)}", soft_wrap=True)

        try:
            count = run_sweep(
                agents,
                envs,
                range(seeds),
                out,
                horizon=horizon,
                recommend=cast("Recommend", recommend),  # which it checks, as it does the backend
                n_jobs=jobs,
                backend=cast("Backend", backend),
                address=address,
                time_limit=time_limit,
                memory_limit=memory_limit,
                on_start=start,
                on_run=end,
            )
        except KeyboardInterrupt:
            task = progress.tasks[bar]
            _print_stopped(int(task.completed), None if task.total is None else int(task.total), out)
            raise typer.Exit(STOPPED) from None
    console.print(
        f"{count['finished']} finished, {count['failed']} failed, {count['skipped']} skipped; "
        f"{count['resumed']} of them were there already. They are kept in {escape(f'{out}')}; "
        f"next: cbo-gym leaderboard {escape(shlex.quote(str(out)))}",
        soft_wrap=True,
    )
    if count["failed"]:
        console.print("The same command tries those that failed again.")
        raise typer.Exit(1)


def _print_stopped(done: int, total: int | None, folder: Path) -> None:
    kept = "No run was begun" if total is None else f"{done} of {total} runs have ended and are kept in {folder}"
    console.print(f"Stopped. {escape(kept)}. The same command goes on where it was.", soft_wrap=True)
