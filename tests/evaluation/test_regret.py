"""Every regret against a case worked out by hand: mu* = 10, expected rewards 4, 9, 7, random play 2."""

import numpy as np
import pytest

from cbo_gym.evaluation.metrics import regret

OPTIMUM = 10.0
EXPECTED = np.array([4.0, 9.0, 7.0])


@pytest.mark.parametrize(
    ("function", "by_hand"),
    [
        (regret.instant_regret, [6.0, 1.0, 3.0]),
        (regret.cumulative_regret, [6.0, 7.0, 10.0]),
        (regret.average_regret, [6.0, 3.5, 10.0 / 3.0]),
        (regret.best_so_far_regret, [6.0, 1.0, 1.0]),
        (regret.simple_regret, [6.0, 1.0, 3.0]),
        (regret.pseudo_regret, [6.0, 1.0, 3.0]),
    ],
)
def test_regrets_by_hand(function, by_hand):
    np.testing.assert_allclose(function(OPTIMUM, EXPECTED), by_hand)


def test_average_reward_by_hand():
    np.testing.assert_allclose(regret.average_reward(EXPECTED), [4.0, 6.5, 20.0 / 3.0])


def test_normalised_score_by_hand():
    np.testing.assert_allclose(regret.normalised_score(OPTIMUM, 2.0, EXPECTED), [0.25, 0.875, 0.625])


def test_normalised_score_needs_a_gap():
    with pytest.raises(ValueError, match="must exceed"):
        regret.normalised_score(1.0, 1.0, EXPECTED)


def test_selection_frequencies_by_hand():
    np.testing.assert_allclose(regret.selection_frequencies([0, 2, 2, 1], 4), [0.25, 0.25, 0.5, 0.0])


def test_running_frequencies_by_hand():
    found = regret.running_frequencies([0, 2, 2, 1], 3)
    np.testing.assert_allclose(found, [[1, 0, 0], [1 / 2, 0, 1 / 2], [1 / 3, 0, 2 / 3], [1 / 4, 1 / 4, 1 / 2]])
    np.testing.assert_allclose(found[-1], regret.selection_frequencies([0, 2, 2, 1], 3))


def test_rounds_are_on_the_last_axis():
    runs = np.stack([EXPECTED, EXPECTED[::-1]])
    np.testing.assert_allclose(regret.cumulative_regret(OPTIMUM, runs), [[6.0, 7.0, 10.0], [3.0, 4.0, 10.0]])
    np.testing.assert_allclose(regret.best_so_far_regret(OPTIMUM, runs), [[6.0, 1.0, 1.0], [3.0, 1.0, 1.0]])
    np.testing.assert_allclose(regret.average_reward(runs)[:, -1], [20 / 3, 20 / 3])
