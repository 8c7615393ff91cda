"""CellModel: a Gaussian process of the reward over cells, which GPOO, GPTree and the cell GP-UCB use.

If the task states its kernel and noise, these are used with a zero prior mean, as in Zhang et al. (2022). Otherwise
rewards are standardised, and the hyper-parameters (one lengthscale, variance, noise) maximise the marginal likelihood
over a grid. The variance has an inverse-gamma prior of mean about 1, which is integrated out; without it, a few rewards
that agree by chance would end exploration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cbo_gym.agents.cells.aggregated_gp import AggregatedGP, AverageKernel, CellKernel, IntegralKernel
from cbo_gym.scm.noise import Zero
from cbo_gym.task import AggregatedTask

# Largest number of tracked cells, which take 1.6 GB.
MAX_CELLS = 2**14
# The hyper-parameters are refitted after each of the first rewards, up to this number.
REFITS_EACH = 10
# Factor by which the number of rewards must grow between later refits.
GROWTH = 1.2
# Lengthscales of the grid, in units of sqrt(d), the diagonal of the box.
LENGTHSCALES = np.geomspace(0.02, 2.0, 11)
# Noise variances of the grid, as shares of the function's variance.
NOISE_RATIOS = np.geomspace(1e-4, 1.0, 9)
# Noise ratio for a task without noise.
NO_NOISE = 1e-6
# Weight of the variance's prior, in rewards.
PSEUDO_REWARDS = 2.0


class Hyperparameters(NamedTuple):
    """Hyper-parameters of the cells' Gaussian process."""

    lengthscale: float
    variance: float
    noise_std: float


class CellModel:
    """The posterior of the mean reward of cells.

    Args:
        task: aggregated task.
        fit: fit the hyper-parameters even if the task has them.
        noise_std: standard deviation of the noise instead of the task's, above 0; ignored if hyper-parameters are
            fitted.

    Attributes:
        fitted: whether hyper-parameters are fitted.
        location: mean of the rewards at the last refit; 0 if nothing is fitted.
        scale: standard deviation of the rewards at the last refit; 1 if nothing is fitted.
        gp: the process of ``(reward - location) / scale`` with the present hyper-parameters; a refit makes a new one,
            which tracks the same cells.
        hyperparameters: the present hyper-parameters of ``gp``.
    """

    def __init__(self, task: AggregatedTask, fit: bool = False, noise_std: float | None = None) -> None:
        self._task = task
        self._noiseless = task.noise is not None and all(isinstance(noise, Zero) for noise in task.noise.values())
        self.location, self.scale = 0.0, 1.0
        self._cells: list[np.ndarray] = []
        self._rewards: list[float] = []
        self._fitted_size = 0
        dim = task.action_space.shape[-1]  # type: ignore[index]
        self._lengthscales = LENGTHSCALES * np.sqrt(dim)
        if fit or task.kernel is None or task.noise is None or self._noiseless:
            self.fitted = True
            self.hyperparameters = Hyperparameters(0.2 * np.sqrt(dim), 1.0, 0.1)
        else:
            self.fitted = False
            self.hyperparameters = Hyperparameters(*task.kernel, noise_std or task.noise[task.reward].std)
        self.gp = self._new_process()

    def posterior(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return posterior means and standard deviations of any cells ``(m, 2, d)``, in the rewards' units."""
        mean, std = self.gp.posterior(cells)
        return self.location + self.scale * mean, self.scale * std

    def add(self, cell: np.ndarray, reward: float) -> None:
        """Learn from the reward of a cell."""
        self._cells.append(np.array(cell, dtype=np.float64))
        self._rewards.append(reward)
        size = len(self._rewards)
        if self.fitted and (size <= REFITS_EACH or size >= GROWTH * self._fitted_size):
            self._refit()
        else:
            self.gp.add(cell, (reward - self.location) / self.scale)

    def _refit(self) -> None:
        rewards = np.array(self._rewards)
        self.location, spread = float(rewards.mean()), float(rewards.std())
        self.scale = spread if spread > 1e-12 * abs(self.location) else 1.0
        standardised = (rewards - self.location) / self.scale
        self.hyperparameters = self._most_likely(np.stack(self._cells), standardised)
        self._fitted_size = len(rewards)
        tracked = self.gp.tracked
        self.gp = self._new_process()
        for cell, reward in zip(self._cells, standardised, strict=True):
            self.gp.add(cell, float(reward))
        if len(tracked):
            self.gp.track(tracked)

    def _most_likely(self, cells: np.ndarray, rewards: np.ndarray) -> Hyperparameters:
        """Return the most likely point of the grid; rewards have the covariance ``s^2 (K + r I)`` with unknown s^2."""
        ratios = np.array([NO_NOISE]) if self._noiseless else NOISE_RATIOS
        weight = len(rewards) + PSEUDO_REWARDS
        highest, best = -np.inf, self.hyperparameters
        for lengthscale in self._lengthscales:
            values, vectors = np.linalg.eigh(self._kernel(lengthscale, 1.0).covariance(cells, cells))
            spectrum = np.maximum(values, 0.0) + ratios[:, None]
            squares = (np.square(vectors.T @ rewards) / spectrum).sum(axis=1) + PSEUDO_REWARDS
            likelihoods = -0.5 * weight * np.log(squares) - 0.5 * np.log(spectrum).sum(axis=1)
            index = int(np.argmax(likelihoods))
            if likelihoods[index] > highest:
                variance = squares[index] / weight
                noise_std = float(np.sqrt(ratios[index] * variance))
                highest, best = likelihoods[index], Hyperparameters(float(lengthscale), float(variance), noise_std)
        return best

    def _kernel(self, lengthscale: float, variance: float) -> CellKernel:
        if self._task.integral:
            return IntegralKernel(lengthscale, variance)
        return AverageKernel(lengthscale, variance, self._task.representative_points)

    def _new_process(self) -> AggregatedGP:
        lengthscale, variance, noise_std = self.hyperparameters
        return AggregatedGP(self._kernel(lengthscale, variance), noise_std)


#: Schedules of beta_t, the squared width of confidence bounds, by round t, error probability theta and number of cells:
#: as in the figures of Zhang et al. (2022), and by their Lemma 1.
BETA_SCHEDULES: dict[str, Callable[[int, float, int], float]] = {
    "practical": lambda t, error, count: 0.1 * float(np.log(np.pi**2 * t**2 / (6.0 * error))),
    "theory": lambda t, error, count: 2.0 * float(np.log(count * np.pi**2 * t**2 / (6.0 * error))),
}
