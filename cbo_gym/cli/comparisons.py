"""leaderboard, choose: what a sweep says."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from cbo_gym.cli.application import PATTERN_HELP, app
from cbo_gym.cli.output import console, print_table
from cbo_gym.task import Mode

if TYPE_CHECKING:
    from cbo_gym.evaluation.leaderboard import Leaderboard
    from cbo_gym.evaluation.selection import Choice

# fit 80 columns; the report has all
TERMINAL_METRICS = ("average_regret", "score", "average_score", "seconds")
TERMINAL_OVERALL = ("iqm", "average_score", "seconds")


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
    from cbo_gym.evaluation.folder import intact_runs, run_files
    from cbo_gym.evaluation.leaderboard import leaderboard
    from cbo_gym.evaluation.markdown import write_results
    from cbo_gym.evaluation.report import write_report
    from cbo_gym.progress import progress_bar

    with progress_bar() as progress:
        paths = run_files(folder)
        runs = intact_runs(progress.track(paths, description="runs"))
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
    from cbo_gym.evaluation.results import last_line
    from cbo_gym.evaluation.tables import (
        SCORE_NOTE,
        SECONDS_NOTE,
        choice_table,
        env_table,
        incomplete_rows,
        overall_table,
        provenance,
    )

    for env in board.per_env["env"].unique(maintain_order=True):
        print_table(str(env), *env_table(board, str(env), TERMINAL_METRICS), note=SCORE_NOTE)
        chosen = choice_table(board, str(env))
        if chosen.rows:
            print_table(f"Chosen on {env}", *chosen)
    for group in board.groups:
        print_table(
            f"{group.capitalize()}, over environments",
            *overall_table(board, group, TERMINAL_OVERALL),
            note=SCORE_NOTE,
        )
    for what, why in incomplete_rows(board):
        console.print(f"[yellow]{escape(what)}[/yellow]: {escape(last_line(why))}")
    console.print(f"[dim]{SECONDS_NOTE} {escape(provenance(board))}[/dim]")


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
    from cbo_gym.evaluation.folder import load_runs
    from cbo_gym.evaluation.selection import choose_parameter, write_choice

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
    print_table(title, ["env", *choice.table.columns[2:], "chosen"], rows)


def _command(context: typer.Context) -> str:
    """The command line that was given, options that were left out apart."""
    words = ["cbo-gym", str(context.info_name)]
    for option in context.command.params:
        value = context.params.get(str(option.name))
        if value is not None and value != option.default:
            words += [option.opts[0]] if option.param_type_name == "option" else []
            words.append(shlex.quote(str(value)))
    return " ".join(words)
