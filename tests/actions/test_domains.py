"""Kinds of values: steps, integers, categories and logarithmic scales."""

import pickle
from copy import deepcopy
from fractions import Fraction

import numpy as np
import pytest
import torch

from cbo_gym.actions import Categorical, Domains, Integer, Range, TypedDomain
from cbo_gym.actions.domains import read_domain
from cbo_gym.errors import ArgumentError

TYPED = [
    Range(5.5, 7.5, step=0.1),
    Range(1e-3, 1, scale="log"),
    Integer(-2, 8),
    Categorical(["A", "B", "C"]),
    Range(1e-3, 1, scale="log", digits=2),
    Range(-20, 50, digits=2),
]
DOMAINS = Domains({"feed": (0.0, 5.0), "ph": TYPED[0], "dose": TYPED[1], "shots": TYPED[2], "medium": TYPED[3]})


@pytest.mark.parametrize("domain", TYPED, ids=repr)
def test_a_domain_is_an_interval_and_keeps_its_values_in_every_form(domain: TypedDomain) -> None:
    low, high = domain
    assert (low, high) == (domain.low, domain.high) == tuple(domain) != domain
    assert domain == pickle.loads(pickle.dumps(domain)) == deepcopy(domain) == read_domain(domain.to_mapping())
    assert hash(domain) == hash(deepcopy(domain))
    points = np.linspace(0.0, 1.0, domain.levels or 11)
    natives = domain.to_native(points)
    assert natives[[0, -1]].tolist() == pytest.approx([low, high])
    np.testing.assert_allclose(domain.to_unit(natives), points, atol=1e-15)
    assert [domain.to_native(point) for point in points.tolist()] == natives.tolist()
    assert torch.equal(domain.to_native(torch.tensor(points)), torch.tensor(natives))
    np.testing.assert_allclose(domain.to_unit(torch.tensor(natives)).numpy(), points, atol=1e-15)
    for native in natives.tolist():
        assert domain.number(domain.label(native)) == pytest.approx(native, rel=1e-11)


def test_levels_are_exact_numbers() -> None:
    ph, _, shots, medium, *_ = TYPED
    assert [ph.label(ph.to_native(k / 20)) for k in range(21)] == [float(Fraction(55 + k, 10)) for k in range(21)]
    assert [shots.to_native(k / 10) for k in range(11)] == list(range(-2, 9))
    assert [medium.label(medium.to_native(k / 2)) for k in range(3)] == ["A", "B", "C"]
    # What was really done need not be at a step, nor inside.
    assert ph.to_native(ph.to_unit(6.55)) == pytest.approx(6.55, rel=1e-15)
    assert shots.to_native(shots.to_unit(12.0)) == 12.0


def test_domains_round_points_and_plain_ones_do_nothing() -> None:
    assert DOMAINS.levels == (None, 21, None, 11, 3)
    point = [0.123, 0.123, 0.123, 0.16, 0.74]
    assert DOMAINS.round(point).tolist() == [0.123, 0.1, 0.123, 0.2, 0.5]
    labelled = DOMAINS.labels(dict(zip(DOMAINS.names, DOMAINS.points_to_native(DOMAINS.round(point)), strict=True)))
    assert labelled == pytest.approx({"feed": 0.615, "ph": 5.7, "dose": 10 ** (-3 + 0.369), "shots": 0, "medium": "B"})
    assert type(labelled["shots"]) is int
    uniform = DOMAINS.from_uniform(np.random.default_rng(0).random((30_000, 5)))
    # All levels are equally likely, the ends too.
    assert np.bincount((2 * uniform[:, 4]).astype(int)).tolist() == pytest.approx([10_000] * 3, abs=300)
    plain = Domains([(0.0, 5.0), Range(0, 1)])
    assert (plain.is_plain, plain.grid, plain.intervals) == (True, None, ((0.0, 5.0), (0.0, 1.0)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Range(2, 1), "Range needs low < high, two finite numbers; given 2, 1"),
        (lambda: Range(0, 1, scale="log"), "needs low above 0; given 0"),
        (lambda: Range(0, 1, step=0.3), r"must divide high - low; given Range\(0, 1, step=0.3\): end it at 0.9 or 1.2"),
        (lambda: Range(0, 1, step=-1), "must be a finite number above 0; given -1"),
        (lambda: Range(1, 2, step=1, scale="log"), "has no step"),
        (lambda: Range(1, 2, scale="lg"), "'linear' or 'log'; given 'lg'"),
        (lambda: Range(1, 2, digits=0), "digits must be a whole number from 1 to 10; given 0"),
        (lambda: Range(1, 2, step=1, digits=2), "a step or digits"),
        (lambda: Range(0.5, 23.4, digits=2), "at most 2 significant digits; given 23.4: end it at 23 or 24"),
        (lambda: Integer(1.5, 3), "must be whole numbers; given 1.5 and 3"),
        (lambda: Categorical(["A"]), "2 to 100 categories"),
        (lambda: Categorical("AB"), "2 to 100 categories; given 'AB'"),
        (lambda: Categorical(["A", "A"]), "must be different"),
        (lambda: Categorical(["A", 2]), "must be strings.*given 2: write '2'"),
        (lambda: read_domain({"type": "int", "low": 1, "high": 2}), "one of range, integer, categorical; given 'int'"),
        (lambda: read_domain({"low": 1, "hihg": 2}), r"low, high, step, scale, digits; given also 'hihg'.*high"),
        (lambda: read_domain({"type": "integer", "low": 1}), "a domain of type integer needs high"),
        (lambda: TYPED[2].number(2.5), "must be a whole number; given 2.5"),
        (lambda: TYPED[3].number("D"), "must be one of 'A', 'B', 'C'; given 'D'"),
        (lambda: TYPED[1].number(0.0), "because its scale is logarithmic; given 0"),
    ],
)
def test_a_wrong_kind_or_value_says_what_is_allowed(make, message) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize(("low", "high", "scale"), [(1e-3, 1, "log"), (1e-8, 1e6, "log"), (-1e6, 1e6, "linear")])
def test_numbers_with_digits_are_exact_after_conversion(low, high, scale) -> None:
    domain = Range(low, high, scale=scale, digits=2)
    domains = Domains({"dose": domain})
    for unit in np.random.default_rng(100).random(500).tolist():
        native = domain.to_native(unit)
        nearest, *other = domain.round(native)
        assert nearest == float(f"{native:.1e}")
        for number in (nearest, *other):
            assert low <= number <= high
            assert domains.labels({"dose": domain.to_native(domain.to_unit(number))}) == {"dose": number}
    # Other numbers keep their digits.
    assert domain.label(domain.to_native(domain.to_unit(0.12345))) == pytest.approx(0.12345, rel=1e-8)
