"""When differences decide a claim: intervals, p-values and several looks."""

from functools import cache
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.stats import multivariate_normal, norm, t

from cbo_gym.errors import ArgumentError

LEVEL = 0.05  # probability of a false decision, both sides together
LEAST_PAIRS = 10
MAX_EXTENT = 3.0  # Student's half widths, where Johnson's interval has no end; from simulations in the tests
LEAST_LEVEL = 1e-12  # smaller levels are not distinguished
SAME = 1e-6  # differences in this range are equal, because stored curves have no more digits
Kind = Literal["better", "as good", "equivalent"]
Decision = Literal["confirmed", "refuted", "equivalent", "open"]


def interval(differences: np.ndarray, level: float = LEVEL) -> tuple[float, float]:
    """Return the confidence interval of the mean of differences ``(n,)``: the union of two, infinite below two pairs.

    Student's interval is too narrow on one side if differences are skewed. Johnson's (1978), which corrects it by the
    third moment, is too narrow if most differences are ties.

    Equal differences show no spread. Yet if a share ``1 - level^(1/n)`` of all pairs had another difference, ``n``
    pairs would contain none of that share with probability ``level``. Their difference may be the whole gap between
    optimum and random action, 1 or -1, so the mean may be off by that share.
    """
    count = len(differences)
    if count < 2:
        return -np.inf, np.inf
    mean, variance = differences.mean(), differences.var(ddof=1)
    if np.ptp(differences) <= SAME:
        unseen = (1.0 - level ** (1.0 / count)) * (1.0 + abs(mean))
        return float(mean - unseen), float(mean + unseen)
    half = t.ppf(1.0 - level / 2.0, count - 1) * np.sqrt(variance / count)
    skewed = count / ((count - 1) * (count - 2)) * ((differences - mean) ** 3).sum() if count > 2 else 0.0
    shift, bend = skewed / (6.0 * variance * count), skewed / (3.0 * variance**2)
    low, high = (mean - _solve_bend(end - shift, bend) for end in (half, -half))
    return float(min(low, mean - half)), float(max(high, mean + half))


def _solve_bend(end: float, bend: float) -> float:
    """Return the d next to 0 with ``d + bend d^2 = end``."""
    inside = 1.0 + 4.0 * bend * end
    return MAX_EXTENT * end if inside < 0.0 else 2.0 * end / (1.0 + float(np.sqrt(inside)))


def decide(kind: Kind, low: float, high: float, margin: float) -> Decision:
    """Decide a claim by an interval of the difference.

    Args:
        kind: ``"better"``: the difference is above 0; ``"as good"``: it is above ``-margin``; ``"equivalent"``: it is
            within the margin.
        low: lower end of the interval.
        high: its upper end.
        margin: the largest negligible difference, 0 or more.
    """
    inside = -margin <= low and high <= margin
    if kind == "better":
        if inside and margin > 0.0:
            return "equivalent"
        return "confirmed" if low > 0.0 else "refuted" if high < 0.0 else "open"
    if kind == "as good":
        return "confirmed" if low > -margin else "refuted" if high < -margin else "open"
    return "confirmed" if inside else "refuted" if low > margin or high < -margin else "open"


def p_value(differences: np.ndarray, kind: Kind, margin: float) -> float:
    """Return the smallest level at which the claim is decided, either way; 1 if no level decides."""

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
def levels(looks: tuple[int, ...], level: float = LEVEL) -> tuple[float, ...]:
    """Return the level at each look, so that all of them together decide falsely with probability ``level``.

    On each side half of it is spent, by the function of Lan & DeMets (1983) after O'Brien & Fleming: little early.

    Args:
        looks: numbers of pairs, ascending; the last is the whole sample.
        level: probability of a false decision.

    Raises:
        ArgumentError: if the numbers do not ascend.
    """
    if list(looks) != sorted(set(looks)) or not looks or looks[0] < 1:
        raise ArgumentError(f"looks are numbers of pairs that ascend, not {list(looks)}")
    fractions = np.array(looks) / looks[-1]
    spent = 4.0 * norm.sf(norm.ppf(1.0 - level / 4.0) / np.sqrt(fractions))
    covariance = np.sqrt(np.minimum.outer(fractions, fractions) / np.maximum.outer(fractions, fractions))
    limits: list[float] = []
    for look, total in enumerate(spent):

        def over(limit: float, look: int = look, total: float = float(total)) -> float:
            upper = np.array([*limits, limit])
            inside = multivariate_normal(np.zeros(look + 1), covariance[: look + 1, : look + 1]).cdf(
                upper, lower_limit=-upper
            )
            return (1.0 - inside) - total

        limits.append(brentq(over, 1.0, 10.0, xtol=1e-4))
    return tuple(float(2.0 * norm.sf(limit)) for limit in limits)
