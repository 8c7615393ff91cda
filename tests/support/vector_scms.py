"""Many small discrete SCMs on one diagram at once, to find one in which a set is Pareto-optimal by itself."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cbo_gym.scm import CausalDiagram

LEVELS = 3  # of an objective
MARGIN = 1e-3


@dataclass(frozen=True)
class VectorSCMs:
    """``n`` SCMs over the same finite noise.

    Args:
        diagram: diagram of all SCMs.
        objectives: variables with :data:`LEVELS` levels, each worth a number; all others are binary.
        sources: exogenous variable -> the variables that it enters.
        grid: exogenous variable -> its value in each joint state.
        weights: probabilities of the joint states, ``(n, states)``.
        tables: variable -> its level by the levels of its inputs, ``(n, size of the inputs)``.
        worth: objective -> numbers, ``(n, LEVELS)``.
    """

    diagram: CausalDiagram
    objectives: tuple[str, ...]
    sources: dict[str, tuple[str, ...]]
    grid: dict[str, np.ndarray]
    weights: np.ndarray
    tables: dict[str, np.ndarray]
    worth: dict[str, np.ndarray]

    def expected_values(self, done: dict[str, int]) -> np.ndarray:
        """Return E[objectives | do], ``(n, objectives)``."""
        n, states = self.weights.shape
        rows = np.arange(n)[:, None]
        levels: dict[str, np.ndarray] = {}
        for name in self.diagram.topological_order:
            if name in done:
                levels[name] = np.full((n, states), done[name])
                continue
            index = np.zeros((n, states), dtype=int)
            for size, value in self._inputs(name, levels):
                index = index * size + value
            levels[name] = self.tables[name][rows, index]
        means = [(self.worth[name][rows, levels[name]] * self.weights).sum(1) for name in self.objectives]
        return np.stack(means, -1)

    def _inputs(self, name: str, levels: dict[str, np.ndarray]) -> list[tuple[int, np.ndarray]]:
        own = [(2, self.grid[source]) for source, into in self.sources.items() if name in into]
        return own + [(self._size(parent), levels[parent]) for parent in self.diagram.parents(name)]

    def _size(self, name: str) -> int:
        return LEVELS if name in self.objectives else 2

    def leads(self, contender: frozenset[str], rivals: Sequence[frozenset[str]]) -> np.ndarray:
        """Return the margin by which a set's best vector is not dominated by any vector of the rivals, ``(n,)``."""
        others = np.concatenate([self.vectors(rival) for rival in rivals], 1)
        own = self.vectors(contender)
        beats = (own[:, :, None] - others[:, None]).max(-1)  # in the objective in which it is most ahead
        return beats.min(2).max(1)

    def vectors(self, chosen: frozenset[str]) -> np.ndarray:
        """Return E[objectives | do] for all values of a set, ``(n, values, objectives)``."""
        names = sorted(chosen)
        values = itertools.product((0, 1), repeat=len(names))
        return np.stack([self.expected_values(dict(zip(names, levels, strict=True))) for levels in values], 1)

    def take(self, rows: np.ndarray) -> VectorSCMs:
        return replace(
            self,
            weights=self.weights[rows],
            tables={name: table[rows] for name, table in self.tables.items()},
            worth={name: numbers[rows] for name, numbers in self.worth.items()},
        )

    def mutate(self, rng: np.random.Generator) -> VectorSCMs:
        """Return copies with about two changed table entries each, and some changed numbers of the objectives."""
        entries = sum(table.shape[1] for table in self.tables.values())
        tables = {}
        for name, table in self.tables.items():
            other = rng.integers(0, self._size(name), table.shape)
            tables[name] = np.where(rng.random(table.shape) < 2.0 / entries, other, table)
        worth = {
            name: np.where(rng.random(numbers.shape) < 0.1, _worth(rng, numbers.shape), numbers)
            for name, numbers in self.worth.items()
        }
        return replace(self, tables=tables, worth=worth)


def _worth(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.where(rng.random(shape) < 0.5, rng.integers(0, 2, shape), rng.random(shape))


def draw(diagram: CausalDiagram, objectives: Sequence[str], count: int, rng: np.random.Generator) -> VectorSCMs:
    """Draw random tables, with a binary latent for every bidirected edge and every variable with children."""
    sources = {"~".join(sorted(pair)): tuple(sorted(pair)) for pair in sorted(diagram.bidirected, key=sorted)}
    sources |= {f"U_{name}": (name,) for name in diagram.nodes if diagram.children(name)}
    states = np.indices([2] * len(sources)).reshape(len(sources), -1)
    grid = dict(zip(sources, states, strict=True))
    weights = np.ones((count, states.shape[1]))
    for values in states:
        heads = np.where(rng.random(count) < 0.5, 0.5, rng.random(count))[:, None]
        weights = weights * np.where(values, heads, 1.0 - heads)
    size = {name: LEVELS if name in objectives else 2 for name in diagram.nodes}
    tables = {}
    for name in diagram.nodes:
        inputs = 2 ** sum(name in into for into in sources.values())
        inputs *= int(np.prod([size[parent] for parent in diagram.parents(name)], dtype=int))
        tables[name] = rng.integers(0, size[name], (count, inputs))
    worth = {name: _worth(rng, (count, LEVELS)) for name in objectives}
    return VectorSCMs(diagram, tuple(objectives), sources, grid, weights, tables, worth)


def greatest_lead(
    diagram: CausalDiagram,
    objectives: Sequence[str],
    contender: frozenset[str],
    rivals: Sequence[frozenset[str]],
    rng: np.random.Generator,
    *,
    count: int = 64,
    generations: int = 30,
    restarts: int = 5,
) -> float:
    """Return the greatest lead of a set over its rivals in an evolution of SCMs, which stops at a lead of MARGIN."""
    greatest = -np.inf
    for _ in range(restarts):
        scms = draw(diagram, objectives, count, rng)
        current = scms.leads(contender, rivals)
        for _ in range(generations):
            greatest = max(greatest, float(current.max()))
            if greatest > MARGIN:
                return greatest
            best = np.argsort(-current)[: count // 4]
            children = scms.take(np.repeat(best, 4)).mutate(rng)
            others = children.leads(contender, rivals)
            old = np.repeat(current[best], 4)
            keep = others >= old
            parents = scms.take(np.repeat(best, 4))
            tables = {n: np.where(keep[:, None], t, parents.tables[n]) for n, t in children.tables.items()}
            worth = {n: np.where(keep[:, None], w, parents.worth[n]) for n, w in children.worth.items()}
            scms, current = replace(parents, tables=tables, worth=worth), np.where(keep, others, old)
    return greatest
