"""Judge claims about two methods by runs: which regret is smaller, compared seed by seed.

The statement of a claim, its number of pairs of runs and its margin are written in ``claims/data`` before the runs are
played. A verdict uses the first pairs up to this number, even if more have been played.
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
# Number of rounds, seed, and the string that each ``*`` matches. Runs of two agents with the same key are a pair.
RunKey = tuple[int, int, tuple[str, ...]]
# Verdict on a claim -> verdict on the claim with the methods exchanged.
REVERSED: dict[Verdict, Verdict] = {"confirmed": "refuted", "refuted": "confirmed"}
# End of what precedes a ``*`` that stands for seeds or instances; other ``*`` stand for settings.
SEED = "seed="


class Rules(StrictModel):
    """Rules by which claims are judged.

    Attributes:
        pairs: number of pairs of runs that a verdict uses; at least 10.
        first_look: smaller number of pairs after which a claim may already be decided; None for no such look.
        margin: the largest negligible difference, as a fraction of the gap between optimum and random action.
    """

    pairs: Pairs = LEAST_PAIRS
    first_look: Pairs | None = None
    margin: Annotated[float, Field(ge=0.0)] = 0.01


class BaseClaim(StrictModel):
    """The part of a claim about the better method, which claims about several other methods share.

    Attributes:
        better: label of an agent, with parameters if it has any.
        envs: environments, with parameters if they have any. A pattern with ``*`` stands for all environments that fit
            it, which are judged together: instances of a random family are treated like seeds, settings are averaged.
        kind: whether the method is ``better``, at least ``as good``, or ``equivalent``.
        worse_env: environment of the other method, if it is another one, such as the same system with other known
            facts; else empty. Environments of two patterns are paired if ``*`` matches the same string.
        by: regret that is compared.
        after: number of rounds after which the regret is compared; None for all rounds.
    """

    better: NonEmptyString
    envs: Annotated[list[str], Field(min_length=1)]
    kind: Kind = "better"
    worse_env: str = ""
    by: Regret = "average_regret"
    after: PositiveInt | None = None


class Claim(BaseClaim):
    """A statement about two methods.

    Attributes:
        worse: label of the agent of the other method.
        rules: rules by which the claim is judged.
    """

    worse: NonEmptyString
    rules: Rules = Rules()

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of pairs at which the claim may be decided."""
        first, last = self.rules.first_look, self.rules.pairs
        return (first, last) if first else (last,)


@dataclass(frozen=True, kw_only=True)
class BaseJudgement:
    """The result of judging a statement by runs.

    Attributes:
        by: regret that is compared.
        verdict: ``"open"`` if the runs decide nothing or there are too few pairs, ``"not run"`` without any pair.
        p_value: smallest level at which there is a verdict.
        corrected: verdict after correction for all claims of the paper, see :func:`correct_together`.
        pairs: number of pairs that were used.
        rounds: number of rounds after which runs are compared, fewer than the claim's if the runs have fewer; 0 without
            any pair.
    """

    by: Regret
    verdict: Verdict
    p_value: float
    corrected: Verdict
    pairs: int
    rounds: int


@dataclass(frozen=True, kw_only=True)
class Judgement(BaseJudgement):
    """The result of judging a claim on one of its environments.

    Attributes:
        claim: the claim.
        env: one of its environments or patterns.
        difference: regret of ``worse`` minus regret of ``better``, as a fraction of the gap between optimum and random
            action, mean over the pairs; NaN without any pair.
        low, high: ends of the difference's 95 % interval.
    """

    claim: Claim
    env: str
    difference: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Dominance(BaseJudgement):
    """The result of judging the claim that no method is the best on all environments.

    ``pairs`` and ``rounds`` are those of the comparison with the fewest pairs.

    Attributes:
        agents: the agents, each of which is compared with each other.
        envs: the environments.
    """

    agents: tuple[str, ...]
    envs: tuple[str, ...]


AnyJudgement = TypeVar("AnyJudgement", bound=BaseJudgement)


def judge(claim: Claim, runs: Iterable[Run]) -> list[Judgement]:
    """Judge a claim on each of its environments and patterns, by the longest verified runs that both methods have."""
    finished = [run for run in newest(runs) if run.status == "finished" and not run.unverified]
    return [_judge_env(claim, env, finished) for env in claim.envs]


def correct_together(judgements: Sequence[AnyJudgement]) -> list[AnyJudgement]:
    """Return the judgements with corrected verdicts, after Holm (1979) over those that have pairs."""
    return [
        replace(judgement, corrected=judgement.verdict if level <= LEVEL else "open")
        for judgement, level in zip(judgements, _adjust_levels(judgements), strict=True)
    ]


def _adjust_levels(judgements: Sequence[BaseJudgement]) -> list[float]:
    """Return the smallest level at which each judgement has a verdict, corrected together; 0 without pairs."""
    adjusted = iter(holm([judgement.p_value for judgement in judgements if judgement.pairs]))
    return [next(adjusted) if judgement.pairs else 0.0 for judgement in judgements]


def none_dominates(
    agents: Sequence[str], envs: Sequence[str], by: Regret, rules: Rules, runs: Sequence[Run]
) -> Dominance:
    """Judge whether no method is better than every other method on every environment.

    The claim is refuted if there is such a method. It is confirmed if each method is worse than another one on some
    environment. All comparisons are corrected together. Without any pair the verdict is ``"not run"``.
    """
    judgements: list[Judgement] = []
    for better, worse in combinations(agents, 2):
        judgements += judge(Claim(better=better, worse=worse, envs=list(envs), rules=rules, by=by), runs)
    # Agent and verdict -> corrected levels of the agent's comparisons with this verdict.
    levels_of: dict[tuple[str, Verdict], list[float]] = defaultdict(list)
    for judgement, level in zip(judgements, _adjust_levels(judgements), strict=True):
        levels_of[judgement.claim.better, judgement.verdict].append(level)
        levels_of[judgement.claim.worse, REVERSED.get(judgement.verdict, judgement.verdict)].append(level)
    comparisons = len(envs) * (len(agents) - 1)
    wins = [levels_of[agent, "confirmed"] for agent in agents]
    refuted_level = min((max(levels) for levels in wins if len(levels) == comparisons), default=1.0)
    confirmed_level = max(min(levels_of[agent, "refuted"], default=1.0) for agent in agents)
    extents = [(judgement.pairs, judgement.rounds) for judgement in judgements if judgement.pairs]
    pairs, rounds = min(extents, default=(0, 0))
    verdict: Verdict = "open" if pairs else "not run"
    if pairs and refuted_level <= LEVEL:
        verdict = "refuted"
    elif pairs and confirmed_level <= LEVEL:
        verdict = "confirmed"
    return Dominance(
        agents=tuple(agents), envs=tuple(envs), by=by, verdict=verdict, corrected=verdict,
        p_value=min(refuted_level, confirmed_level), pairs=pairs, rounds=rounds,
    )  # fmt: skip


def _runs_of(runs: Iterable[Run], agent: str, env: str) -> dict[RunKey, Run]:
    """Return an agent's runs on an environment or pattern, without batches, because claims are about single actions."""
    pattern = re.compile(re.escape(env).replace(r"\*", "(.*)"))
    matches = ((run, pattern.fullmatch(run.env)) for run in runs if run.agent == agent and run.batch == 1)
    return {(run.horizon, run.seed, match.groups()): run for run, match in matches if match}


def _judge_env(claim: Claim, env: str, runs: Sequence[Run]) -> Judgement:
    better, worse = _runs_of(runs, claim.better, env), _runs_of(runs, claim.worse, claim.worse_env or env)
    both = [key for key in better if key in worse]
    if not both:
        return _judgement(claim, env, "not run", np.empty(0), 1.0, 0)
    longest = max(horizon for horizon, _, _ in both)
    rounds = min(claim.after or longest, longest)
    # The differences of a seed and an instance are averaged over settings.
    is_instance = [before.endswith(SEED) for before in env.split("*")[:-1]]
    by_seed: dict[tuple[int, tuple[str, ...]], list[float]] = defaultdict(list)
    for key in both:
        horizon, seed, values = key
        if horizon == longest:
            difference = regret_after(worse[key], claim, rounds) - regret_after(better[key], claim, rounds)
            by_seed[seed, tuple(compress(values, is_instance))].append(difference)
    differences = np.array([np.mean(by_seed[seed]) for seed in sorted(by_seed)])
    return _judgement(claim, env, *_decide(claim, differences), _p_value(claim, differences), rounds)


def _judgement(
    claim: Claim, env: str, verdict: Verdict, differences: np.ndarray, p_value: float, rounds: int
) -> Judgement:
    low, high = interval(differences)
    return Judgement(
        claim=claim, env=env, by=claim.by, verdict=verdict, corrected=verdict, p_value=p_value, pairs=len(differences),
        rounds=rounds, difference=float(differences.mean()) if len(differences) else np.nan, low=low, high=high,
    )  # fmt: skip


def _decide(claim: Claim, differences: np.ndarray) -> tuple[Verdict, np.ndarray]:
    """Return the verdict and the differences that it uses: up to the first look that decides, else up to the last."""
    for look, level in zip(claim.looks, levels(claim.looks), strict=True):
        if look <= len(differences):
            verdict = decide(claim.kind, *interval(differences[:look], level), claim.rules.margin)
            if verdict != "open":
                return verdict, differences[:look]
    return "open", differences[: claim.looks[-1]]


def _p_value(claim: Claim, differences: np.ndarray) -> float:
    """Return the smallest p-value of the looks, each divided by the look's share of the level."""
    shares = np.array(levels(claim.looks)) / sum(levels(claim.looks))
    p_values = [
        p_value(differences[:look], claim.kind, claim.rules.margin) / share
        for look, share in zip(claim.looks, shares, strict=True)
        if look <= len(differences)
    ]
    return float(min([1.0, *p_values]))


def regret_after(run: Run, claim: Claim, rounds: int) -> float:
    """Return the claim's regret of a run, as a fraction of the gap between optimum and random action.

    ``missing_gap_over_time`` is 1 - G_t, which needs no such scale, of the whole run.
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
