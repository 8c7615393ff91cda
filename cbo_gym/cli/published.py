"""The commands publish, verify, replay and check-submission, for the store of published results.

Authors of results publish them; the maintainer of a store checks them by playing some runs again.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cbo_gym.cli.application import add_cwd, app
from cbo_gym.cli.output import JsonOption, print_json, print_table, say
from cbo_gym.errors import printable

if TYPE_CHECKING:
    from cbo_gym.referee.replay import Replay

STORE = Path("results")
# Number of differences printed.
MAX_DIFFERENCES = 10
SampleOption = Annotated[int, typer.Option(min=1, help="Smallest number of randomly chosen runs to play again.")]
SampleSeed = Annotated[int, typer.Option(min=0, help="Seed of the random choice of runs.")]
AllowOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="MODULE:CLASS",
        callback=add_cwd,
        help="Import path of an agent that is not installed but may be played if a file names it. This runs the "
        "agent's code, so allow only code that you trust. Repeat the option for each path.",
    ),
]


@app.command()
def publish(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder that a sweep wrote.")],
    suite: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Name of the file; the folder's name by default. If it is the name of a suite, see cbo-gym suites, "
            "only runs on the suite's environments are published; otherwise all are.",
        ),
    ] = None,
    store: Annotated[Path, typer.Option(help="Folder of the published results.")] = STORE,
    submission: Annotated[
        bool,
        typer.Option(
            "--submission",
            help="Include the actions, so that the maintainers of another store can recompute every number. The runs "
            "are marked as unverified until they have done so.",
        ),
    ] = False,
) -> None:
    """Put the runs of a sweep into the published results: one compact file per suite, for the repository.

    If a run was played more than once, the newest is kept. cbo-gym leaderboard and compare read the files, and so does
    cbo_gym.evaluation.load_published().

    Example: [b]cbo-gym publish runs/survey --suite survey2026[/b]
    """
    from cbo_gym._util.progress import progress_bar
    from cbo_gym.evaluation.store.published import publish as publish_runs

    with progress_bar() as progress:
        published = publish_runs(
            folder, store, suite, submission=submission, track=lambda paths: progress.track(paths, description="runs")
        )
    say(
        f"Runs in {published.path}: {published.added} added, {published.replaced} replaced by newer ones, "
        f"{published.unchanged} as before; {published.bytes / 2**20:.2g} MiB",
        soft_wrap=True,
    )
    if published.outdated:
        say(
            f"Runs of {folder} that the store has already, or in a newer version: {published.outdated}.", soft_wrap=True
        )
    if published.left_out:
        say(f"Runs left out, on environments that are not in the suite: {published.left_out}.")
    if submission:
        _warn_of_differences(published.path)


def _warn_of_differences(path: Path) -> None:
    """Print how a submission differs from the suite of its name, because check-submission would refuse it."""
    from cbo_gym.evaluation.runs.suite_runs import describe_differences
    from cbo_gym.evaluation.store.codec import read_store_file
    from cbo_gym.evaluation.suites import load_all

    suite = next((suite for suite in load_all() if suite.name == path.stem), None)
    messages = list(describe_differences(suite, read_store_file(path))) if suite else []
    for message in messages[:MAX_DIFFERENCES]:
        say(printable(message), "yellow")
    if messages:
        say(
            f"{len(messages)} differences from the current suite {path.stem}; check-submission refuses the file.", "red"
        )


@app.command()
def verify(
    store: Annotated[Path, typer.Argument(metavar="[STORE]", help="Published results: a folder or a file.")] = STORE,
    sample: SampleOption = 20,
    seed: SampleSeed = 0,
    allow: AllowOption = None,
    as_json: JsonOption = False,
) -> None:
    """Play a sample of published runs again and compare: the status is 1 if one differs or cannot be played here.

    Files are treated as data: only installed agents, by name, and registered environments are played. No import path
    in a file is followed unless you allow exactly that path.

    With the same libraries, threads, processor and code every curve must equal the stored one, bit for bit. Otherwise
    rounding errors can lead to other actions. Then the runs of each agent on each environment are compared as a group
    of at least five: the test is whether their scores differ from the stored ones, at a level of 1 % over all groups. A
    sample of fewer than five runs is played without this test.

    Example: [b]cbo-gym verify results --sample 20[/b]
    """
    from cbo_gym._util.progress import progress_bar
    from cbo_gym.evaluation.store.published import load_published
    from cbo_gym.referee.agreement import agreements, sample_to_compare
    from cbo_gym.referee.replay import is_played_alike, replays

    stored = load_published(store)
    sampled = sample_to_compare(stored, sample, seed, is_played_alike)
    with progress_bar() as progress:
        bar = progress.add_task("runs", total=len(sampled))
        outcomes = list(replays(sampled, allow=allow or (), on_run=lambda _: progress.advance(bar)))
    # Other hardware alone can make a single run diverge from the stored one, so only groups of runs are judged.
    outcomes = [replace(outcome, verdict="diverges") if outcome.diverged else outcome for outcome in outcomes]
    groups = agreements(outcomes, stored)
    if as_json:
        names = ("agent", "env", "horizon", "verdict", "why", "p_value")
        print_json(
            [
                {name: getattr(group, name) for name in names} | {"replays": list(map(_document, group.replays))}
                for group in groups
            ]
        )
    else:
        _print_replays(outcomes)
        header = ["agent", "environment", "replays", "verdict", "why"]
        rows = [
            [group.agent, f"{group.env}, T={group.horizon}", str(len(group.replays)), group.verdict, group.why]
            for group in groups
        ]
        print_table("Groups of runs", header, rows)
        say(_count_verdicts((group.verdict for group in groups), "group"))
    if any(group.verdict in ("differs", "skipped") for group in groups):
        raise typer.Exit(1)


@app.command()
def replay(
    run_id: Annotated[str, typer.Argument(metavar="ID", help="Id of a published run, or its first characters.")],
    store: Annotated[
        Path | None, typer.Option(help="Published results: a folder or a file; the package's own by default.")
    ] = None,
    allow: AllowOption = None,
    as_json: JsonOption = False,
) -> None:
    """Play one published run again and compare: the status is 1 unless the curves agree.

    On other hardware, or with other libraries or code, a run may diverge from the stored one although nothing is wrong.
    verify compares groups of runs, which decides such cases. The status is also 1 if the run cannot be played here.

    Example: [b]cbo-gym replay 5f2c1e0b9a77[/b]
    """
    from cbo_gym.evaluation.store.finding import find_published
    from cbo_gym.referee.replay import replays

    (outcome,) = replays([find_published(run_id, store)], allow=allow or ())
    if outcome.diverged:
        outcome = replace(outcome, verdict="diverges")
    if as_json:
        print_json({"id": outcome.run.id, **_document(outcome)})
    else:
        _print_table([outcome])
        reason = ": ".join(filter(None, [outcome.verdict, outcome.why]))
        if outcome.verdict == "diverges":
            advice = "see cbo-gym verify: on other hardware only groups of runs can be compared"
            reason = f"diverges {outcome.why}, {advice}"
        say(f"1 run: {reason}")
    if outcome.verdict not in ("identical", "agrees"):
        raise typer.Exit(1)


def _document(replay: Replay) -> dict[str, object]:
    run = replay.run
    description = {"agent": run.agent, "env": run.env, "seed": run.seed, "horizon": run.horizon}
    return {**description, "verdict": replay.verdict, "elsewhere": list(replay.differences), "why": replay.why}


def _print_replays(replays: Sequence[Replay]) -> None:
    _print_table(replays)
    say(_count_verdicts((replay.verdict for replay in replays), "run"))


def _print_table(replays: Sequence[Replay]) -> None:
    header = ["agent", "environment", "seed", "verdict", "changed", "why"]
    rows = []
    for replay in replays:
        run = replay.run
        label = [run.agent, f"{run.env}, T={run.horizon}", str(run.seed)]
        rows.append([*label, replay.verdict, ", ".join(replay.differences), replay.why])
    print_table("", header, rows)


def _count_verdicts(verdicts: Iterable[str], noun: str) -> str:
    counts = Counter(verdicts)
    plural = "" if counts.total() == 1 else "s"
    # "1 differs", but "2 differ".
    tally = [f"{count} {verdict if count == 1 else verdict.removesuffix('s')}" for verdict, count in counts.items()]
    return f"{counts.total()} {noun}{plural}: {', '.join(tally)}"


@app.command("check-submission")
def check_submission(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that cbo-gym publish --submission wrote.")],
    card: Annotated[Path, typer.Option(metavar="CARD.yaml", help="Agent, suite, paper, code, contact and hardware.")],
    sample: Annotated[
        int, typer.Option(min=1, help="Smallest number of runs to play again; all are played again if that is cheap.")
    ] = 5,
    blind: Annotated[int, typer.Option(min=2, help="Number of seeds for blind play on each environment.")] = 3,
    allow: AllowOption = None,
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="STORE_FILE", help="Write accepted results to this file of a store: results/my-agent.parquet."
        ),
    ] = None,
) -> None:
    """Check results before they enter a store: the status is 1 if they are refused.

    Nothing in the file is trusted. It must have all environments of the suite, with the suite's rounds and seeds. Every
    number is recomputed from the actions. The agent, in a separate process, plays randomly chosen runs again. It also
    plays blind: on transformed systems, without knowing which system it faces or how it was transformed. An agent that
    is neither installed nor allowed stays unverified: its results are shown apart and never ranked.

    Example: [b]cbo-gym check-submission my-agent.parquet --card my-agent.yaml --allow my_package:MyAgent[/b]
    """
    from cbo_gym._util.progress import progress_bar
    from cbo_gym.referee.submission import check_submission as check_file
    from cbo_gym.referee.submission import enter

    with progress_bar() as progress:
        bar = progress.add_task("runs", total=None)
        outcome = check_file(
            file,
            card,
            sample,
            blind,
            allow=allow or (),
            on_start=lambda phase, count: progress.reset(bar, total=count, description=f"runs {phase}"),
            on_run=lambda _: progress.advance(bar),
        )
    if outcome.replays:
        _print_replays(outcome.replays)
    if outcome.blind:
        header = ["environment", "submitted", "blind", "Random, blind", "runs"]
        rows = [
            [result.env, *(f"{score:.2f}" for score in result.scores), f"{len(result.submitted)}, {len(result.runs)}"]
            for result in outcome.blind
        ]
        print_table("Mean scores of play", header, rows)
    for remark in outcome.remarks:
        say(remark)
    for problem in outcome.problems:
        say(printable(problem), "red")
    if outcome.standing == "refused":
        say(f"Problems: {len(outcome.problems)}. {shlex.quote(str(file))} cannot enter as it is.", soft_wrap=True)
        raise typer.Exit(1)
    note = ": it is shown apart and never ranked" if outcome.standing == "unverified" else ""
    say(f"{file} can enter, {outcome.standing}{note}.", soft_wrap=True)
    if into is not None:
        entered = enter(outcome, into)
        say(f"Runs in {entered.path}: {entered.added} added, {entered.replaced} replaced.", soft_wrap=True)
