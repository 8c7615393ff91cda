"""Empirical moments of the base arms' signals and confidence intervals around them.

Signals lie in an interval of width w. If they are divided by w, the moment of order p about any point of the interval
is within ``2^(p mod 2) C[i]`` of its empirical value with high probability, where ``C[i] = sqrt((s + 1) ln t / m[i])``
for base arm i with m[i] observations in t rounds (Bauschmann & Maghsudi 2026, Eq. 6, 7).
"""

from __future__ import annotations

import numpy as np

# Weight of the pooled covariance of all base arms, in observations.
PRIOR_COUNT = 4.0


class SignalMoments:
    """Sums of powers of the signals about a centre, kept up to date round by round.

    Args:
        base_arms: number N of base arms.
        degree: highest order q of the moments, at least 2.
        width: width w of the signals' interval, above 0.

    Attributes:
        counts: number m of observations of each base arm, shape ``(N,)``.
        centre: centre a of the moments of each base arm, shape ``(N,)``.
    """

    def __init__(self, base_arms: int, degree: int, width: float) -> None:
        self.width = width
        self.counts = np.zeros(base_arms)
        self.centre = np.zeros(base_arms)
        self._orders = np.arange(degree + 1)[:, None]
        self._sums = np.zeros((degree + 1, base_arms))

    def add(self, super_arm: np.ndarray, exogenous: np.ndarray) -> None:
        """Add a round: the selected base arms, and their signals; both of shape ``(N,)``."""
        self.counts += super_arm
        self._sums += super_arm * (exogenous - self.centre) ** self._orders

    def recentre(self, super_arms: np.ndarray, exogenous: np.ndarray) -> None:
        """Move the centre to the means of all rounds so far; both of shape ``(rounds, N)``."""
        self.centre = (super_arms * exogenous).sum(axis=0) / np.maximum(self.counts, 1.0)
        powers = (exogenous - self.centre) ** self._orders[..., None]
        self._sums = (super_arms * powers).sum(axis=1)

    def moments(self) -> np.ndarray:
        """Return empirical moments about the centre by order, ``(q + 1, N)``; without data, 1 for order 0, else 0."""
        moments = self._sums / np.maximum(self.counts, 1.0)
        moments[0] = 1.0
        return moments

    def spread(self) -> np.ndarray:
        """Return root mean squares of the distances from the centre, at least 1 % of the width, shape ``(N,)``."""
        return np.sqrt(np.maximum(self.moments()[2], (0.01 * self.width) ** 2))

    def covariances(self, moments: np.ndarray) -> np.ndarray:
        """Return covariances of the powers 1 to q / 2 of a signal's distance from the centre, ``(q / 2, q / 2, N)``.

        The pooled covariance of all base arms is added as :data:`PRIOR_COUNT` observations of each, because a few
        signals may lie close together by chance.

        Args:
            moments: empirical moments or those of a family, shape ``(q + 1, N)``.
        """
        powers = np.arange(1, len(moments) // 2 + 1)
        covariances = moments[powers[:, None] + powers] - moments[powers[:, None]] * moments[powers]
        common = (covariances @ self.counts)[..., None] / max(self.counts.sum(), 1.0)
        return (self.counts * covariances + PRIOR_COUNT * common) / (self.counts + PRIOR_COUNT)

    def confidence(self, rounds: int, limit: int) -> np.ndarray:
        """Return C, shape ``(N,)``; ``limit`` is the largest number s of base arms in a super arm."""
        return np.sqrt((limit + 1) * np.log(max(rounds, 1)) / np.maximum(self.counts, 1.0))

    def intervals(self, confidence: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper ends of the intervals of all moments, ``(q + 1, N)`` each, given C ``(N,)``."""
        moments, highest = self.moments(), self.width**self._orders
        radius = 2.0 ** (self._orders % 2) * confidence * highest
        radius[0] = 0.0
        lowest = np.where(self._orders % 2 == 0, 0.0, -highest)
        return np.maximum(moments - radius, lowest), np.minimum(moments + radius, highest)

    def normal_moments(self) -> np.ndarray:
        """Return the moments of normal signals with the empirical means and variances, shape ``(q + 1, N)``."""
        _, shift, second, *_ = self.moments()
        variance = self.counts / np.maximum(self.counts - 1.0, 1.0) * (second - shift**2)
        moments = [np.ones_like(shift), shift]
        for order in range(2, len(self._sums)):
            moments.append(shift * moments[order - 1] + (order - 1) * variance * moments[order - 2])
        return np.stack(moments)
