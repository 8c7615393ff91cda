"""Taylor terms and their optimistic values against exact moments and slow formulas."""

from itertools import product
from math import prod

import numpy as np
import pytest

from cbo_gym.actions.spaces import SuperArmSpace
from cbo_gym.agents.super_arms.payoff_polynomials import (
    PayoffPolynomials,
    PolynomialsAboutZero,
)
from cbo_gym.agents.super_arms.separable_fit import SeparableSystem
from cbo_gym.agents.super_arms.signal_moments import SignalMoments

COUNT, LIMIT = 5, 3
SUPER_ARMS = SuperArmSpace(COUNT, LIMIT).all()
LEVELS, WEIGHTS = np.array([0.1, 0.5, 0.9]), np.array([0.2, 0.5, 0.3])  # of every signal, shifted by its number


def quadratic_system() -> SeparableSystem:
    """y1 = z1 + z0^2 / 2, y4 = z4 + y1 + y2^2 / 4: a payoff of degree 4 at most."""
    coefficients = np.zeros((2, COUNT, COUNT))
    coefficients[1, 1, 0], coefficients[0, 4, 1], coefficients[1, 4, 2] = 0.5, 1.0, 0.25
    coefficients[1, 3, 1] = 0.7
    return SeparableSystem((lambda y: y, lambda y: y**2), coefficients)


def payoff(exogenous: np.ndarray) -> np.ndarray:
    return quadratic_system().solve(exogenous).sum(axis=-1)


def discrete_moments(centre: np.ndarray, degree: int) -> np.ndarray:
    signals = LEVELS[:, None] + 0.02 * np.arange(COUNT)
    return np.stack([WEIGHTS @ (signals - centre) ** p for p in range(degree + 1)])


def exact_means() -> np.ndarray:
    """Of the payoff of every super arm, by enumeration of all signals."""
    means = np.zeros(len(SUPER_ARMS))
    for levels in product(range(3), repeat=COUNT):
        signals = LEVELS[list(levels)] + 0.02 * np.arange(COUNT)
        means += prod(WEIGHTS[list(levels)]) * payoff(SUPER_ARMS * signals)
    return means


@pytest.mark.parametrize("reach", [0.05, 1.7])
def test_the_expected_payoff_of_a_polynomial_system_is_exact(reach: float) -> None:
    centre, spread = np.linspace(0.3, 0.6, COUNT), np.linspace(0.1, 0.3, COUNT)
    expansion = PayoffPolynomials(SUPER_ARMS, 4, reach).fit(payoff, centre, spread)
    np.testing.assert_allclose(expansion.expected_payoffs(discrete_moments(centre, 4)), exact_means(), atol=1e-6)


def test_about_zero_it_is_exact_up_to_interactions_of_more_than_q_signals() -> None:
    zero, spread = np.zeros(COUNT), np.linspace(0.2, 0.5, COUNT)
    expansion = PolynomialsAboutZero(SUPER_ARMS, 4, 1.0).fit(payoff, zero, spread)
    np.testing.assert_allclose(expansion.expected_payoffs(discrete_moments(zero, 4)), exact_means(), atol=1e-9)

    def product_of_three(exogenous: np.ndarray) -> np.ndarray:
        return payoff(exogenous) + exogenous[..., :3].prod(axis=-1)

    cubic, pairs_only = (
        PolynomialsAboutZero(SUPER_ARMS, 2, 1.0).fit(function, zero, spread).expected_payoffs(np.ones((3, COUNT)))
        for function in (product_of_three, payoff)
    )
    np.testing.assert_allclose(cubic, pairs_only)


def test_optimistic_payoffs_equal_the_slow_sum() -> None:
    rng = np.random.default_rng(0)
    polynomials = PayoffPolynomials(SUPER_ARMS, 3, 1.0)
    expansion = polynomials.fit(payoff, rng.random(COUNT), 0.3 * np.ones(COUNT))
    middle, radius = rng.uniform(-0.3, 0.3, (4, COUNT)), rng.uniform(0.0, 0.3, (4, COUNT))
    lower, upper = middle - radius, middle + radius
    lower[0] = upper[0] = 1.0
    slow = []
    for row in expansion.coefficients.toarray():
        total = 0.0
        for coefficient, alpha in zip(row, polynomials.exponents, strict=True):
            ends = [(lower[p, i], upper[p, i]) for i, p in enumerate(alpha) if p > 0]
            total += max(coefficient * prod(choice) for choice in product(*ends))
        slow.append(total)
    np.testing.assert_allclose(expansion.optimistic(lower, upper), slow, atol=1e-10)
    assert (expansion.optimistic(lower, upper) >= expansion.expected_payoffs(middle) - 1e-12).all()


def test_variances_are_those_of_one_more_signal() -> None:
    """Against finite differences of the expected payoffs in each moment."""
    centre, spread = np.linspace(0.3, 0.6, COUNT), np.linspace(0.1, 0.3, COUNT)
    expansion = PayoffPolynomials(SUPER_ARMS, 2, 1.0).fit(payoff, centre, spread)
    moments = discrete_moments(centre, 4)
    powers = np.arange(1, 3)
    covariances = moments[powers[:, None] + powers] - moments[powers[:, None]] * moments[powers]
    for i in range(COUNT):
        slopes = []
        for order in powers:
            step = np.zeros_like(moments)
            step[order, i] = 1e-5
            slopes.append(
                (expansion.expected_payoffs(moments + step) - expansion.expected_payoffs(moments - step)) / 2e-5
            )
        slow = np.einsum("px,pq,qx->x", slopes, covariances[..., i], slopes)
        np.testing.assert_allclose(expansion.variances(moments, covariances)[:, i], slow, atol=1e-8)


class TestSignalMoments:
    @staticmethod
    def filled(rounds: int = 60) -> tuple[SignalMoments, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        super_arms = (rng.random((rounds, COUNT)) < 0.6).astype(float)
        signals = super_arms * rng.random((rounds, COUNT))
        moments = SignalMoments(COUNT, 4, width=1.0)
        for i, (arm, signal) in enumerate(zip(super_arms, signals, strict=True)):
            if i == 20:
                moments.recentre(super_arms[:20], signals[:20])
            moments.add(arm, signal)
        return moments, super_arms, signals

    def test_moments_and_confidence(self) -> None:
        moments, super_arms, signals = self.filled()
        for i in range(COUNT):
            seen = signals[super_arms[:, i] > 0, i]
            powers = [np.mean((seen - moments.centre[i]) ** p) for p in range(5)]
            np.testing.assert_allclose(moments.moments()[:, i], powers)
            np.testing.assert_allclose(moments.spread()[i], np.sqrt(np.mean((seen - moments.centre[i]) ** 2)))
            np.testing.assert_allclose(moments.confidence(60, 3)[i], np.sqrt(4.0 * np.log(60) / len(seen)))

    def test_intervals(self) -> None:
        moments, _, _ = self.filled()
        confidence = np.full(COUNT, 0.01)
        lower, upper = moments.intervals(confidence)
        empirical = moments.moments()
        np.testing.assert_allclose(lower[0], 1.0)
        np.testing.assert_allclose(upper[0], 1.0)
        np.testing.assert_allclose(upper[1] - empirical[1], 0.02)
        np.testing.assert_allclose(upper[2] - empirical[2], 0.01)
        np.testing.assert_allclose(upper[3] - empirical[3], 0.02)
        assert (lower[4] >= 0.0).all()

    def test_normal_moments(self) -> None:
        moments, super_arms, signals = self.filled()
        for i in range(COUNT):
            seen = signals[super_arms[:, i] > 0, i]
            shift, variance = seen.mean() - moments.centre[i], seen.var(ddof=1)
            exact = [1.0, shift, shift**2 + variance, shift**3 + 3 * shift * variance]
            exact.append(shift**4 + 6 * shift**2 * variance + 3 * variance**2)
            np.testing.assert_allclose(moments.normal_moments()[:, i], exact, atol=1e-12)

    def test_covariances_of_powers_lean_on_those_of_all_base_arms(self) -> None:
        moments, super_arms, signals = self.filled()
        own, counts = np.empty((2, 2, COUNT)), super_arms.sum(axis=0)
        for i in range(COUNT):
            away = signals[super_arms[:, i] > 0, i] - moments.centre[i]
            own[..., i] = np.cov(away, away**2, ddof=0)
        common = np.average(own, axis=2, weights=counts)[..., None]
        expected = (counts * own + 4.0 * common) / (counts + 4.0)
        np.testing.assert_allclose(moments.covariances(moments.moments()), expected, atol=1e-12)
