"""Replays on other hardware: whether a group of them differs from what is stored by more than chance gives.

Another processor sums in another order, and a method that searches turns last digits into other actions. So there a run
is not what must come out again, but the group that it is of: what one agent plays on one environment, or on the
instances of a random family. Of the scores of play and of the last recommendation two tests are made, each of which no
more than its level of honest groups fails:

* *paired*: of a seed, the stored score and the replayed one are two draws from the same, so that which is which can be
  swapped; the mean difference is compared with those under all swaps of signs. It has power where seeds keep runs
  together, since what a seed does to both cancels out. But of n pairs nothing is rarer than ``2 ** (1 - n)``: of
  five, 6 %.
* *unpaired*: the replayed scores are draws from what the stored ones are, so that the mean difference is compared with
  those of all divisions of both into as many. This can be as rare as one in ``comb(n + m, n)``, two-sided twice that:
  with five replays of a group of twenty, 1 in 27,000. Replays share seeds with stored runs, which makes their means
  more alike than independent ones, so it errs to the side of agreement.

The smaller of both probabilities counts, doubled. Over groups it is corrected after Holm (1979), A simple
sequentially rejective multiple test procedure, so that of all stores that honest hardware replays at most
:data:`LEVEL` have any group that *differs*. Where not even replays that lie all on one side could be as rare as
that needs, there are *too few*.
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
FEWEST = 5  # replays of a group
MOST = 12  # that a sample takes of one
DRAWS = 20_000  # of rearrangements, where there are more
Agreed = Literal["identical", "agrees", "differs", "too few", "skipped"]
Group = tuple[str, str, int, int]


@dataclass(frozen=True, eq=False)
class Agreement:
    """What became of the replays of a group.

    Attributes:
        agent, env, horizon: of the group; of a random family without the instances.
        replays: of its runs.
        verdict: ``"identical"`` if all are; ``"agrees"`` if their rounds do, or the distribution of their scores;
            ``"differs"`` if that does not, or if a run must have come out as it was; ``"too few"``; ``"skipped"`` if
            one cannot be played here.
        why: in words; empty if identical.
        p_value: of the two tests together, before the correction over groups; None where they were not made.
    """

    agent: str
    env: str
    horizon: int
    replays: tuple[Replay, ...]
    verdict: Agreed
    why: str = ""
    p_value: float | None = None


def sample_to_compare(runs: Sequence[Run], count: int, seed: int, same: Callable[[Run], bool]) -> list[Run]:
    """Some finished runs: where each must come out as it was, at random; elsewhere whole groups, as far as they go.

    Groups that are too small to be compared are left out there, unless there are no others.

    Args:
        runs: published ones.
        count: how many at least, if there are as many.
        seed: of the choice.
        same: whether a run was played with what there is here, so that it must come out identical.

    Raises:
        ArgumentError: if none has finished.
    """
    chosen = sample_of(runs, count, seed)
    if all(map(same, chosen)):
        return chosen
    groups = [group for group in _grouped(sample_of(runs, len(runs))).values() if len(group) >= FEWEST]
    found: list[Run] = []
    for place in np.random.default_rng(seed).permutation(len(groups)):
        if len(found) >= count:
            break
        found += sample_of(groups[place], min(MOST, max(FEWEST, count)), seed)
    return found or chosen


def agreements(replays: Iterable[Replay], stored: Sequence[Run]) -> list[Agreement]:
    """What the replays of each group say together.

    Args:
        replays: of some runs, also of several groups.
        stored: all published runs, among them those of the same groups.
    """
    found: dict[Group, list[Replay]] = {}
    for one in replays:
        found.setdefault(_group(one.run), []).append(one)
    all_stored = _grouped(run for run in stored if run.status == "finished")
    judged = [_judged(group, played, all_stored.get(group, [])) for group, played in found.items()]
    tested = {one: one.p_value for one in judged if one.p_value is not None}
    rejected = {one: p <= LEVEL for one, p in zip(tested, holm(list(tested.values())), strict=True)}
    counts = {one: len(all_stored[_group(one.replays[0].run)]) for one in tested}
    return [_with_verdict(one, counts[one], rejected[one], len(tested)) if one in tested else one for one in judged]


def p_value_of(stored: np.ndarray, replayed: np.ndarray, others: np.ndarray) -> float:
    """How rare a difference as large as that of replays from what is stored is by chance; at most 1.

    Args:
        stored: scores of the runs that were replayed, shape ``(n, k)``.
        replayed: of the same runs as they came out here, in the same order.
        others: of the other stored runs of the group, shape ``(m - n, k)``.
    """
    return min(1.0, 2 * min(_paired(replayed - stored), _unpaired(replayed, np.concatenate([stored, others]))))


def rarest(replays: int, stored: int) -> float:
    """The smallest p value that so many replays of a group of so many can have."""
    return 2 * min(2.0 ** (1 - replays), 2 / math.comb(replays + stored, replays))


def _judged(group: Group, played: Sequence[Replay], stored: Sequence[Run]) -> Agreement:
    """Before the tests of several groups are put together."""
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
    if len(played) < FEWEST:
        return replace(made, verdict="too few", why=f"{parted} of {len(played)} part; {FEWEST} replays are needed")
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
    """Of the mean difference in the direction in which it is largest, under swaps within pairs."""
    signs, exact = _swaps(len(differences))
    scale = np.sqrt((differences**2).sum(axis=0))
    return _rarity(differences.sum(axis=0), signs @ differences, scale, exact)


def _unpaired(ones: np.ndarray, others: np.ndarray) -> float:
    """Of the difference of two means, under divisions of all into as many."""
    every = np.concatenate([ones, others])
    centred = every - every.mean(axis=0)
    shares, exact = _divisions(len(ones), len(every))
    return _rarity(centred[: len(ones)].sum(axis=0), shares @ centred, centred.std(axis=0), exact)


@lru_cache(maxsize=4)
def _swaps(count: int) -> tuple[np.ndarray, bool]:
    """Signs of pairs, shape ``(swaps, count)``, and whether these are all."""
    if 2**count > DRAWS:
        return np.random.default_rng(0).choice((1.0, -1.0), size=(DRAWS, count)), False
    return np.array(list(product((1.0, -1.0), repeat=count))), True


@lru_cache(maxsize=4)
def _divisions(count: int, every: int) -> tuple[np.ndarray, bool]:
    """1 for those of a part of so many, shape ``(divisions, every)``, and whether these are all."""
    exact = math.comb(every, count) <= DRAWS
    if exact:
        places = np.array(list(combinations(range(every), count)))
    else:
        places = np.argsort(np.random.default_rng(0).random((DRAWS, every)), axis=1)[:, :count]
    shares = np.zeros((len(places), every))
    np.put_along_axis(shares, places, 1.0, axis=1)
    return shares, exact


def _rarity(found: np.ndarray, by_chance: np.ndarray, scale: np.ndarray, exact: bool) -> float:
    """The share of what chance gives that is as far from 0 in units of the scale as what was found.

    Args:
        found: shape ``(k,)``; of k scores the farthest counts.
        by_chance: shape ``(draws, k)``.
        scale: shape ``(k,)``; 0 where a score does not vary.
        exact: whether these are all that there are; otherwise what was found is counted as one more.
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
