"""Evidence: how well sets of causes explain a variable, with functions and noise integrated out in closed form.

A variable is ``y = f(x) + u`` with ``f`` linear or a draw of a Gaussian process and ``u ~ N(0, s^2)``. The prior
variance of f is a multiple of s^2, and the prior of s is flat in log s. Let ``s^2 A`` be the covariance of y. For n
centred values the evidence is then ``|A|^(-1/2) (y' A^-1 y)^(-(n - 1) / 2)``, up to a factor that all sets of causes
share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from operator import itemgetter

import numpy as np
import torch
from torch import Tensor

from cbo_gym._util.summation import add_up

# Lengthscales of standardised inputs, in units of the root of their number.
LENGTHSCALES = (0.7, 2.0)
# Variances of f in units of the noise variance.
SIGNALS = (3.0, 100.0)
# Variance of a standardised input's coefficient in units of the noise variance.
LINEAR_SIGNAL = 1.0
# Smallest unexplained share of the variance; smaller ones are rounding errors.
MIN_RESIDUAL = 1e-9
# Number of observations for each coefficient of :func:`residual_std`.
MIN_ROUNDS = 6


@dataclass(frozen=True)
class SmoothExplanation:
    """A Gaussian process fitted to a variable given its causes, with the scales of the highest evidence.

    Attributes:
        log_evidence: logarithm of the evidence, averaged over the scales.
    """

    log_evidence: float
    _inputs: np.ndarray
    _weights: np.ndarray
    _factor: np.ndarray
    # Lengthscale, variance of f in units of the noise variance, and noise variance.
    _scales: tuple[float, float, float]
    # Means and standard deviations of the causes, and the mean of the variable.
    _units: tuple[np.ndarray, np.ndarray, float]

    def mean(self, causes: np.ndarray) -> np.ndarray:
        """Return the mean of f at causes of shape ``(..., d)``."""
        flat = causes.reshape(math.prod(causes.shape[:-1]), causes.shape[-1])
        return (self._units[2] + self._cross(flat) @ self._weights).reshape(causes.shape[:-1])

    def predict(self, causes: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return means and variances of f at causes of shape ``(m, d)``, each ``(m,)``; and the noise's variance."""
        _, signal, noise = self._scales
        cross = self._cross(causes)
        reduced = np.linalg.solve(self._factor, cross.T)
        variance = np.maximum(signal - np.square(reduced).sum(axis=0), 0.0) + 1.0 / len(self._weights)
        return self._units[2] + cross @ self._weights, noise * variance, noise

    def _cross(self, causes: np.ndarray) -> np.ndarray:
        location, scale, _ = self._units
        lengthscale, signal, _ = self._scales
        return signal * _similarity((causes - location) / scale, self._inputs, lengthscale)


@dataclass(frozen=True)
class LinearExplanation:
    """A linear function of the causes, with the coefficients' covariance; methods as of :class:`SmoothExplanation`."""

    _coefficients: np.ndarray
    _inverse: np.ndarray
    _noise: float
    _count: int
    _units: tuple[np.ndarray, np.ndarray, float]

    def mean(self, causes: np.ndarray) -> np.ndarray:
        location, scale, mean = self._units
        return mean + ((causes - location) / scale) @ self._coefficients

    def predict(self, causes: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        location, scale, mean = self._units
        scaled = (causes - location) / scale
        variance = self._noise * (((scaled @ self._inverse) * scaled).sum(axis=1) + 1.0 / self._count)
        return mean + scaled @ self._coefficients, np.maximum(variance, 0.0), self._noise


Explanation = SmoothExplanation | LinearExplanation


def explain_linearly(causes: np.ndarray, effect: np.ndarray) -> LinearExplanation:
    """Return Bayesian linear regression of a variable on its causes; arguments as of :func:`explain`."""
    location, scale, mean = causes.mean(axis=0), np.maximum(causes.std(axis=0), 1e-12), float(effect.mean())
    inputs, centred = (causes - location) / scale, effect - mean
    inverse = np.linalg.inv(inputs.T @ inputs + np.eye(causes.shape[1]) / LINEAR_SIGNAL)
    coefficients = inverse @ (inputs.T @ centred)
    noise = max(float(centred @ (centred - inputs @ coefficients)), 0.0) / (len(effect) - 1)
    return LinearExplanation(coefficients, inverse, noise, len(effect), (location, scale, mean))


def explain(causes: np.ndarray, effect: np.ndarray) -> SmoothExplanation:
    """Return Gaussian process regression of a variable on its causes, on a grid of scales.

    Args:
        causes: values of the causes, ``(n, d)``; d may be 0.
        effect: values of the variable, ``(n,)``. If n is below 2, the noise variance is 1; if n is 0, the mean is 0.
    """
    if not len(effect):
        causes, effect = np.zeros((1, causes.shape[1])), np.zeros(1)
    count, dim = causes.shape
    location, scale = causes.mean(axis=0), np.maximum(causes.std(axis=0), 1e-12)
    mean = float(effect.mean())
    centred = effect - mean
    min_residual = MIN_RESIDUAL * float(centred @ centred) + 1e-300
    inputs = (causes - location) / scale
    fits = []
    for lengthscale, signal in product(LENGTHSCALES, SIGNALS) if dim else [(1.0, 0.0)]:
        spread = lengthscale * math.sqrt(max(1, dim))
        factor = np.linalg.cholesky(np.eye(count) + signal * _similarity(inputs, inputs, spread))
        whitened = np.linalg.solve(factor, centred)
        residual = max(float(whitened @ whitened), min_residual)
        value = -float(np.log(factor.diagonal()).sum()) - 0.5 * (count - 1) * math.log(residual)
        noise = residual / (count - 1) if count > 1 else 1.0
        fits.append((value, (spread, signal, noise), factor, whitened))
    best, scales, factor, whitened = max(fits, key=itemgetter(0))
    average = best + math.log(add_up(math.exp(value - best) for value, *_ in fits) / len(fits))
    weights = np.linalg.solve(factor.T, whitened)
    return SmoothExplanation(average, inputs, weights, factor, scales, (location, scale, mean))


def linear_log_evidence(
    gram: np.ndarray, products: np.ndarray, total: float, count: int, sets: Sequence[Sequence[int]]
) -> np.ndarray:
    """Return the log evidence of linear functions of several sets of causes, all of one size.

    Args:
        gram: Gram matrix of the standardised causes, ``(d, d)``.
        products: products of the causes with the centred effect, ``(d,)``.
        total: sum of squares of the centred effect.
        count: number n of values.
        sets: indices of the causes in each of m sets, ``(m, k)``.

    Returns:
        log evidence of each set, ``(m,)``.
    """
    columns = np.array(sets, dtype=int)
    size = columns.shape[1]
    min_residual = MIN_RESIDUAL * total + 1e-300
    if not size:
        return np.full(len(columns), -0.5 * (count - 1) * math.log(max(total, min_residual)))
    blocks = gram[columns[:, :, None], columns[:, None, :]] + np.eye(size) / LINEAR_SIGNAL
    cross = products[columns]
    explained = (cross * np.linalg.solve(blocks, cross[..., None])[..., 0]).sum(axis=-1)
    determinant = np.linalg.slogdet(blocks)[1] + size * math.log(LINEAR_SIGNAL)
    return -0.5 * determinant - 0.5 * (count - 1) * np.log(np.maximum(total - explained, min_residual))


def _similarity(first: np.ndarray, second: np.ndarray, lengthscale: float) -> np.ndarray:
    squares = np.square(first).sum(axis=1)[:, None] + np.square(second).sum(axis=1) - 2.0 * first @ second.T
    return np.exp(-0.5 * squares.clip(0.0) / lengthscale**2)


def residual_std(values: Tensor, rewards: Tensor) -> float | None:
    """Return the standard deviation of rewards ``(n,)`` about a least-squares fit by variables ``n x d``.

    The fit has the variables and their squares, in rounds in which nothing was set. Without confounding, this estimates
    the noise of rewards under interventions on the variables. Return None with fewer than ``MIN_ROUNDS`` rounds for
    each coefficient.
    """
    count, dim = values.shape
    coefficients = 1 + 2 * dim
    if count < MIN_ROUNDS * coefficients:
        return None
    standard = (values - values.mean(0)) / values.std(0).clamp_min(torch.finfo(values.dtype).tiny)
    columns = torch.cat([torch.ones_like(standard[:, :1]), standard, standard.square()], -1)
    fit = columns @ (torch.linalg.pinv(columns) @ rewards)
    return float(((rewards - fit).square().sum() / (count - coefficients)).sqrt())
