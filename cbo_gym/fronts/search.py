"""A search for the Pareto-optimal points of a function with several values, over boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cbo_gym.fronts.measures import hypervolume, non_dominated

Array = np.ndarray
FIRST = 2**9  # points of each box that are tried at random, quasi-uniform
SMALLEST, LARGEST = 1e-4, 0.3  # standard deviations of steps, drawn log-uniformly between
PATIENCE = 20  # generations
ALONE = 40  # generations of each box
DRAWN_ANEW = 3  # coordinates on average, at most
BEYOND = 0.25  # by how much of their distance a point between two others may lie outside
SWITCHED = 0.1  # of all children get to another box


class ParetoSet(NamedTuple):
    """Points that no other point found dominates.

    Attributes:
        box: in which box each lies, ``(n,)``.
        points: all coordinates, in [0, 1], ``(n, coordinates)``; those that are not the box's mean nothing.
        vectors: what they are worth, ``(n, m)``.
    """

    box: Array
    points: Array
    vectors: Array

    def take(self, rows: Array) -> ParetoSet:
        """Some of them."""
        return ParetoSet(*(part[rows] for part in self))


def search_pareto_set(
    functions: Sequence[Callable[[Array], Array]],
    boxes: Sequence[Sequence[int]],
    rng: np.random.Generator,
    *,
    generations: int = 400,
    children: int = 256,
    size: int = 400,
    gain: float = 1e-4,
) -> ParetoSet:
    """Points of boxes whose vectors no other point found dominates: an evolution with an archive.

    Each box is searched alone for some generations, lest one whose random points are all dominated be lost, then all
    together. Each generation makes children of archived points. Half are a point moved in some coordinates, by steps of
    many sizes. A quarter are of two points: between them or a little beyond, which fills gaps in the front, or with
    each coordinate from one of them. A quarter have up to three coordinates drawn anew, which gets from one local front
    to another. A tenth of all go to another box, with the coordinates that they have.

    Args:
        functions: one a box, of its coordinates ``(n, size of the box)`` in [0, 1] to vectors ``(n, m)``, which are
            maximised.
        boxes: the places of each box's coordinates among all; none for a single point.
        rng: source of all randomness.
        generations: at most.
        children: in each.
        size: of the archive, whose points are spread out over the front.
        gain: of the archive's hypervolume in :data:`PATIENCE` generations, relative, below which the search ends.
    """
    columns = [list(box) for box in boxes]
    width = max((max(box, default=-1) for box in columns), default=-1) + 1

    def worth(box: Array, points: Array) -> ParetoSet:
        made = []
        for place in np.unique(box):
            rows = points[box == place]
            made.append(ParetoSet(box[box == place], rows, functions[place](rows[:, columns[place]])))
        return _joined(made)

    def evolved(archive: ParetoSet, among: Array, most: int, count: int) -> ParetoSet:
        reference, reached = archive.vectors.min(axis=0) - np.ptp(archive.vectors, axis=0), 0.0
        for generation in range(most):
            box, points = _children(archive, among, count, rng)
            archive = _best(_joined([archive, worth(box, points)]), size)
            if generation % PATIENCE == PATIENCE - 1:
                before, reached = reached, hypervolume(archive.vectors, reference)
                if reached - before <= gain * reached:
                    break
        return archive

    found = []
    for place, box in enumerate(columns):
        first = rng.random((FIRST if box else 1, width))
        alone = _best(worth(np.full(len(first), place), first), size)
        found.append(evolved(alone, np.array([place]), ALONE if len(columns) > 1 and box else 0, children // 2))
    together = _best(_joined(found), size)
    return evolved(together, np.arange(len(columns)), generations, children)


def _best(found: ParetoSet, size: int) -> ParetoSet:
    kept = found.take(non_dominated(found.vectors))
    return kept.take(_thinned(kept.vectors, size)) if len(kept.box) > size else kept


def _thinned(vectors: Array, size: int) -> Array:
    """At most ``size`` of more vectors: one in each cell of the finest grid that has no more, and the extreme ones."""
    unit = (vectors - vectors.min(axis=0)) / np.maximum(np.ptp(vectors, axis=0), np.finfo(float).tiny)
    extreme = np.unique(np.concatenate([unit.argmin(axis=0), unit.argmax(axis=0)]))
    low, high, kept = 1, 2 * size, np.array([], dtype=int)
    while low <= high:  # by bisection
        middle = (low + high) // 2
        _, first = np.unique((unit * middle).astype(int), axis=0, return_index=True)
        if len(first) + len(extreme) <= size:
            kept, low = first, middle + 1
        else:
            high = middle - 1
    return np.union1d(kept, extreme)


def _joined(sets: Sequence[ParetoSet]) -> ParetoSet:
    return ParetoSet(*(np.concatenate(parts) for parts in zip(*sets, strict=True)))


def _children(parents: ParetoSet, boxes: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    chosen = rng.integers(len(parents.box), size=count)
    box, points = parents.box[chosen], parents.points[chosen]
    half, quarter, width = count // 2, count // 4, points.shape[1]
    steps = np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST), (half, 1))) * rng.standard_normal((half, width))
    points[:half] += steps * (rng.random(steps.shape) < rng.random((half, 1)))
    mates = parents.points[rng.integers(len(parents.box), size=quarter)]
    between = rng.uniform(-BEYOND, 1.0 + BEYOND, (quarter, 1))
    between = np.where(rng.random(between.shape) < 0.5, between, rng.random(mates.shape) < 0.5)
    points[half : half + quarter] += between * (mates - points[half : half + quarter])
    rest = points[half + quarter :]
    share = rng.integers(1, DRAWN_ANEW + 1, (len(rest), 1)) / max(width, 1)
    points[half + quarter :] = np.where(rng.random(rest.shape) < share, rng.random(rest.shape), rest)
    box = np.where(rng.random(count) < SWITCHED, rng.choice(boxes, size=count), box)
    return box, points.clip(0.0, 1.0)
