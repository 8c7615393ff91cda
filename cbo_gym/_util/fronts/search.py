"""Search for the Pareto-optimal points of vector-valued functions on boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cbo_gym._util.fronts.measures import hypervolume, non_dominated

Array = np.ndarray
#: Number of quasi-uniform points that are tried in each box.
FIRST = 2**9
#: Smallest and largest standard deviation of steps, which are drawn log-uniformly.
SMALLEST, LARGEST = 1e-4, 0.3
#: Number of generations between checks of the progress.
PATIENCE = 20
#: Number of generations in which each box is searched alone.
ALONE = 40
#: Largest number of coordinates redrawn on average.
MAX_REDRAWN = 3
#: How far a combination of two points may lie beyond either point, as a share of their distance.
BEYOND = 0.25
#: Share of children that move to another box.
SWITCHED = 0.1


class ParetoSet(NamedTuple):
    """Points that no other evaluated point dominates.

    Attributes:
        box: index of each point's box, shape ``(n,)``.
        points: coordinates in [0, 1], shape ``(n, coordinates)``; coordinates that the box lacks are meaningless.
        vectors: values of the functions, shape ``(n, m)``.
    """

    box: Array
    points: Array
    vectors: Array

    def take(self, rows: Array) -> ParetoSet:
        """Return some of the points."""
        return ParetoSet(*(array[rows] for array in self))


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
    """Search boxes for points whose vectors no other point dominates, by an evolutionary search with an archive.

    Each box is first searched alone, so that no box is lost because its random points are all dominated, then all
    together. Each generation makes children of archived points. Half are a point moved in some coordinates, by steps of
    many sizes. A quarter combine two points: between them or a little beyond, which fills gaps in the front, or with
    each coordinate from one of them. A quarter have up to three coordinates redrawn, which leads from one local front
    to another. A tenth of all children move to another box and keep their coordinates.

    Args:
        functions: a function per box, from its coordinates in [0, 1], shape ``(n, size of the box)``, to vectors of
            shape ``(n, m)``, which are maximised.
        boxes: indices of each box's coordinates among all; empty for a single point.
        rng: random generator.
        generations: largest number of generations.
        children: number of children in each.
        size: size of the archive, whose points are spread over the front.
        gain: relative gain of the archive's hypervolume in :data:`PATIENCE` generations below which the search ends.
    """
    columns = [list(box) for box in boxes]
    width = max((max(box, default=-1) for box in columns), default=-1) + 1

    def evaluate_points(box: Array, points: Array) -> ParetoSet:
        sets = []
        for index in np.unique(box):
            rows = points[box == index]
            sets.append(ParetoSet(box[box == index], rows, functions[index](rows[:, columns[index]])))
        return _join(sets)

    def evolve(archive: ParetoSet, allowed: Array, max_generations: int, count: int) -> ParetoSet:
        reference, reached = archive.vectors.min(axis=0) - np.ptp(archive.vectors, axis=0), 0.0
        for generation in range(max_generations):
            box, points = _children(archive, allowed, count, rng)
            archive = _best(_join([archive, evaluate_points(box, points)]), size)
            if generation % PATIENCE == PATIENCE - 1:
                before, reached = reached, hypervolume(archive.vectors, reference)
                if reached - before <= gain * reached:
                    break
        return archive

    sets = []
    for index, box in enumerate(columns):
        first = rng.random((FIRST if box else 1, width))
        alone = _best(evaluate_points(np.full(len(first), index), first), size)
        sets.append(evolve(alone, np.array([index]), ALONE if len(columns) > 1 and box else 0, children // 2))
    combined = _best(_join(sets), size)
    return evolve(combined, np.arange(len(columns)), generations, children)


def _best(candidates: ParetoSet, size: int) -> ParetoSet:
    kept = candidates.take(non_dominated(candidates.vectors))
    return kept.take(_thin(kept.vectors, size)) if len(kept.box) > size else kept


def _thin(vectors: Array, size: int) -> Array:
    """Return indices of at most ``size`` vectors: one per cell of the finest possible grid, and the extreme ones."""
    unit = (vectors - vectors.min(axis=0)) / np.maximum(np.ptp(vectors, axis=0), np.finfo(float).tiny)
    extreme = np.unique(np.concatenate([unit.argmin(axis=0), unit.argmax(axis=0)]))
    low, high, kept = 1, 2 * size, np.array([], dtype=int)
    # The resolution of the grid is found by bisection.
    while low <= high:
        middle = (low + high) // 2
        _, first = np.unique((unit * middle).astype(int), axis=0, return_index=True)
        if len(first) + len(extreme) <= size:
            kept, low = first, middle + 1
        else:
            high = middle - 1
    return np.union1d(kept, extreme)


def _join(sets: Sequence[ParetoSet]) -> ParetoSet:
    return ParetoSet(*map(np.concatenate, zip(*sets, strict=True)))


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
    moved = points[half + quarter :]
    share = rng.integers(1, MAX_REDRAWN + 1, (len(moved), 1)) / max(width, 1)
    points[half + quarter :] = np.where(rng.random(moved.shape) < share, rng.random(moved.shape), moved)
    box = np.where(rng.random(count) < SWITCHED, rng.choice(boxes, size=count), box)
    return box, points.clip(0.0, 1.0)
