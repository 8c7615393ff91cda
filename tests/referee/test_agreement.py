"""Replays on other hardware: honest ones agree, a shifted agent differs, and too few say so."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import permutation_test

from cbo_gym.referee.agreement import (
    LEVEL,
    MIN_REPLAYS,
    agreements,
    min_p_value,
    p_value_of,
    sample_to_compare,
)
from cbo_gym.referee.replay import Replay
from tests.support.runs import made_up_run

ENV = "CBO/Dropwave-v0"


def group(agent="A", count=10, spread=0.05):
    values = np.random.default_rng(len(agent)).normal(0.5, spread, count)
    return [made_up_run(agent, seed, [value, value]) for seed, value in enumerate(values)]


def replayed(runs, by, verdict="diverges"):
    """Replays of runs whose scores are others by so much each."""
    again = [
        made_up_run(run.agent, run.seed, run.table["recommended_reward"] + shift)
        for run, shift in zip(runs, by, strict=True)
    ]
    return [
        Replay(run, verdict, ("machine",), "", diverged=verdict == "diverges", replayed=one)
        for run, one in zip(runs, again, strict=True)
    ]


def test_the_probability_is_that_of_both_tests():
    """Held against SciPy's, for one score."""
    rng = np.random.default_rng(3)
    stored, others, here = rng.normal(size=(6, 1)), rng.normal(size=(4, 1)), rng.normal(0.8, 1.0, (6, 1))

    def mean_difference(one, other, axis):
        return np.abs(np.mean(one, axis=axis) - np.mean(other, axis=axis))

    how = {"alternative": "greater", "n_resamples": np.inf, "vectorized": True}
    paired = permutation_test((here[:, 0], stored[:, 0]), mean_difference, permutation_type="samples", **how).pvalue
    every = np.concatenate([stored, others])[:, 0]
    unpaired = permutation_test((here[:, 0], every), mean_difference, **how).pvalue
    assert p_value_of(stored, here, others) == pytest.approx(min(1.0, 2 * min(paired, unpaired)))
    same = rng.normal(size=(5, 2))
    assert p_value_of(same, same, same) == 1.0
    optimal = np.ones((5, 2))
    assert p_value_of(optimal, optimal + 5e-13, optimal) == 1.0
    assert p_value_of(same, same + 9.0, same) == pytest.approx(min_p_value(5, 10), rel=0.6)


def test_honest_groups_agree_and_a_shifted_agent_differs():
    honest, shifted = group("A"), group("BB")
    wobble = np.random.default_rng(7).normal(0.0, 0.02, 10)
    found = {
        one.agent: one
        for one in agreements([*replayed(honest, wobble), *replayed(shifted, wobble - 0.3)], [*honest, *shifted])
    }
    assert (found["A"].verdict, found["BB"].verdict) == ("agrees", "differs")
    assert found["A"].why.startswith("10 of 10 diverge; p = ")
    assert found["BB"].p_value < LEVEL / 2


def test_few_replays_say_so():
    for count, stored, verdict in (
        (MIN_REPLAYS - 1, 20, "too few"),
        (MIN_REPLAYS, 5, "too few"),
        (MIN_REPLAYS, 20, "differs"),
    ):
        runs = group(count=stored)
        (found,) = agreements(replayed(runs[:count], [-0.4] * count), runs)
        assert found.verdict == verdict


def test_instances_of_a_family_are_a_group():
    """One seed each, as papers' pages have them: alone none of them could ever differ."""
    runs = [replace(run, env=f"CBO/SSEMPeriodic-v1(instance_seed={1000 + run.seed})", seed=0) for run in group()]
    again = [
        replace(one, run=run, replayed=replace(run, table=one.replayed.table))
        for run, one in zip(runs, replayed(group(), [-0.4] * 10), strict=True)
    ]
    (found,) = agreements(again[:6], runs)
    assert (found.env, found.verdict, len(found.replays)) == ("CBO/SSEMPeriodic-v1", "differs", 6)
    assert len(sample_to_compare(runs, 6, 0, lambda run: False)) == 6


def test_more_groups_need_rarer_differences():
    groups = [group("A" * n, count=6) for n in range(1, 8)]
    played = [one for runs in groups for one in replayed(runs[:5], [-0.4] * 5)]
    assert {one.verdict for one in agreements(played, [run for runs in groups for run in runs])} == {"too few"}
    assert agreements(played[:5], groups[0])[0].verdict == "differs"


def test_runs_that_must_come_out_as_they_were_are_no_matter_of_chance():
    runs = group()
    same = replayed(runs, [0.0] * 10, "identical")
    assert [one.verdict for one in agreements(same, runs)] == ["identical"]
    rounding = [*same[:9], Replay(runs[9], "agrees", ("machine",), "from round 2 on", replayed=runs[9])]
    assert [one.verdict for one in agreements(rounding, runs)] == ["agrees"]
    broken = [*same[:9], Replay(runs[9], "differs", (), "on the same platform with the same code", replayed=runs[9])]
    (found,) = agreements(broken, runs)
    assert (found.verdict, found.why) == ("differs", "seed 9: on the same platform with the same code")
    gone = [*same[:9], Replay(runs[9], "skipped", (), "not installed here")]
    assert [one.verdict for one in agreements(gone, runs)] == ["skipped"]


def test_a_sample_is_of_runs_here_and_of_groups_elsewhere():
    runs = [*group("A", 10), *group("BB", 20), *group("CCC", 3)]
    assert len(sample_to_compare(runs, 4, 0, lambda run: True)) == 4
    elsewhere = sample_to_compare(runs, MIN_REPLAYS, 0, lambda run: False)
    assert len({run.agent for run in elsewhere}) == 1
    assert len(elsewhere) == MIN_REPLAYS
    assert len(sample_to_compare(runs, 1, 0, lambda run: False)) == 1
    many = sample_to_compare(runs, 20, 0, lambda run: False)
    assert sorted((agent, sum(run.agent == agent for run in many)) for agent in ("A", "BB", "CCC")) == [
        ("A", 10), ("BB", 12), ("CCC", 0),
    ]  # fmt: skip
    assert len(sample_to_compare(runs[30:], 20, 0, lambda run: False)) == 3


def scores_of(kind, shared, count, stored, shift, rng):
    """Scores of seeds that stored runs and replays share in part; replays are shifted by so many deviations."""
    seeds = np.sqrt(shared) * rng.normal(size=(stored, 1))
    before = seeds + np.sqrt(1 - shared) * rng.normal(size=(stored, 2))
    here = seeds[:count] + np.sqrt(1 - shared) * rng.normal(size=(count, 2))
    if kind == "skewed":
        before, here = np.exp(before), np.exp(here)
    elif kind == "two values":
        before, here = np.sign(before), np.sign(here)
    elif kind == "few part":
        here = np.where(rng.random((count, 1)) < 0.7, before[:count], here)
    return before[:count], here + shift * before.std(), before[count:]


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "kind", ["skewed", *(pytest.param(kind, marks=SLOW) for kind in ("normal", "two values", "few part"))]
)
@pytest.mark.parametrize(
    ("shared", "count", "stored"),
    [(0.0, 5, 20), pytest.param(0.0, 10, 10, marks=SLOW), pytest.param(0.7, 12, 20, marks=SLOW)],
)
def test_false_alarms_are_at_most_one_in_a_hundred(kind, shared, count, stored):
    """Of one group, whose p value is below the level; Holm makes no more of several."""
    rng, looks = np.random.default_rng(11), 500
    alarms = sum(p_value_of(*scores_of(kind, shared, count, stored, 0.0, rng)) <= LEVEL for _ in range(looks))
    assert alarms / looks <= LEVEL + 3 * np.sqrt(LEVEL * (1 - LEVEL) / looks)


@pytest.mark.parametrize(
    ("shared", "count", "stored", "shift", "least"),
    [(0.0, 5, 20, 2.0, 0.7), (0.95, 12, 20, 1.0, 0.9)],
)
def test_a_shifted_agent_is_found(shared, count, stored, shift, least):
    rng, looks = np.random.default_rng(12), 100
    found = sum(p_value_of(*scores_of("normal", shared, count, stored, shift, rng)) <= LEVEL for _ in range(looks))
    assert found / looks >= least
