"""Replays of published runs, which must give the stored curves.

With the same libraries, threads and machine every curve must be the same, bit for bit in the precision of the store.
Elsewhere floating-point sums differ in their last digits, which a method that searches may turn into another action.
There, curves must agree to :data:`ROUND_TOLERANCE` in every round; or, if the runs diverge, the scores of play and of
the last recommendation must agree to :data:`SCORE_TOLERANCE`. Both are in units of the score: 1 is from random play to
the optimum. See :mod:`cbo_gym.referee.agreement` for the comparison of groups of runs that diverge.
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
from cbo_gym.evaluation.play.grid import Job, job_of, player_of
from cbo_gym.evaluation.play.sweep import play_jobs
from cbo_gym.evaluation.runs.machine import describe_machine
from cbo_gym.evaluation.runs.provenance import library_versions
from cbo_gym.evaluation.runs.results import Run, last_line
from cbo_gym.evaluation.runs.revisions import code_of, is_current
from cbo_gym.evaluation.store.curves import kept_curves
from cbo_gym.referee.admission import admit, guarded_cells

ROUND_TOLERANCE = 1e-3
SCORE_TOLERANCE = 0.1
# For the optimum and the random value, which depend on no agent.
OPTIMUM_TOLERANCE = 1e-6
Verdict = Literal["identical", "agrees", "diverges", "differs", "skipped"]


@dataclass(frozen=True)
class Replay:
    """Outcome of one run.

    Attributes:
        run: Published run.
        verdict: ``"identical"``; ``"agrees"`` to the tolerance of rounds; ``"diverges"``: differs from some round on,
            with scores that agree; ``"differs"``; or ``"skipped"``: cannot be played here.
        differences: Names of the conditions that differ: ``"machine"``, ``"libraries"``, ``"threads"``, ``"code"``.
        why: Description of the difference, or reason why it was skipped; empty if identical.
        gain: Published minus replayed score, of play and of recommendation, if the runs diverge.
        diverged: Whether the two runs differ from some round on, as they may on other hardware.
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
    """Return a random sample of the finished runs, or all if there are no more.

    Raises:
        ArgumentError: if no run finished.
    """
    finished = [run for run in runs if run.status == "finished"]
    if not finished:
        raise ArgumentError("there is no finished run to play again")
    chosen = np.random.default_rng(seed).permutation(len(finished))[:count]
    return [finished[index] for index in sorted(chosen)]


def is_played_alike(run: Run) -> bool:
    """Return whether code, libraries and machine are those of the run, so that a replay must be identical."""
    current = (library_versions(), describe_machine())
    return is_current(run) and (run.libraries, run.machine) == current


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
    players, cells = cache(player_of), guarded_cells()

    def job(run: Run) -> Job | str:
        """Return the job of a run, or the reason why it cannot be played here."""
        try:
            agent, env = admit(run, allow)
            cell = cells(env, run.seed, run.horizon, run.secret)
            return job_of(agent, players(agent), cell, run.recommend, run.batch)
        except CBOGymError as error:
            return str(error)

    for run, replayed in zip(runs, play_planned([job(run) for run in runs], limits, on_run), strict=True):
        if isinstance(replayed, str):
            yield Replay(run, "skipped", (), replayed)
        else:
            yield replace(compare_runs(run, replayed), replayed=replayed)


def play_planned(
    planned: Sequence[Job | str], limits: Limits, on_run: Callable[[Run], object] | None = None
) -> list[Run | str]:
    """Play the jobs and return their runs, in order; a string, the reason why there is no job, stays in its place."""
    played = iter(play_jobs([job for job in planned if isinstance(job, Job)], limits=limits, on_run=on_run))
    return [job if isinstance(job, str) else next(played) for job in planned]


def compare_runs(run: Run, replayed: Run) -> Replay:
    """Compare a published run with the same run played again."""
    differences = tuple(
        what
        for what, same in (
            ("machine", run.machine == replayed.machine),
            ("libraries", run.libraries == replayed.libraries),
            ("threads", run.threads == replayed.threads),
            ("code", code_of(run) == code_of(replayed)),
        )
        if not same
    )
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
    worst = _distances(run, replayed)
    if not worst.any():
        return Replay(run, "identical", differences, "")
    first = int(np.argmax(worst > 0)) + 1
    difference = f"from round {first} on, by at most {worst.max():.2g}"
    if not differences:
        return Replay(run, "differs", differences, f"{difference}, on the same platform with the same code")
    if (worst <= ROUND_TOLERANCE).all():
        return Replay(run, "agrees", differences, difference)
    diverged = int(np.argmax(worst > ROUND_TOLERANCE)) + 1
    play = float((replayed.table["instant_regret"] - run.table["instant_regret"]).to_numpy().mean()) / gap
    advice = (replayed.table["simple_regret"][-1] - run.table["simple_regret"][-1]) / gap
    difference = (
        f"from round {diverged} on; scores of play differ by {abs(play):.2g}, of recommendation by {abs(advice):.2g}"
    )
    verdict: Verdict = "diverges" if max(abs(play), abs(advice)) <= SCORE_TOLERANCE else "differs"
    return Replay(run, verdict, differences, difference, (play, advice), diverged=True)


def _distances(run: Run, replayed: Run) -> np.ndarray:
    """Return the largest distance of the curves in each round, in units of the score; infinite if one is missing."""
    gap = replayed.optimum - replayed.random_value
    stored, played = kept_curves(run), kept_curves(replayed)
    distances = np.zeros(run.horizon)
    for name in sorted(set(stored) & set(played)):
        before, now = (curves[name].cast(pl.Float64).to_numpy() for curves in (stored, played))
        apart = np.where(np.isnan(before) & np.isnan(now), 0.0, np.abs(before - now) / gap)
        distances = np.maximum(distances, np.where(np.isnan(apart), np.inf, apart))
    return distances
