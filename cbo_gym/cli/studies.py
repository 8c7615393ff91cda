"""study: what to try next on a system of one's own, from a file that remembers."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cbo_gym.cli.application import IMPORT_PATH_HELP, Group, app, look_here
from cbo_gym.cli.output import JsonOption, left_out, print_json, print_table, say
from cbo_gym.errors import ArgumentError, CBOGymError

if TYPE_CHECKING:
    import polars as pl

    from cbo_gym.study import Study, Trial

JSON_HAS_THEM = "--json has them"
Database = Annotated[
    str, typer.Argument(metavar="DATABASE", help="The study's SQLite file, or a database's URL of SQLAlchemy.")
]
NameOption = Annotated[str | None, typer.Option("--study", help="Which study, where the database has several.")]
AgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent",
        help=f"Who suggests, where that is an import path, or another. {IMPORT_PATH_HELP}.",
        callback=look_here,
    ),
]
TrialNumber = Annotated[int, typer.Argument(metavar="TRIAL", min=1, help="The trial's number.")]
Pairs = Annotated[list[str], typer.Argument(metavar="NAME=NUMBER...", help="The values of variables, in their units.")]
DidOption = Annotated[
    list[str] | None,
    typer.Option("--did", metavar="NAME=NUMBER", help="What was really set, where it differs. Repeat for more."),
]
ContextOption = Annotated[
    list[str] | None,
    typer.Option("--context", metavar="NAME=NUMBER", help="What was seen, in contextual mode. Repeat for more."),
]

studies = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="rich")
app.add_typer(studies, name="study", help="Ask an agent what to try next on a system of your own, and tell what came.")


def _study(database: str, name: str | None, agent: str | None = None) -> Study:
    from cbo_gym.study import load_study

    return load_study(name, storage=database, agent=agent)


def _numbers(pairs: Sequence[str] | None) -> dict[str, float]:
    """``["ph=6.8"]`` as a mapping.

    Raises:
        ArgumentError: naming the pair that is none.
    """
    found = {}
    for pair in pairs or ():
        name, sign, value = pair.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            sign = ""
        if not sign or not name.strip():
            raise ArgumentError(f"cannot read {pair!r}; write NAME=NUMBER, as in ph=6.8") from None
    return found


@studies.command()
def create(
    description: Annotated[Path, typer.Argument(metavar="YAML", help="What the study is about, see the guide.")],
    database: Database,
    agent: AgentOption = None,
) -> None:
    """Create a study from a YAML file: diagram, variables with bounds and units, constraints, costs, agent.

    Example: [b]cbo-gym study create fermenter.yaml fermenter.db[/b]
    """
    from cbo_gym.study import create_study
    from cbo_gym.study.database import Database

    shown = Database(database).shown
    made = create_study(**_described(description, agent), storage=database)
    say(f"Created {made.name} in {shown}; next: cbo-gym study ask {shown}", whole=True)


def _described(path: Path, agent: str | None) -> dict[str, Any]:
    """The fields of a file, which fit together.

    Raises:
        ArgumentError: naming the file, the line and what is wrong there.
    """
    from cbo_gym.study.mistakes import at, mistakes
    from cbo_gym.study.study import described
    from cbo_gym.yaml_files import Lines, read_yaml_with_lines

    fields: dict[str, Any] = {}
    lines = Lines(None)
    try:
        fields, lines = read_yaml_with_lines(path)
        if not isinstance(fields, dict):
            raise ArgumentError("it must be a mapping of fields: name, reward, diagram, settable, agent, ...")
        if "storage" in fields:
            with at("storage"):
                raise ArgumentError("the database is given on the command line, not as storage")
        named = fields.get("agent", "Auto")
        if isinstance(named, str) and ":" in named and agent is None:
            with at("agent"):
                raise ArgumentError(
                    f"the file names the agent {named!r}, an import path, whose code would be run; if you trust it, "
                    f"say so: --agent {named}"
                )
        fields = {"name": path.stem, **fields, "agent": agent or named}
        described(**fields)
    except CBOGymError as error:
        found = mistakes(error, fields, lambda changed: described(**changed))
        said = [text if (line := lines.of(place)) is None else f"line {line}: {text}" for place, text in found]
        raise ArgumentError(f"{path}: {'; '.join(said)}") from error
    return fields


@studies.command("import")
def import_data(
    database: Database,
    data: Annotated[Path, typer.Argument(metavar="CSV", help="A column for each variable, do(X) for what was set.")],
    study: NameOption = None,
    agent: AgentOption = None,
) -> None:
    """Add past observations and experiments from a CSV file.

    Example: [b]cbo-gym study import fermenter.db past.csv[/b]
    """
    import polars as pl

    try:
        rows = [{name: _cell(value) for name, value in row.items()} for row in pl.read_csv(data).iter_rows(named=True)]
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ArgumentError(f"cannot read {data}: {error}") from error
    try:
        count = _study(database, study, agent).add_data(rows)
    except ArgumentError as error:
        raise ArgumentError(f"{data}: {error}") from error
    say(f"{count} rounds were added.")


def _cell(value: Any) -> Any:
    """An interval, as export writes it, or what it is."""
    match = re.fullmatch(r"\[([^,\]]+),([^,\]]+)\]", value) if isinstance(value, str) else None
    try:
        return value if match is None else [float(end) for end in match.groups()]
    except ValueError:
        return value


@studies.command()
def ask(
    database: Database,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Trials that are run at once.")] = 1,
    context: ContextOption = None,
    study: NameOption = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask what to try next. What was asked for and not told of counts as running.

    Example: [b]cbo-gym study ask fermenter.db -n 2[/b]
    """
    trials: list[Trial] = _study(database, study, agent).ask(count, context=_numbers(context) or None)
    if as_json:
        print_json([{"number": one.number, "do": one.do, "why": one.why} for one in trials])
    else:
        print_table("", ["trial", "set", "why"], [[str(one.number), _in_words(one.do), one.why] for one in trials])


def _in_words(do: Any) -> str:
    """``ph = 6.8``; nothing is to only observe."""
    if not do:
        return "nothing, observe"
    return ", ".join(f"{name} = {_number(value)}" for name, value in do.items())


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float | int) else "[" + ", ".join(f"{end:.6g}" for end in value) + "]"


@studies.command()
def tell(
    database: Database,
    trial: TrialNumber,
    values: Pairs,
    did: DidOption = None,
    study: NameOption = None,
    agent: AgentOption = None,
) -> None:
    """Tell what came of a trial; variables that were not measured are left out.

    Example: [b]cbo-gym study tell fermenter.db 7 biomass=2.2 titre=0.79 --did ph=6.75[/b]
    """
    _study(database, study, agent).tell(trial, _numbers(values), did=_numbers(did) or None)
    say(f"Trial {trial} was told.")


@studies.command()
def correct(
    database: Database,
    trial: TrialNumber,
    values: Pairs,
    did: DidOption = None,
    study: NameOption = None,
    agent: AgentOption = None,
) -> None:
    """Correct what was told of a trial; the agent learns anew.

    Example: [b]cbo-gym study correct fermenter.db 7 biomass=2.2 titre=0.97[/b]
    """
    _study(database, study, agent).correct(trial, _numbers(values), did=_numbers(did) or None)
    say(f"Trial {trial} was corrected.")


@studies.command()
def fail(
    database: Database,
    trial: TrialNumber,
    reason: Annotated[str, typer.Argument(help="Why, for the record.")] = "",
    study: NameOption = None,
    agent: AgentOption = None,
) -> None:
    """Say that a trial came to nothing.

    Example: [b]cbo-gym study fail fermenter.db 8 "the pump broke"[/b]
    """
    _study(database, study, agent).fail(trial, reason)
    say(f"Trial {trial} is recorded as failed.")


@studies.command()
def show(database: Database, study: NameOption = None, agent: AgentOption = None, as_json: JsonOption = False) -> None:
    """Show the trials of a study.

    Example: [b]cbo-gym study show fermenter.db[/b]
    """
    frame = _study(database, study, agent).to_frame()
    if as_json:
        print_json(frame.to_dicts())
        return
    expendable = ["asked", "ended", "why", "reason"]
    left_out(print_table("", frame.columns, _cells(frame), droppable=expendable), JSON_HAS_THEM)


def _cells(frame: pl.DataFrame) -> list[list[str]]:
    def cell(value: Any) -> str:
        if value is None:
            return ""
        return _number(value) if isinstance(value, float | list) else str(value)

    return [[cell(value) for value in row] for row in frame.iter_rows()]


@studies.command()
def recommend(
    database: Database,
    context: ContextOption = None,
    study: NameOption = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what to deploy by now; in contextual mode, in a context.

    Example: [b]cbo-gym study recommend fermenter.db[/b]
    """
    found = _study(database, study, agent).recommendation(context=_numbers(context) or None)
    if as_json:
        print_json(found)
    else:
        say(_in_words(found))


@studies.command("what-if")
def what_if(
    database: Database,
    do: Pairs,
    context: ContextOption = None,
    study: NameOption = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what the agent expects under an action; in contextual mode, in a context.

    Example: [b]cbo-gym study what-if fermenter.db ph=7[/b]
    """
    expected = _study(database, study, agent).what_if(_numbers(do), context=_numbers(context) or None)
    if as_json:
        print_json(expected)
    else:
        print_table("", ["variable", "expected"], [[name, f"{value:.5g}"] for name, value in expected.items()])


@studies.command()
def report(
    database: Database,
    out: Annotated[Path, typer.Argument(metavar="HTML", help="Where the page goes.")],
    study: NameOption = None,
    agent: AgentOption = None,
) -> None:
    """Write a page with the diagram, the curve, the recommendation and the trials; it needs no network.

    Example: [b]cbo-gym study report fermenter.db fermenter.html[/b]
    """
    say(f"Report: {_study(database, study, agent).report(out)}", whole=True)


@studies.command()
def export(
    database: Database,
    study: NameOption = None,
    agent: AgentOption = None,
    data: Annotated[
        bool,
        typer.Option("--data", help="All rounds, also those that were imported, as another study can import them."),
    ] = False,
) -> None:
    """Print the trials as CSV.

    Example: [b]cbo-gym study export fermenter.db > trials.csv[/b]
    """
    import polars as pl

    from cbo_gym.files import csv_text

    opened = _study(database, study, agent)
    frame = opened.data() if data else opened.to_frame()
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    lists = [name for name, kind in frame.schema.items() if kind == pl.List(pl.Float64)]
    plain = frame.with_columns(
        *(pl.col(name).map_elements(csv_text, return_dtype=pl.String) for name in texts),
        *(pl.col(name).map_elements(lambda ends: str(list(ends)), return_dtype=pl.String) for name in lists),
    )
    sys.stdout.write(plain.write_csv())
