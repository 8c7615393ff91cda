"""Agreement of replays on other hardware: whether a group of runs differs from the stored ones beyond chance.

Another processor sums in another order, and a method that searches turns last digits into other actions. So not single
runs are compared but groups: one agent on one environment, or on the instances of a random family. Two tests compare
the scores of play and of the last recommendation; each rejects at most its level of honest groups:

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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, product
from typing import Literal

import numpy as np

from cbo_gym.evaluation.metrics.aggregate import holm
from cbo_gym.evaluation.runs.counted import without_keywords
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.verify.referee import scores
from cbo_gym.evaluation.verify.replay import Replay, sample_of
from cbo_gym.seed_ranges import INSTANCE_SEED

LEVEL = 0.01
# Replays of a group that can be compared, and that a sample takes of one group.
MIN_REPLAYS, MAX_REPLAYS = 5, 12
# Random rearrangements, if there are more.
DRAWS = 20_000
Agreed = Literal["identical", "agrees", "differs", "too few", "skipped"]
Group = tuple[str, str, int, int]


@dataclass(frozen=True, eq=False)
class Agreement:
    """Outcome of the replays of a group.

    Attributes:
        agent, env, horizon: What the runs of the group share; of a random family the env names no instance.
        replays: Replays of its runs.
        verdict: ``"identical"`` if all are; ``"agrees"`` if their rounds or the distributions of their scores agree;
            ``"differs"`` if not, or if a run that must be identical is not; ``"too few"``; ``"skipped"`` if a run
            cannot be played here.
        why: The reason in words; empty if identical.
        p_value: p value of the two tests together, before the correction over groups; None if they were not made.
    """

    agent: str
    env: str
    horizon: int
    replays: tuple[Replay, ...]
    verdict: Agreed
    why: str = ""
    p_value: float | None = None


def sample_to_compare(runs: Sequence[Run], count: int, seed: int, same: Callable[[Run], bool]) -> list[Run]:
    """Return a sample of finished runs: random ones if all must be identical when replayed, else whole groups.

    Groups that are too small to be compared are left out, unless there are no others.

    Args:
        runs: Published runs.
        count: Smallest size of the sample, if there are as many.
        seed: Seed of the sample.
        same: Whether a replay of a run here must be identical.

    Raises:
        ArgumentError: if no run finished.
    """
    chosen = sample_of(runs, count, seed)
    if all(map(same, chosen)):
        return chosen
    groups = [group for group in _grouped(sample_of(runs, len(runs))).values() if len(group) >= MIN_REPLAYS]
    found: list[Run] = []
    for index in np.random.default_rng(seed).permutation(len(groups)):
        if len(found) >= count:
            break
        found += sample_of(groups[index], min(MAX_REPLAYS, max(MIN_REPLAYS, count)), seed)
    return found or chosen


def agreements(replays: Iterable[Replay], stored: Sequence[Run]) -> list[Agreement]:
    """Compare the replays of each group with the stored runs.

    Args:
        replays: Replays of runs of one or several groups.
        stored: All published runs, those of these groups among them.
    """
    found: dict[Group, list[Replay]] = {}
    for one in replays:
        found.setdefault(_group(one.run), []).append(one)
    all_stored = _grouped(run for run in stored if run.status == "finished")
    untested = [_untested(group, played, all_stored.get(group, [])) for group, played in found.items()]
    tested = {one: one.p_value for one in untested if one.p_value is not None}
    rejected = {one: p <= LEVEL for one, p in zip(tested, holm(list(tested.values())), strict=True)}
    counts = {one: len(all_stored[_group(one.replays[0].run)]) for one in tested}
    return [_with_verdict(one, counts[one], rejected[one], len(tested)) if one in tested else one for one in untested]


def p_value_of(stored: np.ndarray, replayed: np.ndarray, others: np.ndarray) -> float:
    """Return the p value of the difference between replayed and stored scores.

    Args:
        stored: Stored scores of the replayed runs, shape ``(n, k)``.
        replayed: Scores of the same runs as played here, shape ``(n, k)``.
        others: Scores of the other stored runs of the group, shape ``(m - n, k)``.
    """
    return min(1.0, 2 * min(_paired(replayed - stored), _unpaired(replayed, np.concatenate([stored, others]))))


def rarest(replays: int, stored: int) -> float:
    """Return the smallest possible p value of so many replays of a group of so many stored runs."""
    return 2 * min(2.0 ** (1 - replays), 2 / math.comb(replays + stored, replays))


def _untested(group: Group, played: Sequence[Replay], stored: Sequence[Run]) -> Agreement:
    """The outcome of a group before the correction over groups."""
    agent, env, horizon, _ = group
    made = Agreement(agent, env, horizon, tuple(played), "identical")
    for verdict in ("skipped", "differs"):
        wrong = [one for one in played if one.verdict == verdict and not one.parted]
        if wrong:
            return replace(made, verdict=verdict, why=f"seed {wrong[0].run.seed}: {wrong[0].why}")
    if all(one.verdict == "identical" for one in played):
        return made
    parted = sum(one.parted for one in played)
    if not parted:
        return replace(made, verdict="agrees", why="rounds differ by no more than rounding")
    if len(played) < MIN_REPLAYS:
        return replace(made, verdict="too few", why=f"{parted} of {len(played)} part; {MIN_REPLAYS} replays are needed")
    replayed = {one.run.id for one in played}
    finished = [(one.run, one.again) for one in played if one.again is not None and one.run.status == "finished"]
    before, again = (scores([pair[k] for pair in finished]) for k in (0, 1))
    return replace(made, p_value=p_value_of(before, again, scores([run for run in stored if run.id not in replayed])))


def _with_verdict(one: Agreement, stored: int, rejected: bool, tested: int) -> Agreement:
    said = f"{sum(replay.parted for replay in one.replays)} of {len(one.replays)} part; p = {one.p_value:.2g}"
    if rejected:
        return replace(one, verdict="differs", why=said)
    if rarest(len(one.replays), stored) > LEVEL / tested:
        return replace(one, verdict="too few", why=f"{said}, and could not be below {LEVEL / tested:.2g}")
    return replace(one, verdict="agrees", why=said)


def _paired(differences: np.ndarray) -> float:
    """p value of the largest mean difference under swaps within pairs."""
    signs, exact = _swaps(len(differences))
    scale = np.sqrt((differences**2).sum(axis=0))
    return _rarity(differences.sum(axis=0), signs @ differences, scale, exact)


def _unpaired(ones: np.ndarray, others: np.ndarray) -> float:
    """p value of the difference of two means under divisions of all into two groups of the same sizes."""
    every = np.concatenate([ones, others])
    centred = every - every.mean(axis=0)
    shares, exact = _divisions(len(ones), len(every))
    return _rarity(centred[: len(ones)].sum(axis=0), shares @ centred, centred.std(axis=0), exact)


@lru_cache(maxsize=4)
def _swaps(count: int) -> tuple[np.ndarray, bool]:
    """Signs of pairs, shape ``(swaps, count)``, and whether these are all swaps."""
    if 2**count > DRAWS:
        return np.random.default_rng(0).choice((1.0, -1.0), size=(DRAWS, count)), False
    return np.array(list(product((1.0, -1.0), repeat=count))), True


@lru_cache(maxsize=4)
def _divisions(count: int, every: int) -> tuple[np.ndarray, bool]:
    """Indicators of the first group, shape ``(divisions, every)``, and whether these are all divisions."""
    exact = math.comb(every, count) <= DRAWS
    if exact:
        indices = np.array(list(combinations(range(every), count)))
    else:
        indices = np.argsort(np.random.default_rng(0).random((DRAWS, every)), axis=1)[:, :count]
    shares = np.zeros((len(indices), every))
    np.put_along_axis(shares, indices, 1.0, axis=1)
    return shares, exact


def _rarity(found: np.ndarray, by_chance: np.ndarray, scale: np.ndarray, exact: bool) -> float:
    """Share of rearrangements at least as far from 0, in units of the scale, as the value found.

    Args:
        found: Shape ``(k,)``; the farthest of k scores counts.
        by_chance: Shape ``(draws, k)``.
        scale: Shape ``(k,)``; 0 if a score does not vary.
        exact: Whether these are all rearrangements; if not, the value found is counted as one more.
    """
    units = np.where(scale > 0, scale, np.inf)
    far = (np.abs(by_chance) / units).max(axis=1) >= (np.abs(found) / units).max() * (1 - 1e-12)
    return float(far.mean() if exact else (1 + far.sum()) / (1 + len(far)))


def _group(run: Run) -> Group:
    return run.agent, without_keywords(run.env, INSTANCE_SEED), run.horizon, run.batch


def _grouped(runs: Iterable[Run]) -> dict[Group, list[Run]]:
    found: dict[Group, list[Run]] = {}
    for run in runs:
        found.setdefault(_group(run), []).append(run)
    return found
