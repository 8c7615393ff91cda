"""Fits of an acyclic separable system judged by its outputs: what it predicts of the nodes from the signals alone.

A regression of every node on its causes sees one equation at a time, and its arguments are wrong where earlier
equations are. What a super arm earns is what comes out at the end of all of them. So systems that regressions propose
are polished here until their solutions are as near to the observed nodes as their edges allow, and compared by that
(Ljung 1999, System identification, sec. 7.2: the output-error model).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from cbo_gym.agents.super_arms.separable_system import LARGEST, SeparableSystem

STEPS, TRIALS = 30, 8  # of a polish, and dampings tried for each
LEAST_GAIN = 1e-4  # of the squared errors, below which it ends
DAMPING, EASIER, HARDER = 1e-3, 5.0, 4.0
RIDGE = 1e-9
WIDTH = 1e-4  # of the differences that stand for slopes
FILTERINGS = 3


class Solution(NamedTuple):
    """The predictions of a system.

    Attributes:
        nodes: shape ``(rounds, N)``.
        slopes: of the nodes in the coefficients that are not zero, shape ``(rounds, N, p)``.
    """

    nodes: np.ndarray
    slopes: np.ndarray


def best_polished(systems: Iterable[SeparableSystem], exogenous: np.ndarray, nodes: np.ndarray) -> SeparableSystem:
    """The system that explains the nodes best for its number of edges, of some acyclic ones, each :func:`polished`."""
    polishes = (polished(system, exogenous, nodes) for system in systems)
    return min(polishes, key=lambda system: _criterion(system, exogenous, nodes))


def _criterion(system: SeparableSystem, exogenous: np.ndarray, nodes: np.ndarray) -> float:
    """The Bayesian information criterion, with errors of one variance."""
    error = system.mean_square_error(exogenous, nodes)
    count = int(np.count_nonzero(system.coefficients))
    return nodes.size * math.log(error + np.finfo(float).tiny) + count * math.log(nodes.size)


def polished(system: SeparableSystem, exogenous: np.ndarray, nodes: np.ndarray) -> SeparableSystem:
    """The system with the coefficients that are not zero moved to least squared errors of its solutions.

    By Levenberg and Marquardt's method, from where they are: it is never worse.

    Args:
        system: acyclic.
        exogenous: the observed z, shape ``(rounds, N)``.
        nodes: the observed y, of the same shape.
    """
    found = _solve(system, exogenous)
    loss, damping = float(np.sum((nodes - found.nodes) ** 2)), DAMPING
    for _ in range(STEPS if found.slopes.shape[-1] else 0):
        before = loss
        slopes = found.slopes.reshape(-1, found.slopes.shape[-1])
        gram, slope = slopes.T @ slopes, slopes.T @ (nodes - found.nodes).ravel()
        for _ in range(TRIALS):
            moved = _moved(system, gram, slope, damping)
            tried = _solve(moved, exogenous)
            if (left := float(np.sum((nodes - tried.nodes) ** 2))) < loss:
                system, found, loss, damping = moved, tried, left, damping / EASIER
                break
            damping *= HARDER
        if not loss < (1.0 - LEAST_GAIN) * before:
            break
    return system


def _moved(system: SeparableSystem, gram: np.ndarray, slope: np.ndarray, damping: float) -> SeparableSystem:
    damped = gram + np.diag(damping * gram.diagonal() + RIDGE * (1.0 + gram.diagonal().max()))
    coefficients = system.coefficients.copy()
    coefficients[coefficients != 0.0] += np.linalg.solve(damped, slope)
    return SeparableSystem(system.components, coefficients)


def _solve(system: SeparableSystem, exogenous: np.ndarray) -> Solution:
    """The solutions, cut as :meth:`SeparableSystem.solve` cuts them, and their slopes."""
    coefficients = system.coefficients
    free = {place: column for column, place in enumerate(zip(*np.nonzero(coefficients), strict=True))}
    nodes = exogenous.T.copy()
    slopes = np.zeros((*nodes.shape, len(free)))
    for effect in system.causes_first:
        for cause, value, rise in _influences(system, effect, nodes):
            weights = coefficients[:, effect, cause]
            nodes[effect] += weights @ value
            slopes[effect] += (weights @ rise)[:, None] * slopes[cause]
            for k in np.flatnonzero(weights):
                slopes[effect][:, free[k, effect, cause]] += value[k]
        nodes[effect] = nodes[effect].clip(-LARGEST, LARGEST)
    return Solution(nodes.T, np.moveaxis(slopes, 0, 1))


def _influences(
    system: SeparableSystem, effect: int, nodes: np.ndarray
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """The causes of a node, with all components there and their slopes, each ``(K, rounds)``; nodes ``(N, rounds)``."""
    for cause in np.flatnonzero(system.coefficients[:, effect].any(axis=0)):
        below, value, above = (
            np.stack([component(nodes[cause] + shift) for component in system.components])
            for shift in (-WIDTH, 0.0, WIDTH)
        )
        yield int(cause), value, (above - below) / (2.0 * WIDTH)


def filtered(system: SeparableSystem, exogenous: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Where the nodes were, by the system and by what was observed, weighed by their errors; shape ``(rounds, N)``.

    A node's prediction from its causes and the observation of it are both wrong: the second by an error that is the
    same for all nodes, and taken to be that of the node which is predicted best; the first by whatever else there is.

    Args:
        system: acyclic.
        exogenous: the observed z, shape ``(rounds, N)``.
        nodes: the observed y, of the same shape.
    """
    observing, seen = 0.0, nodes.T
    places = np.empty_like(seen)
    for filtering in range(FILTERINGS):
        errors = np.empty(len(seen))
        for effect in system.causes_first:
            predicted = exogenous[:, effect].copy()
            for cause in np.flatnonzero(system.coefficients[:, effect].any(axis=0)):
                for weight, component in zip(system.coefficients[:, effect, cause], system.components, strict=True):
                    if weight != 0.0:
                        predicted += weight * component(places[cause])
            errors[effect] = np.mean((seen[effect] - predicted) ** 2)
            trust = 0.5 if not filtering else max(0.0, 1.0 - observing / max(errors[effect], np.finfo(float).tiny))
            places[effect] = predicted + trust * (seen[effect] - predicted)
        observing = errors.min()
    return places.T
