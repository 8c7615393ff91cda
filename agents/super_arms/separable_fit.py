"""Separable structural equations y = F(y) + z, and their l1-regularised regression from observed z and y.

The graph is unknown and need not be acyclic (Bauschmann & Maghsudi 2026, sec. II and III-A). Nodes are observed with
errors, which flatten the fitted functions. So after a first regression the arguments are replaced by the solution of
the fitted equations for the observed z, and the regression is repeated. The penalty is chosen node by node: of the sets
of edges on the Lasso's path, pruned one edge at a time, the one that the extended Bayesian information criterion
prefers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from cbo_gym.agents.super_arms.output_error import best_polished, filtered
from cbo_gym.agents.super_arms.separable_system import (
    IMPULSES,
    EdgeFunction,
    SeparableSystem,
    edges_of,
    reached_by,
)
from cbo_gym.errors import naming_the_extra

PENALTIES = np.geomspace(1.0, 1e-3, 20)  # as shares of the smallest penalty that leaves no edge
PASSES, SETTLED = 8, 0.02  # regressions at most, and the change of coefficients at which they end
NEGLIGIBLE = 0.02  # of a node's root mean square: what an edge must contribute to be kept
RIDGE = 1e-6
MOST_EDGES = 0.4  # features of a node, as a share of the rounds
STRICTNESS = 1.0  # gamma of the extended Bayesian information criterion
COMMON_ROUNDS = 50.0
VARIANCE_PASSES = 5
# A new fit waits for so many rounds as shares of those fitted, and between the two for errors this much greater; so
# much greater ones are also what speaks against the last pass of a fit.
EARLIEST, LATEST, TOLERATED = 0.1, 0.3, 2.0
_UNUSED = np.random.RandomState(0)  # of the Lasso, which asks for one; making it takes a tenth of the Lasso's time


class SeparableModel:
    """A fitted system that is fitted anew when the rounds that came since are badly explained, or are many.

    Args:
        fit: from super arms, z and y, each of shape ``(rounds, N)``, to a system.

    Attributes:
        system: the last fit; None before the first.
        error: mean square error of all nodes in the rounds that it was fitted to.
    """

    def __init__(self, fit: Callable[[np.ndarray, np.ndarray, np.ndarray], SeparableSystem]) -> None:
        self._fit = fit
        self._rounds: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._errors: list[float] = []  # of the rounds since the last fit
        self._fitted_to, self.error = 0, 0.0
        self.system: SeparableSystem | None = None

    def add(self, super_arm: np.ndarray, exogenous: np.ndarray, nodes: np.ndarray) -> None:
        """One round, three arrays of shape ``(N,)``."""
        self._rounds.append((super_arm.copy(), exogenous.copy(), nodes.copy()))
        if self.system is not None:
            self._errors.append(self._error(self.system, exogenous, nodes))

    def rounds(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Super arms, z and y of all rounds, each of shape ``(rounds, N)``."""
        super_arms, exogenous, nodes = (np.array(column) for column in zip(*self._rounds, strict=True))
        return super_arms, exogenous, nodes

    def refit_if_needed(self) -> bool:
        """Whether there is a new fit: the former one stays where it explains all rounds better."""
        if self.system is not None and not self._is_outdated():
            return False
        rounds = self.rounds()
        former, self.system = self.system, self._fit(*rounds)
        self._fitted_to, self.error, self._errors = len(self._rounds), self._error(self.system, *rounds[1:]), []
        if former is not None and (kept := self._error(former, *rounds[1:])) < self.error:
            self.system, self.error = former, kept
        return self.system is not former

    def _is_outdated(self) -> bool:
        share = len(self._errors) / self._fitted_to
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
    """The sparse system that explains all rounds (Eq. 3).

    Args:
        exogenous: the observed z, shape ``(rounds, N)``.
        nodes: the observed y, of the same shape.
        components: candidate functions of every edge.
        acyclic: drop the weakest edges on cycles until there are none, and polish what is left; see
            :mod:`cbo_gym.agents.super_arms.output_error`.
        former: an earlier fit, whose edges may explain the rounds better; None if there is none.

    Returns:
        a system that can be solved for the observed z.
    """
    found = _fit_jointly(exogenous, nodes, components, acyclic)[0]
    if not acyclic:
        return found
    proposals = [found, _fit_filtered(exogenous, nodes, components)]
    return best_polished(proposals if former is None else [*proposals, former], exogenous, nodes)


def _fit_filtered(exogenous: np.ndarray, nodes: np.ndarray, components: Sequence[EdgeFunction]) -> SeparableSystem:
    """An acyclic system whose functions' arguments are partly the nodes as observed, where it predicts them badly.

    Of all passes it is that which predicts the nodes best from the signals alone.
    """

    def look(regressed: SeparableSystem) -> Pass:
        system = regressed.without_cycles()
        return Pass(system.mean_square_error(exogenous, nodes), system, filtered(system, exogenous, nodes))

    return min(_passes(exogenous, nodes, components, look), key=_error_of).system


def _fit_jointly(
    exogenous: np.ndarray, nodes: np.ndarray, components: Sequence[EdgeFunction], acyclic: bool
) -> tuple[SeparableSystem, np.ndarray]:
    """The system of the last pass, and its solutions, which are its functions' arguments.

    If an earlier pass explains the nodes far better, as where they are observed exactly, it is that pass's.
    """
    box = np.minimum(nodes.min(axis=0), 0.0), np.maximum(nodes.max(axis=0), 0.0)

    def look(regressed: SeparableSystem) -> Pass:
        proposed = regressed.without_cycles() if acyclic else regressed.flattened(*box)
        system, solution = _solve_near(proposed, exogenous, nodes)
        return Pass(float(np.mean((nodes - solution) ** 2)), system, solution)

    passes = list(_passes(exogenous, nodes, components, look))
    best, last = min(passes, key=_error_of), passes[-1]
    chosen = last if last.error <= TOLERATED * best.error else best
    return chosen.system, chosen.arguments


class Pass(NamedTuple):
    """A regression of all nodes.

    Attributes:
        error: mean square error of what the system predicts.
        system: found.
        arguments: of the functions in the next regression, shape ``(rounds, N)``.
    """

    error: float
    system: SeparableSystem
    arguments: np.ndarray


_error_of = attrgetter("error")


def _passes(
    exogenous: np.ndarray,
    nodes: np.ndarray,
    components: Sequence[EdgeFunction],
    look: Callable[[SeparableSystem], Pass],
) -> Iterator[Pass]:
    """Regressions until the coefficients settle, at first with the nodes as observed as the functions' arguments."""
    arguments, before = nodes, np.full((len(components), nodes.shape[1], nodes.shape[1]), np.inf)
    for _ in range(PASSES):
        found = look(SeparableSystem(components, _regress(arguments, nodes - exogenous, components)))
        yield found
        if np.abs(found.system.coefficients - before).max() < SETTLED:
            return
        arguments, before = found.arguments, found.system.coefficients


def _regress(arguments: np.ndarray, targets: np.ndarray, components: Sequence[EdgeFunction]) -> np.ndarray:
    """Coefficients of shape ``(K, N, N)``: for each node the Lasso proposes edges, a criterion chooses among them."""
    rounds, count = arguments.shape
    features = np.concatenate([component(arguments) for component in components], axis=1)
    scale = np.sqrt(np.mean(features**2, axis=0)) + np.finfo(float).tiny
    features = features / scale
    gram, correlations = features.T @ features, features.T @ targets
    own = np.arange(len(scale)) % count
    least = NEGLIGIBLE * np.sqrt(np.mean(arguments**2, axis=0))
    proposals = []
    for i in range(count):
        others = np.flatnonzero(own != i)
        inner, correlation = gram[np.ix_(others, others)], correlations[others, i]
        path = _lasso_path(features[:, others], targets[:, i], inner, correlation)
        total = float(targets[:, i] @ targets[:, i])
        proposals.append(
            [(left, others[chosen]) for left, chosen in _proposals(path, inner, correlation, total, rounds)]
        )
    found = np.zeros((len(components) * count, count))
    for i, chosen in enumerate(_choose(proposals, rounds, len(scale) - len(components))):
        weights = _least_squares(gram, correlations[:, i], rounds, chosen)
        chosen = chosen[np.abs(weights) > least[i]]
        found[chosen, i] = _least_squares(gram, correlations[:, i], rounds, chosen) / scale[chosen]
    return found.reshape(len(components), count, count).transpose(0, 2, 1)


def _lasso_path(features: np.ndarray, target: np.ndarray, gram: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Coefficients by penalty, shape ``(features, penalties)``."""
    with naming_the_extra("a fit of separable equations"):
        from sklearn import config_context
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import lasso_path

    largest = np.abs(correlation).max(initial=0.0) / len(features)
    if largest <= 0.0:
        return np.zeros((features.shape[1], 0))
    with warnings.catch_warnings(), config_context(skip_parameter_validation=True):
        warnings.simplefilter("ignore", ConvergenceWarning)  # rough is good enough for proposing edges
        _, path, _ = lasso_path(
            np.asfortranarray(features),
            target,
            alphas=largest * PENALTIES,
            precompute=np.ascontiguousarray(gram),
            Xy=correlation,
            random_state=_UNUSED,  # it would be drawn from the global state otherwise
            check_input=False,
            max_iter=200,
            tol=1e-3,
        )
    return path


def _proposals(
    path: np.ndarray, gram: np.ndarray, correlation: np.ndarray, total: float, rounds: int
) -> list[tuple[float, np.ndarray]]:
    """For every number of features, from 0, the best set seen and the sum of squares that it leaves.

    Seen are the sets on the Lasso's path, and what is left of each as its least useful features go one by one.
    """
    most = min(int(MOST_EDGES * rounds), len(gram))
    best = [(total, np.arange(0))] + [(np.inf, np.arange(0))] * most
    damped = gram + RIDGE * rounds * np.eye(len(gram))
    seen: set[bytes] = set()
    for proposed in path.T != 0.0:
        if proposed.tobytes() in seen:
            continue
        for left, present in backward_elimination(proposed, damped, correlation, total):
            if (key := present.tobytes()) in seen:
                break
            seen.add(key)
            size = np.count_nonzero(present)
            if size <= most and left < best[size][0]:
                best[size] = left, np.flatnonzero(present)
    return best


def backward_elimination(
    proposed: np.ndarray, gram: np.ndarray, correlation: np.ndarray, total: float
) -> Iterator[tuple[float, np.ndarray]]:
    """The sums of squares left by a set of features and by what remains of it as the least useful go one by one.

    The inverse of the normal equations follows the set by a rank-one step for each feature that goes, in place of an
    inversion of its own.

    Args:
        proposed: which features are in the set, shape ``(features,)``.
        gram: of all features, with its ridge, shape ``(features, features)``.
        correlation: of the features with the target, shape ``(features,)``.
        total: sum of squares of the target.

    Yields:
        the sum of squares left, and which features are present: the same array every time, to be read at once.
    """
    present, chosen = proposed.copy(), np.flatnonzero(proposed)
    inverse = np.linalg.inv(gram[np.ix_(chosen, chosen)])
    diagonal, weights = inverse.diagonal(), inverse @ correlation[chosen]
    left = total - float(weights @ correlation[chosen])
    worth = np.full(len(chosen), np.inf)
    for _ in chosen:
        yield max(left, 0.0), present
        np.divide(weights * weights, diagonal, out=worth, where=present[chosen])
        least = worth.argmin()
        left += float(worth[least])
        worth[least], present[chosen[least]] = np.inf, False
        step = inverse[:, least] / diagonal[least]
        weights -= step * weights[least]
        inverse -= step[:, None] * inverse[least]


def _choose(proposals: list[list[tuple[float, np.ndarray]]], rounds: int, features: int) -> list[np.ndarray]:
    """The best set of every node by the extended Bayesian information criterion (Chen & Chen 2008).

    The variance of the errors is first taken to be one for all nodes; a node's own rounds count beside
    :data:`COMMON_ROUNDS` of that.
    """
    left = np.array([[squares for squares, _ in sets] for sets in proposals])
    sizes = np.arange(left.shape[1])
    price = sizes * (np.log(rounds) + 2.0 * STRICTNESS * np.log(features))
    variance = float(np.median(np.where(np.isfinite(left), left, np.inf).min(axis=1) / max(rounds - sizes[-1], 1)))
    for _ in range(VARIANCE_PASSES):
        weight = rounds + COMMON_ROUNDS
        doubt = np.log(left + COMMON_ROUNDS * variance + np.finfo(float).tiny)
        best = (weight * doubt + price).argmin(axis=1)
        unexplained = np.take_along_axis(left, best[:, None], axis=1).sum()
        variance = float(unexplained / max(rounds * len(left) - best.sum(), 1))
    return [sets[size][1] for sets, size in zip(proposals, best, strict=True)]


def _least_squares(gram: np.ndarray, correlation: np.ndarray, rounds: int, chosen: np.ndarray) -> np.ndarray:
    ridge = RIDGE * rounds * np.eye(len(chosen))
    return np.linalg.solve(gram[np.ix_(chosen, chosen)] + ridge, correlation[chosen])


def _solve_near(
    system: SeparableSystem, exogenous: np.ndarray, nodes: np.ndarray
) -> tuple[SeparableSystem, np.ndarray]:
    """The system without the weak edges on cycles that keep it from a solution near the nodes, and its solution."""
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
    """An acyclic system assembled from one fit for each base arm, to the rounds in which it was selected (Eq. 5).

    The fit of base arm o tells how the nodes respond to an impulse at node o. What of the response of node i does not
    come through nodes between them is the edge from o to i; as Eq. 5 gives it pointwise, it is projected on the
    components. Nodes are put in the order of the strongest edges: the weakest on cycles are dropped. The arguments of
    all functions, nodes without errors, are those of the joint fit.

    Args:
        super_arms: of all rounds, shape ``(rounds, N)``; each base arm was selected at least once.
        exogenous: of the same shape.
        nodes: of the same shape.
        components: candidate functions of every edge.
    """
    count = nodes.shape[1]
    _, arguments = _fit_jointly(exogenous, nodes, components, acyclic=True)
    chosen = super_arms.T.astype(bool)
    fits = [_regress(arguments[rounds], (nodes - exogenous)[rounds], components) for rounds in chosen]
    pooled = SeparableSystem(components, np.mean(np.abs(fits), axis=0)).without_cycles()
    edges = edges_of(pooled.coefficients)
    assembled = np.zeros_like(pooled.coefficients)
    depth = reached_by(pooled.coefficients).sum(axis=1)
    for cause in np.argsort(-depth):  # effects first
        argument = np.linspace(nodes[:, cause].min(), nodes[:, cause].max(), IMPULSES)
        impulse = argument[:, None] * (np.arange(count) == cause)
        response = SeparableSystem(components, fits[cause] * edges).solve(impulse)
        direct = response - SeparableSystem(components, assembled).influence(response)
        features = np.stack([component(argument) for component in components], axis=1)
        effects = np.flatnonzero(edges[:, cause])
        assembled[:, effects, cause] = np.linalg.lstsq(features, direct[:, effects], rcond=None)[0]
    return SeparableSystem(components, assembled)


class CoefficientPosterior:
    """Normal distributions of the coefficients of a sparse system, independent between nodes, around its own.

    ``factors`` has for each node the places ``(k, j)`` of its coefficients, two arrays, and a matrix that turns
    standard normal numbers into deviations from the means.
    """

    def __init__(self, system: SeparableSystem, factors: Sequence[tuple[tuple[np.ndarray, ...], np.ndarray]]) -> None:
        self._system, self._factors = system, factors

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Coefficients of shape ``(K, N, N)``."""
        coefficients = self._system.coefficients.copy()
        for effect, ((k, j), factor) in enumerate(self._factors):
            coefficients[k, effect, j] += factor @ rng.standard_normal(len(k))
        return coefficients


def coefficient_posterior(system: SeparableSystem, exogenous: np.ndarray, nodes: np.ndarray) -> CoefficientPosterior:
    """The posterior of the coefficients of a fitted system, given its edges; prior N(0, 1) each.

    ``exogenous`` and ``nodes`` are of the rounds that it was fitted to, shape ``(rounds, N)``.
    """
    try:
        arguments = system.solve(exogenous)
    except ArithmeticError:
        arguments = nodes
    residuals = nodes - exogenous - system.influence(arguments)
    features = np.stack([component(arguments) for component in system.components])  # (K, rounds, N)
    factors = []
    for effect in range(nodes.shape[1]):
        k, j = np.nonzero(system.coefficients[:, effect])
        chosen = features[k, :, j]
        variance = max(float(np.mean(residuals[:, effect] ** 2)), 1e-8)
        precision = chosen @ chosen.T / variance + np.eye(len(k))
        factors.append(((k, j), np.linalg.inv(np.linalg.cholesky(precision)).T))
    return CoefficientPosterior(system, factors)
