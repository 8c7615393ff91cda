"""Search for the Pareto-optimal points of vector-valued functions on boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cbo_gym._util.fronts.measures import hypervolume, non_dominated

Array = np.ndarray
# Number of random points with which the search of each box begins.
INITIAL_POINTS = 2**9
# Bounds of the standard deviation of steps, which is drawn log-uniformly.
MIN_STEP, MAX_STEP = 1e-4, 0.3
# Number of generations between two checks of the progress.
PATIENCE = 20
# Number of generations in which each box is searched alone.
SEPARATE_GENERATIONS = 40
# Largest mean number of coordinates that are redrawn.
MAX_REDRAWN = 3
# How far a combination of two points may lie beyond either point, as a fraction of their distance.
OVERSHOOT = 0.25
# Fraction of children that move to a random box.
SWITCH_RATE = 0.1


class ParetoSet(NamedTuple):
    """Points that no other evaluated point dominates.

    Attributes:
        box: Index of each point's box, shape ``(n,)``.
        points: Coordinates in [0, 1], shape ``(n, coordinates)``; the box may ignore some of them.
        vectors: Values of the functions, shape ``(n, m)``.
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
    """Search boxes for Pareto-optimal points by an evolutionary search with an archive of the best points.

    Each box is first searched alone, so that no box is lost because its random points are all dominated. Then the boxes
    are searched together. Each generation makes children of random points of the archive:

    * half are a point moved in some coordinates, by steps of many sizes;
    * a quarter combine two points: they lie between them or a little beyond, which fills gaps in the front, or take
      each coordinate from one of them;
    * a quarter have some coordinates redrawn, which leads from one local front to another.

    A tenth of all children move to a random box and keep their coordinates.

    Args:
        functions: a function per box, from its coordinates in [0, 1], shape ``(n, size of the box)``, to vectors of
            shape ``(n, m)``, which are maximised.
        boxes: indices of each box's coordinates among all; empty for a single point.
        rng: random generator of the search.
        generations: largest number of generations.
        children: number of children in each generation.
        size: size of the archive, whose points are spread over the front.
        gain: relative gain of the archive's hypervolume in :data:`PATIENCE` generations below which the search ends.
    """
    columns = [list(box) for box in boxes]
    width = max((max(box, default=-1) for box in columns), default=-1) + 1

    def evaluate_points(box: Array, points: Array) -> ParetoSet:
        sets = []
        for index in np.unique(box):
            is_inside = box == index
            inside = points[is_inside]
            sets.append(ParetoSet(box[is_inside], inside, functions[index](inside[:, columns[index]])))
        return _join(sets)

    def evolve(archive: ParetoSet, allowed: Array, max_generations: int, count: int) -> ParetoSet:
        reference = archive.vectors.min(axis=0) - np.ptp(archive.vectors, axis=0)
        volume = 0.0
        for generation in range(max_generations):
            box, points = _make_children(archive, allowed, count, rng)
            archive = _best(_join([archive, evaluate_points(box, points)]), size)
            if generation % PATIENCE == PATIENCE - 1:
                last_volume, volume = volume, hypervolume(archive.vectors, reference)
                if volume - last_volume <= gain * volume:
                    break
        return archive

    sets = []
    for index, box in enumerate(columns):
        initial = rng.random((INITIAL_POINTS if box else 1, width))
        archive = _best(evaluate_points(np.full(len(initial), index), initial), size)
        max_generations = SEPARATE_GENERATIONS if len(columns) > 1 and box else 0
        sets.append(evolve(archive, np.array([index]), max_generations, children // 2))
    combined = _best(_join(sets), size)
    return evolve(combined, np.arange(len(columns)), generations, children)


def _best(candidates: ParetoSet, size: int) -> ParetoSet:
    front = candidates.take(non_dominated(candidates.vectors))
    return front.take(_thin(front.vectors, size)) if len(front.box) > size else front


def _thin(vectors: Array, size: int) -> Array:
    """Return indices of at most ``size`` vectors: the extremes of each objective, and one vector per cell of a grid."""
    unit = (vectors - vectors.min(axis=0)) / np.maximum(np.ptp(vectors, axis=0), np.finfo(float).tiny)
    extreme = np.unique(np.concatenate([unit.argmin(axis=0), unit.argmax(axis=0)]))
    low, high, representatives = 1, 2 * size, np.array([], dtype=int)
    # Bisection finds the finest grid whose occupied cells are not too many.
    while low <= high:
        middle = (low + high) // 2
        _, indices = np.unique((unit * middle).astype(int), axis=0, return_index=True)
        if len(indices) + len(extreme) <= size:
            representatives, low = indices, middle + 1
        else:
            high = middle - 1
    return np.union1d(representatives, extreme)


def _join(sets: Sequence[ParetoSet]) -> ParetoSet:
    return ParetoSet(*map(np.concatenate, zip(*sets, strict=True)))


def _make_children(parents: ParetoSet, boxes: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the boxes of the children and their points, as :func:`search_pareto_set` describes them."""
    chosen = rng.integers(len(parents.box), size=count)
    box, points = parents.box[chosen], parents.points[chosen]
    half, quarter, width = count // 2, count // 4, points.shape[1]
    steps = np.exp(rng.uniform(np.log(MIN_STEP), np.log(MAX_STEP), (half, 1))) * rng.standard_normal((half, width))
    points[:half] += steps * (rng.random(steps.shape) < rng.random((half, 1)))
    mates = parents.points[rng.integers(len(parents.box), size=quarter)]
    # A weight of 0 gives the parent, of 1 the mate.
    line_weights = rng.uniform(-OVERSHOOT, 1.0 + OVERSHOOT, (quarter, 1))
    weights = np.where(rng.random((quarter, 1)) < 0.5, line_weights, rng.random(mates.shape) < 0.5)
    points[half : half + quarter] += weights * (mates - points[half : half + quarter])
    last = points[half + quarter :]
    redraw_rate = rng.integers(1, MAX_REDRAWN + 1, (len(last), 1)) / max(width, 1)
    points[half + quarter :] = np.where(rng.random(last.shape) < redraw_rate, rng.random(last.shape), last)
    box = np.where(rng.random(count) < SWITCH_RATE, rng.choice(boxes, size=count), box)
    return box, points.clip(0.0, 1.0)
