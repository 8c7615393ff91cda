"""Submissions to the leaderboard: a file of runs and a card of the agent, checked before they enter a store.

Nothing in the file is trusted. Every column of every run is recomputed from the run's actions. The agent plays runs of
the file again in a separate process, and it plays *blind*, on secret instances of the environments; see
:mod:`cbo_gym.referee.referee`. Runs that cannot be played again stay *unverified*: shown apart and never ranked.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Annotated, Literal

from packaging.version import Version
from pydantic import Field, ValidationError

from cbo_gym._util.processes.channel import DiedError
from cbo_gym._util.processes.worker import Limits, RaisedError, Worker
from cbo_gym._util.validation import StrictModel, field_errors
from cbo_gym._util.yaml import read_yaml
from cbo_gym.agent_registry.admission import admit_agent
from cbo_gym.agent_registry.labels import bare_name
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.envs.registry import entries
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.runs.results import Run, last_line
from cbo_gym.evaluation.runs.suite_runs import describe_differences, describe_run
from cbo_gym.evaluation.store.codec import read_store_file
from cbo_gym.evaluation.store.published import Published, put
from cbo_gym.evaluation.suites import load
from cbo_gym.referee.admission import admit_env
from cbo_gym.referee.referee import BlindPlay, blind_scores, describe_drops, describe_gains, replay_sample, rescore_runs
from cbo_gym.referee.replay import Replay
from cbo_gym.version import __version__

NonEmpty = Annotated[str, Field(min_length=1)]
# Fields of a task that say more about the system than its spaces, graph and initial data.
TaskField = Literal["noise", "composition", "kernel", "signal_family", "signal_range", "components"]
Standing = Literal["refused", "unverified", "verified"]
# Limits of the process that reads a file first.
READING_LIMITS = Limits(time_limit=300, memory_limit=2048)
# How far a date may be in the future, because clocks are wrong.
MAX_AHEAD = timedelta(days=1)


class Card(StrictModel):
    """Card of a submission: its agent, its submitter, and the fields of the tasks that the agent uses.

    Attributes:
        agent: Name of the agent without parameters, as in the runs.
        suite: Suite of the package that was played, with its environments, number of rounds and seeds.
        paper: Paper or page that describes the agent.
        code: Address of its code.
        contact: Address of the submitter.
        hardware: Hardware on which the agent was played.
        installed_by: Command that installs the agent, so that it can be played again: ``pip install my-agent``.
        knows: Fields of the tasks that the agent uses in addition to spaces, graph and initial data.
        parameters: How the agent's parameters were chosen: ``defaults``, or a sentence.
    """

    agent: NonEmpty
    suite: NonEmpty
    paper: NonEmpty
    code: NonEmpty
    contact: NonEmpty
    hardware: NonEmpty
    installed_by: str = ""
    knows: list[TaskField] = []
    parameters: NonEmpty = "defaults"


@dataclass(frozen=True)
class CheckResult:
    """Outcome of :func:`check_submission`.

    Attributes:
        card: Card of the submission.
        runs: Runs of the file.
        problems: Reasons to refuse the submission; empty if it can enter.
        remarks: Notes for the reader.
        replays: Outcomes of the runs that were played again.
        blind: Outcomes of blind play, one for each environment.
    """

    card: Card
    runs: tuple[Run, ...]
    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    replays: tuple[Replay, ...] = ()
    blind: tuple[BlindPlay, ...] = ()

    @property
    def standing(self) -> Standing:
        """Whether the submission is refused, or can enter a store as verified or unverified."""
        if self.problems:
            return "refused"
        return "verified" if self.replays else "unverified"


def read_card(path: Path) -> Card:
    """Read a card from a YAML file; raise ArgumentError if it cannot be read, or a field is missing or unknown."""
    try:
        return Card.model_validate(read_yaml(path))
    except ValidationError as error:
        raise ArgumentError(f"{path} is not a card of a submission: {field_errors(error, Card)}") from error
    except ArgumentError as error:
        raise ArgumentError(f"cannot read {path}: {error}") from error


def check_submission(
    path: Path,
    card: Path,
    sample: int = 5,
    blind: int = 3,
    *,
    allow: Collection[str] = (),
    on_start: Callable[[str, int], object] = lambda stage, count: None,
    on_run: Callable[[Run], None] | None = None,
) -> CheckResult:
    """Check a file of ``cbo-gym publish --submission`` and its card.

    No label of the file is run as code, see :mod:`cbo_gym.referee.admission`. All play is in other processes,
    with limits of time and memory. The runs that are played again and the instances of blind play are unpredictable.

    Args:
        path: Path of the file.
        card: Path of the card.
        sample: Smallest number of finished runs to play again; all are played again if that is cheap.
        blind: Number of seeds of blind play on each environment.
        allow: Import paths of agents that may be played although they are not installed.
        on_start: Called before each stage with the name of the stage and the number of runs.
        on_run: Called after each run.

    Raises:
        ArgumentError: if the file or the card cannot be read, or has another schema.
    """
    submitted_card, runs = read_card(card), _read(path)
    if not runs:
        raise ArgumentError(f"{path} has no runs")
    problems, remarks = list(_problems(submitted_card, runs)), list(_remarks(runs))
    finished = [run for run in runs if run.status == "finished"]
    if not finished:
        problems.append("no run has finished")
    # The other checks take time.
    if problems:
        return CheckResult(submitted_card, tuple(runs), tuple(problems), tuple(remarks))
    on_start("recomputed", len(finished))
    problems += [
        f"{describe_run(run)}: {message}" for run, faults in rescore_runs(finished, on_run=on_run) for message in faults
    ]
    try:
        for agent in sorted({run.agent for run in runs}):
            admit_agent(agent, allow)
    except ArgumentError as error:
        remarks.append(f"nothing was played again, so it is unverified: {error}")
        return CheckResult(submitted_card, tuple(runs), tuple(problems), tuple(remarks))
    replays = list(replay_sample(runs, sample, allow, on_start=on_start, on_run=on_run))
    failures = {"differs": "differs", "skipped": "could not be"}
    problems += [
        f"played again, {describe_run(replay.run)} {failures[replay.verdict]}: {replay.why}"
        for replay in replays
        if replay.verdict in failures
    ]
    problems += describe_gains(replays)
    if timed := [replay for replay in replays if replay.run.status == "finished" and not math.isnan(replay.seconds)]:
        before, now = median(replay.run.seconds_a_round for replay in timed), median(replay.seconds for replay in timed)
        remarks.append(
            f"a round takes its agent {before:.3g} s as submitted and {now:.3g} s here (medians of {len(timed)} runs)"
        )
    blind_plays, unplayable = blind_scores(finished, blind, allow, on_start=on_start, on_run=on_run)
    problems += describe_drops(blind_plays)
    return CheckResult(
        submitted_card, tuple(runs), tuple(problems), (*remarks, *unplayable), tuple(replays), tuple(blind_plays)
    )


def _read(path: Path) -> list[Run]:
    """Read the runs of a file; first in a process with limits, because a small file may expand to fill the memory."""
    worker = Worker(READING_LIMITS)
    try:
        worker.call(_count_runs, path)
    except RaisedError as error:
        raise ArgumentError(error.message) from error
    except DiedError as error:
        raise ArgumentError(f"{path} is not read: {last_line(str(error))}") from error
    finally:
        worker.close()
    return read_store_file(path)


def _count_runs(path: Path) -> int:
    return len(read_store_file(path))


def enter(checked: CheckResult, path: Path) -> Published:
    """Put a submission into a file, with its blind runs or as unverified; raise ArgumentError if it is refused."""
    if checked.standing == "refused":
        raise ArgumentError(f"a refused submission cannot enter: {checked.problems[0]}")
    unverified = checked.standing == "unverified"
    runs = [replace(run, unverified=unverified, actions="", recommendations="") for run in checked.runs]
    blind_runs = [run for blind in checked.blind for run in (*blind.runs, *blind.at_random)]
    return put(path, [*runs, *blind_runs])


def _problems(card: Card, runs: Sequence[Run]) -> Iterator[str]:
    """Yield the reasons to refuse a submission that are visible without playing."""
    if others := sorted({run.agent for run in runs if bare_name(run.agent) != card.agent}):
        yield f"the card is of {card.agent}, the file has runs of {', '.join(others)} too"
    for version in sorted({run.version for run in runs}):
        if Version(version) > Version(__version__):
            yield f"runs were played with cbo-gym {version}, which is newer than this one, {__version__}"
    latest = datetime.now(UTC) + MAX_AHEAD
    for run in runs:
        if run.date and datetime.fromisoformat(run.date) > latest:
            yield f"{describe_run(run)}: its date {run.date} is in the future"
        if run.status == "finished" and not (run.seconds >= 0.0).all():
            yield f"{describe_run(run)}: the seconds of some rounds are negative or missing"
        if run.status == "finished" and not run.isolated and bare_name(run.agent) not in zoo():
            yield (
                f"{describe_run(run)}: the agent was not isolated; play by cbo-gym sweep, by an import path or a "
                "package"
            )
        if run.secret:
            yield f"{describe_run(run)} was blind; only the referee's own blind runs count"
    for label in sorted({run.env for run in runs}):
        try:
            admit_env(label)
        except ArgumentError as error:
            yield str(error)
    try:
        suite = load(card.suite)
    except ArgumentError as error:
        yield f"the card names no suite of this package: {error}"
    else:
        yield from describe_differences(suite, runs)


def _remarks(runs: Sequence[Run]) -> Iterator[str]:
    counts = Counter(run.status for run in runs)
    yield ", ".join(f"{counts[status]} {status}" for status in ("finished", "failed", "skipped")) + " runs"
    by_version = sorted((entry.id for entry in entries()), key=lambda name: int(name.rpartition("-v")[2]))
    newest = {name.rpartition("-v")[0]: name for name in by_version}
    for name in sorted({bare_name(run.env) for run in runs}):
        newest_name = newest.get(name.rpartition("-v")[0], name)
        if newest_name != name:
            yield f"{name} is an older version of {newest_name}"
    if machines := sorted({run.machine for run in runs if run.machine}):
        yield f"played on {'; '.join(machines)}"
