import numpy as np
import pytest

from cbo_gym.evaluation.metrics.aggregate import (
    bootstrap,
    equal_weights,
    interquartile_mean,
    interval,
    mean,
    performance_profile,
    probability_of_improvement,
    resampled_improvement,
)

NAN = np.nan


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_equal_weights_give_each_environment_the_same_and_the_mean_is_that_of_their_means():
    weights = equal_weights(np.array([[0.1, 0.2, NAN, 0.4], [NAN, NAN, 0.5, NAN]]))
    np.testing.assert_allclose(weights, [[1 / 6, 1 / 6, 0, 1 / 6], [0, 0, 1 / 2, 0]])
    scores = np.array([[0.0, 1.0], [0.25, NAN]])
    assert mean(scores, equal_weights(scores)) == pytest.approx((0.5 + 0.25) / 2)


@pytest.mark.parametrize(
    ("scores", "by_hand"),
    [
        ([[9.0, 0.2], [0.4, -7.0]], 0.3),
        # the middle half reaches from 1/4 to 3/4: 1/12 of the first, 1/3 of the second, 1/12 of the third
        ([[3.0, 0.0, 1.0]], (0 / 12 + 1 / 3 + 3 / 12) / 0.5),
        # weights 1/2 | 1/4, 1/4: the middle half is half of the first environment's run and the lower one of the other
        ([[1.0, NAN], [2.0, 100.0]], (1.0 + 2.0) / 2),
    ],
)
def test_interquartile_mean_by_hand(scores, by_hand):
    scores = np.array(scores)
    assert interquartile_mean(scores, equal_weights(scores)) == pytest.approx(by_hand)


def test_performance_profile_by_hand():
    scores = np.array([[0.2, 0.6, NAN], [0.9, 0.9, 0.4]])
    profile = performance_profile(scores, equal_weights(scores), np.array([-1.0, 0.2, 0.5, 0.9]))
    np.testing.assert_allclose(profile, [1.0, (1 / 2 + 1) / 2, (1 / 2 + 2 / 3) / 2, 0.0])


def test_probability_of_improvement_by_hand():
    scores, others = np.array([[0.5, 0.7], [1.0, NAN]]), np.array([[0.6, 0.5, 0.1], [1.0, NAN, NAN]])
    weights, other_weights = equal_weights(scores), equal_weights(others)
    # first environment: 0.5 beats 0.1 and ties with 0.5, 0.7 beats all; second: a tie
    expected = ((1 + 0.5 + 3) / 6 + 0.5) / 2
    assert probability_of_improvement(scores, others, weights, other_weights) == pytest.approx(expected)
    assert probability_of_improvement(others, scores, other_weights, weights) == pytest.approx(1 - expected)


def test_draws_are_resamples_of_every_environment(rng):
    scores = np.array([[0.1, NAN, 0.3, 0.5], [NAN, 0.2, 0.7, NAN]])
    draws = bootstrap(scores, 5000, rng).weights()
    assert draws.shape == (5000, 2, 4)
    assert not draws[:, np.isnan(scores)].any()
    np.testing.assert_allclose(draws.sum(axis=2), 0.5)  # strata keep their weight
    copies = draws * 2 * np.array([[2], [1]])  # one run less than there are
    np.testing.assert_allclose(copies, copies.round(), atol=1e-12)
    # of 2 draws among 3 runs: a binomial number of copies
    assert copies[:, 0, 0].mean() == pytest.approx(2 / 3, abs=5 * np.sqrt(4 / 9 / 5000))
    assert copies[:, 0, 0].var() == pytest.approx(4 / 9, rel=0.1)
    np.testing.assert_array_equal(bootstrap(np.array([[NAN, 0.3]]), 3, rng).weights(), [[[0, 1]]] * 3)


@pytest.mark.parametrize("seeds", [(5, 4), (1, 6), (300, 2)])
def test_counted_wins_are_the_weighted_ones(rng, seeds):
    scores, others = (rng.integers(0, 4, size=(4, number)) / 3 for number in seeds)  # with ties
    others[1, 1:] = NAN
    draws, other_draws = bootstrap(scores, 30, rng), bootstrap(others, 30, rng)
    for rows in (np.arange(4), np.array([1, 3])):
        one, two = draws.select(rows), other_draws.select(rows)
        np.testing.assert_allclose(one.weights().sum(axis=(1, 2)), 1.0)
        weighted = probability_of_improvement(scores[rows], others[rows], one.weights(), two.weights())
        np.testing.assert_allclose(resampled_improvement(scores[rows], others[rows], one, two), weighted, rtol=1e-12)


def test_the_interval_of_a_mean_has_the_width_that_theory_gives(rng):
    scores = rng.normal(size=(10, 5))
    low, high = interval(mean(scores, bootstrap(scores, 4000, rng).weights()))
    error = np.sqrt((scores.var(axis=1, ddof=1) / 5).sum()) / 10
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.06)
