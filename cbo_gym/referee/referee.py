"""Referee of submitted runs: recompute their scores, play a sample of them again, and play their agents blind.

Blind play is play on secret instances of the environments, whose variables have other names, order and units, and whose
noise has another seed. An agent that was prepared for the published system loses score there.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice

import numpy as np

from cbo_gym._util.processes.worker import Limits
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.metrics.aggregate import t_quantile, welch_half_width
from cbo_gym.evaluation.metrics.regret import normalised_score
from cbo_gym.evaluation.play.agent_sources import AgentFacts
from cbo_gym.evaluation.play.grid import Job, facts_of, job_of
from cbo_gym.evaluation.play.seeds import draw_instance
from cbo_gym.evaluation.play.sweep import play_jobs
from cbo_gym.evaluation.runs.recorded import recorded_actions, score_differences
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.store.curves import round_for_store
from cbo_gym.referee.admission import admit, admit_env, guarded_cells
from cbo_gym.referee.replay import Replay, play_again, replays

# Limits of a run of a third-party agent.
LIMITS = Limits(time_limit=3600, memory_limit=8192)
# Limits of scoring, in which no third-party code runs; with a limit of memory each run may need a new process.
SCORING = Limits(time_limit=3600)
# All runs are played again if their agents take no more than these seconds.
CHEAP_SECONDS = 600.0
# The agent that is also played blind, for comparison.
RANDOM = Spec("Random")
# Largest tolerated loss of score, and confidence of the test: over all environments, and on one environment.
OVERALL_LOSS, ENVIRONMENT_LOSS = (0.1, 0.99), (0.2, 0.999)
# Fewest diverging runs, and confidence of the test, for the verdict that submitted scores are too high.
MIN_DIVERGED, GAIN_CONFIDENCE = 5, 0.995
# Names of the columns of :func:`scores`.
SCORES = ("play", "recommendation")
OnStart = Callable[[str, int], object]
OnRun = Callable[[Run], None] | None


@dataclass(frozen=True)
class BlindPlay:
    """Outcome of blind play of an agent on an environment.

    Attributes:
        env: Label of the environment in the file.
        submitted: Runs of the agent on it in the file.
        runs: Blind runs, each on a different instance.
        at_random: Runs of :data:`RANDOM` on the same instances, with the same seeds.
    """

    env: str
    submitted: tuple[Run, ...]
    runs: tuple[Run, ...]
    at_random: tuple[Run, ...]

    @property
    def scores(self) -> list[float]:
        """Mean scores of play: of the submitted runs, of the blind runs, and of :data:`RANDOM` played blind."""
        return [float(scores(runs)[:, 0].mean()) for runs in (self.submitted, self.runs, self.at_random)]


def scores(runs: Sequence[Run]) -> np.ndarray:
    """Return the scores of play and of the last recommendation of the finished runs, shape ``(n, 2)``."""
    finished = [run for run in runs if run.status == "finished"]
    rewards = np.array(
        [(run.average_penalized_reward, run.optimum - run.curve("simple_regret")[-1]) for run in finished]
    ).reshape(-1, 2)
    scale = np.array([(run.optimum, run.random_value) for run in finished]).reshape(-1, 2)
    return normalised_score(scale[:, :1], scale[:, 1:], rewards)


def rescore_runs(runs: Sequence[Run], *, on_run: OnRun = None) -> Iterator[tuple[Run, list[str]]]:
    """Yield finished runs, in their order, with descriptions of scores that differ from those of their own actions.

    Args:
        runs: Runs of an untrusted file, with actions.
        on_run: Called after each run.
    """
    cells = guarded_cells()

    def make_scoring_job(run: Run) -> Job:
        """Return the job that plays a run's own actions."""
        cell = cells(admit_env(run.env), run.seed, run.horizon, run.secret)
        job = job_of(Spec.parse(run.agent), AgentFacts(), cell, run.recommend, run.batch)
        return replace(job, recorded=recorded_actions(run))

    for run, replayed in play_again(runs, make_scoring_job, SCORING, on_run):
        if isinstance(replayed, str):
            yield run, [replayed]
        else:
            # The numbers of a submission may be rounded as a store rounds them.
            candidates = (replayed, round_for_store(replayed))
            yield run, min((score_differences(run, rescored) for rescored in candidates), key=len)


def replay_sample(
    runs: Sequence[Run], min_finished: int, allow: Collection[str], *, on_start: OnStart, on_run: OnRun = None
) -> Iterator[Replay]:
    """Play an unpredictable random sample of the runs again, or all runs if that is cheap.

    All runs that did not finish are played again, because a bad run might be reported as a failure.

    Args:
        runs: Runs of any status, some of them finished.
        min_finished: Smallest number of finished runs to play again.
        allow: Import paths of agents that may be played although they are not installed.
        on_start: Called with the name of the stage and the number of runs.
        on_run: Called after each run.
    """
    unfinished = [run for run in runs if run.status != "finished"]
    shuffled = [run for run in runs if run.status == "finished"]
    secrets.SystemRandom().shuffle(shuffled)
    seconds = 0.0

    def add_seconds(run: Run) -> None:
        nonlocal seconds
        seconds += run.reset_seconds + (run.seconds_a_round * run.horizon if run.status == "finished" else 0.0)
        if on_run:
            on_run(run)

    def replay(batch: Sequence[Run], watch: OnRun) -> Iterator[Replay]:
        if batch:
            on_start("played again", len(batch))
            yield from replays(batch, allow=allow, limits=LIMITS, on_run=watch)

    yield from replay(unfinished, on_run)
    sample, others = shuffled[:min_finished], shuffled[min_finished:]
    yield from replay(sample, add_seconds)
    if seconds / len(sample) * len(others) <= CHEAP_SECONDS:
        yield from replay(others, on_run)


def blind_scores(
    runs: Sequence[Run], seeds: int, allow: Collection[str], *, on_start: OnStart, on_run: OnRun = None
) -> tuple[list[BlindPlay], list[str]]:
    """Play the agents of some runs blind; return the outcomes, and messages about environments that cannot be made.

    Args:
        runs: Finished runs.
        seeds: Number of seeds on each environment.
        allow: Import paths of agents that may be played although they are not installed.
        on_start: Called with the name of the stage and the number of runs.
        on_run: Called after each run.
    """
    secret_words, unplayable = secrets.token_hex(16), []
    cells, facts = guarded_cells(), cache(facts_of)
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.agent, run.env), []).append(run)
    jobs: list[Job] = []
    playable = []
    for group in groups.values():
        agent, env = admit(group[0], allow)
        try:
            instances = [(seed, *draw_instance(secret_words, env, seed)) for seed in range(seeds)]
            blind = [cells(instance, seed, group[0].horizon, secret) for seed, instance, secret in instances]
        except ArgumentError as error:
            unplayable.append(f"not played blind: {error}")
            continue
        jobs += [job_of(player, facts(player), cell, "end") for player in (agent, RANDOM) for cell in blind]
        playable.append(group)
    on_start("played blind", len(jobs))
    played = iter(play_jobs(jobs, limits=LIMITS, on_run=on_run))
    outcomes = []
    for group in playable:
        own, at_random = tuple(islice(played, seeds)), tuple(islice(played, seeds))
        outcomes.append(BlindPlay(group[0].env, tuple(group), own, at_random))
    return outcomes, unplayable


def describe_drops(blind_plays: Sequence[BlindPlay]) -> Iterator[str]:
    """Yield a message for each score that is lower in blind play than as submitted, beyond chance."""
    losses = []
    for play in blind_plays:
        submitted, blind = scores(play.submitted), scores(play.runs)
        losses.append(submitted.mean(axis=0) - blind.mean(axis=0))
        if len(blind) < len(play.runs):
            yield f"{play.env}: played blind, {len(play.runs) - len(blind)} of {len(play.runs)} runs failed"
            continue
        for name, before, now in zip(SCORES, submitted.T, blind.T, strict=True):
            if min_loss(before, now, ENVIRONMENT_LOSS[1]) > ENVIRONMENT_LOSS[0]:
                means = f"{before.mean():.2f} as submitted and {now.mean():.2f} blind"
                yield f"{play.env}: its score of {name} is {means}"
    for name, lost in zip(SCORES, np.transpose(losses), strict=False):
        if len(lost) > 1 and _min_mean(lost, OVERALL_LOSS[1]) > OVERALL_LOSS[0]:
            yield f"over all environments its score of {name} is {lost.mean():.2f} lower blind than as submitted"


def describe_gains(replays: Sequence[Replay]) -> Iterator[str]:
    """Yield a message for each submitted score that is higher than in the replays that diverge, beyond chance."""
    diverged_gains = [replay.gain for replay in replays if replay.verdict == "diverges"]
    for name, gain in zip(SCORES, np.transpose(diverged_gains), strict=False):
        if len(gain) >= MIN_DIVERGED and _min_mean(gain, GAIN_CONFIDENCE) > 0.0:
            yield (
                f"{len(gain)} runs diverge from what their agent plays here, and their submitted score of {name} "
                f"is {gain.mean():.2g} higher on average, which is not chance"
            )


def min_loss(submitted: np.ndarray, blind: np.ndarray, confidence: float) -> float:
    """Return the lower bound of the difference of two means by Welch's t-test; -inf with fewer than two values."""
    half = welch_half_width([submitted, blind], confidence, fewest=2)
    return -np.inf if np.isnan(half) else float(submitted.mean() - blind.mean() - half)


def _min_mean(values: np.ndarray, confidence: float) -> float:
    """Return the lower bound of a mean by Student's t-test."""
    return float(values.mean() - t_quantile(len(values) - 1, confidence) * values.std(ddof=1) / np.sqrt(len(values)))
