"""The Gaussian process over cells against linear algebra from scratch and against quadrature."""

import numpy as np
import pytest

from cbo_gym.actions.cells import representative_points
from cbo_gym.agents.cells.aggregated_gp import AggregatedGP, AverageKernel, IntegralKernel


def random_cells(count: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.sort(np.random.default_rng(seed).random((count, 2, dim)), axis=1)


def naive_covariance(left: np.ndarray, right: np.ndarray, lengthscale: float, variance: float, points: int) -> float:
    """One pair of cells, a loop over all pairs of points."""
    total = 0.0
    for x in representative_points(left, points):
        for y in representative_points(right, points):
            total += variance * np.exp(-np.sum((x - y) ** 2) / (2 * lengthscale**2))
    return total / points**2


@pytest.mark.parametrize(("dim", "points"), [(1, 1), (1, 10), (2, 7)])
def test_the_average_kernel_by_loops(dim: int, points: int) -> None:
    left, right = random_cells(3, dim), random_cells(4, dim, seed=1)
    kernel = AverageKernel(0.2, 0.7, points)
    expected = [[naive_covariance(a, b, 0.2, 0.7, points) for b in right] for a in left]
    np.testing.assert_allclose(kernel.covariance(left, right), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.variance(left), np.diag(kernel.covariance(left, left)), rtol=1e-12)


def quadrature(left: np.ndarray, right: np.ndarray, lengthscale: float, panels: int = 40, order: int = 12) -> float:
    """Mean of the kernel over two intervals by composite Gauss-Legendre quadrature."""
    nodes, weights = np.polynomial.legendre.leggauss(order)

    def rule(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
        edges = np.linspace(low, high, panels + 1)
        half = 0.5 * (edges[1:] - edges[:-1])[:, None]
        middle = 0.5 * (edges[1:] + edges[:-1])[:, None]
        return (middle + half * nodes).ravel(), np.tile(weights, panels) / (2 * panels)

    (x, u), (y, v) = rule(*left), rule(*right)
    return float(u @ np.exp(-((x[:, None] - y) ** 2) / (2 * lengthscale**2)) @ v)


@pytest.mark.parametrize("lengthscale", [0.01, 0.05, 0.3, 2.0])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((0.0, 1.0), (0.0, 1.0)),
        ((0.1, 0.4), (0.3, 0.9)),
        ((0.1, 0.2), (0.2, 0.3)),
        ((0.5, 0.5 + 1e-3), (0.1, 0.6)),
        ((0.5, 0.5 + 1e-5), (0.5, 0.5 + 3e-5)),
        ((0.5, 0.5 + 1e-7), (0.503, 0.503 + 1e-6)),
        ((0.3, 0.3 + 2.0**-10), (0.3 + 2.0**-10, 0.3 + 2.0**-9)),
    ],
)
def test_the_integral_kernel_by_quadrature(left, right, lengthscale) -> None:
    kernel = IntegralKernel(lengthscale, 1.0)
    found = kernel.covariance(np.array(left)[None, :, None], np.array(right)[None, :, None])[0, 0]
    assert found == pytest.approx(quadrature(left, right, lengthscale), rel=1e-8, abs=1e-10)


def test_the_integral_kernel_in_two_dimensions_is_a_product_and_the_limit_of_many_points() -> None:
    left, right = random_cells(3, 2), random_cells(4, 2, seed=1)
    kernel = IntegralKernel(0.3, 1.7)
    found = kernel.covariance(left, right)
    for i, j in np.ndindex(found.shape):
        product = np.prod([quadrature(left[i, :, k], right[j, :, k], 0.3) for k in range(2)])
        assert found[i, j] == pytest.approx(1.7 * product, rel=1e-9)
    np.testing.assert_allclose(kernel.variance(left), np.diag(kernel.covariance(left, left)), rtol=1e-12)
    np.testing.assert_allclose(AverageKernel(0.3, 1.7, 401).covariance(left, right), found, rtol=2e-3)


@pytest.mark.parametrize(("dim", "points"), [(1, 1), (2, 5)])
def test_200_row_updates_equal_a_solve_from_scratch(dim: int, points: int) -> None:
    rng = np.random.default_rng(1)
    cells, rewards, others = random_cells(200, dim), rng.normal(size=200), random_cells(60, dim, seed=2)
    cells[100:150] = cells[:50]  # cells that are played again
    kernel = AverageKernel(0.05, 0.1, points)
    gp = AggregatedGP(kernel, 0.1)
    np.testing.assert_allclose(gp.posterior(others), [np.zeros(60), np.sqrt(kernel.variance(others))])  # the prior
    gp.track(others[:20])
    for index, (cell, reward) in enumerate(zip(cells, rewards, strict=True)):
        gp.add(cell, reward)
        if index == 100:
            gp.track(others[20:])
    covariance = kernel.covariance(cells, cells) + 0.1**2 * np.eye(200)
    cross = kernel.covariance(cells, others)
    mean = cross.T @ np.linalg.solve(covariance, rewards)
    variance = kernel.variance(others) - (cross * np.linalg.solve(covariance, cross)).sum(axis=0)
    for found_mean, found_std in [(gp.mean, gp.std), gp.posterior(others)]:
        np.testing.assert_allclose(found_mean, mean, atol=1e-8, rtol=0)
        np.testing.assert_allclose(found_std, np.sqrt(variance), atol=1e-8, rtol=0)
    np.testing.assert_array_equal(gp.tracked, others)
    assert len(gp) == 200


def test_cells_of_equal_rewards_without_noise_do_not_break_the_factor() -> None:
    gp = AggregatedGP(AverageKernel(0.5, 1.0, 3), 1e-9)
    for _ in range(30):
        gp.add(np.array([[0.2], [0.4]]), 1.0)
    mean, std = gp.posterior(np.array([[[0.2], [0.4]]]))
    assert mean[0] == pytest.approx(1.0, abs=1e-4)
    assert std[0] < 1e-3


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: AverageKernel(0.0, 1.0, 1), "lengthscale must be a finite number above 0; given 0.0"),
        (lambda: AverageKernel(1.0, -1.0, 1), "variance must be"),
        (lambda: AverageKernel(1.0, 1.0, 0), "S must be a whole number from 1 to 10000; given 0"),
        (lambda: IntegralKernel(np.inf, 1.0), "lengthscale must be a finite"),
        (lambda: AggregatedGP(AverageKernel(1.0, 1.0, 1), 0.0), "noise_std must be"),
        (lambda: observed([[0.0], [1.0]], np.nan), "must be finite"),
        (lambda: observed([0.0, 1.0], 1.0), r"shape \(2, d\)"),
        (lambda: observed([[0.0, 0.0], [1.0, 1.0]], 1.0), r"equal for all cells; given \(2, 2\)"),
    ],
)
def test_bad_input(build, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def observed(cell, reward: float) -> AggregatedGP:
    gp = AggregatedGP(AverageKernel(0.1, 1.0, 2), 0.1)
    gp.add(np.array([[0.1], [0.2]]), 0.5)
    gp.add(np.array(cell), reward)
    return gp
