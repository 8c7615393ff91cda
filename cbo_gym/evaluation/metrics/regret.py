"""Regrets and scores of expected rewards, as functions on arrays.

mu(a) is the expected reward E[Y | a] of an action a, and mu*, the argument ``optimum``, its largest value. Arrays have
the rounds t on their last axis.
"""

from __future__ import annotations

import numpy as np

from cbo_gym.errors import ArgumentError

Array = np.ndarray
# mu*, or the largest expected reward in each round.
Optima = float | Array
# Scores that agree to this number of decimals differ by rounding alone.
TIE_DECIMALS = 9


def penalized_rewards(expected: Array, violations: Array | None, random_value: float) -> Array:
    """Return values of actions under constraints: mu(a) if feasible, else the value of a random action.

    So the regret of an infeasible action is mu* - mu_random, and its score is 0. This is our choice: Aglietti et al.
    (2023), sec. 5, report the best value of feasible actions so far, and the fraction of feasible actions.

    Args:
        expected: mu(a) of the rounds, shape ``(t,)``.
        violations: shortfall of each constraint, shape ``(t, constraints)``; None without constraints.
        random_value: mean of mu over random actions that are feasible.
    """
    if violations is None:
        return expected
    return np.where(violations.any(axis=-1), random_value, expected)


def instant_regret(optimum: Optima, values: Array) -> Array:
    """Return mu* - mu(a_t) of actions that were played or recommended.

    With observed rewards y_t as ``values`` it is mu* - y_t, which the tables of runs call the pseudo-regret.

    In aggregated mode an action is a cell X, mu(X) is Fbar(X), the mean of f over the cell's representative points, and
    mu* is f(x*). The regret of a recommendation is then the aggregated regret f(x*) - Fbar(X_t) (Zhang, Tsuchida & Ong
    2022, Definition 2). If the cell's centre is its only representative point, this is the simple regret of the centre.
    """
    return optimum - np.asarray(values, dtype=float)


def cumulative_regret(optimum: Optima, expected: Array) -> Array:
    """Return R_t = r_1 + ... + r_t."""
    return np.cumsum(instant_regret(optimum, expected), axis=-1)


def running_mean(values: Array) -> Array:
    """Return the mean of the first t values, for every t."""
    values = np.asarray(values, dtype=float)
    return np.cumsum(values, axis=-1) / np.arange(1, values.shape[-1] + 1)


def average_regret(optimum: Optima, expected: Array) -> Array:
    """Return R_t / t."""
    return running_mean(instant_regret(optimum, expected))


def best_so_far_regret(optimum: Optima, expected: Array) -> Array:
    """Return mu* - max over s <= t of mu(a_s)."""
    return np.minimum.accumulate(instant_regret(optimum, expected), axis=-1)


def normalised_score(optimum: Optima, random_value: Optima, expected: Array) -> Array:
    """Return (mu - mu_random) / (mu* - mu_random): 1 at the optimum, 0 at random play.

    Args:
        optimum: mu*, a number or an array that broadcasts with ``expected``.
        random_value: mu_random, of the same shape.
        expected: mu, any shape.

    Raises:
        ArgumentError: if a random action is as good as the optimum.
    """
    gap = np.subtract(optimum, random_value)
    if (gap <= 0).any():
        index = np.argmax(gap <= 0)
        best, random_reward = (float(np.ravel(value)[index]) for value in (optimum, random_value))
        raise ArgumentError(f"the optimum {best} must exceed the random value {random_reward}")
    return (np.asarray(expected, dtype=float) - random_value) / gap


def selection_frequencies(choices: Array, count: int) -> Array:
    """Return the fraction of rounds in which each of ``count`` target sets or scopes was chosen, shape ``(count,)``."""
    choices = np.asarray(choices, dtype=int)
    return np.bincount(choices, minlength=count) / max(1, choices.size)


def running_frequencies(choices: Array, count: int) -> Array:
    """Return :func:`selection_frequencies` of the first t rounds, for every t: shape ``(rounds, count)``."""
    return running_mean((np.asarray(choices, dtype=int)[:, None] == np.arange(count)).T).T
