"""Forecasts of a sweep: the runs that it would play, and the time of its agents, estimated from finished runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.play.sweep import Job
from cbo_gym.evaluation.runs.folder import load_runs, stored_run
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.store.published import load_published

# Agent -> environment -> seconds of a round in its runs.
Seconds = dict[str, dict[str, list[float]]]
SAME = "same environment"
OTHER = "other environments"
# Suffix of either source if its runs are published.
PUBLISHED = ", published"


@dataclass(frozen=True)
class PlannedRuns:
    """The runs of an agent on an environment.

    Attributes:
        agent, env: Labels.
        horizon: Number of rounds.
        plays: Whether the agent plays the environment's feedback mode; otherwise its runs would be stored as skipped.
        stored: Number of runs that are already stored and would not be played again.
        to_play: Number of the other runs.
        seconds: Estimated time of the agent in each run; None if unknown.
        source: Runs from which the time is estimated: :data:`SAME` or :data:`OTHER`, with :data:`PUBLISHED` if
            published; empty if unknown.
    """

    agent: str
    env: str
    horizon: int
    plays: bool
    stored: int
    to_play: int
    seconds: float | None
    source: str

    @property
    def runs(self) -> int:
        """Number of all runs."""
        return self.stored + self.to_play


@dataclass(frozen=True)
class Forecast:
    """The runs of a sweep by agent and environment."""

    pairs: tuple[PlannedRuns, ...]

    @property
    def unknown(self) -> int:
        """Number of runs to play whose time is unknown."""
        return sum(pair.to_play for pair in self.pairs if pair.plays and pair.seconds is None)

    @property
    def seconds(self) -> float:
        """The agents' time in all other runs to play."""
        return sum(pair.to_play * (pair.seconds or 0.0) for pair in self.pairs)

    def seconds_with(self, processes: int) -> float:
        """Return the time with this number of parallel processes, at least the time of the longest run."""
        longest = max((pair.seconds or 0.0 for pair in self.pairs if pair.to_play), default=0.0)
        return max(longest, self.seconds / processes)


def forecast(jobs: Sequence[Job], store: Path | None = None) -> Forecast:
    """Forecast the jobs of :func:`cbo_gym.evaluation.play.sweep.plan`; nothing is written.

    The estimate is the mean time of a round in finished runs of the agent with the same parameters: on the same
    environment if there are any, else on all others; in the grid's folder if there are any, else in ``store``,
    published results. Rounds of methods whose models grow take longer in longer runs.
    """
    folders = {job.folder for job in jobs if job.folder.is_dir()}
    sources = [("", _seconds(run for folder in folders for run in load_runs(folder)))]
    sources += [(PUBLISHED, _seconds(load_published(store)))] if store is not None else []
    pairs: dict[tuple[Spec, Spec], list[Job]] = {}
    for job in jobs:
        pairs.setdefault((job.agent, job.cell.env), []).append(job)
    return Forecast(tuple(_plan_runs(group, sources) for group in pairs.values()))


def _seconds(runs: Iterable[Run]) -> Seconds:
    seconds: Seconds = {}
    for run in runs:
        if run.status == "finished":
            seconds.setdefault(run.agent, {}).setdefault(run.env, []).append(run.seconds_a_round)
    return seconds


def _plan_runs(jobs: list[Job], sources: Sequence[tuple[str, Seconds]]) -> PlannedRuns:
    """Plan the jobs of one agent on one environment."""
    cell, modes = jobs[0].cell, jobs[0].player.modes
    agent, env = str(jobs[0].agent), str(cell.env)
    stored = sum(_is_stored(job) for job in jobs)
    seconds: list[float] = []
    source = ""
    for where, recorded in sources:
        if by_env := recorded.get(agent):
            seconds = by_env.get(env) or [second for rounds in by_env.values() for second in rounds]
            source = f"{SAME if env in by_env else OTHER}{where}"
            break
    return PlannedRuns(
        agent=agent,
        env=env,
        horizon=cell.horizon,
        plays=not modes or cell.mode in modes,
        stored=stored,
        to_play=len(jobs) - stored,
        seconds=float(np.mean(seconds)) * cell.horizon if seconds else None,
        source=source,
    )


def _is_stored(job: Job) -> bool:
    """Return whether a sweep would keep the stored run, if there is one."""
    try:
        return job.path.exists() and stored_run(job.path).status != "failed"
    # A damaged file would be moved aside.
    except ArgumentError:
        return False
