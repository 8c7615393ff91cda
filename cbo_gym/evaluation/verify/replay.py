"""Published runs played again: what is stored must come out.

With the same libraries, threads and machine every curve must be the same, bit for bit in the precision of the store.
Elsewhere floating-point sums differ in their last digits, which a method that searches may turn into another action.
So there curves must agree to :data:`ROUND_TOLERANCE` in every round, or, from the round on in which the two runs part,
the scores of play and of the last recommendation to :data:`SCORE_TOLERANCE`. Both are in units of the score: 1 is from
random play to the optimum. That is of one run, as a referee needs it; what several that part say of the hardware or the
code is in :mod:`cbo_gym.evaluation.verify.agreement`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
import polars as pl

from cbo_gym.errors import ArgumentError, CBOGymError
from cbo_gym.evaluation.play.grid import Cell, Job, Player, cells_of_strangers, job_of, player_of
from cbo_gym.evaluation.play.processes import NO_LIMITS, Limits
from cbo_gym.evaluation.play.sweep import run_jobs
from cbo_gym.evaluation.runs.machine import describe_machine
from cbo_gym.evaluation.runs.provenance import library_versions
from cbo_gym.evaluation.runs.results import Run, last_line, load_run
from cbo_gym.evaluation.runs.revisions import code_of, is_current
from cbo_gym.evaluation.store.curves import kept_curves
from cbo_gym.evaluation.verify.admission import admitted
from cbo_gym.labels import Spec

ROUND_TOLERANCE = 1e-3
SCORE_TOLERANCE = 0.1
OPTIMUM_TOLERANCE = 1e-6  # of the optimum and of what a random action earns, which no agent has a part in
MAKING = Limits(time_limit=300, memory_limit=8192)  # of an environment that a file names
Verdict = Literal["identical", "agrees", "parts", "differs", "skipped"]


@dataclass(frozen=True)
class Replay:
    """The outcome of one run.

    Attributes:
        run: as it was published.
        verdict: ``"identical"``; ``"agrees"`` to the tolerance of rounds; ``"parts"``, from some round on, with
            scores that agree; ``"differs"``; or ``"skipped"``, since it cannot be played here.
        elsewhere: what is not as it was: ``"machine"``, ``"libraries"``, ``"threads"``, ``"code"``.
        why: where they differ, or why it was skipped; empty if identical.
        gain: by how much the scores of play and of recommendation are higher as published than as played again, where
            runs part.
        parted: whether the two runs play otherwise from some round on, as they may on other hardware.
        again: as it was played here; None if it was skipped.
    """

    run: Run
    verdict: Verdict
    elsewhere: tuple[str, ...]
    why: str
    gain: tuple[float, float] = (0.0, 0.0)
    parted: bool = False
    again: Run | None = None

    @property
    def seconds(self) -> float:
        """That a round took here, NaN where it was not played to its end."""
        if self.again is None or self.again.status != "finished":
            return float("nan")
        return self.again.seconds_a_round


def sample_of(runs: Sequence[Run], count: int, seed: int = 0) -> list[Run]:
    """Some finished runs, at random and none twice; all if there are no more.

    Raises:
        ArgumentError: if none has finished.
    """
    finished = [run for run in runs if run.status == "finished"]
    if not finished:
        raise ArgumentError("there is no finished run to play again")
    chosen = np.random.default_rng(seed).permutation(len(finished))[:count]
    return [finished[place] for place in sorted(chosen)]


def is_played_alike(run: Run) -> bool:
    """Whether code, libraries and machine are those of the run, so that it must come out as it was."""
    here = (library_versions(), describe_machine())
    return is_current(run) and (run.libraries, run.machine) == here


def replays(
    runs: Sequence[Run],
    *,
    allow: Collection[str] = (),
    n_jobs: int = -1,
    limits: Limits = NO_LIMITS,
    on_run: Callable[[Run], None] | None = None,
) -> Iterator[Replay]:
    """Play runs again, each in a process as a sweep does, and compare; in their order.

    What they name goes through :func:`cbo_gym.evaluation.verify.admission.admitted`; what is not admitted is skipped.

    Args:
        runs: published ones, of anybody's file.
        allow: import paths of agents that may be played though they are not installed.
        n_jobs: processes at a time; -1 for one per core.
        limits: of each run.
        on_run: called after each run that was played.
    """
    with TemporaryDirectory() as folder:
        players, cells = cache(player_of), cells_of_strangers(MAKING)
        planned = [_job(run, players, cells, Path(folder) / str(place), allow) for place, run in enumerate(runs)]
        run_jobs([job for job in planned if isinstance(job, Job)], n_jobs=n_jobs, limits=limits, on_run=on_run)
        for run, job in zip(runs, planned, strict=True):
            if isinstance(job, str):
                yield Replay(run, "skipped", (), job)
            else:
                again = played_once(job)
                yield replace(compared(run, again), again=again)


def _job(
    run: Run,
    players: Callable[[Spec], Player],
    cells: Callable[[Spec, int, int, str], Cell],
    folder: Path,
    allow: Collection[str],
) -> Job | str:
    """The job of a run, or why it cannot be played here."""
    try:
        agent, env = admitted(run, allow)
        return job_of(
            agent, players(agent), cells(env, run.seed, run.horizon, run.secret), run.recommend, folder, run.batch
        )
    except CBOGymError as error:
        return str(error)


def played_once(job: Job) -> Run:
    """The run of a job that has a folder to itself, under whatever name it was stored."""
    (path,) = job.folder.glob("*.parquet")
    return load_run(path)


def compared(run: Run, again: Run) -> Replay:
    """A published run beside the same played again."""
    elsewhere = tuple(
        what
        for what, same in (
            ("machine", run.machine == again.machine),
            ("libraries", run.libraries == again.libraries),
            ("threads", run.threads == again.threads),
            ("code", code_of(run) == code_of(again)),
        )
        if not same
    )
    if run.status != "finished" and again.status == run.status:
        return Replay(run, "agrees", elsewhere, f"{run.status} again: {last_line(again.error)}")
    if again.status != "finished":
        return Replay(run, "differs", elsewhere, f"now it is {again.status}: {last_line(again.error)}")
    if run.status != "finished":
        return Replay(run, "differs", elsewhere, f"it is said to be {run.status}, and finishes")
    gap = again.optimum - again.random_value
    for name in ("optimum", "random_value"):
        before, now = getattr(run, name), getattr(again, name)
        if not abs(before - now) <= OPTIMUM_TOLERANCE * gap:
            return Replay(run, "differs", elsewhere, f"{name} was {before:.6g} and is {now:.6g}")
    worst = _distances(run, again)
    if not worst.any():
        return Replay(run, "identical", elsewhere, "")
    first = int(np.argmax(worst > 0)) + 1
    said = f"from round {first} on, by at most {worst.max():.2g}"
    if not elsewhere:
        return Replay(run, "differs", elsewhere, f"{said}, on the same platform with the same code")
    if (worst <= ROUND_TOLERANCE).all():
        return Replay(run, "agrees", elsewhere, said)
    parted = int(np.argmax(worst > ROUND_TOLERANCE)) + 1
    play = float((again.table["instant_regret"] - run.table["instant_regret"]).to_numpy().mean()) / gap
    advice = (again.table["simple_regret"][-1] - run.table["simple_regret"][-1]) / gap
    said = f"from round {parted} on; scores of play differ by {abs(play):.2g}, of recommendation by {abs(advice):.2g}"
    verdict: Verdict = "parts" if max(abs(play), abs(advice)) <= SCORE_TOLERANCE else "differs"
    return Replay(run, verdict, elsewhere, said, (play, advice), parted=True)


def _distances(run: Run, again: Run) -> np.ndarray:
    """For each round how far the curves are apart, in units of the score; infinite where only one has a value."""
    gap = again.optimum - again.random_value
    stored, played = kept_curves(run), kept_curves(again)
    found = np.zeros(run.horizon)
    for name in sorted(set(stored) & set(played)):
        one, other = (part[name].cast(pl.Float64).to_numpy() for part in (stored, played))
        apart = np.where(np.isnan(one) & np.isnan(other), 0.0, np.abs(one - other) / gap)
        found = np.maximum(found, np.where(np.isnan(apart), np.inf, apart))
    return found
