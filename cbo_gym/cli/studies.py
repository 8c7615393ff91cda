"""The commands study ...: an agent suggests trials on your own system, and a database keeps them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cbo_gym._util.files import csv_of
from cbo_gym.cli.application import IMPORT_PATH_HELP, Group, add_cwd, app
from cbo_gym.cli.output import SEE_JSON, JsonOption, print_hidden, print_json, print_table, say
from cbo_gym.errors import ArgumentError

if TYPE_CHECKING:
    from cbo_gym.study import Study, Trial
    from cbo_gym.study.expectation import Expectation, RecommendedSet

Database = Annotated[
    str, typer.Argument(metavar="DATABASE", help="The study's SQLite file, or a database's URL of SQLAlchemy.")
]
NameOption = Annotated[str | None, typer.Option("--study", help="Name of the study, if the database has several.")]
AgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent",
        help=f"The agent, if the study names an import path, or another agent. {IMPORT_PATH_HELP}.",
        callback=add_cwd,
    ),
]
DiffersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--differs",
        metavar="NAME",
        help="A variable that had a different mechanism in the earlier campaign. Repeat for more.",
    ),
]
TrialNumber = Annotated[int, typer.Argument(metavar="TRIAL", min=1, help="The trial's number.")]
VALUES_HELP = "The values of variables, in their units, or the labels of categories."
Pairs = Annotated[list[str], typer.Argument(metavar="NAME=NUMBER...", help=VALUES_HELP)]
OptionalPairs = Annotated[list[str] | None, typer.Argument(metavar="[NAME=NUMBER]...", help=VALUES_HELP)]
ActionPairs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME=NUMBER]...",
        help="The values to suppose, a category by its label, an interval as 'NAME=[LOW, HIGH]'; nothing to only "
        "observe.",
    ),
]
DidOption = Annotated[
    list[str] | None,
    typer.Option("--did", metavar="NAME=NUMBER", help="The value that was really set, if it differs. Repeat for more."),
]
StdOption = Annotated[
    list[str] | None,
    typer.Option("--std", metavar="NAME=NUMBER", help="The standard error of a value, if known. Repeat for more."),
]
ContextOption = Annotated[
    list[str] | None,
    typer.Option("--context", metavar="NAME=NUMBER", help="An observed context, in contextual mode. Repeat for more."),
]

studies = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="rich")
app.add_typer(
    studies, name="study", help="Ask an agent what to try next on a system of your own, and record the outcome."
)


def _load(database: str, name: str | None, agent: str | None) -> Study:
    from cbo_gym.study import load_study

    return load_study(name, storage=database, agent=agent)


def _numbers(pairs: Sequence[str] | None, study: Study | None = None) -> dict[str, Any]:
    """Read ``["ph=6.8"]`` as a mapping. Labels of categories are allowed if a study is given, which checks them."""
    from cbo_gym.study.precision import COUNTS
    from cbo_gym.study.units import pairs_in, value_in

    form = "NAME=NUMBER with a decimal point, as in ph=6.8"
    strings = pairs_in(pairs or (), form)
    values = {name: value_in(string) for name, string in strings.items()}
    if study is not None and study.interface.codec.labels:
        return values
    if wrong := [name for name, value in values.items() if isinstance(value, str) and not COUNTS.fullmatch(value)]:
        raise ArgumentError(f"cannot read {f'{wrong[0]}={strings[wrong[0]]}'!r}; write {form}")
    return values


@studies.command()
def create(
    description: Annotated[Path, typer.Argument(metavar="YAML", help="Description of the study, see the guide.")],
    database: Database,
    agent: AgentOption = None,
    diagram: Annotated[
        Path | None,
        typer.Option("--diagram", metavar="FILE", help="File of the diagram: DAGitty, DOT, GML, BIF or Tetrad."),
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option("--prior", metavar="DATABASE", help="The database of an earlier study, whose rounds are copied."),
    ] = None,
    prior_study: Annotated[
        str | None, typer.Option("--prior-study", help="Name of the earlier study, if its database has several.")
    ] = None,
    differs: DiffersOption = None,
) -> None:
    """Create a study from a YAML file: diagram, variables with bounds and units, constraints, costs, agent.

    Examples: [b]cbo-gym study create fermenter.yaml fermenter.db[/b]

    [b]cbo-gym study create plant.yaml plant.db --prior pilot.db --differs acid[/b]
    """
    from cbo_gym._util.yaml import read_yaml_with_lines
    from cbo_gym.study import create_study
    from cbo_gym.study.database import Database
    from cbo_gym.study.files import read_arguments

    name_of_database = Database(database).shown
    try:
        arguments = read_arguments(
            lambda: read_yaml_with_lines(description),
            name=description.stem,
            agent=agent,
            diagram=diagram,
            opens_databases=True,
        )
    except ArgumentError as error:
        raise ArgumentError(f"{description}: {error}") from error
    if prior is not None:
        arguments["prior"] = {"storage": prior} | ({} if prior_study is None else {"study": prior_study})
    study = create_study(**arguments | ({"differs": differs} if differs else {}), storage=database)
    if study.description.ignored:
        say(
            f"Ignored, because the reward does not depend on them: {', '.join(study.description.ignored)}",
            soft_wrap=True,
        )
    for campaign in study.campaigns:
        say(f"Earlier campaign {campaign}", soft_wrap=True)
    say(f"Created {study.name} in {name_of_database}; next: cbo-gym study ask {name_of_database}", soft_wrap=True)


@studies.command("import")
def import_data(
    database: Database,
    data: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="CSV or Excel: a column for each variable, do(X) for each that was set."),
    ],
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="NAME", help="A column to leave out, such as a date. Repeat for more."),
    ] = None,
    campaign: Annotated[
        str | None, typer.Option("--campaign", metavar="NAME", help="The earlier campaign in which they were done.")
    ] = None,
    differs: DiffersOption = None,
    study: NameOption = None,
    agent: AgentOption = None,
) -> None:
    """Add past observations and experiments from a CSV or Excel file.

    Examples: [b]cbo-gym study import fermenter.db past.csv[/b]

    [b]cbo-gym study import fermenter.db pilot.csv --campaign "pilot 2025" --differs acid[/b]
    """
    opened = _load(database, study, agent)
    count = opened.add_data(data, ignore=ignore or (), campaign=campaign, differs=differs or ())
    say(f"{count} {'round was' if count == 1 else 'rounds were'} added.")
    for earlier in opened.campaigns:
        say(f"Earlier campaign {earlier}", soft_wrap=True)


@studies.command()
def ask(
    database: Database,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of trials to run at once.")] = 1,
    context: ContextOption = None,
    fixed: Annotated[
        list[str] | None,
        typer.Option("--fixed", metavar="NAME=VALUE", help="A value that each trial sets. Repeat for more."),
    ] = None,
    shared: Annotated[
        list[str] | None,
        typer.Option("--shared", metavar="NAME", help="A name whose value all trials share. Repeat for more."),
    ] = None,
    study: NameOption = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask what to try next. Trials without an outcome count as running.

    Example: [b]cbo-gym study ask fermenter.db -n 4 --fixed ph=6.5 --shared temperature[/b]
    """
    opened = _load(database, study, agent)
    trials: list[Trial] = opened.ask(
        count, context=_numbers(context) or None, fixed=_numbers(fixed, opened), shared=shared or ()
    )
    if as_json:
        print_json([{"number": trial.number, "do": trial.do, "why": trial.why} for trial in trials])
    else:
        print_table(
            "",
            ["trial", "set", "why"],
            [[str(trial.number), _action_in_words(trial.do), trial.why] for trial in trials],
        )


def _action_in_words(do: Mapping[str, Any]) -> str:
    from cbo_gym.study.units import format_assignments

    return format_assignments(do) or "nothing, observe"


@studies.command()
def register(
    database: Database,
    do: ActionPairs = None,
    context: ContextOption = None,
    study: NameOption = None,
    agent: AgentOption = None,
) -> None:
    """Add a trial of your own choice, which is pending until its outcome is recorded.

    Example: [b]cbo-gym study register fermenter.db ph=6.6[/b]
    """
    opened = _load(database, study, agent)
    trial = opened.register(_numbers(do, opened), context=_numbers(context) or None)
    say(f"Trial {trial.number} is pending: {_action_in_words(trial.do)}.")


@studies.command()
def tell(
    database: Database,
    trial: TrialNumber,
    values: OptionalPairs = None,
    std: StdOption = None,
    did: DidOption = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Other values will follow, such as the reward; the trial stays pending.")
    ] = False,
    study: NameOption = None,
    agent: AgentOption = None,
) -> None:
    """Record the outcome of a trial, or a part of it; variables that were not measured are left out.

    Zeros and ones may be counted: [b]'cured=37 of 1000'[/b].

    Examples: [b]cbo-gym study tell fermenter.db 7 biomass=2.2 titre=0.79 --std titre=0.02 --did ph=6.75[/b]

    [b]cbo-gym study tell fermenter.db 8 biomass=2.1 --partial[/b], and later [b]... tell fermenter.db 8 titre=0.8[/b]
    """
    opened, errors = _load(database, study, agent), _numbers(std) or None
    done = _numbers(did, opened) or None
    opened.tell(trial, _numbers(values, opened), std=errors, did=done, final=not partial)
    say(f"{'A part' if partial else 'The outcome'} of trial {trial} was recorded.")


@studies.command()
def correct(
    database: Database,
    trial: TrialNumber,
    values: Pairs,
    std: StdOption = None,
    did: DidOption = None,
    study: NameOption = None,
    agent: AgentOption = None,
) -> None:
    """Correct values of a trial; others stay as recorded, and the agent learns everything again.

    Example: [b]cbo-gym study correct fermenter.db 7 biomass=2.2 titre=0.97[/b]
    """
    opened, errors = _load(database, study, agent), _numbers(std) or None
    opened.correct(trial, _numbers(values, opened), std=errors, did=_numbers(did, opened) or None)
    say(f"The outcome of trial {trial} was corrected.")


@studies.command()
def close(
    database: Database,
    trial: TrialNumber,
    reason: Annotated[str, typer.Argument(help="The reason why the reward is missing.")] = "",
    study: NameOption = None,
    agent: AgentOption = None,
) -> None:
    """End a partial trial whose reward will not be known; what was measured stays, as data for models of variables.

    Example: [b]cbo-gym study close fermenter.db 8 "the sample was lost"[/b]
    """
    _load(database, study, agent).close(trial, reason)
    say(f"Trial {trial} is recorded as closed.")


@studies.command()
def fail(
    database: Database,
    trial: TrialNumber,
    reason: Annotated[str, typer.Argument(help="The reason of the failure.")] = "",
    study: NameOption = None,
    agent: AgentOption = None,
) -> None:
    """Record that a trial gave no result, or that its recorded outcome is invalid.

    Example: [b]cbo-gym study fail fermenter.db 8 "the pump broke"[/b]
    """
    _load(database, study, agent).fail(trial, reason)
    say(f"Trial {trial} is recorded as failed.")


@studies.command()
def reject(
    database: Database,
    trial: TrialNumber,
    reason: Annotated[str, typer.Argument(help="The reason of the rejection.")] = "",
    study: NameOption = None,
    agent: AgentOption = None,
) -> None:
    """Refuse a suggestion; ask again for another one.

    Example: [b]cbo-gym study reject fermenter.db 9 "too hot for the pump"[/b]
    """
    _load(database, study, agent).reject(trial, reason)
    say(f"Trial {trial} is recorded as rejected; next: cbo-gym study ask {database}", soft_wrap=True)


@studies.command()
def show(database: Database, study: NameOption = None, agent: AgentOption = None, as_json: JsonOption = False) -> None:
    """Show the trials of a study.

    Example: [b]cbo-gym study show fermenter.db[/b]
    """
    from cbo_gym.study.precision import merge_precision
    from cbo_gym.study.units import format_value

    opened = _load(database, study, agent)
    frame = opened.to_frame()
    if as_json:
        print_json(frame.to_dicts())
        return
    frame = merge_precision(frame, format_value)
    expendable = ["asked", "ended", "why", "reason"]
    cells = [[value if isinstance(value, str) else format_value(value) for value in row] for row in frame.iter_rows()]
    print_hidden(print_table("", frame.columns, cells, droppable=expendable), SEE_JSON)
    if best := opened.best_trials:
        reward = opened.units.objectives[0]
        if opened.description.objectives:
            numbers = ", ".join(f"trial {entry.number}" for entry in best)
            say(
                f"Not dominated: {numbers} (no other trial is as good in every objective and better in one)",
                soft_wrap=True,
            )
        else:
            say(f"Best: trial {best[0].number}, {reward} = {best[0].values[reward]:.6g}")
    for campaign in opened.campaigns:
        say(f"Earlier campaign {campaign}", soft_wrap=True)
    if opened.ignores_precision:
        say(f"{opened.description.agent} ignores the stated precision.")


@studies.command()
def recommend(
    database: Database,
    context: ContextOption = None,
    study: NameOption = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the action to deploy and its expected outcome; in contextual mode, in a context.

    With several objectives it is a table of actions of which none is expected to dominate another.

    Example: [b]cbo-gym study recommend fermenter.db[/b]
    """
    opened, observed = _load(database, study, agent), _numbers(context) or None
    recommended = opened.recommendation(context=observed)
    if opened.description.objectives:
        _print_set(recommended, as_json)
        return
    if not as_json:
        say(_action_in_words(recommended))
    try:
        expected = opened.what_if(recommended, context=observed)
    # The agent has no model.
    except ArgumentError:
        expected = None
    if as_json:
        fields = {} if expected is None else {"expected": expected, **_expected_fields(opened, expected)}
        print_json(_merge_fields(recommended, "do", fields))
    elif expected is not None:
        _print_expected(expected)


def _print_set(recommended: RecommendedSet, as_json: bool) -> None:
    from cbo_gym.study.units import format_value

    if as_json:
        print_json(
            [
                {"do": action.do, "expected": action.expected, "intervals": action.expected.intervals}
                for action in recommended
            ]
        )
        return
    header, rows = ["set"], [[_action_in_words(action.do)] for action in recommended]
    for name in recommended[0].expected:
        header += [name, "95 % interval"]
        for row, action in zip(rows, recommended, strict=True):
            row += [format_value(action.expected[name]), _format_interval(action.expected.intervals.get(name))]
    print_table("", header, rows)


def _format_interval(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f"{interval[0]:.5g} to {interval[1]:.5g}"


def _merge_fields(by_name: Mapping[str, Any], key: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Merge values by name with fields; if a name is also a field, put the values under ``key`` too."""
    has_clash = not {key, *fields}.isdisjoint(by_name)
    return {**by_name, **({key: by_name} if has_clash else {}), **fields}


def _expected_fields(study: Study, expected: Expectation) -> dict[str, Any]:
    return {
        **({"intervals": expected.intervals} if study.description.objectives else {"interval": expected.interval}),
        "outcomes": expected.outcomes,
        "probabilities": expected.probabilities,
    }


def _print_expected(expected: Expectation) -> None:
    from cbo_gym.study.forecast import percent
    from cbo_gym.study.units import format_value

    if expected.assumed:
        say(f"Not named, so assumed: {_action_in_words(expected.assumed)}")
    rows = [
        [name, format_value(value), *map(_format_interval, intervals)] for name, value, *intervals in expected.rows()
    ]
    header = ["variable", "expected", "95 % interval of the mean", "of a new outcome"]
    print_table("", header, rows, hidden=[] if expected.outcomes else ["of a new outcome"])
    for limit, probability in expected.probabilities.items():
        say(f"{limit} with {percent(probability)} in a new outcome")


@studies.command("what-if")
def what_if(
    database: Database,
    do: ActionPairs = None,
    context: ContextOption = None,
    study: NameOption = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the expected outcome of an action; in contextual mode, in a context.

    Example: [b]cbo-gym study what-if fermenter.db ph=7[/b]
    """
    opened = _load(database, study, agent)
    expected = opened.what_if(_numbers(do, opened), context=_numbers(context) or None)
    if as_json:
        print_json(
            _merge_fields(expected, "expected", {**_expected_fields(opened, expected), "assumed": expected.assumed})
        )
    else:
        _print_expected(expected)


@studies.command()
def stopping(
    database: Database,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Smallest improvement of the reward that matters, in its units; by default that of the study."
        ),
    ] = None,
    context: ContextOption = None,
    study: NameOption = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the probability that a better action exists, the gain and cost of the next trial, and the budget.

    Example: [b]cbo-gym study stopping fermenter.db --delta 0.05[/b]
    """
    result = _load(database, study, agent).stopping(delta, context=_numbers(context) or None)
    if as_json:
        spending = result.spending and {**result.spending._asdict(), "remaining": result.spending.remaining}
        print_json({**asdict(result), "spending": spending})
        return
    for name, value in result.facts:
        say(f"{name}: {value}")
    if result.reason:
        say(f"{result.reason[:1].upper()}{result.reason[1:]}.")


@studies.command("check-diagram")
def check_diagram(
    database: Database,
    level: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Probability of refusing any statement of a true diagram.")
    ] = 0.05,
    study: NameOption = None,
    agent: AgentOption = None,
    as_json: JsonOption = False,
) -> None:
    """Test whether the known rounds contradict the diagram; the status is 1 if they do.

    Example: [b]cbo-gym study check-diagram fermenter.db[/b]
    """
    check = _load(database, study, agent).check_diagram(level=level)
    if as_json:
        print_json(check.to_frame().to_dicts())
    else:
        rows = [
            [
                str(statement),
                str(statement.rounds),
                f"{statement.correlation:.2f}",
                f"{statement.p_value:.2g}",
                f"{statement.detectable:.2f}",
            ]
            for statement in check.tested
        ]
        header = ["by the diagram", "rounds", "correlation", "corrected p", "detectable"]
        if rows:
            print_table("", header, rows, droppable=["detectable", "correlation"])
        say(f"{check.summary[:1].upper()}{check.summary[1:]}.")
    raise typer.Exit(int(bool(check.refused)))


@studies.command()
def report(
    database: Database,
    out: Annotated[Path, typer.Argument(metavar="HTML", help="File for the page.")],
    study: NameOption = None,
    agent: AgentOption = None,
) -> None:
    """Write a page with the diagram, the curve, the recommendation and the trials; it needs no network.

    Example: [b]cbo-gym study report fermenter.db fermenter.html[/b]
    """
    say(f"Report: {_load(database, study, agent).report(out)}", soft_wrap=True)


@studies.command()
def export(
    database: Database,
    study: NameOption = None,
    agent: AgentOption = None,
    data: Annotated[
        bool, typer.Option("--data", help="All rounds, with the imported ones, as another study can import them.")
    ] = False,
) -> None:
    """Print the trials as CSV.

    Example: [b]cbo-gym study export fermenter.db > trials.csv[/b]
    """
    opened = _load(database, study, agent)
    sys.stdout.write(csv_of(opened.data() if data else opened.to_frame()))


@studies.command()
def serve(
    database: Annotated[
        str,
        typer.Argument(
            metavar="DATABASE",
            help="The SQLite file, or a database's URL of SQLAlchemy. A missing file is created "
            "with the first study on the page.",
        ),
    ],
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on. On any other than the loopback address, visitors log in with a token, and the "
            "connection is not encrypted: put a proxy with TLS before it, or use an SSH tunnel."
        ),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8400,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="CBO_GYM_TOKEN",
            help="Token for logging in, at least 16 characters. By default a token is generated and printed; on the "
            "loopback address no login is needed. Other users cannot see the environment variable.",
        ),
    ] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(
            "--agent",
            help=f"An import path that studies may name as their agent. {IMPORT_PATH_HELP}. Repeat for more.",
            callback=add_cwd,
        ),
    ] = None,
    think_seconds: Annotated[
        float, typer.Option(help="Time limit of an agent in seconds, so that it does not block other requests.")
    ] = 600.0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True,
) -> None:
    """Serve a web page of the studies of a database, with their reports and forms to ask, tell, correct and import.

    Example: [b]cbo-gym study serve fermenter.db[/b]

    Only this machine reaches it, unless you give another --host. From a server, forward the port instead:
    [b]ssh -L 8400:localhost:8400 SERVER[/b]
    """
    from cbo_gym.study.page import serve as serve_page

    serve_page(
        database,
        host=host,
        port=port,
        token=token,
        trusted=agent or (),
        think_seconds=think_seconds,
        browser=browser,
        say=lambda line: say(line, soft_wrap=True),
    )
