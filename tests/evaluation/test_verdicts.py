"""How often intervals and looks decide falsely."""

import numpy as np
import pytest
from scipy.stats import t

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.claims.verdicts import LEVEL, decide, interval, levels, p_value
from cbo_gym.evaluation.metrics.aggregate import holm

SLOW = pytest.mark.slow
RUNS = 2_000
ERROR = 2.0 * np.sqrt(LEVEL * (1.0 - LEVEL) / RUNS)  # of a share of them


def decided_falsely(differences, level=LEVEL):
    """Of which samples the interval lacks the mean, which is 0."""
    return np.array([not low <= 0.0 <= high for low, high in (interval(one, level) for one in differences)])


def test_of_symmetric_differences_the_interval_is_students():
    values = np.array([-3.0, -1.0, 0.0, 1.0, 3.0])
    half = t.ppf(0.975, 4) * values.std(ddof=1) / np.sqrt(5)
    assert interval(values) == pytest.approx((-half, half))
    assert interval(np.array([0.3])) == (-np.inf, np.inf)


def test_ties_may_be_of_a_sample_that_misses_all_that_differ():
    share = 1.25 * (1.0 - 0.05**0.1)  # of all, which may lie at -1
    for differences in (np.full(10, 0.25), 0.25 + 1e-8 * np.arange(10)):
        assert interval(differences) == pytest.approx((0.25 - share, 0.25 + share), abs=1e-6)
        assert decide("equivalent", *interval(differences - 0.25), 0.01) == "open"
    assert decide("better", *interval(np.full(10, 0.5)), 0.01) == "confirmed"
    assert p_value(np.zeros(10), "equivalent", 0.01) == pytest.approx(0.99**10, abs=1e-3)
    assert p_value(np.full(10, 0.5), "better", 0.01) == pytest.approx((2.0 / 3.0) ** 10, abs=1e-3)


def test_of_skewed_ones_it_reaches_further_to_the_long_side():
    values = np.array([0.0, 0.0, 0.1, 0.1, 0.2, 0.2, 0.3, 0.4, 0.8, 2.0])
    low, high = interval(values)
    half = t.ppf(0.975, 9) * values.std(ddof=1) / np.sqrt(10)
    assert low == pytest.approx(values.mean() - half)
    assert high > values.mean() + 1.2 * half
    assert interval(-values) == pytest.approx((-high, -low))


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.02, 0.1, ("confirmed", "confirmed", "refuted")), (-0.005, 0.1, ("open", "confirmed", "open")),
     (-0.005, 0.005, ("equivalent", "confirmed", "confirmed")), (-0.2, -0.1, ("refuted",) * 3),
     (-0.2, 0.2, ("open",) * 3), (-0.008, -0.002, ("equivalent", "confirmed", "confirmed"))],
)  # fmt: skip
def test_what_an_interval_says_of_each_kind_of_claim(low, high, said):
    assert tuple(decide(kind, low, high, 0.01) for kind in ("better", "as good", "equivalent")) == said


def test_the_p_value_is_the_level_at_which_the_verdict_begins():
    values = np.random.default_rng(0).normal(0.5, 1.0, 12)
    p = p_value(values, "better", 0.0)
    assert decide("better", *interval(values, p * 1.01), 0.0) == "confirmed"
    assert decide("better", *interval(values, p * 0.99), 0.0) == "open"


def test_looks_share_the_level():
    assert levels((10,)) == pytest.approx((LEVEL,), abs=1e-4)
    # with two looks the published bounds are 2.963 and 1.969 standard errors
    assert levels((10, 20)) == pytest.approx((0.00305, 0.04900), abs=2e-4)
    with pytest.raises(ArgumentError, match="numbers of pairs that ascend"):
        levels((20, 10))


def test_holm_is_as_in_the_textbook():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize(("rare", "false"), [(0.2, 0.11), pytest.param(0.05, 0.59, marks=SLOW)])
def test_ten_near_ties_do_not_show_large_differences_that_are_rare(rare, false):
    """The numbers of the guide's page on published results."""
    rng = np.random.default_rng(100)
    near = rng.normal(scale=0.001, size=(RUNS, 10))
    differences = np.where(rng.random(near.shape) < rare, 0.5, near)
    verdicts = [decide("equivalent", *interval(one), 0.01) for one in differences]
    assert verdicts.count("confirmed") / RUNS == pytest.approx(false, abs=0.02)


@pytest.mark.parametrize(("pairs", "false"), [(10, 0.07), pytest.param(20, 0.06, marks=SLOW)])
def test_of_ten_differences_with_a_long_tail_seven_in_a_hundred_decisions_are_false(pairs, false):
    """The numbers of the guide's page on published results."""
    differences = np.random.default_rng(100).lognormal(sigma=1.0, size=(RUNS, pairs)) - np.exp(0.5)
    assert decided_falsely(differences).mean() == pytest.approx(false, abs=0.015)


@pytest.mark.parametrize("pairs", [10, pytest.param(20, marks=SLOW)])
def test_at_most_five_in_a_hundred_decisions_on_skewed_differences_are_false(pairs):
    rng = np.random.default_rng(100)
    first, found = (rng.exponential(size=(RUNS, count)) - 1.0 for count in (pairs, 2 * pairs))
    looks = levels((pairs, 2 * pairs))
    early, late = decided_falsely(found[:, :pairs], looks[0]), decided_falsely(found, looks[1])
    assert decided_falsely(first).mean() <= LEVEL + ERROR
    assert np.mean(early | late) <= LEVEL + ERROR
