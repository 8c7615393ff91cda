"""The command line: list, show, run, sweep, leaderboard, choose, optimum."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cbo_gym.errors import ArgumentError, CBOGymError
from cbo_gym.registry import EnvEntry, RecordedOptimum, entries, find_entry, registry_path, write_optimum
from cbo_gym.task import Mode

if TYPE_CHECKING:
    from cbo_gym.evaluation.leaderboard import Leaderboard
    from cbo_gym.evaluation.results import Run
    from cbo_gym.evaluation.selection import Choice
    from cbo_gym.evaluation.sweep import Backend

app = typer.Typer(
    help="Causal Bayesian optimisation: environments, agents and a leaderboard.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
console = Console()
TERMINAL_METRICS = ("average_regret", "simple_regret", "score", "seconds")  # fit 80 columns; the report has all
TERMINAL_OVERALL = ("iqm", "probability", "seconds")

AGENT_HELP = (
    "An installed agent ([b]GP-UCB[/b]), with parameters ([b]'GP-UCB(beta=2)'[/b]), or an import path "
    "([b]my_package.module:MyAgent[/b]; its code is run, so name only what you trust)."
)
PATTERN_HELP = " [b]'*'[/b] and [b]?[/b] stand for any text. Repeat for more."
ENV_HELP = "Environment id, also with parameters: [b]'CBO/BinaryTree-v0(depth=3)'[/b]. See cbo-gym list."
Horizon = Annotated[int | None, typer.Option(min=1, help="Rounds; the registered number by default.")]


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Turn errors that the user can mend into one line and exit status 2."""
    try:
        yield
    except (CBOGymError, OSError) as error:  # anything else is a bug, whose traceback is wanted
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    Console(stderr=True).print(f"[red]Error:[/red] {escape(message)}", soft_wrap=True)
    raise typer.Exit(2)


@app.command("list")
def list_envs(
    mode: Annotated[Mode | None, typer.Option(help="Only this feedback mode.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only environments with this tag.")] = None,
    paper: Annotated[str | None, typer.Option(help="Only papers whose citation holds this text.")] = None,
) -> None:
    """List the environments.

    Example: [b]cbo-gym list --mode hard[/b]
    """
    chosen = [
        entry
        for entry in entries()
        if (mode is None or entry.mode == mode)
        and (tag is None or tag in entry.tags)
        and (paper is None or paper.lower() in f"{entry.paper} {entry.section}".lower())
    ]
    if not chosen:
        there_are = {
            "modes": {entry.mode.value for entry in entries()},
            "tags": {tag for entry in entries() for tag in entry.tags},
            "papers": {entry.paper for entry in entries()},
        }
        known = "; ".join(f"the {name} are {', '.join(sorted(values))}" for name, values in there_are.items())
        _fail(f"no environment matches; {known}")
    table = Table(box=None, pad_edge=False)
    for name in ("id", "mode", "horizon", "optimum"):
        table.add_column(name, no_wrap=True)
    table.add_column("tags")
    for entry in chosen:
        best = f"{entry.optimum.value:.6g}" if entry.optimum else ""
        table.add_row(entry.id, entry.mode, str(entry.horizon), best, ", ".join(entry.tags))
    console.print(table)


@app.command()
def show(env_id: Annotated[str, typer.Argument(metavar="ENV_ID", help=ENV_HELP)]) -> None:
    """Show one environment: spaces, graph, optimum, citation.

    Example: [b]cbo-gym show CBO/Alpine2-v0[/b]
    """
    from cbo_gym.feedback.contextual import name_scope
    from cbo_gym.oracle import oracle_of
    from cbo_gym.specs import Spec, make_env

    with _plain_errors():
        spec = Spec.parse(env_id)
        made = make_env(spec)
        assert made.spec is not None
        oracle = oracle_of(made)
        entry = find_entry(spec.name)
        with console.status("Looking for the optimum ..."):
            best = oracle.optimum
    feedback, problem = oracle.feedback, oracle.problem
    codec, domains = feedback.codec, problem.domains
    scopes = problem.contexts.scopes if problem.contexts else ()
    console.print(f"[b]{spec}[/b]  {problem.description}")
    rows: list[tuple[str, str]] = [
        ("mode", f"{feedback.mode}, {made.spec.max_episode_steps} rounds"),
        ("action space", str(feedback.action_space)),
        ("observation space", str(feedback.observation_space)),
        *(
            (f"action[{i}]", f"{f'{name}, ' if domains.named else ''}{low:g} to {high:g}")
            for i, (name, (low, high)) in enumerate(zip(domains.names, domains.intervals, strict=True))
        ),
        *((f"do({name})", f"{low:g} to {high:g}") for name, (low, high) in problem.manipulable.items()),
        *((f"scope {i}", name_scope(scope)) for i, scope in enumerate(scopes)),
        ("optimum", f"{best.value:.6g} (standard error {best.standard_error:.1g})"),
        ("reached at", codec.to_text(codec.to_record(best.action))),
        ("random action", f"{best.random_value:.6g} (standard error {best.random_standard_error:.1g})"),
        ("problem from", problem.citation),
    ]
    if entry is not None:
        rows += [("paper", f"{entry.paper}, {entry.section}"), ("tags", ", ".join(entry.tags))]
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, text in rows:
        table.add_row(f"[dim]{name}[/dim]", escape(text))
    console.print(table)
    console.print("\n[dim]graph[/dim]")
    diagram = feedback.scm.diagram
    for node in feedback.scm.nodes:
        causes = [*diagram.parents(node)]
        own = feedback.scm.action_nodes.get(node, ())
        causes += [domains.names[i] if domains.named else f"action[{i}]" for i in own]
        hidden = sorted(diagram.confounding.neighbors(node))
        line = f"  {node} <- {', '.join(causes) or '(noise)'}"
        line += f"   confounded with {', '.join(hidden)}" if hidden else ""
        console.print(escape(line) + ("   [b]reward[/b]" if node == feedback.scm.reward else ""))


@app.command()
def run(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help=AGENT_HELP)],
    env_id: Annotated[str, typer.Argument(metavar="ENV_ID", help=ENV_HELP)],
    seed: Annotated[int, typer.Option(min=0, help="Of the noise, the initial data and the agent.")] = 0,
    horizon: Horizon = None,
    out: Annotated[Path | None, typer.Option(help="Also write the rounds to this Parquet file.")] = None,
) -> None:
    """Run one agent on one environment and print its regrets.

    Example: [b]cbo-gym run GP-UCB CBO/Dropwave-v0 --horizon 30[/b]
    """
    from cbo_gym.evaluation.progress import progress_bar
    from cbo_gym.evaluation.results import save_run
    from cbo_gym.evaluation.runner import evaluate

    with _plain_errors(), progress_bar() as progress:
        bar = progress.add_task("rounds", total=None)
        result = evaluate(
            agent,
            env_id,
            seed,
            horizon=horizon,
            on_round=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    if out is not None:
        save_run(out, result)
    _print_run(result)


def _print_run(result: Run) -> None:
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
        table.add_row(str(number), *(f"{row[name]:.5g}" for name in columns))
    console.print(table)
    console.print(f"[dim]{result.seconds_a_round:.3g} s a round[/dim]")


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
) -> None:
    """Run a grid of agents, environments and seeds in parallel.

    Stopped or killed, the same command goes on where it was: finished runs are kept, failed ones tried again. Exits
    with status 1 if a run failed. On a cluster a run whose worker dies is played again by another; this process
    writes FOLDER, so no shared disk is needed.

    Example: [b]cbo-gym sweep results -a Random -a GP-UCB -e CBO/Dropwave-v0 -e CBO/ToyGraph-v0[/b]
    """
    from cbo_gym.evaluation.progress import progress_bar
    from cbo_gym.evaluation.sweep import sweep as run_sweep

    with _plain_errors(), progress_bar() as progress:
        bar = progress.add_task("runs", total=None)

        def start(total: int, to_do: int) -> None:
            progress.update(bar, total=total, completed=total - to_do)

        def end(finished: Run) -> None:
            progress.advance(bar)
            if finished.status == "failed":
                what = f"{finished.agent} on {finished.env}, seed {finished.seed}"
                reason = finished.error.strip().splitlines()[-1]
                progress.console.print(f"[red]failed:[/red] {escape(what)}: {escape(reason)}")

        count = run_sweep(
            agents,
            envs,
            range(seeds),
            out,
            horizon=horizon,
            n_jobs=jobs,
            backend=cast("Backend", backend),  # which checks it
            address=address,
            on_start=start,
            on_run=end,
        )
    console.print(
        f"{count['finished']} finished, {count['failed']} failed, {count['skipped']} skipped; "
        f"{count['resumed']} of them were there already. Next: cbo-gym leaderboard {out}",
        soft_wrap=True,
    )
    if count["failed"]:
        raise typer.Exit(1)


@app.command("leaderboard")
def print_leaderboard(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder that a sweep wrote.")],
    out: Annotated[Path | None, typer.Option(help="Where the report goes; FOLDER/report by default.")] = None,
    modes: Annotated[list[Mode] | None, typer.Option("--mode", help="Only this mode. Repeat for more.")] = None,
    envs: Annotated[list[str] | None, typer.Option("--env", "-e", help="Only this environment." + PATTERN_HELP)] = None,
    agents: Annotated[
        list[str] | None, typer.Option("--agent", "-a", help="Only this agent, with any parameters." + PATTERN_HELP)
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also put the tables into this Markdown file, between its markers.")
    ] = None,
) -> None:
    """Compare the agents of a sweep: print tables; write an HTML report, figures, CSV and Parquet files.

    Where several versions of cbo-gym played the same, the newest counts.

    Example: [b]cbo-gym leaderboard results --mode soft -a 'MCBO*' -a Random[/b]
    """
    from cbo_gym.evaluation.leaderboard import leaderboard
    from cbo_gym.evaluation.markdown import write_results
    from cbo_gym.evaluation.progress import progress_bar
    from cbo_gym.evaluation.report import write_report
    from cbo_gym.evaluation.results import load_run, run_files

    with _plain_errors(), progress_bar() as progress:
        paths = run_files(folder)
        runs = progress.track(map(load_run, paths), total=len(paths), description="runs")
        board = leaderboard(runs, modes=modes or (), envs=envs or (), agents=agents or ())
        if markdown is not None:
            write_results(markdown, board)
        bar = progress.add_task("figures", total=None)
        page = write_report(
            board,
            out or folder / "report",
            on_figure=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    _print_board(board)
    console.print(f"Report: {page}", soft_wrap=True)


def _print_board(board: Leaderboard) -> None:
    from cbo_gym.evaluation.tables import choice_table, env_table, incomplete_rows, overall_table, provenance

    for env in board.per_env["env"].unique(maintain_order=True):
        _print_table(str(env), *env_table(board, str(env), TERMINAL_METRICS))
        chosen = choice_table(board, str(env))
        if chosen.rows:
            _print_table(f"Chosen on {env}", *chosen)
    for group in board.groups:
        _print_table(
            f"{group.capitalize()}, over environments (score: 1 = optimum, 0 = random)",
            *overall_table(board, group, TERMINAL_OVERALL),
        )
    for what, why in incomplete_rows(board):
        console.print(f"[yellow]{escape(what)}[/yellow]: {escape(why.strip().splitlines()[-1])}")
    console.print(f"[dim]{escape(provenance(board))}[/dim]")


NARROWEST_NAME = 8  # characters


def _print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(title=escape(title), title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, name in enumerate(header):
        # Headers break between words, so that on 80 columns names need not be squeezed to nothing.
        longest = max(len(text) for text in [*name.split(), *(row[place] for row in rows)])
        if place:
            table.add_column(textwrap.fill(name, longest), justify="right", no_wrap=True, overflow="fold")
        else:
            table.add_column(name, min_width=min(longest, NARROWEST_NAME), overflow="fold")
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    console.print(table)
    console.print()


@app.command()
def choose(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder that a sweep wrote.")],
    agent: Annotated[str, typer.Option("--agent", "-a", help="Agent, without the parameter to choose: [b]MCBO[/b].")],
    parameter: Annotated[str, typer.Option(help="The parameter to choose: [b]beta[/b].")],
    metric: Annotated[
        str, typer.Option(help="[b]average_score[/b] (over all rounds) or [b]best[/b] (best expected reward so far).")
    ] = "average_score",
    seeds: Annotated[int | None, typer.Option(min=1, help="Only so many seeds, counted from 0.")] = None,
    horizon: Annotated[int | None, typer.Option(min=1, help="Only runs of so many rounds.")] = None,
    write: Annotated[Path | None, typer.Option(help="Also record the choice in this YAML file.")] = None,
) -> None:
    """Choose an agent's parameter for each environment: the value that does best on all the others.

    First sweep the agent with every value: -a 'MCBO(beta=0.5)' -a 'MCBO(beta=5)'. The table shows each value's mean
    score on the other environments. Choices of other agents and metrics in the YAML file are kept.

    Example: [b]cbo-gym choose results --agent MCBO --parameter beta[/b]
    """
    from cbo_gym.evaluation.results import load_runs
    from cbo_gym.evaluation.selection import choose_parameter, write_choice

    with _plain_errors():
        runs = (
            run
            for run in load_runs(folder)
            if (seeds is None or run.seed < seeds) and (horizon is None or run.horizon == horizon)
        )
        choice = choose_parameter(runs, agent, parameter, metric)
        _print_choice(choice)
        if write is not None:
            write_choice(write, choice, _command(context))
            console.print(f"Written: {write}", soft_wrap=True)


def _print_choice(choice: Choice) -> None:
    rows = [
        [row["env"], *(f"{row[name]:.3f}" for name in choice.table.columns[2:]), f"{choice.chosen[row['env']]!r}"]
        for row in choice.table.iter_rows(named=True)
    ]
    title = f"{choice.agent}: {choice.metric} on the other environments (seeds: {len(choice.seeds)})"
    _print_table(title, ["env", *choice.table.columns[2:], "chosen"], rows)


def _command(context: typer.Context) -> str:
    """The command line that was given, options that were left out apart."""
    words = ["cbo-gym", str(context.info_name)]
    for option in context.command.params:
        value = context.params.get(str(option.name))
        if value is not None and value != option.default:
            words += [option.opts[0]] if option.param_type_name == "option" else []
            words.append(shlex.quote(str(value)))
    return " ".join(words)


@app.command()
def optimum(
    env_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ENV_ID]...", help="Registered ids; all by default.")
    ] = None,
    write: Annotated[bool, typer.Option(help="Record the results in envs_registry.yaml.")] = False,
) -> None:
    """Compute the optimum of environments, as recorded in envs_registry.yaml.

    Example: [b]cbo-gym optimum CBO/Dropwave-Noisy-v0[/b]
    """
    from cbo_gym.evaluation.progress import progress_bar

    with _plain_errors():
        by_id = {entry.id: entry for entry in entries()}
        wanted = env_ids or list(by_id)
        if unknown := [name for name in wanted if name not in by_id]:
            raise ArgumentError(f"not registered: {', '.join(unknown)}; see cbo-gym list")
        with progress_bar() as progress:
            for name in progress.track(wanted, description="optima"):
                found, action = _compute_optimum(by_id[name])
                best = f"{found.value:.8g} (standard error {found.standard_error:.1g})"
                progress.console.print(
                    f"{name}: {best} at {escape(action)}; random action {found.random_value:.6g}",
                    soft_wrap=True,
                )
                if write:
                    write_optimum(registry_path(), name, found)


def _compute_optimum(entry: EnvEntry) -> tuple[RecordedOptimum, str]:
    """The optimum as it is recorded, and its action in words."""
    import gymnasium as gym

    from cbo_gym.oracle import oracle_of

    oracle = oracle_of(gym.make(entry.id))
    found = oracle.find_optimum()
    codec = oracle.feedback.codec
    record = codec.to_record(found.action)
    optimum = RecordedOptimum(
        value=found.value,
        action=record,
        standard_error=found.standard_error,
        random_value=found.random_value,
        random_standard_error=found.random_standard_error,
        command=f"cbo-gym optimum {entry.id} --write",
    )
    return optimum, codec.to_text(record)
