"""Decide a claim by differences of pairs of runs: confidence intervals, p-values and interim looks."""

from functools import cache
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.stats import multivariate_normal, norm, t

from cbo_gym.errors import ArgumentError

# Probability of a false decision, both sides together.
LEVEL = 0.05
LEAST_PAIRS = 10
# Where Johnson's interval has no end, it ends at this multiple of Student's half width, from simulations in the tests.
MAX_EXTENT = 3.0
# Smaller levels are not distinguished.
LEAST_LEVEL = 1e-12
# Differences in a range of this length are equal, because stored curves have no more digits.
EQUAL_RANGE = 1e-6
Kind = Literal["better", "as good", "equivalent"]
Decision = Literal["confirmed", "refuted", "equivalent", "open"]


def interval(differences: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Return the confidence interval of the mean of differences, shape ``(n,)``; infinite below two pairs.

    It is the union of two intervals. Student's is too narrow on one side if differences are skewed. Johnson's (1978),
    which corrects it by the third moment, is too narrow if most differences are ties.

    If all differences are equal, these intervals have no width. Yet if a fraction ``1 - level^(1/n)`` of all pairs had
    another difference, ``n`` pairs would contain none of them with probability ``level``. That difference may be as
    large as the gap between optimum and random action, 1 or -1, so the mean may be off by that fraction.
    """
    count = len(differences)
    if count < 2:
        return -np.inf, np.inf
    mean, variance = differences.mean(), differences.var(ddof=1)
    if np.ptp(differences) <= EQUAL_RANGE:
        unseen = (1.0 - level ** (1.0 / count)) * (1.0 + abs(mean))
        return float(mean - unseen), float(mean + unseen)
    half = t.ppf(1.0 - level / 2.0, count - 1) * np.sqrt(variance / count)
    skewness = count / ((count - 1) * (count - 2)) * ((differences - mean) ** 3).sum() if count > 2 else 0.0
    shift, bend = skewness / (6.0 * variance * count), skewness / (3.0 * variance**2)
    low, high = (mean - _solve_bend(end - shift, bend) for end in (half, -half))
    return float(min(low, mean - half)), float(max(high, mean + half))


def _solve_bend(end: float, bend: float) -> float:
    """Return the d closest to 0 with ``d + bend d^2 = end``, or ``MAX_EXTENT * end`` if there is none."""
    discriminant = 1.0 + 4.0 * bend * end
    return MAX_EXTENT * end if discriminant < 0.0 else 2.0 * end / (1.0 + float(np.sqrt(discriminant)))


def decide(kind: Kind, low: float, high: float, margin: float) -> Decision:
    """Decide a claim by the confidence interval of the difference.

    Args:
        kind: what is claimed: ``"better"``, the difference is above 0; ``"as good"``, it is above ``-margin``;
            ``"equivalent"``, it is within the margin.
        low: lower end of the interval.
        high: upper end of the interval.
        margin: the largest negligible difference, 0 or more.
    """
    is_within_margin = -margin <= low and high <= margin
    if kind == "equivalent":
        if is_within_margin:
            return "confirmed"
        return "refuted" if low > margin or high < -margin else "open"
    if kind == "better" and is_within_margin and margin > 0.0:
        return "equivalent"
    bound = 0.0 if kind == "better" else -margin
    if low > bound:
        return "confirmed"
    return "refuted" if high < bound else "open"


def p_value(differences: np.ndarray, kind: Kind, margin: float) -> float:
    """Return the smallest level at which the claim is decided, confirmed or not; 1 if there is none."""

    def is_open(level: float) -> bool:
        return decide(kind, *interval(differences, level), margin) == "open"

    low, high = np.log(LEAST_LEVEL), 0.0
    if is_open(1.0 - 1e-9):
        return 1.0
    if not is_open(LEAST_LEVEL):
        return LEAST_LEVEL
    while high - low > 1e-4:
        middle = (low + high) / 2.0
        low, high = (middle, high) if is_open(float(np.exp(middle))) else (low, middle)
    return float(np.exp(high))


@cache
def levels(looks: tuple[int, ...]) -> tuple[float, ...]:
    """Return the level at each look, so that all looks together decide falsely with probability :data:`LEVEL`.

    Half of it is spent on each side, by the spending function of Lan & DeMets (1983) after O'Brien & Fleming, which
    spends little at early looks.

    Args:
        looks: numbers of pairs, ascending; the last is the whole sample.
    """
    if list(looks) != sorted(set(looks)) or not looks or looks[0] < 1:
        raise ArgumentError(f"looks are numbers of pairs that ascend, not {list(looks)}")
    fractions = np.array(looks) / looks[-1]
    spent = 4.0 * norm.sf(norm.ppf(1.0 - LEVEL / 4.0) / np.sqrt(fractions))
    covariance = np.sqrt(np.minimum.outer(fractions, fractions) / np.maximum.outer(fractions, fractions))
    limits: list[float] = []
    for look, total in enumerate(spent):

        def excess(limit: float, look: int = look, total: float = float(total)) -> float:
            upper = np.array([*limits, limit])
            normal = multivariate_normal(np.zeros(look + 1), covariance[: look + 1, : look + 1])
            return (1.0 - normal.cdf(upper, lower_limit=-upper)) - total

        limits.append(brentq(excess, 1.0, 10.0, xtol=1e-4))
    return tuple(float(2.0 * norm.sf(limit)) for limit in limits)
