"""The referee of submitted runs: scores their actions anew, plays them again, plays their agent blind."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.metrics.aggregate import t_quantile, welch_half_width
from cbo_gym.evaluation.metrics.regret import normalised_score
from cbo_gym.evaluation.play.blind import secret_of, turned
from cbo_gym.evaluation.play.grid import Cell, Job, Player, cells_of_strangers, job_of, player_of
from cbo_gym.evaluation.play.processes import Limits
from cbo_gym.evaluation.play.sweep import run_jobs
from cbo_gym.evaluation.runs.recorded import recorded, unlike
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.store.curves import as_published
from cbo_gym.evaluation.verify.admission import admitted, admitted_env
from cbo_gym.evaluation.verify.replay import Replay, played_once, replays
from cbo_gym.labels import Spec

LIMITS = Limits(time_limit=3600, memory_limit=8192)  # of one run of a stranger's
SCORING = Limits(time_limit=3600)  # no code of a stranger's runs then; a limit of memory is a process for each run
CHEAP_SECONDS = 600.0  # of agents' time: where all runs take no longer, all are played again
AT_RANDOM = Spec("Random")  # is played blind beside the agent, for comparison
EVERYWHERE, ANYWHERE = (0.1, 0.99), (0.2, 0.999)  # a loss of score that cannot be chance, and how sure that must be
LEAST_PARTED, SURE_OF_GAIN = 5, 0.995  # runs, and how sure it must be that they gain by more than chance
OnStart = Callable[[str, int], object]
OnRun = Callable[[Run], None] | None
Cells = Callable[[Spec, int, int, str], Cell]
NOBODY = Player(frozenset(), (), isolated=False)


@dataclass(frozen=True)
class Blind:
    """How an agent played an environment blind, beside what a file says of it.

    Attributes:
        env: its label, as it was told.
        told: runs of the file.
        runs: played blind, each on an instance of its own.
        at_random: the same cells, played at random.
    """

    env: str
    told: tuple[Run, ...]
    runs: tuple[Run, ...]
    at_random: tuple[Run, ...]

    @property
    def scores(self) -> tuple[float, float, float]:
        """Mean scores of play: told, blind and at random."""
        told, blind, at_random = (scores(part)[:, 0].mean() for part in (self.told, self.runs, self.at_random))
        return float(told), float(blind), float(at_random)


def scores(runs: Sequence[Run]) -> np.ndarray:
    """Scores of play and of the last recommendation, shape ``(runs, 2)``; those that failed are left out."""
    finished = [run for run in runs if run.status == "finished"]
    found = [
        normalised_score(
            run.optimum,
            run.random_value,
            np.array([run.average_counted, run.optimum - run.table["simple_regret"][-1]]),
        )
        for run in finished
    ]
    return np.reshape(found, (-1, 2))


def rescored(runs: Sequence[Run], *, on_run: OnRun = None) -> Iterator[tuple[Run, list[str]]]:
    """Finished runs with all that differs from what their own actions give, in their order.

    Args:
        runs: of anybody's file, with actions.
        on_run: called after each.
    """
    with TemporaryDirectory() as folder:
        cells = cells_of_strangers(LIMITS)
        jobs = {place: _scoring(run, cells, Path(folder) / str(place)) for place, run in enumerate(runs)}
        run_jobs([job for job in jobs.values() if isinstance(job, Job)], limits=SCORING, on_run=on_run)
        for place, run in enumerate(runs):
            job = jobs[place]
            yield run, ([job] if isinstance(job, str) else _unlike_either(run, played_once(job)))


def _unlike_either(run: Run, again: Run) -> list[str]:
    """How a run differs from what was played, or from what a store keeps of it, where that is less."""
    return min((unlike(run, one) for one in (again, as_published(again))), key=len)


def _scoring(run: Run, cells: Cells, folder: Path) -> Job | str:
    """The job that plays a run's own actions, or why there is none."""
    try:
        cell = cells(admitted_env(run.env), run.seed, run.horizon, run.secret)
        job = job_of(Spec.parse(run.agent), NOBODY, cell, run.recommend, folder, run.batch)
        return replace(job, recorded=recorded(run))
    except ArgumentError as error:
        return str(error)


def replayed(
    runs: Sequence[Run], least: int, allow: Collection[str], *, on_start: OnStart, on_run: OnRun = None
) -> Iterator[Replay]:
    """Some of the runs, or all where that is cheap, played again by their agents; nobody can know which.

    Those that did not finish all are: a seed that went badly must not be called a failure.

    Args:
        runs: of any status, some of them finished.
        least: how many finished ones are played again at least.
        allow: import paths of agents that may be played though they are not installed.
        on_start: called with the name of the stage and the number of runs.
        on_run: called after each.
    """
    lost, shuffled = ([run for run in runs if (run.status == "finished") is done] for done in (False, True))
    secrets.SystemRandom().shuffle(shuffled)
    taken = 0.0

    def watch(run: Run) -> None:
        nonlocal taken
        taken += run.reset_seconds + (run.seconds_a_round * run.horizon if run.status == "finished" else 0.0)
        if on_run:
            on_run(run)

    if lost:
        on_start("played again", len(lost))
        yield from replays(lost, allow=allow, limits=LIMITS, on_run=on_run)
    first, rest = shuffled[:least], shuffled[least:]
    on_start("played again", len(first))
    yield from replays(first, allow=allow, limits=LIMITS, on_run=watch)
    if rest and taken / len(first) * len(rest) <= CHEAP_SECONDS:
        on_start("played again", len(rest))
        yield from replays(rest, allow=allow, limits=LIMITS, on_run=on_run)


def blind_scores(
    runs: Sequence[Run], seeds: int, allow: Collection[str], *, on_start: OnStart, on_run: OnRun = None
) -> tuple[list[Blind], list[str]]:
    """The agents of some runs played blind on their environments, and what could not be.

    Args:
        runs: finished ones.
        seeds: how many, of each environment.
        allow: import paths of agents that may be played though they are not installed.
        on_start: called with the name of the stage and the number of runs.
        on_run: called after each.
    """
    words, unplayable = secrets.token_hex(16), []
    cells = cells_of_strangers(LIMITS)
    found: list[Blind] = []
    with TemporaryDirectory() as folder:
        planned: list[tuple[list[Run], list[Job], list[Job]]] = []
        for group in _groups(runs):
            agent, env = admitted(group[0], allow)
            try:
                secret_cells = [_blind_cell(cells, env, seed, group[0].horizon, words) for seed in range(seeds)]
            except ArgumentError as error:
                unplayable.append(f"not played blind: {error}")
                continue
            own, at_random = (
                [job_of(one, player_of(one), cell, "end", Path(folder, str(len(planned)), one.name[-6:], str(place)))
                 for place, cell in enumerate(secret_cells)]
                for one in (agent, AT_RANDOM)
            )  # fmt: skip
            planned.append((group, own, at_random))
        jobs = [job for _, own, at_random in planned for job in (*own, *at_random)]
        on_start("played blind", len(jobs))
        run_jobs(jobs, limits=LIMITS, on_run=on_run)
        for group, own, at_random in planned:
            blind, random = (tuple(map(played_once, part)) for part in (own, at_random))
            found.append(Blind(group[0].env, tuple(group), blind, random))
    return found, unplayable


def _groups(runs: Sequence[Run]) -> list[list[Run]]:
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        found.setdefault((run.agent, run.env), []).append(run)
    return list(found.values())


def _blind_cell(cells: Cells, env: Spec, seed: int, horizon: int, words: str) -> Cell:
    secret = secret_of(words, env, seed)
    return cells(turned(env, secret), seed, horizon, secret)


def drops(found: Sequence[Blind]) -> Iterator[str]:
    """Where an agent scores less when it can tell neither the system nor how it is turned, beyond chance."""
    for one in found:
        for column, what in enumerate(("play", "recommendation")):
            told, blind = scores(one.told)[:, column], scores(one.runs)[:, column]
            if len(blind) < len(one.runs):
                yield f"{one.env}: played blind, {len(one.runs) - len(blind)} of {len(one.runs)} runs failed"
            elif _least_loss(told, blind, ANYWHERE[1]) > ANYWHERE[0]:
                yield (
                    f"{one.env}: its score of {what} is {told.mean():.2f} as told and {blind.mean():.2f} blind, where "
                    "nothing tells which system it is"
                )
    losses = np.array(
        [[scores(one.told)[:, k].mean() - scores(one.runs)[:, k].mean() for k in (0, 1)] for one in found]
    )
    for column, what in enumerate(("play", "recommendation")):
        if len(losses) > 1 and _least_mean(losses[:, column], EVERYWHERE[1]) > EVERYWHERE[0]:
            lost = losses[:, column].mean()
            yield f"over all environments its score of {what} is {lost:.2f} lower blind than as told"


def gains(played: Sequence[Replay]) -> Iterator[str]:
    """Where runs part, as they do on another machine, by chance as often to the better as to the worse: or not so."""
    found = np.array([one.gain for one in played if one.verdict == "parts"])
    for column, what in enumerate(("play", "recommendation")):
        if len(found) >= LEAST_PARTED and _least_mean(found[:, column], SURE_OF_GAIN) > 0.0:
            more = found[:, column].mean()
            yield (
                f"{len(found)} runs part from what their agent plays here, and as told their score of {what} is "
                f"{more:.2g} higher on average, which is no chance"
            )


def _least_loss(told: np.ndarray, blind: np.ndarray, sure: float) -> float:
    """A lower bound of the difference of two means, by Welch's t."""
    half = welch_half_width([told, blind], sure)
    return -np.inf if np.isnan(half) else float(told.mean() - blind.mean() - half)


def _least_mean(values: np.ndarray, sure: float) -> float:
    return float(values.mean() - t_quantile(len(values) - 1, sure) * values.std(ddof=1) / np.sqrt(len(values)))
