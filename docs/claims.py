"""Claims of papers about two methods, judged by runs: whose regret is the smaller, seed by seed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, PositiveInt

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.metrics.aggregate import half_width
from cbo_gym.evaluation.metrics.gap import mean_slice_gap
from cbo_gym.evaluation.runs.counted import newest
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.validation import StrictModel

Verdict = Literal["confirmed", "refuted", "open", "not run"]
Regret = Literal[
    "average_regret", "best_so_far_regret", "simple_regret", "average_pseudo_regret", "missing_gap_over_time"
]
Text = Annotated[str, Field(min_length=1)]
Place = tuple[int, int, tuple[str, ...]]  # rounds, seed, and what stands for each ``*``: runs that share it are a pair


class Claim(StrictModel):
    """That one method does better than another.

    Attributes:
        better, worse: labels of agents, with parameters if they have any.
        envs: environments, with keywords if they have any. A pattern with ``*`` stands for all that fit it, as
            instances of a random family, which are judged together.
        worse_env: what ``worse`` plays where it is told other things of the same system, for all of ``envs``; empty
            for these themselves. Of two patterns those are paired that have the same in the place of ``*``.
        by: the regret that is the smaller.
        after: rounds; None for the last.
    """

    better: Text
    worse: Text
    envs: Annotated[list[str], Field(min_length=1)]
    worse_env: str = ""
    by: Regret = "average_regret"
    after: PositiveInt | None = None


@dataclass(frozen=True)
class Judgement:
    """The judgement of runs on a claim on one of its environments.

    Attributes:
        claim: that is judged.
        env: one of its environments or patterns.
        verdict: ``"confirmed"`` if the whole 95 % t-interval of the difference is above 0, ``"refuted"`` if it is
            below, ``"open"`` else, also with a single pair; ``"not run"`` without pairs.
        difference: of the regrets, of ``worse`` less ``better``, as a share of what lies between the optimum and a
            random action: its mean over pairs of runs with the same environment, rounds and seed. NaN if not run.
        half: half the width of its interval; NaN of fewer than two pairs.
        pairs: how many.
        rounds: after which they are compared: fewer than the claim says if the runs have fewer. 0 if not run.
    """

    claim: Claim
    env: str
    verdict: Verdict
    difference: float
    half: float
    pairs: int
    rounds: int


def judge(claim: Claim, runs: Iterable[Run]) -> list[Judgement]:
    """One judgement for each of a claim's environments and patterns, by the longest runs that both methods have.

    Unverified runs judge nothing.

    Raises:
        ArgumentError: if a run has no recommendation yet after as many rounds as the claim by ``simple_regret`` says.
    """
    finished = [run for run in newest(runs) if run.status == "finished" and not run.unverified]
    return [
        _judged(claim, env, _of(finished, claim.better, env), _of(finished, claim.worse, claim.worse_env or env))
        for env in claim.envs
    ]


def _of(runs: Iterable[Run], agent: str, env: str) -> dict[Place, Run]:
    """An agent's runs on an environment or pattern."""
    fits = re.compile(re.escape(env).replace(r"\*", "(.*)"))
    own = ((run, fits.fullmatch(run.env)) for run in runs if run.agent == agent)
    return {(run.horizon, run.seed, found.groups()): run for run, found in own if found}


def _judged(claim: Claim, env: str, better: Mapping[Place, Run], worse: Mapping[Place, Run]) -> Judgement:
    both = [(run, worse[place]) for place, run in better.items() if place in worse]
    if not both:
        return Judgement(claim, env, "not run", np.nan, np.nan, 0, 0)
    longest = max(run.horizon for run, _ in both)
    pairs = [pair for pair in both if pair[0].horizon == longest]
    rounds = min(claim.after or longest, longest)
    differences = np.array(
        [regret_after(lost, claim, rounds) - regret_after(won, claim, rounds) for won, lost in pairs]
    )
    mean, half = float(differences.mean()), float(half_width(differences))
    return Judgement(claim, env, _verdict(mean, half), mean, half, len(pairs), rounds)


def regret_after(run: Run, claim: Claim, rounds: int) -> float:
    """The claim's regret of a run, as a share of what lies between the optimum and a random action.

    Of an agent that was asked for its recommendation less often, that of the last one. What is missing of G_t to 1 is
    of the whole run, and needs no unit.
    """
    if claim.by == "missing_gap_over_time":
        return 1.0 - mean_slice_gap(run)
    values = run.table[claim.by].head(rounds).drop_nulls()
    if values.is_empty():
        raise ArgumentError(
            f"{run.agent} on {run.env}, seed {run.seed}, has no {claim.by} in its first {rounds} of {run.horizon} "
            f"rounds: it was played with recommend={run.recommend!r}. Play it with recommend='every' or 'powers', or "
            "judge after the last round"
        )
    return float(values[-1]) / (run.optimum - run.random_value)


def _verdict(mean: float, half: float) -> Verdict:
    if np.isnan(half) or abs(mean) <= half:
        return "open"
    return "confirmed" if mean > 0 else "refuted"
