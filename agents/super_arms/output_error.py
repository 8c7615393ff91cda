"""Fits of an acyclic separable system by output error: the error of its predictions from the signals alone.

A regression of a node on its causes fits one equation at a time, with arguments that have errors, whereas the reward of
a super arm is the output of all equations. Regressions therefore only propose systems: :func:`refine` minimises the
error of the solutions of a system, and :func:`fit_best` compares systems by that error (Ljung 1999, System
identification, sec. 7.2: the output-error model).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from cbo_gym.agents.super_arms.separable_system import MAX_NODE_VALUE, SeparableSystem

# Largest number of Levenberg-Marquardt steps, and of dampings tried in each.
MAX_STEPS, MAX_DAMPINGS = 30, 8
# Smallest relative decrease of the squared errors with which the steps go on.
MIN_GAIN = 1e-4
# First damping; a successful step divides the damping by the second number, a failed one multiplies it by the third.
INITIAL_DAMPING, DAMPING_DECREASE, DAMPING_INCREASE = 1e-3, 5.0, 4.0
# Ridge of the normal equations, relative to their largest diagonal entry.
RIDGE = 1e-9
# Step of the finite differences.
DIFFERENCE_STEP = 1e-4
# Number of passes of the filter over all nodes.
FILTER_PASSES = 3


def fit_best(systems: Iterable[SeparableSystem], exogenous: np.ndarray, nodes: np.ndarray) -> SeparableSystem:
    """Refine some acyclic systems, and return the best by the Bayesian information criterion."""
    fitted = (refine(system, exogenous, nodes) for system in systems)
    return min(fitted, key=lambda system: _bic(system, exogenous, nodes))


def _bic(system: SeparableSystem, exogenous: np.ndarray, nodes: np.ndarray) -> float:
    """Return the Bayesian information criterion, with errors of one variance."""
    error = system.mean_square_error(exogenous, nodes)
    count = int(np.count_nonzero(system.coefficients))
    return nodes.size * math.log(error + np.finfo(float).tiny) + count * math.log(nodes.size)


def refine(system: SeparableSystem, exogenous: np.ndarray, nodes: np.ndarray) -> SeparableSystem:
    """Return the system with coefficients that minimise the squared errors of its solutions; zeros stay zero.

    The Levenberg-Marquardt method starts from the present coefficients, so the result is never worse.

    Args:
        system: acyclic system.
        exogenous: the observed z, shape ``(rounds, N)``.
        nodes: the observed y, of the same shape.
    """
    predictions, derivatives = _solve(system, exogenous)
    loss, damping = float(np.sum((nodes - predictions) ** 2)), INITIAL_DAMPING
    for _ in range(MAX_STEPS if derivatives.shape[-1] else 0):
        previous_loss = loss
        jacobian = derivatives.reshape(-1, derivatives.shape[-1])
        gram, gradient = jacobian.T @ jacobian, jacobian.T @ (nodes - predictions).ravel()
        for _ in range(MAX_DAMPINGS):
            proposal = _step(system, gram, gradient, damping)
            proposed_predictions, proposed_derivatives = _solve(proposal, exogenous)
            if (proposed_loss := float(np.sum((nodes - proposed_predictions) ** 2))) < loss:
                system, predictions, derivatives = proposal, proposed_predictions, proposed_derivatives
                loss, damping = proposed_loss, damping / DAMPING_DECREASE
                break
            damping *= DAMPING_INCREASE
        if not loss < (1.0 - MIN_GAIN) * previous_loss:
            break
    return system


def _step(system: SeparableSystem, gram: np.ndarray, gradient: np.ndarray, damping: float) -> SeparableSystem:
    damped = gram + np.diag(damping * gram.diagonal() + RIDGE * (1.0 + gram.diagonal().max()))
    coefficients = system.coefficients.copy()
    coefficients[coefficients != 0.0] += np.linalg.solve(damped, gradient)
    return SeparableSystem(system.components, coefficients)


def _solve(system: SeparableSystem, exogenous: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions ``(rounds, N)``, and derivatives by the p coefficients that are not 0, ``(rounds, N, p)``."""
    coefficients = system.coefficients
    jacobian_columns = {index: column for column, index in enumerate(zip(*np.nonzero(coefficients), strict=True))}
    nodes = exogenous.T.copy()
    jacobian = np.zeros((*nodes.shape, len(jacobian_columns)))
    for effect in system.causes_first:
        for cause, value, derivative in _evaluate_edges(system, effect, nodes):
            weights = coefficients[:, effect, cause]
            nodes[effect] += weights @ value
            jacobian[effect] += (weights @ derivative)[:, None] * jacobian[cause]
            for k in np.flatnonzero(weights):
                jacobian[effect][:, jacobian_columns[k, effect, cause]] += value[k]
        nodes[effect] = nodes[effect].clip(-MAX_NODE_VALUE, MAX_NODE_VALUE)
    return nodes.T, np.moveaxis(jacobian, 0, 1)


def _evaluate_edges(
    system: SeparableSystem, effect: int, nodes: np.ndarray
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield each cause of a node, with the values and the derivatives of the components there, each ``(K, rounds)``.

    Args:
        system: the system.
        effect: index of the node.
        nodes: values of all nodes, ``(N, rounds)``.
    """
    for cause in np.flatnonzero(system.coefficients[:, effect].any(axis=0)):
        below, value, above = (
            np.stack([component(nodes[cause] + shift) for component in system.components])
            for shift in (-DIFFERENCE_STEP, 0.0, DIFFERENCE_STEP)
        )
        yield int(cause), value, (above - below) / (2.0 * DIFFERENCE_STEP)


def filter_nodes(system: SeparableSystem, exogenous: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Return estimates of the true nodes, ``(rounds, N)``: predictions and observations, weighted by their errors.

    Observation errors are assumed to have one variance, that of the node with the best prediction.

    Args:
        system: acyclic system.
        exogenous: the observed z, shape ``(rounds, N)``.
        nodes: the observed y, of the same shape.
    """
    observation_variance, observed = 0.0, nodes.T
    filtered_nodes = np.empty_like(observed)
    for iteration in range(FILTER_PASSES):
        errors = np.empty(len(observed))
        for effect in system.causes_first:
            predicted = exogenous[:, effect].copy()
            for cause in np.flatnonzero(system.coefficients[:, effect].any(axis=0)):
                for weight, component in zip(system.coefficients[:, effect, cause], system.components, strict=True):
                    if weight != 0.0:
                        predicted += weight * component(filtered_nodes[cause])
            errors[effect] = np.mean((observed[effect] - predicted) ** 2)
            variance = max(errors[effect], np.finfo(float).tiny)
            gain = max(0.0, 1.0 - observation_variance / variance) if iteration else 0.5
            filtered_nodes[effect] = predicted + gain * (observed[effect] - predicted)
        observation_variance = errors.min()
    return filtered_nodes.T
