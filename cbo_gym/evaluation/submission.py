"""Results of somebody else's: one file of published results and a card, checked before they enter the store."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from packaging.version import Version
from pydantic import Field, ValidationError

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.admission import admitted_agent
from cbo_gym.evaluation.leaderboard import env_label
from cbo_gym.evaluation.published import read_part
from cbo_gym.evaluation.replay import OPTIMUM_TOLERANCE, Replay, replays, sample_of
from cbo_gym.evaluation.results import Run
from cbo_gym.registry import entries, find_entry, is_custom
from cbo_gym.task import Mode
from cbo_gym.validation import StrictModel, field_errors
from cbo_gym.version import __version__
from cbo_gym.yaml_files import read_yaml

LEAST_SEEDS, WANTED_SEEDS = 5, 10
# where luck with the context, or with the adversary's moves, can earn more than what regret is against
AT_LEAST_ZERO: dict[str, str] = {Mode.CONTEXTUAL: "context_regret", Mode.ADVERSARIAL: "simple_regret"}
REGRET_TOLERANCE = 0.01  # of what lies between random play and the optimum: expected rewards are estimates
Text = Annotated[str, Field(min_length=1)]
Told = Literal["noise", "composition", "kernel", "signal_family", "signal_range", "components"]  # fields of tasks


class Card(StrictModel):
    """What a submission says of itself.

    Attributes:
        agent: its name, without parameters, as the runs have it.
        paper: that describes it, or where it is described.
        code: where its code is to be had.
        contact: of whoever submits.
        hardware: on which it was played.
        installed_by: how the agent is installed, so that it can be played here: ``pip install my-agent``.
        told: what it uses of the tasks beyond spaces, graph and initial data.
        parameters: how they were chosen: ``defaults``, or in a sentence.
    """

    agent: Text
    paper: Text
    code: Text
    contact: Text
    hardware: Text
    installed_by: str = ""
    told: list[Told] = []
    parameters: Text = "defaults"


@dataclass(frozen=True)
class Checked:
    """What was found.

    Attributes:
        card: as it was given.
        runs: of the file.
        problems: why it cannot enter; empty if it can.
        remarks: what a reader should know.
        replays: of the sample that was played again.
    """

    card: Card
    runs: tuple[Run, ...]
    problems: tuple[str, ...]
    remarks: tuple[str, ...]
    replays: tuple[Replay, ...]


def read_card(path: Path) -> Card:
    """The card of a YAML file.

    Raises:
        ArgumentError: if it cannot be read, a field is missing, or one is not known.
    """
    try:
        return Card.model_validate(read_yaml(path))
    except ValidationError as error:
        raise ArgumentError(f"{path} is no card of a submission: {field_errors(error, Card)}") from error
    except ArgumentError as error:
        raise ArgumentError(f"cannot read {path}: {error}") from error


def check_submission(
    path: Path,
    card: Path,
    sample: int = 5,
    seed: int = 0,
    *,
    allow: Collection[str] = (),
    on_start: Callable[[int], object] = lambda count: None,
    on_run: Callable[[Run], None] | None = None,
) -> Checked:
    """Check a file that ``cbo-gym publish`` made, and its card; play some of its runs again if the agent is installed.

    Args:
        path: of the file.
        card: of the card.
        sample: how many runs are played again, at random.
        seed: of their choice.
        allow: import paths of agents that may be played though they are not installed.
        on_start: called with the number of runs that are played again.
        on_run: called after each.

    Raises:
        ArgumentError: if the file or the card cannot be read, or has another schema.
    """
    said, runs = read_card(card), read_part(path)
    if not runs:
        raise ArgumentError(f"{path} has no runs")
    problems = [*_names(said, runs), *_versions(runs), *_environments(runs), *_seeds(runs), *_numbers(runs)]
    remarks = list(_remarks(runs))
    played: list[Replay] = []
    if reason := _not_played(runs, allow):
        remarks.append(f"no run was played again: {reason}")
    else:
        chosen = sample_of(runs, sample, seed)
        on_start(len(chosen))
        played = list(replays(chosen, allow=allow, on_run=on_run))
        problems += [
            f"played again, {_of(one.run)} {'differs' if one.verdict == 'differs' else 'could not be'}: {one.why}"
            for one in played
            if one.verdict in ("differs", "skipped")
        ]
    return Checked(said, tuple(runs), tuple(problems), tuple(remarks), tuple(played))


def _name(label: str) -> str:
    """Of an agent or an environment, without its parameters."""
    return label.partition("(")[0]


def _of(run: Run) -> str:
    return f"{run.agent} on {env_label(run)}, seed {run.seed}"


def _names(card: Card, runs: Sequence[Run]) -> Iterator[str]:
    if others := sorted({run.agent for run in runs if _name(run.agent) != card.agent}):
        yield f"the card is of {card.agent}, the file has runs of {', '.join(others)} too"


def _versions(runs: Sequence[Run]) -> Iterator[str]:
    for version in sorted({run.version for run in runs}):
        if Version(version) > Version(__version__):
            yield f"runs were played with cbo-gym {version}, which is newer than this one, {__version__}"


def _environments(runs: Sequence[Run]) -> Iterator[str]:
    """Ids that are registered; problems of somebody's own cannot be played by others."""
    known = [entry.id for entry in entries()]
    for label in sorted({run.env for run in runs}):
        name = _name(label)
        if is_custom(name):
            yield f"{label} is a system of your own, which others do not have"
        elif name not in known:
            family = name.rpartition("-v")[0]
            versions = [one for one in known if one.rpartition("-v")[0] == family]
            yield f"{name} is not registered" + (f"; there are {', '.join(versions)}" if versions else "")


def _seeds(runs: Sequence[Run]) -> Iterator[str]:
    """Counted from 0, each once, at least five, the same for all environments of a submission that finish."""
    seeds: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
    for run in runs:
        if run.status != "skipped":
            seeds[run.agent, env_label(run)][run.seed] += 1
    for (agent, env), counts in sorted(seeds.items()):
        if twice := sorted(seed for seed, count in counts.items() if count > 1):
            yield f"{agent} on {env}: the seeds {', '.join(map(str, twice))} are there more than once"
        if sorted(counts) != list(range(len(counts))):
            yield f"{agent} on {env}: seeds are counted from 0 without a gap; there are {_listed(counts)}"
        elif len(counts) < LEAST_SEEDS:
            yield f"{agent} on {env}: at least {LEAST_SEEDS} seeds are needed; there are {len(counts)}"


def _listed(counts: Counter[int]) -> str:
    return ", ".join(str(seed) for seed in sorted(counts))


def _numbers(runs: Sequence[Run]) -> Iterator[str]:
    """The optima are ours, and nothing is better than them."""
    for run in runs:
        if run.status != "finished":
            continue
        gap = run.optimum - run.random_value
        entry = find_entry(run.env)  # of one with keywords none is on record
        if not gap > 0:
            yield f"{_of(run)}: the optimum {run.optimum} is not above the random value {run.random_value}"
            continue
        if entry and entry.optimum and abs(entry.optimum.value - run.optimum) > OPTIMUM_TOLERANCE * gap:
            yield f"{_of(run)}: the optimum is {run.optimum:.6g}; on record is {entry.optimum.value:.6g}"
        column = AT_LEAST_ZERO.get(run.mode, "instant_regret")
        asked = run.table[column].drop_nulls() if column == "simple_regret" else run.table[column]
        regrets = asked.to_numpy()
        if not (regrets >= -REGRET_TOLERANCE * gap).all():
            yield f"{_of(run)}: a regret of {regrets.min():.3g} is below 0, which nothing can earn"


def _remarks(runs: Sequence[Run]) -> Iterator[str]:
    counts = Counter(run.status for run in runs)
    yield ", ".join(f"{counts[status]} {status}" for status in ("finished", "failed", "skipped")) + " runs"
    seeds = len({run.seed for run in runs if run.status == "finished"})
    if seeds < WANTED_SEEDS:
        yield f"{seeds} seeds; {WANTED_SEEDS} are wished for where a run takes less than a minute"
    newest = {one.id.rpartition("-v")[0]: one.id for one in sorted(entries(), key=lambda one: _number(one.id))}
    for name in sorted({_name(run.env) for run in runs}):
        if (best := newest.get(name.rpartition("-v")[0])) and best != name:
            yield f"{name} is an older version; {best} is there"
    if machines := sorted({run.machine for run in runs if run.machine}):
        yield f"played on {'; '.join(machines)}"


def _number(name: str) -> int:
    return int(name.rpartition("-v")[2])


def _not_played(runs: Sequence[Run], allow: Collection[str]) -> str:
    """Why nothing can be played again; empty if it can."""
    if not any(run.status == "finished" for run in runs):
        return "none has finished"
    try:
        for agent in sorted({run.agent for run in runs}):
            admitted_agent(agent, allow)
        return ""
    except ArgumentError as error:
        return str(error)
