"""Comparison of replays on other hardware with the published runs: whether a group of runs differs beyond chance.

Another processor sums in another order, and a method that searches turns differences of last digits into other actions.
So single runs are not compared, but groups: the runs of an agent on an environment, or on all instances of a random
family of environments. Two tests compare the scores of play and of the last recommendation; each rejects a group that
was published honestly with a probability of at most its level:

* *paired*: under the null hypothesis, the stored and the replayed score of a seed can be swapped; the mean difference
  is compared with those under all swaps. It is powerful if the seed explains much of the score. With n pairs no p value
  is below ``2 ** (1 - n)``: 6 % for five.
* *unpaired*: under the null hypothesis, the replayed scores are draws from the same distribution as the stored ones;
  the mean difference is compared with those of all divisions of the pooled scores. The smallest p value is
  ``2 / comb(n + m, n)``: with five replays of a group of twenty, 1 in 27,000. Shared seeds make the means more alike,
  so the test is conservative.

The p value of a group is twice the smaller one. It is corrected over groups after Holm (1979), A simple sequentially
rejective multiple test procedure: with a probability of at least 1 - :data:`LEVEL`, no group of an honest store
*differs*. If even the smallest possible p value is too large to be rejected, there are *too few* replays.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, product
from typing import Literal

import numpy as np

from cbo_gym.evaluation.metrics.aggregate import holm
from cbo_gym.evaluation.metrics.regret import TIE_DECIMALS
from cbo_gym.evaluation.runs.counted import without_keywords
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.seed_ranges import INSTANCE_SEED
from cbo_gym.referee.referee import scores
from cbo_gym.referee.replay import Replay, sample_of

LEVEL = 0.01
# Smallest number of replays with which a group is compared, and largest number of a group's runs in a sample.
MIN_REPLAYS, MAX_REPLAYS = 5, 12
# Number of random rearrangements, if there are too many to try all.
DRAWS = 20_000
GroupVerdict = Literal["identical", "agrees", "differs", "too few", "skipped"]
# Labels of agent and environment (without an instance), number of rounds, and size of batches.
Group = tuple[str, str, int, int]


@dataclass(frozen=True)
class Agreement:
    """Outcome of the replays of a group of runs.

    Attributes:
        agent, env, horizon: Labels and number of rounds of the group; the label of a random family names no instance.
        replays: Replays of runs of the group.
        verdict: ``"identical"`` if all replays are; ``"agrees"`` if rounds or the distributions of scores agree;
            ``"differs"`` if they do not, or if a run that must be identical is not; ``"too few"`` replays for a
            decision; ``"skipped"`` if a run cannot be played here.
        why: Reason for the verdict; empty if identical.
        p_value: p value of the two tests together, before the correction over groups; None if they were not run.
    """

    agent: str
    env: str
    horizon: int
    replays: tuple[Replay, ...]
    verdict: GroupVerdict
    why: str = ""
    p_value: float | None = None


def sample_to_compare(
    runs: Sequence[Run], count: int, seed: int, must_be_identical: Callable[[Run], bool]
) -> list[Run]:
    """Return a sample of finished runs to play again.

    Single runs are drawn if their replays must be identical, or if ``count`` is too small for a group. Otherwise groups
    are drawn. A group that is too small to be compared is left out, unless all groups are.

    Args:
        runs: Published runs.
        count: Smallest size of the sample, if there are as many finished runs.
        seed: Seed of the sample.
        must_be_identical: Returns whether the replay of a run on this machine must be identical.
    """
    chosen = sample_of(runs, count, seed)
    if count < MIN_REPLAYS or all(map(must_be_identical, chosen)):
        return chosen
    groups = [group for group in _group_runs(sample_of(runs, len(runs))).values() if len(group) >= MIN_REPLAYS]
    sample: list[Run] = []
    for index in np.random.default_rng(seed).permutation(len(groups)):
        if len(sample) >= count:
            break
        sample += sample_of(groups[index], min(MAX_REPLAYS, max(MIN_REPLAYS, count)), seed)
    return sample or chosen


def agreements(replays: Iterable[Replay], stored: Sequence[Run]) -> list[Agreement]:
    """Compare the replays of each group with the stored runs.

    Args:
        replays: Replays of runs of one or several groups.
        stored: All published runs, including the other runs of these groups.
    """
    by_group: defaultdict[Group, list[Replay]] = defaultdict(list)
    for replay in replays:
        by_group[_group(replay.run)].append(replay)
    stored_of = _group_runs(run for run in stored if run.status == "finished")
    results = {group: _compare(group, played, stored_of[group]) for group, played in by_group.items()}
    p_values = {group: result.p_value for group, result in results.items() if result.p_value is not None}
    for group, adjusted in zip(p_values, holm(list(p_values.values())), strict=True):
        results[group] = _with_verdict(results[group], len(stored_of[group]), adjusted <= LEVEL, len(p_values))
    return list(results.values())


def p_value_of(stored: np.ndarray, replayed: np.ndarray, others: np.ndarray) -> float:
    """Return the p value of the difference between replayed and stored scores, by both tests.

    Args:
        stored: Stored scores of the replayed runs, shape ``(n, k)``.
        replayed: Scores of the same runs as played here, shape ``(n, k)``.
        others: Scores of the other stored runs of the group, shape ``(m - n, k)``.
    """
    # Runs that find the optimum have scores that differ by rounding errors, perhaps all in one direction.
    stored, replayed, others = (array.round(TIE_DECIMALS) for array in (stored, replayed, others))
    paired = _paired_p_value(replayed - stored)
    unpaired = _unpaired_p_value(replayed, np.concatenate([stored, others]))
    return min(1.0, 2 * min(paired, unpaired))


def min_p_value(replays: int, stored: int) -> float:
    """Return the smallest possible p value for these numbers of replays and of stored runs."""
    return 2 * min(2.0 ** (1 - replays), 2 / math.comb(replays + stored, replays))


def _compare(group: Group, replays: Sequence[Replay], stored: Sequence[Run]) -> Agreement:
    """Return the outcome of a group; if it has a p value, :func:`_with_verdict` gives the verdict."""
    agent, env, horizon, _ = group
    agreement = Agreement(agent, env, horizon, tuple(replays), "identical")
    for verdict in ("skipped", "differs"):
        mismatches = [replay for replay in replays if replay.verdict == verdict and not replay.diverged]
        if mismatches:
            return replace(agreement, verdict=verdict, why=f"seed {mismatches[0].run.seed}: {mismatches[0].why}")
    if all(replay.verdict == "identical" for replay in replays):
        return agreement
    diverged = sum(replay.diverged for replay in replays)
    if not diverged:
        return replace(agreement, verdict="agrees", why="rounds differ by no more than rounding")
    if len(replays) < MIN_REPLAYS:
        why = f"{diverged} of {len(replays)} diverge; {MIN_REPLAYS} replays are needed"
        return replace(agreement, verdict="too few", why=why)
    finished = [replay for replay in replays if replay.run.status == "finished"]
    published = scores([replay.run for replay in finished if replay.replayed])
    replayed = scores([replay.replayed for replay in finished if replay.replayed])
    ids = {replay.run.id for replay in replays}
    others = scores([run for run in stored if run.id not in ids])
    return replace(agreement, p_value=p_value_of(published, replayed, others))


def _with_verdict(agreement: Agreement, stored: int, is_rejected: bool, tests: int) -> Agreement:
    """Return the outcome of a group that was tested: one of ``tests`` groups, with ``stored`` published runs."""
    diverged = sum(replay.diverged for replay in agreement.replays)
    why = f"{diverged} of {len(agreement.replays)} diverge; p = {agreement.p_value:.2g}"
    if is_rejected:
        return replace(agreement, verdict="differs", why=why)
    if min_p_value(len(agreement.replays), stored) > LEVEL / tests:
        return replace(agreement, verdict="too few", why=f"{why}, and could not be below {LEVEL / tests:.2g}")
    return replace(agreement, verdict="agrees", why=why)


def _paired_p_value(differences: np.ndarray) -> float:
    """Return the p value of the largest mean difference under swaps within pairs."""
    signs, is_complete = _swaps(len(differences))
    scale = np.sqrt((differences**2).sum(axis=0))
    return _rearrangement_p_value(differences.sum(axis=0), signs @ differences, scale, is_complete)


def _unpaired_p_value(first: np.ndarray, second: np.ndarray) -> float:
    """Return the p value of the difference of two means under divisions of the pooled scores into groups as large."""
    pooled = np.concatenate([first, second])
    centred = pooled - pooled.mean(axis=0)
    indicators, is_complete = _divisions(len(first), len(pooled))
    observed = centred[: len(first)].sum(axis=0)
    return _rearrangement_p_value(observed, indicators @ centred, centred.std(axis=0), is_complete)


@lru_cache(maxsize=4)
def _swaps(count: int) -> tuple[np.ndarray, bool]:
    """Return signs of the differences, shape ``(swaps, count)``, and whether these are all swaps."""
    if 2**count > DRAWS:
        return np.random.default_rng(0).choice((1.0, -1.0), size=(DRAWS, count)), False
    return np.array(list(product((1.0, -1.0), repeat=count))), True


@lru_cache(maxsize=4)
def _divisions(count: int, total: int) -> tuple[np.ndarray, bool]:
    """Return indicators of the first group, shape ``(divisions, total)``, and whether these are all divisions."""
    is_complete = math.comb(total, count) <= DRAWS
    if is_complete:
        indices = np.array(list(combinations(range(total), count)))
    else:
        indices = np.argsort(np.random.default_rng(0).random((DRAWS, total)), axis=1)[:, :count]
    indicators = np.zeros((len(indices), total))
    np.put_along_axis(indicators, indices, 1.0, axis=1)
    return indicators, is_complete


def _rearrangement_p_value(observed: np.ndarray, rearranged: np.ndarray, scale: np.ndarray, is_complete: bool) -> float:
    """Return the fraction of rearrangements that are at least as far from 0, in units of ``scale``, as ``observed``.

    Args:
        observed: Shape ``(k,)``; the largest distance of the k scores counts.
        rearranged: Shape ``(draws, k)``.
        scale: Shape ``(k,)``; 0 if a score does not vary.
        is_complete: Whether these are all rearrangements; if not, the observed value counts as one more.
    """
    units = np.where(scale > 0, scale, np.inf)
    is_far = (np.abs(rearranged) / units).max(axis=1) >= (np.abs(observed) / units).max() * (1 - 1e-12)
    return float(is_far.mean() if is_complete else (1 + is_far.sum()) / (1 + len(is_far)))


def _group(run: Run) -> Group:
    return run.agent, without_keywords(run.env, INSTANCE_SEED), run.horizon, run.batch


def _group_runs(runs: Iterable[Run]) -> defaultdict[Group, list[Run]]:
    groups: defaultdict[Group, list[Run]] = defaultdict(list)
    for run in runs:
        groups[_group(run)].append(run)
    return groups
