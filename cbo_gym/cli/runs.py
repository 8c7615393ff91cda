"""Commands run and sweep."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.markup import escape

from cbo_gym._util.files import require_file
from cbo_gym.cli.application import AGENT_HELP, ENV_HELP, PATTERN_HELP, STOPPED, Horizon, add_cwd, app
from cbo_gym.cli.completion import agent_names, env_ids
from cbo_gym.cli.output import JsonOption, print_hidden, print_json, print_table, say
from cbo_gym.cli.suites import FirstSeed, SuiteOption, SuiteSeeds, grid

if TYPE_CHECKING:
    from rich.progress import Progress

    from cbo_gym.evaluation.play.callbacks import PlayedRound
    from cbo_gym.evaluation.play.forecast import Forecast
    from cbo_gym.evaluation.play.sweep import Backend, Job
    from cbo_gym.evaluation.runs.results import Recommend, Run

# Number of times that each run of a sweep moves the progress bar.
PROGRESS_STEPS = 100
# Fields of a run that are empty or redundant when it was just played.
NOT_PRINTED = ("table", "status", "error", "secret", "unverified", "actions", "recommendations")
RecommendOption = Annotated[
    str,
    typer.Option(
        help="When agents are asked for a recommendation: after [b]every[/b] round, those that are [b]powers[/b] of "
        "two and the last, or at the [b]end[/b]. It costs some of them a fit, and counts among their seconds."
    ),
]
BatchOption = Annotated[
    int, typer.Option(min=1, help="Actions that an agent chooses at once, before it learns the outcome of any.")
]


@app.command()
def run(
    agent: Annotated[
        str, typer.Argument(metavar="AGENT", help=AGENT_HELP, autocompletion=agent_names, callback=add_cwd)
    ],
    env_id: Annotated[str, typer.Argument(metavar="ENV_ID", help=ENV_HELP, autocompletion=env_ids, callback=add_cwd)],
    seed: Annotated[int, typer.Option(help="Seed of the noise, the initial data and the agent.")] = 0,
    horizon: Horizon = None,
    recommend: RecommendOption = "every",
    batch: BatchOption = 1,
    out: Annotated[Path | None, typer.Option(help="Also write the rounds to this Parquet file.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Run one agent on one environment and print its regrets.

    Example: [b]cbo-gym run GP-UCB CBO/Dropwave-v0 --horizon 30[/b]
    """
    from cbo_gym._util.progress import progress_bar
    from cbo_gym.evaluation.play.runner import evaluate
    from cbo_gym.evaluation.runs.folder import require_writable
    from cbo_gym.evaluation.runs.results import save_run

    if out is not None:
        require_file(out, ".parquet")
        require_writable(out.parent)
    with progress_bar() as progress:
        bar = progress.add_task("rounds", total=None)
        result = evaluate(
            agent,
            env_id,
            seed,
            horizon=horizon,
            # The function evaluate checks the word.
            recommend=cast("Recommend", recommend),
            batch=batch,
            callbacks=[lambda last_round: progress.update(bar, completed=last_round.round, total=last_round.horizon)],
        )
    if out is not None:
        save_run(out, result)
    if as_json:
        details = {field.name: getattr(result, field.name) for field in fields(result) if field.name not in NOT_PRINTED}
        print_json(details | {"seconds_a_round": result.seconds_a_round, "rounds": result.table.to_dicts()})
    else:
        _print_run(result)


def _print_run(result: Run) -> None:
    from cbo_gym.evaluation.runs.results import TIMING_COLUMNS

    # Eleven rounds, evenly spread.
    rounds = result.table.height
    numbers = sorted({1, rounds, *(max(1, round(rounds * tenth / 10)) for tenth in range(1, 10))})
    columns = {
        "reward": "reward",
        "expected_reward": "E[Y | action]",
        "average_regret": "average regret",
        "best_so_far_regret": "best so far",
        "simple_regret": "simple regret",
    }
    title = f"{result.agent} on {result.env}, seed {result.seed}; optimum {result.optimum:.6g}"
    rows = []
    for number in numbers:
        values = result.table.row(number - 1, named=True)
        cells = ["-" if values[name] is None else f"{values[name]:.5g}" for name in columns]
        rows.append([str(values["round"]), *cells])
    print_table(title, ["round", *columns.values()], rows)
    seconds = ", ".join(
        f"{name.partition('_')[0]} {result.table[name].to_numpy().mean():.3g}" for name in TIMING_COLUMNS
    )
    say(f"{result.seconds_a_round:.3g} s a round: {seconds}", "dim")


class _SweepBar:
    """Progress bar of a sweep, which counts a run in progress by the share of its rounds that are played.

    Attributes:
        ended: number of runs that have ended.
        total: number of all runs; None before the first one begins.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress, self._task = progress, progress.add_task("runs", total=None)
        self.ended = 0
        self.total: int | None = None
        # Run in progress -> share.
        self._shares: dict[tuple[str, str, int], float] = {}

    def on_start(self, total: int, to_do: int) -> None:
        self.ended, self.total = total - to_do, total
        self._show()

    def on_round(self, last: PlayedRound) -> None:
        self._shares[last.agent, last.env, last.seed] = last.round / last.horizon
        self._show()

    def on_run(self, run: Run) -> None:
        from cbo_gym.evaluation.runs.results import last_line

        self.ended += 1
        self._shares.pop((run.agent, run.env, run.seed), None)
        self._show()
        if run.status == "failed":
            name, reason = f"{run.agent} on {run.env}, seed {run.seed}", last_line(run.error)
            self._progress.console.print(f"[red]failed:[/red] {escape(name)}: {escape(reason)}", soft_wrap=True)

    def _show(self) -> None:
        completed = self.ended + sum(list(self._shares.values()))
        self._progress.update(self._task, total=self.total, completed=completed)


@app.command()
def sweep(
    out: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the runs.")],
    agents: Annotated[
        list[str],
        typer.Option("--agent", "-a", help=AGENT_HELP + PATTERN_HELP, autocompletion=agent_names, callback=add_cwd),
    ],
    envs: Annotated[
        list[str] | None,
        typer.Option("--env", "-e", help=ENV_HELP + PATTERN_HELP, autocompletion=env_ids, callback=add_cwd),
    ] = None,
    suite: SuiteOption = None,
    seeds: SuiteSeeds = None,
    first_seed: FirstSeed = None,
    horizon: Horizon = None,
    jobs: Annotated[int, typer.Option(help="Processes at a time on this machine; -1 for one per core.")] = -1,
    backend: Annotated[
        str, typer.Option(help="[b]local[/b]: processes on this machine. [b]dask[/b]: workers of a cluster.")
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(help="Address of the Dask scheduler: [b]tcp://host:8786[/b]. Its workers run what you name."),
    ] = None,
    recommend: RecommendOption = "every",
    batch: BatchOption = 1,
    skip_published: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Published results: leave out runs that they already have, to extend a store step by step.",
        ),
    ] = None,
    checkpoint_every: Annotated[
        int | None,
        typer.Option(min=1, help="Save each run after this many rounds, to resume there if it is interrupted."),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds that a run may take; one that takes longer counts as failed.")
    ] = None,
    memory_limit: Annotated[
        float | None, typer.Option(help="MiB of memory that a run may use; one that uses more counts as failed.")
    ] = None,
    blind: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help="Play blind: instances and all noise follow from these words, which only you should know; "
            "agents do not know which environment it is. The same words give the same runs.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Play nothing: print what would be played, and estimate the time from FOLDER's runs, else from the "
            "published ones of --skip-published, ./results or the package.",
        ),
    ] = False,
) -> None:
    """Run a grid of agents, environments and seeds in parallel.

    After an interruption the same command resumes: finished runs are kept, failed ones tried again. Runs of other code
    (your agent before you edited it, or a version of cbo-gym that plays otherwise) are played again. The status is 1 if
    a run failed, 130 if the sweep was stopped. On a cluster, a run whose worker dies is played again by another; this
    process writes FOLDER, so no shared disk is needed.

    Example: [b]cbo-gym sweep runs -a Random -a GP-UCB -e CBO/Dropwave-v0 -e CBO/ToyGraph-v0[/b]

    A whole suite: [b]cbo-gym sweep runs -a Random -a CBO --suite survey2026[/b]

    A part of one, with its rounds and seeds: [b]cbo-gym sweep runs -a Random --suite mcbo2023 -e CBO/Dropwave-v0[/b]
    """
    from cbo_gym._util.progress import progress_bar
    from cbo_gym.evaluation.play.callbacks import Sampled
    from cbo_gym.evaluation.play.sweep import Execution, plan
    from cbo_gym.evaluation.play.sweep import sweep as run_sweep

    # The sweep checks the word, as it does the backend.
    schedule = cast("Recommend", recommend)
    chosen_envs, seed_range, horizon = grid(suite, envs, seeds, first_seed, horizon)
    if dry_run:
        grid_jobs = plan(agents, chosen_envs, seed_range, out, horizon, schedule, skip_published, blind, batch)
        _print_plan(grid_jobs, skip_published, None if backend == "dask" else jobs)
        return
    with progress_bar() as progress:
        bar = _SweepBar(progress)
        try:
            count = run_sweep(
                agents,
                chosen_envs,
                seed_range,
                out,
                horizon=horizon,
                recommend=schedule,
                batch=batch,
                n_jobs=jobs,
                # Workers of a cluster report whole runs only.
                callbacks=[Sampled(bar.on_round, PROGRESS_STEPS)] if address is None else (),
                execution=Execution(
                    backend=cast("Backend", backend),
                    address=address,
                    time_limit=time_limit,
                    memory_limit=memory_limit,
                    checkpoint_every=checkpoint_every,
                    blind=blind,
                    skip_published=skip_published,
                    on_start=bar.on_start,
                    on_run=bar.on_run,
                ),
            )
        except KeyboardInterrupt:
            progress_made = "No run was begun"
            if bar.total is not None:
                progress_made = f"{bar.ended} of {bar.total} runs have ended and are kept in {out}"
            say(f"Stopped. {progress_made}. The same command resumes there.", soft_wrap=True)
            raise typer.Exit(STOPPED) from None
    say(
        f"{count['finished']} finished, {count['failed']} failed, {count['skipped']} skipped; "
        f"{count['resumed']} of them were there already. They are kept in {out}; "
        f"next: cbo-gym leaderboard {shlex.quote(str(out))}",
        soft_wrap=True,
    )
    if count["failed"]:
        say("The same command tries those that failed again.")
        raise typer.Exit(1)


def _print_plan(grid_jobs: Sequence[Job], store: Path | None, processes: int | None) -> None:
    from cbo_gym.evaluation.play.forecast import forecast
    from cbo_gym.evaluation.store.published import is_published, resolve

    store = resolve("results" if store is None else store)
    planned = forecast(grid_jobs, store if is_published(store) else None)
    header = ["agent", "environment", "runs", "stored", "to play", "s a run", "estimated from"]
    rows = []
    for pair in planned.pairs:
        if not pair.plays:
            continue
        seconds = "?" if pair.seconds is None else f"{pair.seconds:.3g}"
        counts = map(str, (pair.runs, pair.stored, pair.to_play))
        rows.append([pair.agent, f"{pair.env}, T={pair.horizon}", *counts, seconds, pair.source])
    print_hidden(print_table("", header, rows, droppable=["estimated from"]), "a wider terminal or a pipe shows it")
    for line in _describe_plan(planned, processes):
        say(line)


def _describe_plan(planned: Forecast, processes: int | None) -> list[str]:
    """Return sentences on the number of runs, the skipped runs, and the time."""
    playing = [pair for pair in planned.pairs if pair.plays]
    stored, to_play = sum(pair.stored for pair in playing), sum(pair.to_play for pair in playing)
    lines = [f"Runs to play: {to_play}; stored already: {stored}."]
    if skipped := [pair for pair in planned.pairs if not pair.plays]:
        names = ", ".join(dict.fromkeys(pair.agent for pair in skipped))
        runs = sum(pair.runs for pair in skipped)
        lines.append(f"Runs that would only be listed as skipped, because modes do not fit: {runs}, those of {names}.")
    if not to_play:
        return lines
    if planned.unknown == to_play:
        return [*lines, "The time cannot be estimated: none of these agents has a finished run, here or published."]
    parallel = ", divided by the number of the cluster's workers"
    if processes is not None:
        from cbo_gym.evaluation.runs.machine import process_count

        count = process_count(processes)
        parallel = f", {_duration(planned.seconds_with(count))} with {count} at a time" if count > 1 else ""
    lines.append(f"The agents' own time: {_duration(planned.seconds)} of one process{parallel}.")
    if planned.unknown:
        lines.append(
            f"This leaves out the runs of agents without a finished run, here or published: {planned.unknown}."
        )
    lines.append("Starting a process and scoring a run take seconds more each; other machines are faster or slower.")
    return lines


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.2g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
