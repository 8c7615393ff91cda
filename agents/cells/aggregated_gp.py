"""Gaussian processes whose observations are means over cells (Zhang, Tsuchida & Ong 2022, sec. 3, B and D).

A mean over a cell is a linear functional of the function, so means over cells are jointly Gaussian. Compared with point
observations, only the kernel differs: it is the mean of the function's kernel over two cells,
``k(A, B) = 1/S^2 sum_ij k(a_i, b_j)`` over representative points, or the double integral over the cells divided by
their volumes. All computations are in float64.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist
from scipy.special import erf

from cbo_gym._util.arguments import require_positive
from cbo_gym.actions.cells import representative_points
from cbo_gym.errors import ArgumentError

# Smallest squared diagonal element of the Cholesky factor, relative to the cell's variance.
MIN_PIVOT = 1e-12
# Number of pairs of points compared at once, which take 64 MiB.
MAX_PAIRS = 2**23
# Edges below this many lengthscales are integrated by their Taylor series.
NARROW = 1e-3


class AverageKernel:
    """Means over representative points under the squared-exponential kernel; lengthscales are in units of the box."""

    def __init__(self, lengthscale: float, variance: float, points: int) -> None:
        require_positive("lengthscale", lengthscale)
        require_positive("variance", variance)
        self._lengthscale, self._variance, self._points = lengthscale, variance, points

    def covariance(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return covariances of the means over cells ``(m, 2, d)`` and ``(n, 2, d)``, shape ``(m, n)``."""
        max_rows = max(MAX_PAIRS // (self._points**2 * max(len(left), 1)), 1)
        if len(right) <= max_rows:
            return self._covariance(left, right)
        blocks = [self._covariance(left, right[start : start + max_rows]) for start in range(0, len(right), max_rows)]
        return np.concatenate(blocks, axis=1)

    def _covariance(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        correlations = cdist(self._scaled_points(left), self._scaled_points(right), "sqeuclidean")
        # In place, to save memory.
        correlations *= -0.5
        np.exp(correlations, out=correlations)
        by_cells = correlations.reshape(len(left), self._points, len(right), self._points)
        return self._variance * by_cells.mean(axis=(1, 3))

    def variance(self, cells: np.ndarray) -> np.ndarray:
        """Return variances of the means over cells ``(m, 2, d)``, shape ``(m,)``."""
        points = representative_points(cells, self._points) / self._lengthscale
        squared = np.square(points[:, :, None] - points[:, None]).sum(axis=-1)
        return self._variance * np.exp(-0.5 * squared).mean(axis=(1, 2))

    def _scaled_points(self, cells: np.ndarray) -> np.ndarray:
        return representative_points(cells, self._points).reshape(-1, cells.shape[-1]) / self._lengthscale


class IntegralKernel:
    """Means over whole cells under the squared-exponential kernel, in closed form (appendix D)."""

    def __init__(self, lengthscale: float, variance: float) -> None:
        require_positive("lengthscale", lengthscale)
        require_positive("variance", variance)
        self._lengthscale, self._variance = lengthscale, variance

    def covariance(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self._variance * self._mean(left[:, None], right[None]).prod(axis=-1)

    def variance(self, cells: np.ndarray) -> np.ndarray:
        return self._variance * self._mean(cells, cells).prod(axis=-1)

    def _mean(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the mean of the kernel over the edges of two cells, coordinate by coordinate: ``(..., d)``."""
        a, b = left[..., 0, :] / self._lengthscale, left[..., 1, :] / self._lengthscale
        c, d = right[..., 0, :] / self._lengthscale, right[..., 1, :] / self._lengthscale
        width, height = b - a, d - c
        double = _antiderivative(b - c) + _antiderivative(a - d) - _antiderivative(b - d) - _antiderivative(a - c)
        # The four terms cancel if both edges are short; the series is exact there to rounding.
        distance = 0.5 * ((a + b) - (c + d))
        series = np.exp(-0.5 * distance**2) * (1.0 + (width**2 + height**2) * (distance**2 - 1.0) / 24.0)
        return np.where(np.maximum(width, height) < NARROW, series, double / (width * height))


def _antiderivative(z: np.ndarray) -> np.ndarray:
    return z * math.sqrt(0.5 * math.pi) * erf(z / math.sqrt(2.0)) + np.exp(-0.5 * z * z)


CellKernel = AverageKernel | IntegralKernel


class AggregatedGP:
    """Exact Gaussian process regression, zero prior mean, on noisy means over cells.

    A new observation extends the Cholesky factor by a row, in O(t^2) (Golub & Van Loan 2013, sec. 4.2.9). The posterior
    of *tracked* cells is kept up to date, in O(t) for each cell and observation: with ``L`` the Cholesky factor and
    ``C`` the covariances of observed and tracked cells, an observation adds a row to ``V = L^-1 C`` and leaves the
    others, and the posterior follows from sums over the rows.

    Args:
        kernel: kernel between cells.
        noise_std: standard deviation of the observations' noise, above 0.

    Attributes:
        cells: the observed cells, shape ``(t, 2, d)``.
        tracked: the tracked cells, shape ``(m, 2, d)``.
        mean: posterior means of the tracked cells, shape ``(m,)``.

    Raises:
        ArgumentError: if ``noise_std`` is out of range.
    """

    def __init__(self, kernel: CellKernel, noise_std: float) -> None:
        self.noise_std = require_positive("noise_std", noise_std)
        self.kernel = kernel
        self.cells = self.tracked = np.zeros((0, 2, 1))
        self._factor = np.zeros((0, 0))
        # V, with a row for each observation and a column for each tracked cell.
        self._projected = np.zeros((0, 0))
        # L^-1 y.
        self._residuals = np.zeros(0)
        self.mean = self._variance = np.zeros(0)

    def __len__(self) -> int:
        """Number of observations t."""
        return len(self.cells)

    @property
    def std(self) -> np.ndarray:
        """Posterior standard deviations (noise excluded) of the means over the tracked cells, shape ``(m,)``."""
        return np.sqrt(np.maximum(self._variance, 0.0))

    def add(self, cell: np.ndarray, reward: float) -> None:
        """Observe a noisy mean over a cell ``(2, d)``.

        Raises:
            ArgumentError: if a number is not finite.
        """
        # A copy, because the caller may overwrite the cell.
        cells = np.array(cell, dtype=np.float64)[None]
        if not (np.isfinite(cells).all() and math.isfinite(reward)):
            raise ArgumentError(f"observations must be finite; given {cells[0].tolist()} -> {reward}")
        variance = float(self.kernel.variance(cells)[0])
        row = self._project(cells)[:, 0]
        pivot = math.sqrt(max(variance + self.noise_std**2 - row @ row, MIN_PIVOT * variance))
        residual = (reward - row @ self._residuals) / pivot
        if len(self.tracked):
            projected = (self.kernel.covariance(cells, self.tracked)[0] - row @ self._projected) / pivot
            self.mean += residual * projected
            self._variance -= projected * projected
        else:
            projected = np.zeros(0)
        self._factor = np.block([[self._factor, np.zeros((len(self), 1))], [row, pivot]])
        self._residuals = np.append(self._residuals, residual)
        self._projected = np.vstack([self._projected, projected])
        self.cells = np.concatenate([self.cells, cells]) if len(self) else cells

    def track(self, cells: np.ndarray) -> None:
        """Append cells ``(n, 2, d)`` to the tracked ones."""
        projected, mean, variance = self._condition(cells)
        self._projected = np.hstack([self._projected, projected])
        self.tracked = np.concatenate([self.tracked, cells]) if len(self.tracked) else np.array(cells)
        self.mean, self._variance = np.append(self.mean, mean), np.append(self._variance, variance)

    def posterior(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the posterior mean and standard deviation of the means over any cells ``(m, 2, d)``, each ``(m,)``."""
        _, mean, variance = self._condition(cells)
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def _condition(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return columns of V for cells ``(m, 2, d)``, shape ``(t, m)``, and their posterior means and variances."""
        projected = self._project(cells)
        variance = self.kernel.variance(cells) - (projected * projected).sum(axis=0)
        return projected, self._residuals @ projected, variance

    def _project(self, cells: np.ndarray) -> np.ndarray:
        if not len(self):
            return np.zeros((0, len(cells)))
        cross = self.kernel.covariance(self.cells, cells)
        return solve_triangular(self._factor, cross, lower=True, check_finite=False)
