"""Claims about two methods, judged by runs: which regret is the smaller, seed by seed.

The statement of a claim, its number of pairs and its margin are written in ``claims/data`` before its runs are made. A
verdict uses the first pairs of runs up to this number, even if more have been played.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, compress
from typing import Annotated, Literal, TypeVar

import numpy as np
from pydantic import Field, PositiveInt

from cbo_gym._util.validation import StrictModel
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.claims.verdicts import LEAST_PAIRS, LEVEL, Kind, decide, interval, levels, p_value
from cbo_gym.evaluation.metrics.aggregate import holm
from cbo_gym.evaluation.metrics.gap import mean_slice_gap
from cbo_gym.evaluation.runs.counted import newest
from cbo_gym.evaluation.runs.results import Run

Verdict = Literal["confirmed", "refuted", "equivalent", "open", "not run"]
Regret = Literal[
    "average_regret", "best_so_far_regret", "simple_regret", "average_pseudo_regret", "missing_gap_over_time"
]
NonEmptyString = Annotated[str, Field(min_length=1)]
Pairs = Annotated[int, Field(ge=LEAST_PAIRS)]
RunKey = tuple[int, int, tuple[str, ...]]  # rounds, seed, and the match of each ``*``: runs that share it are a pair
REVERSED: dict[Verdict, Verdict] = {"confirmed": "refuted", "refuted": "confirmed"}  # for the other method
SEED = "seed="  # before a ``*`` that counts units; other ``*`` are settings, over which a unit is averaged


class Rules(StrictModel):
    """Rules by which a paper's claims are judged, unless a claim has rules of its own.

    Attributes:
        pairs: number of pairs of runs that a verdict uses; at least 10.
        first_look: number of pairs at an earlier look; None for a single look.
        margin: the largest negligible difference, as a share of the gap between optimum and random action.
    """

    pairs: Pairs = LEAST_PAIRS
    first_look: Pairs | None = None
    margin: Annotated[float, Field(ge=0.0)] = 0.01


class Comparison(StrictModel):
    """A method that is compared with others.

    Attributes:
        better: label of an agent, with parameters if it has any.
        envs: environments, with keywords if they have any. A pattern with ``*`` stands for all that fit it, which are
            judged together: instances of a random family are units, like seeds, and settings are averaged.
        kind: whether the method is ``better``, at least ``as good``, or ``equivalent``.
        worse_env: the environment of the other method, such as the system of ``envs`` with other known facts; empty for
            ``envs``. Environments of two patterns are paired if ``*`` matches the same string.
        by: the regret that is compared.
        after: number of rounds after which it is compared; None for all.
    """

    better: NonEmptyString
    envs: Annotated[list[str], Field(min_length=1)]
    kind: Kind = "better"
    worse_env: str = ""
    by: Regret = "average_regret"
    after: PositiveInt | None = None


class Claim(Comparison):
    """A statement about two methods.

    Attributes:
        worse: label of the other agent.
        rules: pairs, looks and margin.
    """

    worse: NonEmptyString
    rules: Rules = Rules()

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of pairs at which the claim may be decided."""
        first, last = self.rules.first_look, self.rules.pairs
        return (first, last) if first else (last,)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """The judgement of a statement by runs.

    Attributes:
        by: the regret that is compared.
        verdict: ``"open"`` also with too few pairs, ``"not run"`` without any.
        p_value: the smallest level at which there is a verdict.
        corrected: the verdict after correction for all claims of the paper, see :func:`correct_together`.
        pairs: number of pairs that were used.
        rounds: number of rounds after which runs are compared: fewer than the claim's if the runs have fewer; 0 if not
            run.
    """

    by: Regret
    verdict: Verdict
    p_value: float
    corrected: Verdict
    pairs: int
    rounds: int


@dataclass(frozen=True, kw_only=True)
class Judgement(Judged):
    """The judgement on a claim on one of its environments, by :func:`decide` with the 95 % interval.

    Attributes:
        claim: the claim.
        env: one of its environments or patterns.
        difference: the regret of ``worse`` minus that of ``better``, as a share of the gap between the optimum and a
            random action, mean over pairs of runs with the same environment, rounds and seed. NaN if not run.
        low, high: ends of its interval.
    """

    claim: Claim
    env: str
    difference: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Dominance(Judged):
    """The judgement on the claim that none of several methods is the best on all of several environments.

    Attributes:
        agents: the compared agents, each with each.
        envs: their environments; pairs and rounds are those of the comparison with the fewest pairs.
    """

    agents: tuple[str, ...]
    envs: tuple[str, ...]


JudgedT = TypeVar("JudgedT", bound=Judged)


def judge(claim: Claim, runs: Iterable[Run]) -> list[Judgement]:
    """Judge a claim on each of its environments and patterns, by the longest runs that both methods have.

    Unverified runs are left out.

    Raises:
        ArgumentError: if a run has no recommendation after the rounds of a claim by ``simple_regret``.
    """
    finished = [run for run in newest(runs) if run.status == "finished" and not run.unverified]
    return [_judge_env(claim, env, finished) for env in claim.envs]


def correct_together(judged: Sequence[JudgedT]) -> list[JudgedT]:
    """Return the judgements with corrected verdicts, after Holm (1979) over those that were run."""
    adjusted = _adjust_levels(judged)
    return [
        replace(judgement, corrected=judgement.verdict if level <= LEVEL else "open")
        for judgement, level in zip(judged, adjusted, strict=True)
    ]


def _adjust_levels(judged: Sequence[Judged]) -> list[float]:
    """Return the smallest level at which each has a verdict, corrected for all that were run; 0 if not run."""
    adjusted = iter(holm([judgement.p_value for judgement in judged if judgement.pairs]))
    return [next(adjusted) if judgement.pairs else 0.0 for judgement in judged]


def none_dominates(
    agents: Sequence[str], envs: Sequence[str], by: Regret, rules: Rules, runs: Sequence[Run]
) -> Dominance:
    """Judge whether no method is better than every other method on every environment.

    The claim is refuted by a method that is better on all of them. It is confirmed if each method is worse than another
    one on some environment, with all comparisons corrected together. Without any pair it is not run.
    """
    judged = [
        judgement
        for first, second in combinations(agents, 2)
        for judgement in judge(Claim(better=first, worse=second, envs=list(envs), rules=rules, by=by), runs)
    ]
    levels_of: dict[tuple[str, Verdict], list[float]] = defaultdict(list)  # agent, verdict -> levels
    for judgement, level in zip(judged, _adjust_levels(judged), strict=True):
        levels_of[judgement.claim.better, judgement.verdict].append(level)
        levels_of[judgement.claim.worse, REVERSED.get(judgement.verdict, judgement.verdict)].append(level)
    everywhere = len(envs) * (len(agents) - 1)
    won = [levels_of[agent, "confirmed"] for agent in agents]
    of_best = min((max(bounds) for bounds in won if len(bounds) == everywhere), default=1.0)
    of_none = max(min(levels_of[agent, "refuted"], default=1.0) for agent in agents)
    pairs, rounds = min(((each.pairs, each.rounds) for each in judged if each.pairs), default=(0, 0))
    verdict: Verdict = "refuted" if of_best <= LEVEL else "confirmed" if of_none <= LEVEL else "open"
    verdict = verdict if pairs else "not run"
    return Dominance(
        agents=tuple(agents), envs=tuple(envs), by=by, verdict=verdict, corrected=verdict,
        p_value=min(of_best, of_none), pairs=pairs, rounds=rounds,
    )  # fmt: skip


def _runs_of(runs: Iterable[Run], agent: str, env: str) -> dict[RunKey, Run]:
    """Return an agent's runs on an environment or pattern."""
    fits = re.compile(re.escape(env).replace(r"\*", "(.*)"))
    matches = ((run, fits.fullmatch(run.env)) for run in runs if run.agent == agent)
    return {(run.horizon, run.seed, match.groups()): run for run, match in matches if match}


def _judge_env(claim: Claim, env: str, runs: Sequence[Run]) -> Judgement:
    better, worse = _runs_of(runs, claim.better, env), _runs_of(runs, claim.worse, claim.worse_env or env)
    both = [key for key in better if key in worse]
    if not both:
        return _judgement(claim, env, "not run", np.empty(0), 1.0, 0)
    longest = max(horizon for horizon, _, _ in both)
    rounds = min(claim.after or longest, longest)
    # A unit is a seed and the instance of a family; settings are averaged.
    counts_units = [start.endswith(SEED) for start in env.split("*")[:-1]]
    units: dict[tuple[int, tuple[str, ...]], list[float]] = defaultdict(list)
    for key in both:
        horizon, seed, values = key
        if horizon == longest:
            lost = regret_after(worse[key], claim, rounds) - regret_after(better[key], claim, rounds)
            units[seed, tuple(compress(values, counts_units))].append(lost)
    differences = np.array([np.mean(units[unit]) for unit in sorted(units)])
    return _judgement(claim, env, *_decide(claim, differences), _p_value(claim, differences), rounds)


def _judgement(claim: Claim, env: str, verdict: Verdict, counted: np.ndarray, p_value: float, rounds: int) -> Judgement:
    low, high = interval(counted)
    return Judgement(
        claim=claim, env=env, by=claim.by, verdict=verdict, corrected=verdict, p_value=p_value, pairs=len(counted),
        rounds=rounds, difference=float(counted.mean()) if len(counted) else np.nan, low=low, high=high,
    )  # fmt: skip


def _decide(claim: Claim, differences: np.ndarray) -> tuple[Verdict, np.ndarray]:
    """Return the verdict and its pairs: the pairs of the first look that decides, else all up to the last look."""
    for look, level in zip(claim.looks, levels(claim.looks), strict=True):
        if look <= len(differences):
            verdict = decide(claim.kind, *interval(differences[:look], level), claim.rules.margin)
            if verdict != "open":
                return verdict, differences[:look]
    return "open", differences[: claim.looks[-1]]


def _p_value(claim: Claim, differences: np.ndarray) -> float:
    """Return the smallest p-value of the looks taken, each divided by the look's share of the level."""
    shares = np.array(levels(claim.looks)) / sum(levels(claim.looks))
    taken = [
        p_value(differences[:look], claim.kind, claim.rules.margin) / share
        for look, share in zip(claim.looks, shares, strict=True)
        if look <= len(differences)
    ]
    return float(min([1.0, *taken]))


def regret_after(run: Run, claim: Claim, rounds: int) -> float:
    """Return the claim's regret of a run, as a share of the gap between the optimum and a random action.

    ``missing_gap_over_time`` is 1 - G_t of the whole run, without a unit.
    """
    if claim.by == "missing_gap_over_time":
        return 1.0 - mean_slice_gap(run)
    value = run.table[claim.by][rounds - 1]
    if value is None:
        raise ArgumentError(
            f"{run.agent} on {run.env}, seed {run.seed}, has no {claim.by} after {rounds} of its {run.horizon} rounds: "
            f"it was played with recommend={run.recommend!r}. Play it with recommend='every', or judge after the last "
            "round"
        )
    return float(value) / (run.optimum - run.random_value)
