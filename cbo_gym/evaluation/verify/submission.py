"""Results of somebody else's: one file of published results and a card, judged before they enter the store.

A referee takes nothing on trust. What the actions in the file earn is worked out anew, for every run and column; the
agent plays runs of the file again, in isolation; and it plays blind, where it can tell neither the system nor how it is
turned. What cannot be played again stays *unverified*: shown apart and never ranked.
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

from cbo_gym.agents.zoo import zoo
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.play.processes import DiedError, Limits, Worker
from cbo_gym.evaluation.runs.results import Run, last_line
from cbo_gym.evaluation.runs.suite_runs import described, differences
from cbo_gym.evaluation.store.codec import read_part
from cbo_gym.evaluation.store.published import Published, put
from cbo_gym.evaluation.verify.admission import admitted_agent, admitted_env
from cbo_gym.evaluation.verify.referee import Blind, blind_scores, drops, gains, replayed, rescored
from cbo_gym.evaluation.verify.replay import Replay
from cbo_gym.labels import bare_name
from cbo_gym.registry import entries
from cbo_gym.suites import load
from cbo_gym.validation import StrictModel, field_errors
from cbo_gym.version import __version__
from cbo_gym.yaml_files import read_yaml

Text = Annotated[str, Field(min_length=1)]
Told = Literal["noise", "composition", "kernel", "signal_family", "signal_range", "components"]  # fields of tasks
Standing = Literal["refused", "unverified", "verified"]
# Limits of reading a file.
READING = Limits(time_limit=300, memory_limit=2048)
MOST_AHEAD = timedelta(days=1)  # of a clock that is wrong


class Card(StrictModel):
    """A submission's card: who sends it, and what their agent is told.

    Attributes:
        agent: its name, without parameters, as the runs have it.
        suite: of the package, that was played: with its environments, its number of rounds and its seeds.
        paper: that describes it, or where it is described.
        code: where its code is to be had.
        contact: of whoever submits.
        hardware: on which it was played.
        installed_by: how the agent is installed, so that it can be played here: ``pip install my-agent``.
        told: what it uses of the tasks beyond spaces, graph and initial data.
        parameters: how they were chosen: ``defaults``, or in a sentence.
    """

    agent: Text
    suite: Text
    paper: Text
    code: Text
    contact: Text
    hardware: Text
    installed_by: str = ""
    told: list[Told] = []
    parameters: Text = "defaults"


@dataclass(frozen=True)
class Checked:
    """The findings.

    Attributes:
        card: as it was given.
        runs: of the file.
        problems: why it cannot enter; empty if it can.
        remarks: what a reader should know.
        replays: of the runs that were played again.
        blind: how it played blind, an environment each.
    """

    card: Card
    runs: tuple[Run, ...]
    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    replays: tuple[Replay, ...]
    blind: tuple[Blind, ...] = ()

    @property
    def standing(self) -> Standing:
        """Whether it is refused, or may enter: verified, or unverified."""
        if self.problems:
            return "refused"
        return "verified" if self.replays else "unverified"


def read_card(path: Path) -> Card:
    """The card of a YAML file.

    Raises:
        ArgumentError: if it cannot be read, a field is missing, or one is not known.
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
    on_start: Callable[[str, int], object] = lambda what, count: None,
    on_run: Callable[[Run], None] | None = None,
) -> Checked:
    """Judge a file that ``cbo-gym publish --submission`` made, and its card.

    No text of the file is carried out, see :mod:`cbo_gym.evaluation.verify.admission`. All play is in processes of
    their own, with limits of time and memory; which runs are played again, and how blind play is turned, nobody can
    know before.

    Args:
        path: of the file.
        card: of the card.
        sample: how many runs are played again at least; all where that is cheap.
        blind: with how many seeds each environment is played blind.
        allow: import paths of agents that may be played though they are not installed.
        on_start: called before each stage with its name and the number of runs in it.
        on_run: called after each run.

    Raises:
        ArgumentError: if the file or the card cannot be read, or has another schema.
    """
    said, runs = read_card(card), _read(path)
    if not runs:
        raise ArgumentError(f"{path} has no runs")
    problems = [*_names(said, runs), *_versions(runs), *_times(runs), *_environments(runs), *_isolation(runs)]
    problems += _suite(said, runs)
    remarks = list(_remarks(runs))
    finished = [run for run in runs if run.status == "finished"]
    if problems or not finished:  # what comes next takes time, and is of what could enter
        return Checked(
            said, tuple(runs), (*problems, *([] if finished else ["no run has finished"])), tuple(remarks), ()
        )
    on_start("worked out anew", len(finished))
    problems += [f"{described(run)}: {what}" for run, found in rescored(finished, on_run=on_run) for what in found]
    if reason := _not_played(runs, allow):
        remarks.append(f"nothing was played again, so it is unverified: {reason}")
        return Checked(said, tuple(runs), tuple(problems), tuple(remarks), ())
    played = list(replayed(runs, sample, allow, on_start=on_start, on_run=on_run))
    problems += [f"played again, {described(one.run)} {_fate(one)}: {one.why}" for one in played if _fate(one)]
    problems += gains(played)
    remarks += _speed(played)
    scores, unplayable = blind_scores(finished, blind, allow, on_start=on_start, on_run=on_run)
    problems += drops(scores)
    remarks += unplayable
    return Checked(said, tuple(runs), tuple(problems), tuple(remarks), tuple(played), tuple(scores))


def _read(path: Path) -> list[Run]:
    """Read the runs of a file here only if a process with limits can, because a small file may fill the memory."""
    worker = Worker(READING)
    try:
        refusal = worker.call(_refusal, path)
    except DiedError as error:
        raise ArgumentError(f"{path} is not read: {last_line(str(error))}") from error
    finally:
        worker.close()
    if refusal:
        raise ArgumentError(refusal)
    return read_part(path)


def _refusal(path: Path) -> str:
    """Return why a file cannot be read, or nothing."""
    try:
        read_part(path)
    except ArgumentError as error:
        return str(error)
    return ""


def enter(checked: Checked, path: Path) -> Published:
    """Put what was checked into a file of a store: verified with its blind runs, or marked as unverified.

    Raises:
        ArgumentError: if it was refused.
    """
    if checked.standing == "refused":
        raise ArgumentError(f"what was refused cannot enter: {checked.problems[0]}")
    unverified = checked.standing == "unverified"
    runs = [replace(run, unverified=unverified, actions="", recommendations="") for run in checked.runs]
    return put(path, [*runs, *(run for one in checked.blind for run in (*one.runs, *one.at_random))])


def _fate(one: Replay) -> str:
    return {"differs": "differs", "skipped": "could not be"}.get(one.verdict, "")


def _names(card: Card, runs: Sequence[Run]) -> Iterator[str]:
    if others := sorted({run.agent for run in runs if bare_name(run.agent) != card.agent}):
        yield f"the card is of {card.agent}, the file has runs of {', '.join(others)} too"


def _versions(runs: Sequence[Run]) -> Iterator[str]:
    for version in sorted({run.version for run in runs}):
        if Version(version) > Version(__version__):
            yield f"runs were played with cbo-gym {version}, which is newer than this one, {__version__}"


def _times(runs: Sequence[Run]) -> Iterator[str]:
    """Dates and seconds that cannot be."""
    now = datetime.now(UTC)
    for run in runs:
        if run.date and datetime.fromisoformat(run.date) > now + MOST_AHEAD:
            yield f"{described(run)}: it is said to have ended at {run.date}, which is yet to come"
        if run.status == "finished" and not (run.seconds >= 0.0).all():
            yield f"{described(run)}: the seconds of some rounds are negative or missing"


def _speed(played: Sequence[Replay]) -> Iterator[str]:
    """Nobody can work out seconds of another machine; beside what the agent takes here they can be judged."""
    here = [one for one in played if one.run.status == "finished" and not math.isnan(one.seconds)]
    if here:
        told, found = median(one.run.seconds_a_round for one in here), median(one.seconds for one in here)
        yield f"a round takes its agent {told:.3g} s as told and {found:.3g} s here (medians of {len(here)} runs)"


def _environments(runs: Sequence[Run]) -> Iterator[str]:
    """Those that may be played here; problems of somebody's own cannot be played by others."""
    for label in sorted({run.env for run in runs}):
        try:
            admitted_env(label)
        except ArgumentError as error:
            yield str(error)


def _isolation(runs: Sequence[Run]) -> Iterator[str]:
    """Played as somebody else's agents are: apart from the environment, and told which it is."""
    for run in runs:
        if run.status == "finished" and not run.isolated and bare_name(run.agent) not in zoo():
            yield f"{described(run)}: the agent was not isolated; play by cbo-gym sweep, by an import path or a package"
        if run.secret:
            yield f"{described(run)} was blind; whoever checks plays blind, and nobody else's counts"


def _suite(card: Card, runs: Sequence[Run]) -> Iterator[str]:
    """All environments of the suite, with its number of rounds and its seeds."""
    try:
        suite = load(card.suite)
    except ArgumentError as error:
        yield f"the card names no suite of this package: {error}"
        return
    yield from differences(suite, runs)


def _remarks(runs: Sequence[Run]) -> Iterator[str]:
    counts = Counter(run.status for run in runs)
    yield ", ".join(f"{counts[status]} {status}" for status in ("finished", "failed", "skipped")) + " runs"
    newest = {one.id.rpartition("-v")[0]: one.id for one in sorted(entries(), key=lambda one: _number(one.id))}
    for name in sorted({bare_name(run.env) for run in runs}):
        if (best := newest.get(name.rpartition("-v")[0])) and best != name:
            yield f"{name} is an older version; {best} is there"
    if machines := sorted({run.machine for run in runs if run.machine}):
        yield f"played on {'; '.join(machines)}"


def _number(name: str) -> int:
    return int(name.rpartition("-v")[2])


def _not_played(runs: Sequence[Run], allow: Collection[str]) -> str:
    """Why nothing can be played again; empty if it can."""
    try:
        for agent in sorted({run.agent for run in runs}):
            admitted_agent(agent, allow)
        return ""
    except ArgumentError as error:
        return str(error)
