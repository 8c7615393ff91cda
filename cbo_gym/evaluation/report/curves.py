"""One curve per method: the mean over seeds, and how sure it is. Figures and pages draw the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from cbo_gym.evaluation.metrics import aggregate

Array = np.ndarray

FEWEST_FOR_BAND = 5  # seeds; of fewer the single runs say more than an interval that fills the panel
DRAWS = 1000
MOST_TICKS = 5


@dataclass(frozen=True)
class Curve:
    """The curve of one method.

    Attributes:
        rounds: from 1, or other places on the horizontal axis, shape ``(n,)``.
        mean: over seeds, shape ``(n,)``.
        low, high: ends of the 95 % interval of the mean, shape ``(n,)``; None with fewer than five seeds.
        runs: the single runs with fewer than five seeds, shape ``(seeds, n)``; else, and of one seed, none.
        seeds: their number.
    """

    rounds: Array
    mean: Array
    low: Array | None
    high: Array | None
    runs: Array
    seeds: int


def curve(values: Array, floor: float = -np.inf, places: Array | None = None) -> Curve:
    """Mean and interval in every round, or at other places.

    The interval is a percentile bootstrap of the seeds, see :func:`aggregate.bootstrap_weights`.

    Args:
        values: shape ``(seeds, rounds)``; rounds in which a seed has NaN are left out.
        floor: what lies below is drawn at it, for logarithmic axes.
        places: on the horizontal axis, shape ``(rounds,)``; None for the rounds from 1.
    """
    known = ~np.isnan(values).any(axis=0)
    rounds, values = (np.arange(1, len(known) + 1) if places is None else places)[known], values[:, known]
    seeds = len(values)
    mean = values.mean(axis=0).clip(min=floor)
    if seeds < FEWEST_FOR_BAND:
        runs = values if seeds > 1 else values[:0]
        return Curve(rounds, mean, None, None, runs.clip(min=floor), seeds)
    low, high = aggregate.interval(_draws(seeds) @ values)
    return Curve(rounds, mean, low.clip(min=floor), high.clip(min=floor), values[:0], seeds)


@cache
def _draws(seeds: int) -> Array:
    """Weights of resamples, shape ``(draws, seeds)``; the same for all, so that figures agree."""
    return aggregate.bootstrap_weights(np.zeros((1, seeds)), DRAWS, np.random.default_rng(0))[:, 0]


def linear_limits(means: Sequence[Array]) -> tuple[float, float]:
    """The range of an axis from 0, or from what lies below it, to a quarter above the highest mean."""
    heights = np.concatenate(means)
    low, high = min(0.0, float(heights.min())), float(heights.max())
    span = high - low or 1.0
    return (low - 0.05 * span if low < 0 else 0.0), high + 0.2 * span


def log_limits(means: Sequence[Array]) -> tuple[float, float]:
    """The range of a logarithmic axis: a margin about the means, which are positive, and at least a factor of ten."""
    heights = np.concatenate(means)
    low, high = np.log10(heights.min()), np.log10(heights.max())
    margin = max(0.08 * (high - low), 0.5 * (1.0 - (high - low)), 0.05)
    return float(10 ** (low - margin)), float(10 ** (high + margin))


def log_ticks(low: float, high: float) -> list[float]:
    """A few plain values inside a logarithmic range: powers of ten, and where these are few also 2 and 5 times them."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        values = [float(f"{digit}e{power}") for power in powers for digit in digits]
        ticks = [value for value in values if low <= value <= high]
        if len(ticks) <= MOST_TICKS:
            return ticks
    return ticks[:: -(-len(ticks) // MOST_TICKS)]


def plain(value: float) -> str:
    """A tick's label: ``0.001``, ``20``; powers only of what has more than five places."""
    return f"{value:.10f}".rstrip("0").rstrip(".") if 1e-5 <= abs(value) < 1e6 else f"{value:g}"
