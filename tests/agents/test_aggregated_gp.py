"""The Gaussian process over cells against linear algebra from scratch and against quadrature."""

from itertools import product

import numpy as np
import pytest

from cbo_gym.actions.cells import representative_points
from cbo_gym.agents.cells.aggregated_gp import AggregatedGP, AverageKernel, IntegralKernel


def random_cells(count: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.sort(np.random.default_rng(seed).random((count, 2, dim)), axis=1)


@pytest.mark.parametrize(("dim", "points"), [(1, 1), (1, 10), (2, 7)])
def test_the_average_kernel_by_loops(dim: int, points: int) -> None:
    left, right = random_cells(3, dim), random_cells(4, dim, seed=1)
    kernel = AverageKernel(0.2, 0.7, points)

    def covariance(a: np.ndarray, b: np.ndarray) -> float:
        pairs = product(representative_points(a, points), representative_points(b, points))
        return float(np.mean([0.7 * np.exp(-np.sum((x - y) ** 2) / (2 * 0.2**2)) for x, y in pairs]))

    np.testing.assert_allclose(kernel.covariance(left, right), [[covariance(a, b) for b in right] for a in left])
    np.testing.assert_allclose(kernel.variance(left), [covariance(a, a) for a in left])


def quadrature(left: np.ndarray, right: np.ndarray, lengthscale: float) -> float:
    """Mean of the kernel over two intervals by composite Gauss-Legendre quadrature: 40 panels of order 12."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    unit = ((np.arange(40)[:, None] + 0.5 * (nodes + 1)) / 40).ravel()
    x, y = (low + (high - low) * unit for low, high in (left, right))
    shares = np.tile(weights, 40) / 80
    return float(shares @ np.exp(-((x[:, None] - y) ** 2) / (2 * lengthscale**2)) @ shares)


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
        by_dimension = [quadrature(left[i, :, k], right[j, :, k], 0.3) for k in range(2)]
        assert found[i, j] == pytest.approx(1.7 * np.prod(by_dimension), rel=1e-9)
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
    cell, gp = np.array([[0.2], [0.4]]), AggregatedGP(AverageKernel(0.5, 1.0, 3), 1e-9)
    for _ in range(30):
        gp.add(cell, 1.0)
    np.testing.assert_allclose(gp.posterior(cell[None]), [[1.0], [0.0]], atol=1e-4)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: AverageKernel(0.0, 1.0, 1), "lengthscale must be a finite number above 0; given 0.0"),
        (lambda: AverageKernel(1.0, -1.0, 1), "variance must be"),
        (lambda: IntegralKernel(np.inf, 1.0), "lengthscale must be a finite"),
        (lambda: AggregatedGP(AverageKernel(1.0, 1.0, 1), 0.0), "noise_std must be"),
        (lambda: observed([[0.0], [1.0]], np.nan), "must be finite"),
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
