"""Bandits on [0, 1] whose reward function is the posterior mean of a Gaussian process (Zhang et al. 2022, sec. 5, E).

Each is a one-node system ``Y = f(a) + u``. Agents know the kernel, as in the paper.

The figures of the paper come from its published program (github.com/Mengyanz/GPOO, run_sim.py), which differs from the
text: it conditions the process on the designed points with a noise *variance* of 0.005 instead of a standard deviation,
GPBandit1 has the lengthscale 0.1, and agents assume the lengthscale 0.05 for every function. Its functions are flatter:
their maxima are 0.933, 0.959 and 0.983 instead of 0.980, 1.138 and 1.706. ``published_gp_bandit_...`` build them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cbo_gym.problems.base import Problem, gaussian_noise
from cbo_gym.scm import Floats, StructuralCausalModel, Variable

CITATION = "Zhang, Tsuchida & Ong (2022), Gaussian process bandits with aggregated feedback, sec. 5 and appendix E"
KERNEL_VARIANCE = 0.1
# Variance of the noise when conditioning on the designed points, in the paper and in the published program.
CONDITIONING_VARIANCE = 0.005**2
PUBLISHED_CONDITIONING_VARIANCE = 0.005
# Lengthscale of the published program's agents.
KNOWN_LENGTHSCALE = 0.05
REWARD_STD = 0.1
# Number of points of the grid on which the maximiser is bracketed.
GRID = 10_001

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, eq=False)
class PosteriorMean:
    """The mechanism ``sum_i w_i k(a, x_i) + u`` with the squared-exponential kernel k; vectorised over a and u.

    Args:
        centres: the points x_i, shape ``(m,)``.
        weights: variance times the weights w_i, shape ``(m,)``.
        lengthscale: lengthscale of k.
    """

    centres: np.ndarray
    weights: np.ndarray
    lengthscale: float

    @classmethod
    def conditioned_on(cls, points: Points, lengthscale: float, noise_variance: float) -> PosteriorMean:
        """Return the posterior mean given ``f(x) + noise = y`` at the points ``(x, y)``."""
        centres, values = np.array(points, dtype=float).T
        distances = np.subtract.outer(centres, centres) / lengthscale
        covariance = KERNEL_VARIANCE * np.exp(-0.5 * distances**2) + noise_variance * np.eye(len(centres))
        return cls(centres, KERNEL_VARIANCE * np.linalg.solve(covariance, values), lengthscale)

    def __call__(self, action: Floats, u: Floats) -> Floats:
        # In a batch of cells, sum the points of each cell together, so that the sums equal those of a single cell.
        by_cell = np.ndim(action) == 2
        distances = np.subtract.outer(np.transpose(action) if by_cell else action, self.centres)
        exponents = self._rate * distances
        exponents *= distances
        similarities = np.exp(exponents, out=exponents)
        if by_cell:
            return (similarities @ self.weights).T + u
        # On so few numbers dot takes a third of the time of @.
        return similarities.dot(self.weights) + u

    @cached_property
    def _rate(self) -> np.ndarray:
        # A zero-dimensional array is faster in products than a plain number.
        return np.array(-0.5 / self.lengthscale**2)

    def maximiser(self) -> float:
        """Return the global maximiser over [0, 1]: the best point of a fine grid, refined by finer ones around it."""
        low, high = 0.0, 1.0
        while high - low > 1e-9:
            grid = np.linspace(low, high, GRID)
            best = int(np.argmax(self(grid, 0.0)))
            low, high = grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)]
        return float(0.5 * (low + high))


class Design(NamedTuple):
    """A function's name and the points ``(x, y)`` near which it passes, the same in the paper and the program."""

    name: str
    description: str
    points: Points


def _waves() -> list[tuple[float, float]]:
    """Return the points of nine low waves, and of a high peak at the right end."""
    edges = np.linspace(0.0, 0.9, 10)
    width = edges[1] - edges[0]
    centres = 0.5 * (edges[:-1] + edges[1:])
    valleys = [(float(x), 0.1) for x in centres]
    hills = [(float(x), 0.2) for x in centres + 2.0 / 3.0 * width]
    return [*valleys, *hills, (0.95, 0.9)]


FIRST = Design(
    "GPBandit1",
    "Three peaks of similar height on [0, 1].",
    [(0.05, 0.85), (0.2, 0.1), (0.4, 0.87), (0.65, 0.05), (0.9, 0.98)],
)
SECOND = Design("GPBandit2", "Small waves on [0, 1] and one high peak.", _waves())
THIRD = Design(
    "GPBandit3", "Narrow spikes on [0, 1], the highest beside a dip.", [*_waves(), (0.94, 0.1), (0.945, 0.2)]
)


def _problem(design: Design, lengthscale: float, noise_std: float, *, published: bool = False) -> Problem:
    """Return a bandit of the paper, or of the published program."""
    variance = PUBLISHED_CONDITIONING_VARIANCE if published else CONDITIONING_VARIANCE
    function = PosteriorMean.conditioned_on(design.points, lengthscale, variance)
    reward = Variable("Y", function, (), (0,), gaussian_noise(noise_std))
    return Problem(
        name=f"{design.name}-Published" if published else design.name,
        scm=StructuralCausalModel([reward], reward="Y"),
        description=f"{design.description} The published program's." if published else design.description,
        citation=CITATION,
        action_domains=[(0.0, 1.0)],
        optimal_action=(function.maximiser(),),
        noiseless_mean=True,
        kernel=(KNOWN_LENGTHSCALE if published else lengthscale, KERNEL_VARIANCE),
    )


def gp_bandit_1(noise_std: float = REWARD_STD) -> Problem:
    """GPBandit1: three peaks of similar height.

    Args:
        noise_std: standard deviation of the reward's noise.
    """
    return _problem(FIRST, 0.05, noise_std)


def gp_bandit_2(noise_std: float = REWARD_STD) -> Problem:
    """GPBandit2: nine small waves and one high peak at the right end; for the argument see :func:`gp_bandit_1`."""
    return _problem(SECOND, 0.05, noise_std)


def gp_bandit_3(noise_std: float = REWARD_STD) -> Problem:
    """GPBandit3: GPBandit2 with a shorter lengthscale and a dip next to the peak; see :func:`gp_bandit_1`."""
    return _problem(THIRD, 0.01, noise_std)


def published_gp_bandit_1(noise_std: float = REWARD_STD) -> Problem:
    """GPBandit1 of the published program: agents know a kernel half as wide as the function's.

    For the argument see :func:`gp_bandit_1`.
    """
    return _problem(FIRST, 0.1, noise_std, published=True)


def published_gp_bandit_2(noise_std: float = REWARD_STD) -> Problem:
    """GPBandit2 of the published program; for the argument see :func:`gp_bandit_1`."""
    return _problem(SECOND, 0.05, noise_std, published=True)


def published_gp_bandit_3(noise_std: float = REWARD_STD) -> Problem:
    """GPBandit3 of the published program: agents know a kernel five times as wide as the function's.

    For the argument see :func:`gp_bandit_1`.
    """
    return _problem(THIRD, 0.01, noise_std, published=True)
