"""Fits of separable structural equations y = F(y) + z to observed z and y, by l1-regularised regression.

The graph is unknown and may have cycles (Bauschmann & Maghsudi 2026, sec. II and III-A). Nodes are observed with
errors, which flatten the fitted functions. So regressions are repeated: in each later pass, the solution of the fitted
equations for the observed z replaces the observed nodes as the functions' arguments. The edges of a node are chosen by
the extended Bayesian information criterion, among the sets of edges on the Lasso's path and those that remain when
these are pruned one edge at a time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from cbo_gym.agents.super_arms.output_error import filter_nodes, fit_best
from cbo_gym.agents.super_arms.separable_system import (
    GRID_POINTS,
    EdgeFunction,
    SeparableSystem,
    edges_of,
    reachability,
)
from cbo_gym.errors import naming_the_extra

# Penalties, as shares of the smallest one that leaves no edge.
PENALTIES = np.geomspace(1.0, 1e-3, 20)
# Largest number of passes, and the change of coefficients that ends them.
MAX_PASSES, CONVERGED = 8, 0.02
# Smallest contribution of an edge, as a share of the root mean square of its node.
NEGLIGIBLE = 0.02
# Ridge of the normal equations, in units of the number of rounds.
RIDGE = 1e-6
# Largest number of features of a node, as a share of the rounds.
MAX_EDGES = 0.4
# Gamma of the extended Bayesian information criterion.
STRICTNESS = 1.0
# Weight of the common variance of errors, in rounds, and number of iterations of its estimate.
COMMON_ROUNDS, VARIANCE_PASSES = 50.0, 5
# Smallest and largest number of new rounds before a refit, as shares of the fitted rounds. Between them, a refit needs
# errors greater by the factor TOLERATED, which is also the limit for the last pass of a fit.
EARLIEST, LATEST, TOLERATED = 0.1, 0.3, 2.0
# Random state of the Lasso, made once because making it takes a tenth of the Lasso's time.
_LASSO_STATE = np.random.RandomState(0)


class SeparableModel:
    """A fitted system, which is refitted when there are many new rounds, or the system explains them badly.

    Args:
        fit: function of super arms, z and y, each of shape ``(rounds, N)``, that returns a system.

    Attributes:
        system: the last fit; None before the first.
        error: mean square error of the system's nodes in the rounds to which it was fitted.
    """

    def __init__(self, fit: Callable[[np.ndarray, np.ndarray, np.ndarray], SeparableSystem]) -> None:
        self._fit = fit
        self._rounds: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        # Errors of the rounds since the last fit.
        self._errors: list[float] = []
        self._fitted_count, self.error = 0, 0.0
        self.system: SeparableSystem | None = None

    def add(self, super_arm: np.ndarray, exogenous: np.ndarray, nodes: np.ndarray) -> None:
        """Add a round: three arrays of shape ``(N,)``."""
        self._rounds.append((super_arm.copy(), exogenous.copy(), nodes.copy()))
        if self.system is not None:
            self._errors.append(self._error(self.system, exogenous, nodes))

    def rounds(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return super arms, z and y of all rounds, each of shape ``(rounds, N)``."""
        super_arms, exogenous, nodes = (np.array(column) for column in zip(*self._rounds, strict=True))
        return super_arms, exogenous, nodes

    def refit_if_needed(self) -> bool:
        """Refit if needed; return whether the system changed. A former system that explains all rounds better stays."""
        if self.system is not None and not self._is_outdated():
            return False
        super_arms, exogenous, nodes = self.rounds()
        former, self.system = self.system, self._fit(super_arms, exogenous, nodes)
        self._fitted_count, self.error, self._errors = len(nodes), self._error(self.system, exogenous, nodes), []
        if former is not None and (former_error := self._error(former, exogenous, nodes)) < self.error:
            self.system, self.error = former, former_error
        return self.system is not former

    def _is_outdated(self) -> bool:
        share = len(self._errors) / self._fitted_count
        badly_explained = share >= EARLIEST and np.mean(self._errors) > TOLERATED * self.error
        return share >= LATEST or bool(badly_explained)

    @staticmethod
    def _error(system: SeparableSystem, exogenous: np.ndarray, nodes: np.ndarray) -> float:
        try:
            return system.mean_square_error(exogenous, nodes)
        except ArithmeticError:
            return np.inf


def fit_jointly(
    exogenous: np.ndarray,
    nodes: np.ndarray,
    components: Sequence[EdgeFunction],
    acyclic: bool,
    former: SeparableSystem | None = None,
) -> SeparableSystem:
    """Return the sparse system that explains all rounds (Eq. 3).

    Args:
        exogenous: the observed z, shape ``(rounds, N)``.
        nodes: the observed y, of the same shape.
        components: candidate functions of every edge.
        acyclic: whether to drop the weakest edges on cycles until there are none, and to refine the other coefficients
            as in :mod:`cbo_gym.agents.super_arms.output_error`.
        former: an earlier fit, which is a candidate too if ``acyclic``; or None.

    Returns:
        a system that can be solved for the observed z.
    """
    system = _fit_jointly(exogenous, nodes, components, acyclic)[0]
    if not acyclic:
        return system
    proposals = [system, _fit_filtered(exogenous, nodes, components)]
    return fit_best(proposals if former is None else [*proposals, former], exogenous, nodes)


def _fit_filtered(exogenous: np.ndarray, nodes: np.ndarray, components: Sequence[EdgeFunction]) -> SeparableSystem:
    """Return the acyclic system that predicts the nodes best, of passes with arguments from :func:`filter_nodes`."""

    def evaluate(regressed: SeparableSystem) -> Pass:
        system = regressed.without_cycles()
        return Pass(system.mean_square_error(exogenous, nodes), system, filter_nodes(system, exogenous, nodes))

    return min(_passes(exogenous, nodes, components, evaluate), key=attrgetter("error")).system


def _fit_jointly(
    exogenous: np.ndarray, nodes: np.ndarray, components: Sequence[EdgeFunction], acyclic: bool
) -> tuple[SeparableSystem, np.ndarray]:
    """Return the system of the last pass, and its solutions ``(rounds, N)``.

    If an earlier pass explains the nodes far better, for example because they are observed exactly, it is returned.
    """
    box = np.minimum(nodes.min(axis=0), 0.0), np.maximum(nodes.max(axis=0), 0.0)

    def evaluate(regressed: SeparableSystem) -> Pass:
        proposed = regressed.without_cycles() if acyclic else regressed.damp_cycles(*box)
        system, solution = _solve_near(proposed, exogenous, nodes)
        return Pass(float(np.mean((nodes - solution) ** 2)), system, solution)

    passes = list(_passes(exogenous, nodes, components, evaluate))
    best, last = min(passes, key=attrgetter("error")), passes[-1]
    result = last if last.error <= TOLERATED * best.error else best
    return result.system, result.arguments


class Pass(NamedTuple):
    """A regression of all nodes.

    Attributes:
        error: mean square error of the predictions of ``system``.
        system: the fitted system.
        arguments: arguments of the functions in the next pass, shape ``(rounds, N)``.
    """

    error: float
    system: SeparableSystem
    arguments: np.ndarray


def _passes(
    exogenous: np.ndarray,
    nodes: np.ndarray,
    components: Sequence[EdgeFunction],
    evaluate: Callable[[SeparableSystem], Pass],
) -> Iterator[Pass]:
    """Yield passes until the coefficients converge; the first one takes the observed nodes as arguments."""
    arguments, previous = nodes, np.full((len(components), nodes.shape[1], nodes.shape[1]), np.inf)
    for _ in range(MAX_PASSES):
        result = evaluate(SeparableSystem(components, _regress(arguments, nodes - exogenous, components)))
        yield result
        if np.abs(result.system.coefficients - previous).max() < CONVERGED:
            return
        arguments, previous = result.arguments, result.system.coefficients


def _regress(arguments: np.ndarray, targets: np.ndarray, components: Sequence[EdgeFunction]) -> np.ndarray:
    """Return coefficients ``(K, N, N)``, with the edges that the Lasso proposes and a criterion chooses."""
    rounds, count = arguments.shape
    features = np.concatenate([component(arguments) for component in components], axis=1)
    scale = np.sqrt(np.mean(features**2, axis=0)) + np.finfo(float).tiny
    features = features / scale
    gram, correlations = features.T @ features, features.T @ targets
    effects = np.arange(len(scale)) % count
    min_scale = NEGLIGIBLE * np.sqrt(np.mean(arguments**2, axis=0))
    proposals = []
    for i in range(count):
        others = np.flatnonzero(effects != i)
        inner, correlation = gram[np.ix_(others, others)], correlations[others, i]
        path = _lasso_path(features[:, others], targets[:, i], inner, correlation)
        total = float(targets[:, i] @ targets[:, i])
        sets = _proposals(path, inner, correlation, total, rounds)
        proposals.append([(squares, others[chosen]) for squares, chosen in sets])
    coefficients = np.zeros((len(components) * count, count))
    for i, chosen in enumerate(_choose(proposals, rounds, len(scale) - len(components))):
        weights = _least_squares(gram, correlations[:, i], rounds, chosen)
        chosen = chosen[np.abs(weights) > min_scale[i]]
        coefficients[chosen, i] = _least_squares(gram, correlations[:, i], rounds, chosen) / scale[chosen]
    return coefficients.reshape(len(components), count, count).transpose(0, 2, 1)


def _lasso_path(features: np.ndarray, target: np.ndarray, gram: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Return coefficients by penalty, shape ``(features, penalties)``."""
    with naming_the_extra("a fit of separable equations"):
        from sklearn import config_context
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import lasso_path

    largest = np.abs(correlation).max(initial=0.0) / len(features)
    if largest <= 0.0:
        return np.zeros((features.shape[1], 0))
    with warnings.catch_warnings(), config_context(skip_parameter_validation=True):
        # A rough path suffices to propose edges.
        warnings.simplefilter("ignore", ConvergenceWarning)
        _, path, _ = lasso_path(
            np.asfortranarray(features),
            target,
            alphas=largest * PENALTIES,
            precompute=np.ascontiguousarray(gram),
            Xy=correlation,
            # A separate random state, so that the global one does not change.
            random_state=_LASSO_STATE,
            check_input=False,
            max_iter=200,
            tol=1e-3,
        )
    return path


def _proposals(
    path: np.ndarray, gram: np.ndarray, correlation: np.ndarray, total: float, rounds: int
) -> list[tuple[float, np.ndarray]]:
    """Return, for every number of features from 0, the residual sum of squares of the best set, and the set.

    Candidates are the sets on the Lasso's path, and their subsets by backward elimination.
    """
    max_edges = min(int(MAX_EDGES * rounds), len(gram))
    best = [(total, np.arange(0))] + [(np.inf, np.arange(0))] * max_edges
    damped = gram + RIDGE * rounds * np.eye(len(gram))
    tried: set[bytes] = set()
    for proposed in path.T != 0.0:
        if proposed.tobytes() in tried:
            continue
        for squares, present in backward_elimination(proposed, damped, correlation, total):
            if (key := present.tobytes()) in tried:
                break
            tried.add(key)
            size = np.count_nonzero(present)
            if size <= max_edges and squares < best[size][0]:
                best[size] = squares, np.flatnonzero(present)
    return best


def backward_elimination(
    proposed: np.ndarray, gram: np.ndarray, correlation: np.ndarray, total: float
) -> Iterator[tuple[float, np.ndarray]]:
    """Yield residual sums of squares of a set of features as the least useful are removed one by one.

    The inverse of the normal equations is updated by a rank-one step for each removed feature.

    Args:
        proposed: which features are in the set, shape ``(features,)``.
        gram: Gram matrix of all features, with its ridge, shape ``(features, features)``.
        correlation: inner products of the features with the target, shape ``(features,)``.
        total: sum of squares of the target.

    Yields:
        the residual sum of squares, and which features are present: always the same array, which the next step changes.
    """
    present, chosen = proposed.copy(), np.flatnonzero(proposed)
    inverse = np.linalg.inv(gram[np.ix_(chosen, chosen)])
    diagonal, weights = inverse.diagonal(), inverse @ correlation[chosen]
    residual = total - float(weights @ correlation[chosen])
    increases = np.full(len(chosen), np.inf)
    for _ in chosen:
        yield max(residual, 0.0), present
        np.divide(weights * weights, diagonal, out=increases, where=present[chosen])
        weakest = increases.argmin()
        residual += float(increases[weakest])
        increases[weakest], present[chosen[weakest]] = np.inf, False
        step = inverse[:, weakest] / diagonal[weakest]
        weights -= step * weights[weakest]
        inverse -= step[:, None] * inverse[weakest]


def _choose(proposals: list[list[tuple[float, np.ndarray]]], rounds: int, features: int) -> list[np.ndarray]:
    """Return the best set of every node by the extended Bayesian information criterion (Chen & Chen 2008).

    A node's variance of errors is shrunk to that of all nodes, which has the weight of :data:`COMMON_ROUNDS` rounds.
    """
    residuals = np.array([[squares for squares, _ in sets] for sets in proposals])
    sizes = np.arange(residuals.shape[1])
    penalty = sizes * (np.log(rounds) + 2.0 * STRICTNESS * np.log(features))
    variance = float(np.median(residuals.min(axis=1) / max(rounds - sizes[-1], 1)))
    for _ in range(VARIANCE_PASSES):
        weight = rounds + COMMON_ROUNDS
        log_variances = np.log(residuals + COMMON_ROUNDS * variance + np.finfo(float).tiny)
        best = (weight * log_variances + penalty).argmin(axis=1)
        unexplained = np.take_along_axis(residuals, best[:, None], axis=1).sum()
        variance = float(unexplained / max(rounds * len(residuals) - best.sum(), 1))
    return [sets[size][1] for sets, size in zip(proposals, best, strict=True)]


def _least_squares(gram: np.ndarray, correlation: np.ndarray, rounds: int, chosen: np.ndarray) -> np.ndarray:
    ridge = RIDGE * rounds * np.eye(len(chosen))
    return np.linalg.solve(gram[np.ix_(chosen, chosen)] + ridge, correlation[chosen])


def _solve_near(
    system: SeparableSystem, exogenous: np.ndarray, nodes: np.ndarray
) -> tuple[SeparableSystem, np.ndarray]:
    """Return a system and its solution: without the weak edges on cycles that prevent a solution near the nodes."""
    bound = 3.0 * np.abs(nodes).max(initial=1.0)
    while True:
        try:
            solution = system.solve(exogenous)
            if system.is_acyclic or np.abs(solution).max(initial=0.0) <= bound:
                return system, solution.clip(-bound, bound)
        except ArithmeticError:
            pass
        system = system.without_weakest_edge_on_a_cycle()


def fit_by_base_arm(
    super_arms: np.ndarray, exogenous: np.ndarray, nodes: np.ndarray, components: Sequence[EdgeFunction]
) -> SeparableSystem:
    """Return an acyclic system of one fit for each base arm, to the rounds in which it was selected (Eq. 5).

    The fit of base arm o gives the response of the nodes to an impulse at node o. The part of node i's response that
    does not pass through other nodes is the edge from o to i. Eq. 5 gives this part pointwise; it is projected on the
    components. The weakest edges on cycles are dropped. The arguments of all functions come from the joint fit.

    Args:
        super_arms: super arms of all rounds, shape ``(rounds, N)``; each base arm was selected at least once.
        exogenous: the observed z, of the same shape.
        nodes: the observed y, of the same shape.
        components: candidate functions of every edge.
    """
    count = nodes.shape[1]
    _, arguments = _fit_jointly(exogenous, nodes, components, acyclic=True)
    rounds_by_arm = super_arms.T.astype(bool)
    fits = [_regress(arguments[rounds], (nodes - exogenous)[rounds], components) for rounds in rounds_by_arm]
    pooled = SeparableSystem(components, np.mean(np.abs(fits), axis=0)).without_cycles()
    edges = edges_of(pooled.coefficients)
    assembled = np.zeros_like(pooled.coefficients)
    depth = reachability(pooled.coefficients).sum(axis=1)
    # Effects come before their causes.
    for cause in np.argsort(-depth):
        argument = np.linspace(nodes[:, cause].min(), nodes[:, cause].max(), GRID_POINTS)
        impulse = argument[:, None] * (np.arange(count) == cause)
        response = SeparableSystem(components, fits[cause] * edges).solve(impulse)
        direct = response - SeparableSystem(components, assembled).influence(response)
        features = np.stack([component(argument) for component in components], axis=1)
        effects = np.flatnonzero(edges[:, cause])
        assembled[:, effects, cause] = np.linalg.lstsq(features, direct[:, effects], rcond=None)[0]
    return SeparableSystem(components, assembled)


def coefficient_posterior(system: SeparableSystem, exogenous: np.ndarray, nodes: np.ndarray) -> partial[np.ndarray]:
    """Return a function that draws coefficients ``(K, N, N)`` of a fitted system from their posterior, given its edges.

    The prior is N(0, 1) for each coefficient; nodes are independent.

    Args:
        system: the fitted system.
        exogenous: the z of the rounds to which the system was fitted, shape ``(rounds, N)``.
        nodes: the y of these rounds, of the same shape.
    """
    try:
        arguments = system.solve(exogenous)
    except ArithmeticError:
        arguments = nodes
    residuals = nodes - exogenous - system.influence(arguments)
    # Shape (K, rounds, N).
    features = np.stack([component(arguments) for component in system.components])
    factors = []
    for effect in range(nodes.shape[1]):
        k, j = np.nonzero(system.coefficients[:, effect])
        chosen = features[k, :, j]
        variance = max(float(np.mean(residuals[:, effect] ** 2)), 1e-8)
        precision = chosen @ chosen.T / variance + np.eye(len(k))
        factors.append((k, j, np.linalg.inv(np.linalg.cholesky(precision)).T))
    return partial(_draw_coefficients, system.coefficients, factors)


def _draw_coefficients(
    means: np.ndarray, factors: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], rng: np.random.Generator
) -> np.ndarray:
    coefficients = means.copy()
    for effect, (k, j, factor) in enumerate(factors):
        coefficients[k, effect, j] += factor @ rng.standard_normal(len(k))
    return coefficients
