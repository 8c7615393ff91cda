"""CellModel: the reward as a Gaussian process over cells, as GPOO, GPTree and the cell GP-UCB use it.

Where the task tells the kernel and the noise, these are used with a zero prior mean, as in Zhang et al. (2022).
Elsewhere rewards are standardised and the hyper-parameters (one lengthscale, variance, noise) maximise the marginal
likelihood over a grid; the variance has an inverse-gamma prior of mean about 1, integrated out, without which a few
rewards that happen to agree would end all exploration. A grid takes no starting point and cannot fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cbo_gym.agents.cells.aggregated_gp import AggregatedGP, AverageKernel, CellKernel, IntegralKernel
from cbo_gym.scm.noise import Zero
from cbo_gym.task import AggregatedTask

MOST_CELLS = 2**14  # whose posterior is kept, in 1.6 GB
EVERY_TIME = 10  # refits follow every one of so many rewards
GROWTH = 1.2  # afterwards they follow when the data grew by this factor
LENGTHSCALES = np.geomspace(0.02, 2.0, 11)  # times sqrt(d), the diagonal of the box
NOISE_RATIOS = np.geomspace(1e-4, 1.0, 9)  # noise variance over function variance
NO_NOISE = 1e-6  # the same ratio where the task says that there is none
PSEUDO_REWARDS = 2.0  # weight of the variance's prior


class Hyperparameters(NamedTuple):
    lengthscale: float
    variance: float
    noise_std: float


class CellModel:
    """The posterior of the mean reward of cells, in units of :attr:`scale`.

    Args:
        task: aggregated; tells the representative points, and perhaps kernel and noise.
        fit: fit the hyper-parameters even where the task tells them.
        noise_std: taken for the noise's standard deviation in place of what the task tells, above 0; has no effect
            where hyper-parameters are fitted.

    Attributes:
        fitted: whether hyper-parameters are fitted; the units are then standard deviations of the rewards, else those
            of the rewards.
        gp: the process with the present hyper-parameters, in the same units; a refit makes another, which tracks the
            same cells.
        hyperparameters: in the same units.
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
        """Posterior means and standard deviations of any cells ``(m, 2, d)``, in the rewards' units."""
        mean, std = self.gp.posterior(cells)
        return self.location + self.scale * mean, self.scale * std

    def add(self, cell: np.ndarray, reward: float) -> None:
        """Learn from the reward of a cell."""
        self._cells.append(np.array(cell, dtype=np.float64))
        self._rewards.append(reward)
        size = len(self._rewards)
        if self.fitted and (size <= EVERY_TIME or size >= GROWTH * self._fitted_size):
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
        """The grid's best: ``s^2 (K + r I)`` is the rewards' covariance, K at unit variance, s^2 integrated out."""
        ratios = np.array([NO_NOISE]) if self._noiseless else NOISE_RATIOS
        weight = len(rewards) + PSEUDO_REWARDS
        best = (-np.inf, self.hyperparameters)
        for lengthscale in self._lengthscales:
            values, vectors = np.linalg.eigh(self._kernel(lengthscale, 1.0).covariance(cells, cells))
            spectrum = np.maximum(values, 0.0) + ratios[:, None]
            squares = (np.square(vectors.T @ rewards) / spectrum).sum(axis=1) + PSEUDO_REWARDS
            likelihoods = -0.5 * weight * np.log(squares) - 0.5 * np.log(spectrum).sum(axis=1)
            place = int(np.argmax(likelihoods))
            if likelihoods[place] > best[0]:
                variance = squares[place] / weight
                noise_std = float(np.sqrt(ratios[place] * variance))
                best = likelihoods[place], Hyperparameters(float(lengthscale), float(variance), noise_std)
        return best[1]

    def _kernel(self, lengthscale: float, variance: float) -> CellKernel:
        if self._task.integral:
            return IntegralKernel(lengthscale, variance)
        return AverageKernel(lengthscale, variance, self._task.representative_points)

    def _new_process(self) -> AggregatedGP:
        lengthscale, variance, noise_std = self.hyperparameters
        return AggregatedGP(self._kernel(lengthscale, variance), noise_std)


#: round t, theta and the number of cells to beta_t: behind the figures of Zhang et al. (2022), and by their Lemma 1
BETA_SCHEDULES: dict[str, Callable[[int, float, int], float]] = {
    "practical": lambda t, error, count: 0.1 * float(np.log(np.pi**2 * t**2 / (6.0 * error))),
    "theory": lambda t, error, count: 2.0 * float(np.log(count * np.pi**2 * t**2 / (6.0 * error))),
}
