"""Replays: play published runs again and compare their curves with the stored ones.

With the same code, libraries, threads and machine, all curves must be identical in the precision of the store.
Otherwise floating-point sums differ in their last digits, and a method that searches may turn these into other actions.
Then curves must agree to :data:`ROUND_TOLERANCE` in every round; or, if the runs diverge, the scores of play and of the
last recommendation must agree to :data:`SCORE_TOLERANCE`. The unit of both is the score: 0 is random play, 1 the
optimum. See :mod:`cbo_gym.referee.agreement` for the comparison of groups of runs that diverge.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
import polars as pl

from cbo_gym._util.processes.worker import NO_LIMITS, Limits
from cbo_gym.errors import ArgumentError, CBOGymError
from cbo_gym.evaluation.play.grid import Job, facts_of, job_of
from cbo_gym.evaluation.play.sweep import play_jobs
from cbo_gym.evaluation.runs.machine import describe_machine
from cbo_gym.evaluation.runs.provenance import library_versions
from cbo_gym.evaluation.runs.recorded import distances
from cbo_gym.evaluation.runs.results import Run, last_line
from cbo_gym.evaluation.runs.revisions import code_of, is_current
from cbo_gym.evaluation.store.curves import kept_curves
from cbo_gym.referee.admission import admit, guarded_cells

ROUND_TOLERANCE = 1e-3
SCORE_TOLERANCE = 0.1
# Tolerance of the optimum and the expected reward of random play, which do not depend on the agent.
OPTIMUM_TOLERANCE = 1e-6
Verdict = Literal["identical", "agrees", "diverges", "differs", "skipped"]


@dataclass(frozen=True)
class Replay:
    """Outcome of the replay of a run.

    Attributes:
        run: Published run.
        verdict: ``"identical"``; ``"agrees"`` to the tolerance of rounds; ``"diverges"`` from some round on, with
            scores that agree; ``"differs"``; or ``"skipped"`` because it cannot be played here.
        differences: Names of the conditions that differ: ``"machine"``, ``"libraries"``, ``"threads"``, ``"code"``.
        why: Description of the difference, or reason why it was skipped; empty if identical.
        gain: Published minus replayed score, of play and of the last recommendation; 0 unless the runs diverge.
        diverged: Whether the two runs differ from some round on, under conditions in which they may.
        replayed: Run as played here; None if it was skipped.
    """

    run: Run
    verdict: Verdict
    differences: tuple[str, ...]
    why: str
    gain: tuple[float, float] = (0.0, 0.0)
    diverged: bool = False
    replayed: Run | None = None

    @property
    def seconds(self) -> float:
        """Seconds that a round took here; NaN if the run did not finish."""
        if self.replayed is None or self.replayed.status != "finished":
            return float("nan")
        return self.replayed.seconds_a_round


def sample_of(runs: Sequence[Run], count: int, seed: int = 0) -> list[Run]:
    """Return ``count`` random finished runs, or all if there are fewer; raise ArgumentError if there are none."""
    finished = [run for run in runs if run.status == "finished"]
    if not finished:
        raise ArgumentError("there is no finished run to play again")
    chosen = np.random.default_rng(seed).permutation(len(finished))[:count]
    return [finished[index] for index in sorted(chosen)]


def is_played_alike(run: Run) -> bool:
    """Return whether code, libraries and machine are those of the run, so that a replay must be identical."""
    return is_current(run) and run.libraries == library_versions() and run.machine == describe_machine()


def replays(
    runs: Sequence[Run],
    *,
    allow: Collection[str] = (),
    limits: Limits = NO_LIMITS,
    on_run: Callable[[Run], None] | None = None,
) -> Iterator[Replay]:
    """Play runs again in processes and compare; yield the outcomes in the order of the runs.

    Runs whose labels :func:`cbo_gym.referee.admission.admit` refuses are skipped.

    Args:
        runs: Published runs, of any file.
        allow: Import paths of agents that may be played although they are not installed.
        limits: Limits of each run.
        on_run: Called after each run.
    """
    facts, cells = cache(facts_of), guarded_cells()

    def make_job(run: Run) -> Job:
        agent, env = admit(run, allow)
        cell = cells(env, run.seed, run.horizon, run.secret)
        return job_of(agent, facts(agent), cell, run.recommend, run.batch)

    for run, replayed in play_again(runs, make_job, limits, on_run):
        if isinstance(replayed, str):
            yield Replay(run, "skipped", (), replayed)
        else:
            yield replace(compare_runs(run, replayed), replayed=replayed)


def play_again(
    runs: Sequence[Run], make_job: Callable[[Run], Job], limits: Limits, on_run: Callable[[Run], object] | None
) -> Iterator[tuple[Run, Run | str]]:
    """Play a job for each run; yield the runs with the runs of their jobs, or with the error of ``make_job``."""
    planned: list[Job | str] = []
    for run in runs:
        try:
            planned.append(make_job(run))
        except CBOGymError as error:
            planned.append(str(error))
    played = iter(play_jobs([job for job in planned if isinstance(job, Job)], limits=limits, on_run=on_run))
    for run, job in zip(runs, planned, strict=True):
        yield run, job if isinstance(job, str) else next(played)


def compare_runs(run: Run, replayed: Run) -> Replay:
    """Compare a published run with the same run played again."""
    is_same = {name: getattr(run, name) == getattr(replayed, name) for name in ("machine", "libraries", "threads")}
    is_same["code"] = code_of(run) == code_of(replayed)
    differences = tuple(name for name in is_same if not is_same[name])
    if run.status != "finished" and replayed.status == run.status:
        return Replay(run, "agrees", differences, f"{run.status} again: {last_line(replayed.error)}")
    if replayed.status != "finished":
        return Replay(run, "differs", differences, f"now it is {replayed.status}: {last_line(replayed.error)}")
    if run.status != "finished":
        return Replay(run, "differs", differences, f"its status is {run.status} in the file, but it finishes here")
    gap = replayed.optimum - replayed.random_value
    for name in ("optimum", "random_value"):
        before, now = getattr(run, name), getattr(replayed, name)
        if not abs(before - now) <= OPTIMUM_TOLERANCE * gap:
            return Replay(run, "differs", differences, f"{name} was {before:.6g} and is {now:.6g}")
    distance = _distances(run, replayed)
    if not distance.any():
        return Replay(run, "identical", differences, "")
    first_round = int(np.argmax(distance > 0)) + 1
    why = f"from round {first_round} on, by at most {distance.max():.2g}"
    if not differences:
        return Replay(run, "differs", differences, f"{why}, on the same platform with the same code")
    if (distance <= ROUND_TOLERANCE).all():
        return Replay(run, "agrees", differences, why)
    first_round = int(np.argmax(distance > ROUND_TOLERANCE)) + 1
    play = float((replayed.table["instant_regret"] - run.table["instant_regret"]).to_numpy().mean()) / gap
    last = (replayed.table["simple_regret"][-1] - run.table["simple_regret"][-1]) / gap
    why = f"from round {first_round} on; scores of play differ by {abs(play):.2g}, of recommendation by {abs(last):.2g}"
    verdict: Verdict = "diverges" if max(abs(play), abs(last)) <= SCORE_TOLERANCE else "differs"
    return Replay(run, verdict, differences, why, (play, last), diverged=True)


def _distances(run: Run, replayed: Run) -> np.ndarray:
    """Return the largest distance of curves in each round, in units of the score; infinite if a value is missing."""
    gap = replayed.optimum - replayed.random_value
    stored, played = kept_curves(run), kept_curves(replayed)
    largest = np.zeros(run.horizon)
    for name in sorted(set(stored) & set(played)):
        before, now = (curves[name].cast(pl.Float64).to_numpy() for curves in (stored, played))
        largest = np.maximum(largest, distances(before, now, gap))
    return largest
