"""Noisy rewards as a store keeps them: shorter, with the same best so far and means."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbo_gym.evaluation.store.rounding import LEVELS, round_rewards

GAP = 3.0
STEP = GAP / LEVELS


def rewards_of(seed, noise, rounds=500, dtype=np.float64):
    rng = np.random.default_rng(seed)
    expected = np.minimum.accumulate(rng.uniform(0, GAP, rounds))[::-1].astype(dtype)
    return (expected + noise * rng.standard_normal(rounds).astype(dtype)).astype(dtype), expected


@given(st.integers(0, 10**6), st.floats(0.1, 30.0), st.sampled_from([np.float32, np.float64]))
@settings(max_examples=50, deadline=None)
def test_what_is_best_so_far_does_not_change_and_nothing_moves_by_more_than_a_step(seed, noise, dtype):
    rewards, expected = rewards_of(seed, noise, dtype=dtype)
    found = round_rewards(rewards, expected, GAP)
    assert np.array_equal(np.maximum.accumulate(found), np.maximum.accumulate(rewards))
    assert np.abs(found - rewards).max() <= STEP
    assert np.array_equal(round_rewards(found, expected, GAP), found)


def test_noise_is_shortened_and_its_mean_is_kept():
    rewards, expected = rewards_of(0, 1.0, 2000)
    found = round_rewards(rewards, expected, GAP)
    assert len(np.unique(rewards)) == 2000
    assert len(np.unique(found)) < 2000 / 2
    assert abs(found.mean() - rewards.mean()) < STEP / 20


@pytest.mark.parametrize(("noise", "gap"), [(0.0, GAP), (1e-4, GAP), (1.0, 0.0), (1.0, -1.0), (1.0, np.nan)])
def test_what_is_not_noisy_or_has_no_range_stays(noise, gap):
    rewards, expected = rewards_of(1, noise)
    assert round_rewards(rewards, expected, gap) is rewards
