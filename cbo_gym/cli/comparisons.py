"""The commands leaderboard, compare and choose, which evaluate a sweep."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cbo_gym._util.files import csv_of
from cbo_gym.cli.application import MODE_HELP, PATTERN_HELP, WILDCARD_HELP, app
from cbo_gym.cli.completion import agent_names, env_ids
from cbo_gym.cli.output import (
    SEE_CSV,
    CsvOption,
    JsonOption,
    hidden_columns,
    print_csv,
    print_hidden,
    print_json,
    print_table,
    require_one_format,
    say,
)
from cbo_gym.errors import ArgumentError, printable
from cbo_gym.task import Mode

if TYPE_CHECKING:
    from cbo_gym.evaluation.comparison.leaderboard import Leaderboard
    from cbo_gym.evaluation.comparison.pairwise import Comparison
    from cbo_gym.evaluation.runs.results import Run

#: Largest number of lines about failed and skipped runs.
MAX_UNFINISHED = 6
#: Columns that a narrow terminal hides, the first hidden first.
EXPENDABLE_OVERALL = ("run_seconds", "probability", "score", "seconds", "average_score")
#: Columns that only a comparison's rows over several environments have.
OVERALL_ONLY = ("envs", "pairs", "p_value", "least_p_value")
FolderArgument = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER",
        help="Folder that a sweep wrote, or published results; [b]mcbo2023[/b] names some of the package.",
    ),
]
BesideOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--with",
        metavar="PATH",
        help="Add the runs of another folder or of published results on FOLDER's environments; [b]mcbo2023[/b] names "
        "some of the package, [b]results[/b] all. A warning says where rounds or code differ. Repeat for more.",
    ),
]


#: Tables of a leaderboard, by the names of the report's CSV files.
BoardTable = StrEnum("BoardTable", ["overall", "per_env", "profiles", "improvement", "choices", "runs"])
FigureFormat = StrEnum("FigureFormat", ["png", "pdf", "svg"])


@app.command("leaderboard")
def print_leaderboard(
    folder: FolderArgument,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the report; by default FOLDER/report, and none with --json, --csv or published results."
        ),
    ] = None,
    modes: Annotated[
        list[Mode] | None, typer.Option("--mode", metavar="MODE", help=f"{MODE_HELP} Repeat for more.")
    ] = None,
    envs: Annotated[
        list[str] | None,
        typer.Option("--env", "-e", help="Only this environment." + PATTERN_HELP, autocompletion=env_ids),
    ] = None,
    agents: Annotated[
        list[str] | None,
        typer.Option(
            "--agent", "-a", help="Only this agent, with any parameters." + PATTERN_HELP, autocompletion=agent_names
        ),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the tables into this Markdown file, between its markers.")
    ] = None,
    formats: Annotated[
        list[FigureFormat] | None,
        typer.Option("--figures", help="Format of figures; by default png and pdf. Repeat for more."),
    ] = None,
    beside: BesideOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    table: Annotated[
        BoardTable | None,
        typer.Option(
            metavar="TABLE",
            help=f"Which of the report's tables --csv prints: {', '.join(BoardTable)}. By default overall.",
        ),
    ] = None,
) -> None:
    """Compare the agents of a sweep: print tables; write an HTML report, figures, and tables as files.

    If several versions of cbo-gym played the same run, the newest counts.

    Example: [b]cbo-gym leaderboard runs --mode soft -a 'MCBO*' -a Random[/b]

    Your runs with the published ones: [b]cbo-gym leaderboard runs --with results[/b]
    """
    from cbo_gym._util.progress import progress_bar
    from cbo_gym.evaluation.comparison.leaderboard import leaderboard
    from cbo_gym.evaluation.report.markdown import write_results
    from cbo_gym.evaluation.store.published import is_published, resolve

    require_one_format(as_json, as_csv)
    if table is not None and not as_csv:
        raise ArgumentError("--table says which table --csv prints; give both, or neither")
    for_programs = as_json or as_csv
    target = out or (None if for_programs or is_published(resolve(folder)) else folder / "report")
    page = None
    with progress_bar() as progress:
        runs = _runs(folder, lambda paths: progress.track(paths, description="runs"))
        board = leaderboard(runs, beside=beside or (), modes=modes or (), envs=envs or (), agents=agents or ())
        if markdown is not None:
            write_results(markdown, board)
        if target is not None:
            # Imported here, because Matplotlib takes long to import.
            from cbo_gym.evaluation.report.page import write_report
            from cbo_gym.evaluation.report.plots import FORMATS

            bar = progress.add_task("figures", total=None)
            page = write_report(
                board,
                target,
                on_figure=lambda done, total: progress.update(bar, completed=done, total=total),
                formats=formats or FORMATS,
            )
    if as_json:
        print_json(_document(board))
    elif as_csv:
        sys.stdout.write(csv_of(board.frames[table or BoardTable.overall]))
    else:
        print_board(board)
    if page is not None and not for_programs:
        say(f"Report: {page}", soft_wrap=True)


def _runs(folder: Path, track: Callable[[Sequence[Path]], Iterable[Path]] = lambda paths: paths) -> Iterable[Run]:
    """Load the runs that a sweep wrote to a folder, or those of published results: a folder, or a file of it."""
    from cbo_gym.evaluation.runs.folder import intact_runs, run_files
    from cbo_gym.evaluation.store.published import is_published, load_published, resolve

    if is_published(resolve(folder)):
        return load_published(folder)
    paths = run_files(folder)
    if not paths:
        raise ArgumentError(f"there are no runs in {folder}; cbo-gym sweep {shlex.quote(str(folder))} plays some")
    return intact_runs(track(paths))


def _document(board: Leaderboard) -> dict[str, object]:
    """Return the JSON document: tables as lists of rows, runs without a score, and the origin of the numbers."""
    from cbo_gym.evaluation.comparison.provenance import incomplete_rows, provenance

    tables = board.frames
    names = (BoardTable.overall, BoardTable.per_env, BoardTable.improvement, BoardTable.choices)
    return {
        **{name.value: tables[name].to_dicts() for name in names},
        "incomplete": [{"what": row, "why": reason} for row, reason in incomplete_rows(board)],
        "provenance": provenance(board),
    }


def print_board(board: Leaderboard) -> None:
    from cbo_gym.evaluation.comparison.provenance import completeness, incomplete_rows, provenance_sentences
    from cbo_gym.evaluation.metrics.registry import METRICS
    from cbo_gym.evaluation.report.tables import (
        OVERALL,
        SCORE_NOTE,
        SECONDS_NOTE,
        choice_table,
        env_table,
        graph_loss_tables,
        instance_tables,
        overall_table,
    )
    from cbo_gym.evaluation.runs.results import last_line

    # A narrow terminal hides the most expendable metrics first.
    metrics = sorted(METRICS.values(), key=lambda metric: -metric.expendable)
    expendable = [metric.title for metric in metrics if metric.expendable]
    by_env = {str(env): env_table(board, str(env)) for env in board.per_env["env"].unique(maintain_order=True)}
    hidden = hidden_columns([(table.header, table.lines) for table in by_env.values()], expendable)
    for env, table in by_env.items():
        print_table(printable(env), table.header, table.lines, hidden=hidden)
        choices = choice_table(board, env)
        if choices.rows:
            print_table(f"Chosen on {printable(env)}", choices.header, choices.lines)
    by_group = {f"{group.capitalize()}, over environments": overall_table(board, group) for group in board.groups}
    droppable = [OVERALL[name] for name in EXPENDABLE_OVERALL]
    hidden_overall = hidden_columns([(table.header, table.lines) for table in by_group.values()], droppable)
    for title, table in by_group.items():
        print_table(title, table.header, table.lines, hidden=hidden_overall)
    losses = {"without the true graph": graph_loss_tables(board), "on instances": instance_tables(board)}
    for condition, tables in losses.items():
        for env, table in tables.items():
            print_table(f"Score lost {condition}, {printable(env)}", table.header, table.lines)
    if incomplete := completeness(board):
        say(incomplete, "yellow")
    unfinished = incomplete_rows(board)
    for runs, reason in unfinished[:MAX_UNFINISHED]:
        say(f"{runs}: {last_line(reason)}", "yellow")
    if (more := len(unfinished) - MAX_UNFINISHED) > 0:
        say(f"And {more} more like these; the report and --json list all.", "yellow")
    print_hidden([*hidden, *hidden_overall], "the report has them, and --csv with --table")
    source, *mixed = provenance_sentences(board)
    differ = " The runs were not all played alike; the report and --json say how they differ." if mixed else ""
    say(f"{SCORE_NOTE} {SECONDS_NOTE} {source}{differ}", "dim")


@app.command()
def compare(
    folder: FolderArgument,
    agent: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="Label of an agent, or a name or pattern that fits exactly one label." + WILDCARD_HELP,
            autocompletion=agent_names,
        ),
    ],
    other: Annotated[
        str, typer.Argument(metavar="B", help="The agent to compare it with.", autocompletion=agent_names)
    ],
    beside: BesideOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Compare two agents over the seeds that both have finished: differences of their scores, A minus B.

    Each environment has a t-interval; all environments of a mode together have one too, with wins and losses and the
    p-value of a paired permutation test. Intervals are 95 %. cbo-gym claims judges the claims of a paper by regrets, as
    the paper's page does, and its intervals allow for skewed differences.

    Example: [b]cbo-gym compare runs MCBO GP-UCB[/b]

    Your agent with a published one: [b]cbo-gym compare runs mine:Mine MCBO --with results[/b]
    """
    from cbo_gym.evaluation.comparison import pairwise

    require_one_format(as_json, as_csv)
    result = pairwise.compare(_runs(folder), agent, other, beside=beside or ())
    per_env, overall = result.per_env.to_dicts(), result.overall.to_dicts()
    if as_json:
        details = {"agent": result.agent, "other": result.other, "test": pairwise.TEST, "unpaired": result.unpaired}
        print_json(details | {"per_env": per_env, "overall": overall})
    elif as_csv:
        # In rows over several environments, the environment and the seeds are empty.
        names = [*result.per_env.columns, *OVERALL_ONLY]
        rows = [*per_env, *({"mode": row["group"], **row} for row in overall)]
        print_csv(names, [{name: row.get(name) for name in names} for row in rows])
    else:
        _print_comparison(result)


def _print_comparison(result: Comparison) -> None:
    import polars as pl

    from cbo_gym.evaluation.comparison.pairwise import COMPARED, TEST
    from cbo_gym.evaluation.metrics.aggregate import MIN_SEEDS
    from cbo_gym.evaluation.metrics.registry import METRICS
    from cbo_gym.evaluation.report.tables import with_interval

    def cells(row: dict[str, Any]) -> list[str]:
        return [str(with_interval(row, "difference")), *(str(row[name]) for name in ("wins", "ties", "losses"))]

    columns = ["difference", "wins", "ties", "losses"]
    hidden: list[str] = []
    for metric in COMPARED:
        title = f"{METRICS[metric].title.capitalize()}: {result.agent} minus {result.other}"
        rows = result.per_env.filter(pl.col("metric") == metric).to_dicts()
        lines = [[row["env"], str(row["seeds"]), *cells(row)] for row in rows]
        print_table(title, ["environment", "seeds", *columns], lines)
        rows = result.overall.filter(pl.col("metric") == metric).to_dicts()
        lines = [
            [row["group"], str(row["envs"]), str(row["pairs"]), *cells(row), f"{row['p_value']:.2g}"] for row in rows
        ]
        header = ["modes", "environments", "pairs", *columns, "p"]
        hidden += print_table("Over environments", header, lines, droppable=["pairs", "ties"])
    print_hidden(hidden, SEE_CSV)
    min_p_value, min_seeds = max(result.overall["least_p_value"].to_list()), min(result.per_env["seeds"].to_list())
    notes = [
        "A difference above 0 favours the first. Wins count seeds on one environment, and environments "
        f"over several. p: two-sided, {TEST}; with the fewest pairs here it cannot be below {min_p_value:.2g}."
    ]
    if min_seeds < MIN_SEEDS:
        notes.append(f"There are no intervals of fewer than {MIN_SEEDS} seeds: play more.")
    if result.unpaired:
        notes.append(f"Left out: {result.unpaired} finished runs whose environment and seed the other agent lacks.")
    say(" ".join(notes), "dim")


@app.command()
def choose(
    context: typer.Context,
    folder: FolderArgument,
    agent: Annotated[
        str,
        typer.Option(
            "--agent", "-a", help="Agent, without the parameter to choose: [b]MCBO[/b].", autocompletion=agent_names
        ),
    ],
    parameter: Annotated[str, typer.Option(help="The parameter to choose: [b]beta[/b].")],
    metric: Annotated[
        str, typer.Option(help="[b]average_score[/b] (over all rounds) or [b]best[/b] (best expected reward so far).")
    ] = "average_score",
    seeds: Annotated[int | None, typer.Option(min=1, help="Only this many seeds, counted from 0.")] = None,
    horizon: Annotated[int | None, typer.Option(min=1, help="Only runs with this many rounds.")] = None,
    write: Annotated[Path | None, typer.Option(help="Also record the choice in this YAML file.")] = None,
) -> None:
    """Choose an agent's parameter for each environment: the value with the best scores on all others.

    First sweep the agent with every value: -a 'MCBO(beta=0.5)' -a 'MCBO(beta=5)'. The table shows each value's mean
    score on the other environments. Choices of other agents and metrics in the YAML file are kept.

    Example: [b]cbo-gym choose runs --agent MCBO --parameter beta[/b]
    """
    from cbo_gym.evaluation.comparison.parameter_choice import choose_parameter, write_choice

    runs = (
        run
        for run in _runs(folder)
        if (seeds is None or run.seed < seeds) and (horizon is None or run.horizon == horizon)
    )
    choice = choose_parameter(runs, agent, parameter, metric)
    rows = [
        [row["env"], *(f"{row[name]:.3f}" for name in choice.table.columns[2:]), f"{choice.chosen[row['env']]!r}"]
        for row in choice.table.iter_rows(named=True)
    ]
    title = f"{choice.agent}: {choice.metric} on the other environments (seeds: {len(choice.seeds)})"
    print_table(title, ["env", *choice.table.columns[2:], "chosen"], rows)
    if write is not None:
        write_choice(write, choice, _command(context))
        say(f"Written: {write}", soft_wrap=True)


def _command(context: typer.Context) -> str:
    """Return the command line, without options that have their default."""
    arguments = ["cbo-gym", str(context.info_name)]
    for option in context.command.params:
        value = context.params.get(str(option.name))
        if value is not None and value != option.default:
            arguments += [option.opts[0]] if option.param_type_name == "option" else []
            arguments.append(shlex.quote(str(value)))
    return " ".join(arguments)
