"""The runs that a sweep would play, and how long its agents would take, as far as finished runs tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.play.sweep import Job
from cbo_gym.evaluation.runs.folder import load_runs, stored_run
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.store.published import load_published
from cbo_gym.labels import Spec

Recorded = dict[str, dict[str, list[float]]]  # agent -> environment -> seconds a round of its runs
SAME = "same environment"
OTHER = "other environments"
PUBLISHED = ", published"  # stands behind either


@dataclass(frozen=True)
class Planned:
    """The runs of an agent on an environment.

    Attributes:
        agent, env: labels.
        horizon: number of rounds.
        plays: whether the agent plays the environment's feedback mode; if not, its runs would be listed as skipped.
        there: runs that are stored already and would not be played again.
        to_play: the others.
        seconds: what one run would take of the agent's own time; None where nothing tells.
        source: what runs of the agent this is taken from: :data:`SAME`, :data:`OTHER`, either of them
            :data:`PUBLISHED`, or nothing.
    """

    agent: str
    env: str
    horizon: int
    plays: bool
    there: int
    to_play: int
    seconds: float | None
    source: str

    @property
    def runs(self) -> int:
        return self.there + self.to_play


@dataclass(frozen=True)
class Forecast:
    """The runs of a sweep by agent and environment."""

    pairs: tuple[Planned, ...]

    @property
    def unknown(self) -> int:
        """Number of runs to play of whose time nothing is known."""
        return sum(pair.to_play for pair in self.pairs if pair.plays and pair.seconds is None)

    @property
    def seconds(self) -> float:
        """The agents' own time in all other runs to play."""
        return sum(pair.to_play * (pair.seconds or 0.0) for pair in self.pairs)

    def seconds_with(self, processes: int) -> float:
        """The same with so many processes at a time: at least what the longest run takes."""
        longest = max((pair.seconds or 0.0 for pair in self.pairs if pair.to_play), default=0.0)
        return max(longest, self.seconds / processes)


def forecast(jobs: Sequence[Job], store: Path | None = None) -> Forecast:
    """Say of a grid, as :func:`cbo_gym.evaluation.play.sweep.plan` makes it, what would be played, and guess the time.

    The guess is the mean time of a round in the finished runs of the grid's folder, of the agent with the same
    parameters: on the same environment if there are any, else on all others. Of an agent that has none there, the runs
    of ``store``, published results, tell the same. Rounds of methods whose models grow take longer in longer runs.
    Nothing is written.
    """
    folders = {job.folder for job in jobs if job.folder.is_dir()}
    places = [_recorded(run for folder in folders for run in load_runs(folder))]
    places += [_recorded(load_published(store))] if store is not None else []
    pairs: dict[tuple[Spec, Spec], list[Job]] = {}
    for job in jobs:
        pairs.setdefault((job.agent, job.env), []).append(job)
    return Forecast(tuple(_planned(group, places) for group in pairs.values()))


def _recorded(runs: Iterable[Run]) -> Recorded:
    found: Recorded = {}
    for run in runs:
        if run.status == "finished":
            found.setdefault(run.agent, {}).setdefault(run.env, []).append(run.seconds_a_round)
    return found


def _known(agent: str, env: str, places: Sequence[Recorded]) -> tuple[list[float], str]:
    """The seconds of rounds that tell most, and where they are from: the first place is the folder, then a store."""
    for recorded, where in zip(places, ("", PUBLISHED), strict=False):
        by_env = recorded.get(agent, {})
        if env in by_env:
            return by_env[env], f"{SAME}{where}"
        if by_env:
            return [seconds for times in by_env.values() for seconds in times], f"{OTHER}{where}"
    return [], ""


def _planned(jobs: list[Job], places: Sequence[Recorded]) -> Planned:
    """The jobs of one agent on one environment."""
    first = jobs[0]
    there = sum(_is_there(job) for job in jobs)
    known, source = _known(str(first.agent), str(first.env), places)
    return Planned(
        agent=str(first.agent),
        env=str(first.env),
        horizon=first.horizon,
        plays=not first.modes or first.mode in first.modes,
        there=there,
        to_play=len(jobs) - there,
        seconds=float(np.mean(known)) * first.horizon if known else None,
        source=source,
    )


def _is_there(job: Job) -> bool:
    """Whether a sweep would keep the run that is stored, if one is."""
    if not job.path.exists():
        return False
    try:
        run: Run = stored_run(job.path)
    except ArgumentError:  # damaged: it would be set aside
        return False
    return run.status != "failed"
