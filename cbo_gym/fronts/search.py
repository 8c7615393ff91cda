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
DRAWN_ANEW = 3  # coordinates on average, at most
BEYOND = 0.25  # by how much of their distance a point between two others may lie outside


class ParetoSet(NamedTuple):
    """Points that no other point found dominates.

    Attributes:
        box: in which box each lies, ``(n,)``.
        points: in [0, 1], ``(n, widest box)``; zeros behind the coordinates of a smaller box.
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
    dims: Sequence[int],
    rng: np.random.Generator,
    *,
    generations: int = 400,
    children: int = 256,
    size: int = 400,
    gain: float = 1e-4,
    starts: Sequence[Array] = (),
) -> ParetoSet:
    """Points of boxes whose vectors no other point found dominates: an evolution with an archive.

    Each generation makes children of archived points. Half are a point moved in some coordinates, by steps of many
    sizes. A quarter are of two points of one box: between them or a little beyond, which fills gaps in the front, or
    with each coordinate from one of them. A quarter have up to three coordinates drawn anew, which gets from one local
    front to another.

    Args:
        functions: of points ``(n, dim)`` in [0, 1] to vectors ``(n, m)``, which are maximised; one a box.
        dims: of the boxes, 0 for a single point.
        rng: source of all randomness.
        generations: at most.
        children: in each.
        size: of the archive, whose points are spread out over the front.
        gain: of the archive's hypervolume in :data:`PATIENCE` generations, relative, below which the search ends.
        starts: of each box points to begin with besides random ones, ``(k, dim)``; empty for none.
    """
    widest = max(dims)

    def worth(box: Array, points: Array) -> ParetoSet:
        made: list[ParetoSet] = []
        for place in np.unique(box):
            rows = points[box == place]
            made.append(ParetoSet(box[box == place], rows, functions[place](rows[:, : dims[place]])))
        return ParetoSet(*(np.concatenate(parts) for parts in zip(*made, strict=True)))

    first_boxes, first_points = [], []
    for place, dim in enumerate(dims):
        drawn = rng.random((FIRST if dim else 1, dim))
        drawn = np.concatenate([drawn, starts[place]]) if len(starts) else drawn
        first_points.append(np.pad(drawn, ((0, 0), (0, widest - dim))))
        first_boxes.append(np.full(len(drawn), place))
    archive = _best(worth(np.concatenate(first_boxes), np.concatenate(first_points)), size)
    reference, reached = archive.vectors.min(axis=0) - np.ptp(archive.vectors, axis=0), 0.0
    width = np.asarray(dims)
    for generation in range(generations):
        box, points = _children(archive, width, children, rng)
        archive = _best(_joined(archive, worth(box, points)), size)
        if generation % PATIENCE == PATIENCE - 1:
            before, reached = reached, hypervolume(archive.vectors, reference)
            if reached - before <= gain * reached:
                break
    return archive


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


def _joined(one: ParetoSet, other: ParetoSet) -> ParetoSet:
    return ParetoSet(*(np.concatenate(parts) for parts in zip(one, other, strict=True)))


def _children(parents: ParetoSet, width: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    chosen = rng.integers(len(parents.box), size=count)
    box, points = parents.box[chosen], parents.points[chosen]
    inside = np.arange(points.shape[1]) < width[box][:, None]
    half, quarter = count // 2, count // 4
    steps = np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST), (half, 1))) * rng.standard_normal(points[:half].shape)
    points[:half] += steps * (rng.random(steps.shape) < rng.random((half, 1)))
    mates = parents.points[_of_the_same_box(parents.box, chosen[half : half + quarter], rng)]
    between = rng.uniform(-BEYOND, 1.0 + BEYOND, (len(mates), 1))
    between = np.where(rng.random(between.shape) < 0.5, between, rng.random(mates.shape) < 0.5)
    points[half : half + quarter] += between * (mates - points[half : half + quarter])
    rest = points[half + quarter :]
    share = rng.integers(1, DRAWN_ANEW + 1, (len(rest), 1)) / np.maximum(width[box[half + quarter :]], 1)[:, None]
    points[half + quarter :] = np.where(rng.random(rest.shape) < share, rng.random(rest.shape), rest)
    return box, np.where(inside, points, 0.0).clip(0.0, 1.0)


def _of_the_same_box(boxes: Array, chosen: Array, rng: np.random.Generator) -> Array:
    """For each of the points chosen another, or itself, of its box."""
    order = np.argsort(boxes, kind="stable")
    first, count = np.searchsorted(boxes[order], boxes[chosen]), np.bincount(boxes)[boxes[chosen]]
    return order[first + (rng.random(len(chosen)) * count).astype(int)]
