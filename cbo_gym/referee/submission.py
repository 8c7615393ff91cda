"""Submissions: a file of published results and a card, checked before they enter a store.

The referee trusts nothing in the file. It recomputes every column of every run from the actions; the agent plays runs
of the file again, in isolation; and it plays blind, without knowing the system or its transformation. Runs that cannot
be played again stay *unverified*: shown apart and never ranked.
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
from cbo_gym.evaluation.runs.suite_runs import describe_run, differences
from cbo_gym.evaluation.store.codec import read_store_file
from cbo_gym.evaluation.store.published import Published, put
from cbo_gym.evaluation.suites import load
from cbo_gym.referee.admission import admit_env
from cbo_gym.referee.referee import BlindPlay, blind_scores, drops, gains, replay_sample, rescore_runs
from cbo_gym.referee.replay import Replay
from cbo_gym.version import __version__

NonEmpty = Annotated[str, Field(min_length=1)]
# Fields of tasks.
TaskField = Literal["noise", "composition", "kernel", "signal_family", "signal_range", "components"]
Standing = Literal["refused", "unverified", "verified"]
# Limits of reading a file.
READING = Limits(time_limit=300, memory_limit=2048)
# Tolerance for wrong clocks.
MAX_AHEAD = timedelta(days=1)


class Card(StrictModel):
    """Card of a submission: its agent, its submitter, and the fields of the tasks that the agent uses.

    Attributes:
        agent: Name of the agent without parameters, as in the runs.
        suite: Suite of the package that was played, with its environments, number of rounds and seeds.
        paper: Paper or page that describes the agent.
        code: Address of its code.
        contact: Address of the submitter.
        hardware: Hardware on which it was played.
        installed_by: Command that installs the agent, so that it can be played again: ``pip install my-agent``.
        knows: Fields of the tasks that it uses in addition to spaces, graph and initial data.
        parameters: Origin of its parameters: ``defaults``, or a sentence.
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
        blind: Outcomes of blind play, for each environment.
    """

    card: Card
    runs: tuple[Run, ...]
    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    replays: tuple[Replay, ...]
    blind: tuple[BlindPlay, ...] = ()

    @property
    def standing(self) -> Standing:
        """Whether it is refused, or can enter as verified or unverified."""
        if self.problems:
            return "refused"
        return "verified" if self.replays else "unverified"


def read_card(path: Path) -> Card:
    """Read a card from a YAML file.

    Raises:
        ArgumentError: if the file cannot be read, or a field is missing or unknown.
    """
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
        sample: Smallest number of runs to play again; all are if that is cheap.
        blind: Number of seeds of blind play on each environment.
        allow: Import paths of agents that may be played although they are not installed.
        on_start: Called before each stage with its name and its number of runs.
        on_run: Called after each run.

    Raises:
        ArgumentError: if the file or the card cannot be read, or has another schema.
    """
    contents, runs = read_card(card), _read(path)
    if not runs:
        raise ArgumentError(f"{path} has no runs")
    problems, remarks = list(_problems(contents, runs)), list(_remarks(runs))
    finished = [run for run in runs if run.status == "finished"]
    if not finished:
        problems.append("no run has finished")
    # The other checks take time.
    if problems:
        return CheckResult(contents, tuple(runs), tuple(problems), tuple(remarks), ())
    on_start("recomputed", len(finished))
    problems += [
        f"{describe_run(run)}: {message}" for run, faults in rescore_runs(finished, on_run=on_run) for message in faults
    ]
    try:
        for agent in sorted({run.agent for run in runs}):
            admit_agent(agent, allow)
    except ArgumentError as error:
        remarks.append(f"nothing was played again, so it is unverified: {error}")
        return CheckResult(contents, tuple(runs), tuple(problems), tuple(remarks), ())
    replays = list(replay_sample(runs, sample, allow, on_start=on_start, on_run=on_run))
    outcomes = {"differs": "differs", "skipped": "could not be"}
    problems += [
        f"played again, {describe_run(replay.run)} {outcomes[replay.verdict]}: {replay.why}"
        for replay in replays
        if replay.verdict in outcomes
    ]
    problems += gains(replays)
    if timed := [replay for replay in replays if replay.run.status == "finished" and not math.isnan(replay.seconds)]:
        before, now = median(replay.run.seconds_a_round for replay in timed), median(replay.seconds for replay in timed)
        remarks.append(
            f"a round takes its agent {before:.3g} s as submitted and {now:.3g} s here (medians of {len(timed)} runs)"
        )
    scores, unplayable = blind_scores(finished, blind, allow, on_start=on_start, on_run=on_run)
    problems += drops(scores)
    return CheckResult(contents, tuple(runs), tuple(problems), (*remarks, *unplayable), tuple(replays), tuple(scores))


def _read(path: Path) -> list[Run]:
    """Read the runs of a file, first in a process with limits, because a small file may fill the memory."""
    worker = Worker(READING)
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
    """Put a checked submission into a file of a store: verified with its blind runs, or marked as unverified.

    Raises:
        ArgumentError: if it was refused.
    """
    if checked.standing == "refused":
        raise ArgumentError(f"a refused submission cannot enter: {checked.problems[0]}")
    unverified = checked.standing == "unverified"
    runs = [replace(run, unverified=unverified, actions="", recommendations="") for run in checked.runs]
    return put(path, [*runs, *(run for blind in checked.blind for run in (*blind.runs, *blind.at_random))])


def _problems(card: Card, runs: Sequence[Run]) -> Iterator[str]:
    """Yield the faults in the descriptions of the runs."""
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
        yield from differences(suite, runs)


def _remarks(runs: Sequence[Run]) -> Iterator[str]:
    counts = Counter(run.status for run in runs)
    yield ", ".join(f"{counts[status]} {status}" for status in ("finished", "failed", "skipped")) + " runs"
    in_order = sorted((entry.id for entry in entries()), key=lambda name: int(name.rpartition("-v")[2]))
    newest = {name.rpartition("-v")[0]: name for name in in_order}
    for name in sorted({bare_name(run.env) for run in runs}):
        if (best := newest.get(name.rpartition("-v")[0])) and best != name:
            yield f"{name} is an older version of {best}"
    if machines := sorted({run.machine for run in runs if run.machine}):
        yield f"played on {'; '.join(machines)}"
