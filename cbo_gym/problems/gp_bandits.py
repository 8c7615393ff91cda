"""Bandits on [0, 1] whose reward function is the posterior mean of a Gaussian process (Zhang et al. 2022, sec. 5, E).

Each is a one-node system ``Y = f(a) + u``. Agents are told the kernel, as in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cbo_gym.problems.base import Problem, gaussian_noise
from cbo_gym.scm import Floats, StructuralCausalModel, Variable

CITATION = "Zhang, Tsuchida & Ong (2022), Gaussian process bandits with aggregated feedback, sec. 5 and appendix E"
KERNEL_VARIANCE = 0.1
CONDITIONING_STD = 0.005  # of the noise with which the designed points were conditioned on
REWARD_STD = 0.1
GRID = 10_001  # points of the grid on which the maximiser is bracketed

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, eq=False)
class PosteriorMean:
    """The mechanism ``sum_i w_i k(a, x_i) + u`` with the squared-exponential kernel k; vectorised over a and u.

    Args:
        centres: the points x_i, shape ``(m,)``.
        weights: variance times the weights w_i, shape ``(m,)``.
        lengthscale: of k.
    """

    centres: np.ndarray
    weights: np.ndarray
    lengthscale: float

    @classmethod
    def conditioned_on(cls, points: Points, lengthscale: float) -> PosteriorMean:
        """The posterior mean given ``f(x) + noise = y`` at the points ``(x, y)``."""
        centres, values = np.array(points, dtype=float).T
        distances = np.subtract.outer(centres, centres) / lengthscale
        covariance = KERNEL_VARIANCE * np.exp(-0.5 * distances**2) + CONDITIONING_STD**2 * np.eye(len(centres))
        return cls(centres, KERNEL_VARIANCE * np.linalg.solve(covariance, values), lengthscale)

    def __call__(self, action: Floats, u: Floats) -> Floats:
        # In a batch of cells the points of each come together, or sums over them would not be those of one cell alone.
        by_cell = np.ndim(action) == 2
        distances = np.subtract.outer(np.transpose(action) if by_cell else action, self.centres)
        values = np.exp(self._rate * distances * distances) @ self.weights
        return (values.T if by_cell else values) + u

    @cached_property
    def _rate(self) -> float:
        return -0.5 / self.lengthscale**2

    def maximiser(self) -> float:
        """The global maximiser over [0, 1]: the best point of a fine grid, refined by finer ones around it."""
        low, high = 0.0, 1.0
        while high - low > 1e-9:
            grid = np.linspace(low, high, GRID)
            best = int(np.argmax(self(grid, 0.0)))
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)]
        return float(0.5 * (low + high))


def _bandit(name: str, description: str, points: Points, lengthscale: float, noise_std: float) -> Problem:
    function = PosteriorMean.conditioned_on(points, lengthscale)
    reward = Variable("Y", function, (), (0,), gaussian_noise(noise_std))
    return Problem(
        name=name,
        scm=StructuralCausalModel([reward], reward="Y"),
        description=description,
        citation=CITATION,
        action_domains=[(0.0, 1.0)],
        optimal_action=(function.maximiser(),),
        noiseless_mean=True,
        kernel=(lengthscale, KERNEL_VARIANCE),
    )


def gp_bandit_1(noise_std: float = REWARD_STD) -> Problem:
    """GPBandit1: three peaks of similar height.

    Args:
        noise_std: standard deviation of the reward's noise.
    """
    points = list(zip((0.05, 0.2, 0.4, 0.65, 0.9), (0.85, 0.1, 0.87, 0.05, 0.98), strict=True))
    return _bandit("GPBandit1", "Three peaks of similar height on [0, 1].", points, 0.05, noise_std)


def _periodic_points() -> list[tuple[float, float]]:
    edges = np.linspace(0.0, 0.9, 10)
    width = edges[1] - edges[0]
    centres = 0.5 * (edges[:-1] + edges[1:])
    valleys = [(float(x), 0.1) for x in centres]
    hills = [(float(x), 0.2) for x in centres + 2.0 / 3.0 * width]
    return [*valleys, *hills, (0.95, 0.9)]


def gp_bandit_2(noise_std: float = REWARD_STD) -> Problem:
    """GPBandit2: nine small waves and one high peak at the right end.

    Args:
        noise_std: standard deviation of the reward's noise.
    """
    return _bandit("GPBandit2", "Small waves on [0, 1] and one high peak.", _periodic_points(), 0.05, noise_std)


def gp_bandit_3(noise_std: float = REWARD_STD) -> Problem:
    """GPBandit3: as GPBandit2 with a shorter lengthscale and a dip beside the peak.

    Args:
        noise_std: standard deviation of the reward's noise.
    """
    points = [*_periodic_points(), (0.94, 0.1), (0.945, 0.2)]
    return _bandit("GPBandit3", "Narrow spikes on [0, 1], the highest beside a dip.", points, 0.01, noise_std)
