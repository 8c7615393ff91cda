"""Separable structural equations y = F(y) + z, solved for y.

The vector z has the signals of the base arms and y the nodes (Bauschmann & Maghsudi 2026, sec. II). The effect of node
j on node i is a linear combination of a few known component functions of ``y[j]``, such as y, y^2, sin(2 pi y) or
tanh(y).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

# Elementwise function of one variable that is 0 at 0.
EdgeFunction = Callable[[np.ndarray], np.ndarray]
# Cause, component function, and its effects with their weights.
Edges = list[tuple[int, EdgeFunction, list[tuple[int, float]]]]

# Sweeps have converged at a change below TOLERANCE, and diverge at a change of DIVERGED times the smallest so far.
MAX_SWEEPS, TOLERANCE, DIVERGED = 100, 1e-6, 100.0
# Largest absolute value of a node.
MAX_NODE_VALUE = 1e6
# Number of grid points at which a function of an edge is evaluated over the range of its cause.
GRID_POINTS = 41
# Largest spectral radius of the matrix of slope bounds, see :meth:`SeparableSystem.damp_cycles`.
MAX_RADIUS = 0.95


class SeparableSystem:
    """The equations ``y[i] = z[i] + sum_j sum_k coefficients[k, i, j] components[k](y[j])``.

    Args:
        components: the component functions, K of them.
        coefficients: shape ``(K, N, N)``; ``[k, i, j]`` belongs to the edge from j to i.
    """

    def __init__(self, components: Sequence[EdgeFunction], coefficients: np.ndarray) -> None:
        self.components, self.coefficients = tuple(components), coefficients
        has_path = reachability(coefficients)
        # Sort by the number of ancestors: a cause has fewer than its effects, or as many on a common cycle.
        by_depth = np.argsort(has_path.sum(axis=1), kind="stable")
        # A block has the nodes on common cycles, or a single node. Every node gives its block; keep each block once.
        blocks = [np.flatnonzero(has_path[i] & has_path[:, i]).tolist() for i in by_depth]
        self._blocks = [block for i, block in zip(by_depth, blocks, strict=True) if i == block[0]]
        self._inner_edges = list(map(self._edges_from, self._blocks, self._blocks))
        outside = [[i for i in range(len(has_path)) if i not in block] for block in self._blocks]
        self._outer_edges = list(map(self._edges_from, self._blocks, outside))

    def _edges_from(self, causes: Sequence[int], effects: Sequence[int]) -> Edges:
        """Return the edges from any of ``causes`` to any of ``effects``."""
        edges = []
        for cause in causes:
            for component, weights in zip(self.components, self.coefficients[:, :, cause], strict=True):
                if weighted_effects := [(i, weights[i]) for i in effects if weights[i] != 0.0]:
                    edges.append((cause, component, weighted_effects))
        return edges

    def influence(self, nodes: np.ndarray) -> np.ndarray:
        """Return F(y) for ``nodes`` of shape ``(..., N)``."""
        total = np.zeros((nodes.shape[-1], *nodes.shape[:-1]))
        by_node = np.moveaxis(nodes, -1, 0)
        for edges in (*self._inner_edges, *self._outer_edges):
            _add_effects(by_node, total, edges)
        return np.moveaxis(total, 0, -1)

    def solve(self, exogenous: np.ndarray) -> np.ndarray:
        """Return the y that solve the equations for z of shape ``(..., N)``.

        Each node is computed from its causes, and the nodes of a cycle by fixed-point sweeps. Values are clipped to
        :data:`MAX_NODE_VALUE`.

        Raises:
            ArithmeticError: if the sweeps do not converge.
        """
        nodes = np.moveaxis(exogenous, -1, 0).copy()
        for block, inner, outer in zip(self._blocks, self._inner_edges, self._outer_edges, strict=True):
            if len(block) > 1:
                _solve_cycle(nodes, block, inner)
            # Clip, because polynomials of polynomials overflow if an early fit is bad.
            nodes[block] = nodes[block].clip(-MAX_NODE_VALUE, MAX_NODE_VALUE)
            _add_effects(nodes, nodes, outer)
        return np.moveaxis(nodes, 0, -1)

    def mean_square_error(self, exogenous: np.ndarray, nodes: np.ndarray) -> float:
        """Return the mean square error of the solution for z against nodes of shape ``(..., N)``.

        Raises:
            ArithmeticError: as :meth:`solve`.
        """
        return float(np.mean((nodes - self.solve(exogenous)) ** 2))

    @property
    def causes_first(self) -> list[int]:
        """The nodes of an acyclic system, each after its causes."""
        return [node for block in self._blocks for node in block]

    @property
    def is_acyclic(self) -> bool:
        return all(len(block) == 1 for block in self._blocks)

    def without_weakest_edge_on_a_cycle(self) -> SeparableSystem:
        """Return the system without the edge on a cycle that has the smallest weights; the system itself if acyclic."""
        if self.is_acyclic:
            return self
        return SeparableSystem(self.components, _without_weakest_edge_on_a_cycle(self.coefficients))

    def without_cycles(self) -> SeparableSystem:
        """Return the system without the weakest edges on cycles, so that it is acyclic."""
        coefficients = self.coefficients
        while _on_a_cycle(coefficients).any():
            coefficients = _without_weakest_edge_on_a_cycle(coefficients)
        return SeparableSystem(self.components, coefficients)

    def damp_cycles(self, low: np.ndarray, high: np.ndarray) -> SeparableSystem:
        """Return the system with edges on cycles scaled down, if necessary, so that it has exactly one solution.

        After scaling, the spectral radius of the matrix of largest slopes on a box of nodes is at most
        :data:`MAX_RADIUS`, so that the equations are a contraction there (Bertsekas & Tsitsiklis 1989, sec. 3.1).

        Args:
            low: lower ends of the box, shape ``(N,)``.
            high: upper ends of the box, shape ``(N,)``.
        """
        points = np.linspace(low, high, GRID_POINTS)
        differences = np.diff([component(points) for component in self.components], axis=1)
        steps = np.maximum(np.diff(points, axis=0), np.finfo(float).tiny)
        slopes = np.abs(np.einsum("kij,kpj->pij", self.coefficients, differences / steps)).max(axis=0)
        on_a_cycle = _on_a_cycle(self.coefficients)
        radius = np.abs(np.linalg.eigvals(slopes * on_a_cycle)).max()
        if radius <= MAX_RADIUS:
            return self
        return SeparableSystem(self.components, self.coefficients * np.where(on_a_cycle, MAX_RADIUS / radius, 1.0))


def _add_effects(nodes: np.ndarray, total: np.ndarray, edges: Edges) -> None:
    """Add the effects of edges to ``total``; both arrays have the shape ``(N, ...)``."""
    for cause, component, weighted_effects in edges:
        value = component(nodes[cause])
        for effect, weight in weighted_effects:
            total[effect] += weight * value


def _solve_cycle(nodes: np.ndarray, block: list[int], edges: Edges) -> None:
    """Solve the equations of a cycle in place by fixed-point sweeps.

    On entry, the nodes of the cycle (``block``) hold their exogenous values plus the effects from outside the cycle.
    """
    outer = nodes.copy()
    smallest = np.inf
    for _ in range(MAX_SWEEPS):
        updated = outer.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            _add_effects(nodes, updated, edges)
            change = np.abs(updated[block] - nodes[block]).max(initial=0.0)
        nodes[block] = updated[block]
        if change <= TOLERANCE:
            return
        smallest = min(smallest, change)
        if not change < DIVERGED * smallest:
            break
    raise ArithmeticError("the fixed-point sweeps of a fitted system do not converge")


def edges_of(coefficients: np.ndarray) -> np.ndarray:
    """Return the boolean adjacency matrix: ``[i, j]`` is an edge from j to i."""
    return np.any(coefficients != 0.0, axis=0)


def reachability(coefficients: np.ndarray) -> np.ndarray:
    """Return a boolean matrix: ``[i, j]`` is whether a path leads from j to i; True if i is j."""
    edges = edges_of(coefficients)
    paths = edges | np.eye(len(edges), dtype=bool)
    while True:
        longer = paths @ paths
        if (longer == paths).all():
            return paths
        paths = longer


def _on_a_cycle(coefficients: np.ndarray) -> np.ndarray:
    return edges_of(coefficients) & reachability(coefficients).T


def _without_weakest_edge_on_a_cycle(coefficients: np.ndarray) -> np.ndarray:
    strength = np.where(_on_a_cycle(coefficients), np.abs(coefficients).sum(axis=0), np.inf)
    effect, cause = divmod(int(strength.argmin()), len(strength))
    coefficients = coefficients.copy()
    coefficients[:, effect, cause] = 0.0
    return coefficients
