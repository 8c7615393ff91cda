"""Exogenous distributions against scipy.stats."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

from cbo_gym.scm import (
    Arcsine,
    DistributionFamily,
    Empirical,
    GaussianMixture,
    Normal,
    TruncatedNormal,
    Uniform,
    Zero,
)


class Mixture:
    """A Gaussian mixture from scipy's normals."""

    def __init__(self, weights, means, stds) -> None:
        self.weights, self.parts = weights, [stats.norm(m, s) for m, s in zip(means, stds, strict=True)]

    def cdf(self, x):
        return sum(w * part.cdf(x) for w, part in zip(self.weights, self.parts, strict=True))

    def mean(self):
        return sum(w * part.mean() for w, part in zip(self.weights, self.parts, strict=True))

    def std(self):
        between = [w * (part.mean() - self.mean()) ** 2 for w, part in zip(self.weights, self.parts, strict=True)]
        within = [w * part.var() for w, part in zip(self.weights, self.parts, strict=True)]
        return math.sqrt(sum(between) + sum(within))


def arcsine(mean: float, std: float):
    half = math.sqrt(2.0) * std
    return stats.arcsine(loc=mean - half, scale=2.0 * half)


CASES = [
    pytest.param(Normal(), stats.norm(), id="standard normal"),
    pytest.param(Normal(-3.0, 0.2), stats.norm(-3.0, 0.2), id="normal"),
    pytest.param(Uniform(55.0, 75.0), stats.uniform(55.0, 20.0), id="uniform"),
    pytest.param(Arcsine(1.3, 0.4), arcsine(1.3, 0.4), id="arcsine"),
    pytest.param(
        GaussianMixture([0.2, 0.0, 0.7, 0.1], [3.0, 99.0, -1.0, 0.0], [0.1, 1.0, 2.0, 0.01]),
        Mixture([0.2, 0.0, 0.7, 0.1], [3.0, 99.0, -1.0, 0.0], [0.1, 1.0, 2.0, 0.01]),
        id="unequal components, one without weight",
    ),
]


each = pytest.mark.parametrize(("distribution", "reference"), CASES)


@each
def test_moments_and_draws_of_the_generator(distribution, reference) -> None:
    assert distribution.mean == pytest.approx(reference.mean(), abs=1e-12)
    assert distribution.std == pytest.approx(reference.std(), rel=1e-12)
    draws = distribution.sample(np.random.default_rng(7), (10_000, 2))
    assert draws.shape == (10_000, 2)
    assert distribution.sample(np.random.default_rng(7), ()).shape == ()
    assert stats.kstest(draws.ravel(), reference.cdf).pvalue > 1e-3
    assert abs(draws.mean() - reference.mean()) < 4.0 * reference.std() / math.sqrt(draws.size)
    assert abs(np.corrcoef(draws.T)[0, 1]) < 4.0 / math.sqrt(10_000)
    again = pickle.loads(pickle.dumps(distribution))
    assert (again, hash(again)) == (distribution, hash(distribution))
    np.testing.assert_array_equal(again.sample(np.random.default_rng(7), (10_000, 2)), draws)


@each
def test_draws_of_uniform_numbers(distribution, reference) -> None:
    """Stratified uniforms leave an empirical CDF off by at most about one point a component."""
    n = 5_000
    draws = np.sort(distribution.from_uniform((np.arange(n) + 0.5) / n))
    assert stats.kstest(draws, reference.cdf).statistic < 5.0 / n
    uniforms = np.random.default_rng(0).random((40, 5))
    if isinstance(distribution, GaussianMixture):
        assert distribution.from_uniform(uniforms).shape == (40, 5)
    else:
        np.testing.assert_allclose(distribution.from_uniform(uniforms), reference.ppf(uniforms), rtol=1e-9, atol=1e-9)
    # Generator.random() can return 0 but never 1; quasi-Monte Carlo points lie inside
    ends = np.array([np.finfo(float).eps, 1.0 - np.finfo(float).epsneg])
    assert np.isfinite(distribution.from_uniform(ends)).all()


def test_a_mixture_is_finite_at_zero_and_at_the_seams() -> None:
    mixture = GaussianMixture([0.3, 0.7], [0.0, 1.0], [1.0, 1.0])
    assert np.isfinite(mixture.from_uniform(np.array([0.0, 0.3, np.nextafter(0.3, 0), np.nextafter(1, 0)]))).all()


def test_zero_takes_nothing_from_the_stream() -> None:
    rng, untouched = np.random.default_rng(0), np.random.default_rng(0)
    assert not Zero().sample(rng, (2, 3)).any()
    assert rng.random() == untouched.random()
    assert not Zero().from_uniform(np.full(4, 0.3)).any()
    assert Zero().mean == Zero().std == 0.0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Normal(0.0, 0.0), "std must be a finite number above 0; given 0.0"),
        (lambda: Normal(0.0, math.nan), "given nan"),
        (lambda: Normal(math.nan, 1.0), "mean must be a finite number; given nan"),
        (lambda: Uniform(1.0, 1.0), "high - low must be a finite number above 0"),
        (lambda: Uniform(0.0, math.inf), "given inf"),
        (lambda: Arcsine(math.inf, 1.0), "mean must be a finite number; given inf"),
        (lambda: GaussianMixture([], [], []), "at least one"),
        (lambda: GaussianMixture([0.5, 0.5], [0.0], [1.0, 1.0]), "one entry per component"),
        (lambda: GaussianMixture([0.5, 0.6], [0.0, 0.0], [1.0, 1.0]), "sum to 1"),
        (lambda: GaussianMixture([1.5, -0.5], [0.0, 0.0], [1.0, 1.0]), "non-negative"),
        (lambda: GaussianMixture([0.5, 0.5], [0.0, 0.0], [1.0, 0.0]), "every std must be"),
        (lambda: GaussianMixture([1.0], [math.nan], [1.0]), "means must be a list of finite numbers"),
    ],
)
def test_invalid_parameters_say_what_is_wrong(build, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(("location", "scale"), [(0.3, 0.4), (-1.0, 0.5)])
def test_truncated_normal_against_scipy(location, scale):
    ours = TruncatedNormal(location, scale)
    theirs = stats.truncnorm((0 - location) / scale, (1 - location) / scale, location, scale)
    assert ours.mean == pytest.approx(theirs.mean(), rel=1e-9)
    assert ours.std == pytest.approx(theirs.std(), rel=1e-6)
    ranks = np.linspace(0.01, 0.99, 50)
    np.testing.assert_allclose(ours.from_uniform(ranks), theirs.ppf(ranks), rtol=1e-7)


def test_truncated_normal_stays_in_its_range():
    draws = TruncatedNormal(0.9, 0.4).from_uniform(np.array([0.0, 1e-300, 0.5, 1.0 - 1e-16, 1.0]))
    assert (draws >= 0).all()
    assert (draws <= 1).all()
    with pytest.raises(ValueError, match="high - low"):
        TruncatedNormal(0.5, 0.1, 1.0, 0.0)


def test_empirical_has_its_quantiles_mean_and_spread():
    distribution = Empirical([0.0, 0.2, 0.2, 1.0])
    assert distribution.from_uniform(np.array([0.0, 1 / 3, 0.5, 2 / 3, 1.0])) == pytest.approx(
        [0.0, 0.2, 0.2, 0.2, 1.0]
    )
    draws = distribution.sample(np.random.default_rng(0), 100_000)
    assert draws.mean() == pytest.approx(distribution.mean, abs=5 * draws.std() / np.sqrt(100_000))
    assert draws.std() == pytest.approx(distribution.std, rel=0.02)
    for bad in ([0.5], [0.5, 0.4]):
        with pytest.raises(ValueError, match="ascending"):
            Empirical(bad)


def test_a_family_draws_parameters_from_their_ranges():
    family = DistributionFamily(TruncatedNormal, {"location": (0.3, 0.7), "scale": (0.1, 0.4)})
    drawn = [family.draw(np.random.default_rng(seed)) for seed in range(200)]
    for name, low, high in [("location", 0.3, 0.7), ("scale", 0.1, 0.4)]:
        values = np.array([getattr(one, name) for one in drawn])
        assert low <= values.min() < values.max() <= high
        assert values.mean() == pytest.approx(0.5 * (low + high), abs=0.03)
