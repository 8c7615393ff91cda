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
        (lambda _, expected: regret.running_mean(expected), [4.0, 6.5, 20.0 / 3.0]),
        (lambda optimum, expected: regret.normalised_score(optimum, 2.0, expected), [0.25, 0.875, 0.625]),
    ],
)
def test_by_hand_with_the_rounds_on_the_last_axis(function, by_hand):
    np.testing.assert_allclose(function(OPTIMUM, EXPECTED), by_hand)
    np.testing.assert_allclose(function(OPTIMUM, np.stack([EXPECTED[::-1], EXPECTED]))[1], by_hand)


def test_normalised_score_needs_a_gap():
    with pytest.raises(ValueError, match="must exceed"):
        regret.normalised_score(1.0, 1.0, EXPECTED)


def test_frequencies_by_hand():
    np.testing.assert_allclose(regret.selection_frequencies([0, 2, 2, 1], 4), [0.25, 0.25, 0.5, 0.0])
    found = regret.running_frequencies([0, 2, 2, 1], 3)
    np.testing.assert_allclose(found, [[1, 0, 0], [1 / 2, 0, 1 / 2], [1 / 3, 0, 2 / 3], [1 / 4, 1 / 4, 1 / 2]])
