"""Statistics of an agent's scores on several environments and seeds, as functions on arrays.

After Agarwal, Schwarzer, Castro, Courville & Bellemare (2021), Deep Reinforcement Learning at the Edge of the
Statistical Precipice (NeurIPS), sec. 4. Scores have shape ``(envs, seeds)``; a missing run is NaN, so environments may
differ in their number of runs, but all have the same weight. A statistic takes scores and *weights* of the runs. With
:func:`equal_weights` it is the value for the runs themselves. With the weights of many resamples, from
:func:`bootstrap`, it has a value per resample, and :func:`interval` returns the ends of the confidence interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray

CONFIDENCE = 0.95
# Fewest seeds for an interval of their mean, and for a rank.
MIN_SEEDS = 5
# Probability below the upper end of a two-sided interval.
TWO_SIDED = 0.5 + CONFIDENCE / 2
# Single precision represents whole and half numbers exactly up to this number.
LARGEST_EXACT = 2**23


def equal_weights(scores: Array) -> Array:
    """Return equal weights of environments, and of the runs of each: shape ``(envs, seeds)``, with sum 1."""
    present = ~np.isnan(scores)
    return present / (len(scores) * present.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Resamples:
    """Bootstrap resamples, as numbers of draws, which take an eighth of the memory of weights.

    Attributes:
        counts: how often each run was drawn in each resample, shape ``(envs, draws, seeds)``; with this order of axes
            matrix products are twice as fast as with the draws first.
        sizes: number of runs in a resample of each environment, shape ``(envs,)``.
    """

    counts: Array
    sizes: Array

    def weights(self) -> Array:
        """Return weights of shape ``(draws, envs, seeds)``, whose sum is 1 in each draw."""
        return (self.counts / self.sizes[:, None, None]).swapaxes(0, 1) / len(self.sizes)

    def select(self, rows: Array) -> Resamples:
        """Return the resamples of some environments."""
        return Resamples(self.counts[rows], self.sizes[rows])


def bootstrap(scores: Array, draws: int, rng: np.random.Generator) -> Resamples:
    """Draw stratified resamples: n - 1 of the n runs of each environment, with replacement.

    With n draws, intervals would be too narrow by the factor sqrt((n - 1) / n), which matters if n is small (Rao & Wu
    1988, Resampling inference with complex survey data, JASA 83). A single run is drawn itself, and has no spread.

    Args:
        scores: shape ``(envs, seeds)``, with at least one run in each environment.
        draws: number of resamples.
        rng: random generator.
    """
    runs = (equal_weights(scores) > 0).sum(axis=1)
    draws_per_env = np.maximum(1, runs - 1)
    counts = np.zeros((len(scores), draws, scores.shape[1]), dtype=np.min_scalar_type(int(draws_per_env.max())))
    for row, present in enumerate(~np.isnan(scores)):
        counts[row][:, present] = rng.multinomial(draws_per_env[row], np.full(runs[row], 1 / runs[row]), size=draws)
    return Resamples(counts, draws_per_env)


def mean(scores: Array, weights: Array) -> Array:
    """Return the mean over environments of the means over seeds.

    Args:
        scores: shape ``(envs, seeds)``.
        weights: shape ``(..., envs, seeds)``, as for all statistics here.

    Returns:
        Means of shape ``(...)``.
    """
    return np.einsum("...es,es->...", weights, np.nan_to_num(scores))


def interquartile_mean(scores: Array, weights: Array) -> Array:
    """Return the mean of the middle half of all runs, without the lowest and the highest quarter of the weight.

    A run on a quartile counts in part.

    Returns:
        Means of shape ``(...)`` for weights of shape ``(..., envs, seeds)``.
    """
    values = np.nan_to_num(scores).ravel()
    order = np.argsort(values)
    sorted_weights = weights.reshape(*weights.shape[:-2], -1)[..., order]
    upper = np.cumsum(sorted_weights, axis=-1)
    inside = np.clip(upper, 0.25, 0.75) - np.clip(upper - sorted_weights, 0.25, 0.75)
    return inside @ values[order] / inside.sum(axis=-1)


def performance_profile(scores: Array, weights: Array, thresholds: Array) -> Array:
    """Return the weighted fraction of runs with a score above each threshold.

    Returns:
        Fractions of shape ``(..., thresholds)`` for weights of shape ``(..., envs, seeds)``.
    """
    # The comparison is false for NaN, but missing runs have no weight.
    above = scores.reshape(-1, 1) > thresholds
    return weights.reshape(*weights.shape[:-2], -1) @ above.astype(float)


def probability_of_improvement(scores: Array, others: Array, weights: Array, other_weights: Array) -> Array:
    """Return P(X > Y) + P(X = Y) / 2 for scores X and Y of two agents, averaged over environments.

    In an environment it is the Mann-Whitney statistic divided by the number of pairs of runs.

    Args:
        scores: scores of one agent, shape ``(envs, seeds)``.
        others: scores of the other agent on the same environments, shape ``(envs, other_seeds)``.
        weights: weights of ``scores``, shape ``(..., envs, seeds)``.
        other_weights: weights of ``others``, shape ``(..., envs, other_seeds)``.

    Returns:
        Probabilities of shape ``(...)``.
    """
    weights_by_env = weights.reshape(-1, *scores.shape).swapaxes(0, 1)
    other_weights_by_env = other_weights.reshape(-1, *others.shape).swapaxes(0, 1)
    # The weights of an environment sum to 1 / envs in both factors.
    total = np.einsum("ebj,ebj->b", weights_by_env @ _wins(scores, others), other_weights_by_env) * len(scores)
    return total.reshape(weights.shape[:-2])


def resampled_improvement(scores: Array, others: Array, resamples: Resamples, other_resamples: Resamples) -> Array:
    """Return :func:`probability_of_improvement` of each draw, shape ``(draws,)``.

    It is faster than with weights, because it counts wins, which single precision represents exactly.
    """
    pairs = int(resamples.counts[0, 0].size) * int(other_resamples.counts[0, 0].size)
    dtype = np.float32 if pairs < LARGEST_EXACT else np.float64
    wins_over_run = resamples.counts.astype(dtype) @ _wins(scores, others).astype(dtype)
    wins = np.einsum("ebj,ebj->eb", wins_over_run, other_resamples.counts.astype(dtype))
    probabilities = wins / (resamples.sizes * other_resamples.sizes)[:, None]
    return probabilities.mean(axis=0)


def _wins(scores: Array, others: Array) -> Array:
    """Return 1, 0.5 or 0 if a score is higher, equal or lower than another: shape ``(envs, seeds, other_seeds)``."""
    return 0.5 + 0.5 * np.sign(np.nan_to_num(scores)[:, :, None] - np.nan_to_num(others)[:, None, :])


def interval(statistics: Array) -> tuple[Array, Array]:
    """Return the lower and upper ends of the 95 % percentile interval of a statistic; bootstrap draws are on axis 0."""
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(statistics, [tail, 100 - tail], axis=0)
    return low, high


def with_ends(name: str, value: float, low: float, high: float, has_interval: bool) -> dict[str, float | None]:
    """Return the columns of a value and of the ends of its interval, which are null without an interval."""
    return {name: value, f"{name}_low": low if has_interval else None, f"{name}_high": high if has_interval else None}


def half_width(values: Array, axis: int = 0) -> Array:
    """Return half the width of the 95 % t-interval of the mean along ``axis``; NaN below :data:`MIN_SEEDS` values."""
    count = values.shape[axis]
    if count < MIN_SEEDS:
        return np.full(np.delete(values.shape, axis), np.nan)
    return t_factor(count) * values.std(axis=axis, ddof=1)


def t_factor(count: Any) -> Any:
    """Return half the width of the 95 % t-interval of a mean of ``count`` values, in their standard deviations."""
    return t_quantile(count - 1) / np.sqrt(count)


def welch_half_width(samples: Sequence[Array], below: float = TWO_SIDED, fewest: int = MIN_SEEDS) -> float:
    """Return half the width of Welch's interval for a sum or difference of means; NaN below ``fewest`` values.

    Its degrees of freedom are those of Welch and Satterthwaite, for samples with different variances. ``below`` is the
    probability below the interval's upper end.
    """
    counts = np.array([len(sample) for sample in samples])
    if counts.min() < fewest:
        return np.nan
    variances = np.array([sample.var(ddof=1) for sample in samples]) / counts
    if not variances.any():
        return 0.0
    freedom = variances.sum() ** 2 / (variances**2 / (counts - 1)).sum()
    return float(t_quantile(freedom, below) * np.sqrt(variances.sum()))


def t_quantile(freedom: Any, below: float = TWO_SIDED) -> Any:
    """Return the quantile of Student's t with probability ``below``; by default the end of a 95 % interval."""
    # Imported here, so that processes that only play runs start faster.
    from scipy.special import stdtrit

    return stdtrit(freedom, below)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return adjusted p-values of hypotheses that are tested together, in their order.

    The probability that the adjusted value of any true hypothesis is below a level is at most that level: Holm (1979),
    A simple sequentially rejective multiple test procedure.
    """
    order = np.argsort(p_values, kind="stable")
    factors = len(p_values) - np.arange(len(p_values))
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * np.asarray(p_values, dtype=float)[order]))
    return adjusted.tolist()
