"""Forecast a sweep: which runs it would play, and how long its agents would take, estimated from finished runs."""

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

# Agent -> environment -> seconds of a round in each of its runs.
Seconds = dict[str, dict[str, list[float]]]
# Sources of an estimate, and their suffix if the runs are published.
SAME = "same environment"
OTHER = "other environments"
PUBLISHED = ", published"


@dataclass(frozen=True)
class PlannedRuns:
    """The runs of an agent on an environment in a sweep.

    Attributes:
        agent, env: Labels.
        horizon: Number of rounds.
        plays: Whether the agent plays the environment's feedback mode; if not, its runs would be stored as skipped.
        stored: Number of runs that are already stored and would not be played again.
        to_play: Number of the other runs.
        seconds: Estimated seconds of the agent in each run; None if unknown.
        source: Runs from which the time is estimated: :data:`SAME` or :data:`OTHER`, followed by :data:`PUBLISHED` if
            they are published; empty if there are none.
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
    """Forecast of a sweep.

    Attributes:
        pairs: The runs of each pair of an agent and an environment.
    """

    pairs: tuple[PlannedRuns, ...]

    @property
    def unknown(self) -> int:
        """Number of runs to play whose time is unknown."""
        return sum(pair.to_play for pair in self.pairs if pair.plays and pair.seconds is None)

    @property
    def seconds(self) -> float:
        """Seconds of the agents in all other runs to play."""
        return sum(pair.to_play * (pair.seconds or 0.0) for pair in self.pairs)

    def seconds_with(self, processes: int) -> float:
        """Return the seconds with this number of parallel processes, at least those of the longest run."""
        longest = max((pair.seconds or 0.0 for pair in self.pairs if pair.to_play), default=0.0)
        return max(longest, self.seconds / processes)


def forecast(jobs: Sequence[Job], store: Path | None = None) -> Forecast:
    """Forecast the jobs of :func:`cbo_gym.evaluation.play.sweep.plan`; nothing is written.

    The estimate is the mean time of a round in finished runs of the agent with the same parameters. The runs are those
    in the sweep's folder if there are any, else those in ``store``, published results; on the same environment if there
    are any, else on all others. It is too low for methods whose models grow if the new runs are longer.
    """
    folders = {job.folder for job in jobs if job.folder.is_dir()}
    sources = [("", _seconds(run for folder in folders for run in load_runs(folder)))]
    if store is not None:
        sources.append((PUBLISHED, _seconds(load_published(store))))
    groups: dict[tuple[Spec, Spec], list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.agent, job.cell.env), []).append(job)
    return Forecast(tuple(_plan_runs(group, sources) for group in groups.values()))


def _seconds(runs: Iterable[Run]) -> Seconds:
    seconds: Seconds = {}
    for run in runs:
        if run.status == "finished":
            seconds.setdefault(run.agent, {}).setdefault(run.env, []).append(run.seconds_a_round)
    return seconds


def _plan_runs(jobs: list[Job], sources: Sequence[tuple[str, Seconds]]) -> PlannedRuns:
    """Describe the jobs of an agent on an environment; ``sources`` are tried in order."""
    cell, modes = jobs[0].cell, jobs[0].facts.modes
    agent, env = str(jobs[0].agent), str(cell.env)
    stored = sum(_is_stored(job) for job in jobs)
    seconds: list[float] = []
    source = ""
    for suffix, recorded in sources:
        if by_env := recorded.get(agent):
            seconds = by_env.get(env) or [value for values in by_env.values() for value in values]
            source = f"{SAME if env in by_env else OTHER}{suffix}"
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
    # A sweep moves a damaged file aside, and plays its run again.
    except ArgumentError:
        return False
