"""Agreement of replays on other hardware: whether a group of runs differs from the stored ones beyond chance.

Another processor sums in another order, and a method that searches turns last digits into other actions. So groups
of runs are compared, not single ones: one agent on one environment, or on the instances of a random family. Two tests
compare the scores of play and of the last recommendation; each rejects an honest group at most at its level:

* *paired*: under the null hypothesis, the stored and the replayed score of a seed can be swapped; the mean difference
  is compared with those under all swaps. It is powerful if the seed explains much of the score. With n pairs no p value
  is below ``2 ** (1 - n)``: 6 % for five.
* *unpaired*: under the null hypothesis, the replayed scores are draws from the same distribution as the stored ones;
  the mean difference is compared with those of all divisions of both. The smallest p value is ``2 / comb(n + m, n)``:
  with five replays of a group of twenty, 1 in 27,000. Shared seeds make the means more alike, so it is conservative.

The smaller p value counts, doubled. Over groups it is corrected after Holm (1979), A simple sequentially rejective
multiple test procedure, so that at most :data:`LEVEL` of all stores that honest hardware replays have any group that
*differs*. If even the smallest possible p value is too large for that, there are *too few* replays.
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
from cbo_gym.evaluation.runs.counted import without_keywords
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.seed_ranges import INSTANCE_SEED
from cbo_gym.referee.referee import scores
from cbo_gym.referee.replay import Replay, sample_of

LEVEL = 0.01
# Least number of replays with which a group is compared, and largest number of its runs in a sample.
MIN_REPLAYS, MAX_REPLAYS = 5, 12
# Number of random rearrangements, if there are too many to try all.
DRAWS = 20_000
GroupVerdict = Literal["identical", "agrees", "differs", "too few", "skipped"]
Group = tuple[str, str, int, int]


@dataclass(frozen=True)
class Agreement:
    """Outcome of the replays of a group.

    Attributes:
        agent, env, horizon: Labels and number of rounds of the group; the label of a random family names no instance.
        replays: Replays of its runs.
        verdict: ``"identical"`` if all replays are; ``"agrees"`` if rounds or the distributions of scores agree;
            ``"differs"`` if not, or if a run that must be identical is not; ``"too few"``; ``"skipped"`` if a run
            cannot be played here.
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


def sample_to_compare(runs: Sequence[Run], count: int, seed: int, same: Callable[[Run], bool]) -> list[Run]:
    """Return a sample of finished runs: random ones if all must be identical when replayed, else whole groups.

    Groups that are too small to be compared are left out, unless there are no others, or ``count`` is that small.

    Args:
        runs: Published runs.
        count: Smallest size of the sample, if there are as many.
        seed: Seed of the sample.
        same: Whether a replay of a run here must be identical.

    Raises:
        ArgumentError: if no run finished.
    """
    chosen = sample_of(runs, count, seed)
    if count < MIN_REPLAYS or all(map(same, chosen)):
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
    of_group = _group_runs(run for run in stored if run.status == "finished")
    uncorrected = {group: _before_correction(group, played, of_group[group]) for group, played in by_group.items()}
    p_values = [agreement.p_value for agreement in uncorrected.values() if agreement.p_value is not None]
    adjusted = iter(holm(p_values))
    return [
        agreement
        if agreement.p_value is None
        else _with_verdict(agreement, len(of_group[group]), next(adjusted) <= LEVEL, len(p_values))
        for group, agreement in uncorrected.items()
    ]


def p_value_of(stored: np.ndarray, replayed: np.ndarray, others: np.ndarray) -> float:
    """Return the p value of the difference between replayed and stored scores.

    Args:
        stored: Stored scores of the replayed runs, shape ``(n, k)``.
        replayed: Scores of the same runs as played here, shape ``(n, k)``.
        others: Scores of the other stored runs of the group, shape ``(m - n, k)``.
    """
    return min(
        1.0, 2 * min(_paired_p_value(replayed - stored), _unpaired_p_value(replayed, np.concatenate([stored, others])))
    )


def min_p_value(replays: int, stored: int) -> float:
    """Return the smallest possible p value for these numbers of replays and of stored runs."""
    return 2 * min(2.0 ** (1 - replays), 2 / math.comb(replays + stored, replays))


def _before_correction(group: Group, replays: Sequence[Replay], stored: Sequence[Run]) -> Agreement:
    """Return the outcome of a group before the correction over groups."""
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
        return replace(
            agreement, verdict="too few", why=f"{diverged} of {len(replays)} diverge; {MIN_REPLAYS} replays are needed"
        )
    replayed = {replay.run.id for replay in replays}
    pairs = ((replay.run, replay.replayed) for replay in replays if replay.run.status == "finished")
    finished = [(run, replayed_run) for run, replayed_run in pairs if replayed_run is not None]
    before, again = (scores([pair[k] for pair in finished]) for k in (0, 1))
    return replace(
        agreement, p_value=p_value_of(before, again, scores([run for run in stored if run.id not in replayed]))
    )


def _with_verdict(agreement: Agreement, stored: int, rejected: bool, tested: int) -> Agreement:
    diverged = sum(replay.diverged for replay in agreement.replays)
    why = f"{diverged} of {len(agreement.replays)} diverge; p = {agreement.p_value:.2g}"
    if rejected:
        return replace(agreement, verdict="differs", why=why)
    if min_p_value(len(agreement.replays), stored) > LEVEL / tested:
        return replace(agreement, verdict="too few", why=f"{why}, and could not be below {LEVEL / tested:.2g}")
    return replace(agreement, verdict="agrees", why=why)


def _paired_p_value(differences: np.ndarray) -> float:
    """Return the p value of the largest mean difference under swaps within pairs."""
    signs, exact = _swaps(len(differences))
    scale = np.sqrt((differences**2).sum(axis=0))
    return _rearrangement_p_value(differences.sum(axis=0), signs @ differences, scale, exact)


def _unpaired_p_value(first: np.ndarray, second: np.ndarray) -> float:
    """Return the p value of the difference of two means under divisions of all into two groups of the same sizes."""
    pooled = np.concatenate([first, second])
    centred = pooled - pooled.mean(axis=0)
    shares, exact = _divisions(len(first), len(pooled))
    return _rearrangement_p_value(centred[: len(first)].sum(axis=0), shares @ centred, centred.std(axis=0), exact)


@lru_cache(maxsize=4)
def _swaps(count: int) -> tuple[np.ndarray, bool]:
    """Return signs of pairs, shape ``(swaps, count)``, and whether these are all swaps."""
    if 2**count > DRAWS:
        return np.random.default_rng(0).choice((1.0, -1.0), size=(DRAWS, count)), False
    return np.array(list(product((1.0, -1.0), repeat=count))), True


@lru_cache(maxsize=4)
def _divisions(count: int, total: int) -> tuple[np.ndarray, bool]:
    """Return indicators of the first group, shape ``(divisions, total)``, and whether these are all divisions."""
    exact = math.comb(total, count) <= DRAWS
    if exact:
        indices = np.array(list(combinations(range(total), count)))
    else:
        indices = np.argsort(np.random.default_rng(0).random((DRAWS, total)), axis=1)[:, :count]
    shares = np.zeros((len(indices), total))
    np.put_along_axis(shares, indices, 1.0, axis=1)
    return shares, exact


def _rearrangement_p_value(observed: np.ndarray, by_chance: np.ndarray, scale: np.ndarray, exact: bool) -> float:
    """Return the share of rearrangements at least as far from 0, in units of the scale, as the observed value.

    Args:
        observed: Shape ``(k,)``; the farthest of k scores counts.
        by_chance: Shape ``(draws, k)``.
        scale: Shape ``(k,)``; 0 if a score does not vary.
        exact: Whether these are all rearrangements; if not, the observed value counts as one more.
    """
    units = np.where(scale > 0, scale, np.inf)
    far = (np.abs(by_chance) / units).max(axis=1) >= (np.abs(observed) / units).max() * (1 - 1e-12)
    return float(far.mean() if exact else (1 + far.sum()) / (1 + len(far)))


def _group(run: Run) -> Group:
    return run.agent, without_keywords(run.env, INSTANCE_SEED), run.horizon, run.batch


def _group_runs(runs: Iterable[Run]) -> defaultdict[Group, list[Run]]:
    groups: defaultdict[Group, list[Run]] = defaultdict(list)
    for run in runs:
        groups[_group(run)].append(run)
    return groups
