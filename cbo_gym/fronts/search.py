"""A search for the Pareto-optimal points of a function with several values, over boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from cbo_gym.fronts.measures import non_dominated, spread_out

Array = np.ndarray
FIRST = 2**9  # points of each box that are tried at random, quasi-uniform
SMALLEST, LARGEST = 1e-4, 0.3  # standard deviations of steps, drawn log-uniformly between
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
    generations: int = 60,
    children: int = 256,
    size: int = 400,
    starts: Sequence[Array] = (),
) -> ParetoSet:
    """Points of boxes whose vectors no other point found dominates: an evolution with an archive.

    Each generation makes children of archived points: half are a point moved in some coordinates, by steps of many
    sizes; a quarter lie between two points of one box, or a little beyond, which fills gaps in the front; and a quarter
    have one coordinate drawn anew, which gets from one local front to another.

    Args:
        functions: of points ``(n, dim)`` in [0, 1] to vectors ``(n, m)``, which are maximised; one a box.
        dims: of the boxes, 0 for a single point.
        rng: source of all randomness.
        generations: how many.
        children: in each.
        size: of the archive, whose points are spread out over the front; at least the number of objectives.
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
    width = np.asarray(dims)
    for _ in range(generations):
        box, points = _children(archive, width, children, rng)
        archive = _best(_joined(archive, worth(box, points)), size)
    return archive


def _best(found: ParetoSet, size: int) -> ParetoSet:
    kept = found.take(non_dominated(found.vectors))
    return kept.take(spread_out(kept.vectors, size))


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
    points[half : half + quarter] += between * (mates - points[half : half + quarter])
    rest = np.arange(half + quarter, count)
    column = (rng.random(len(rest)) * np.maximum(width[box[rest]], 1)).astype(int)
    if points.shape[1]:
        points[rest, column] = rng.random(len(rest))
    return box, np.where(inside, points, 0.0).clip(0.0, 1.0)


def _of_the_same_box(boxes: Array, chosen: Array, rng: np.random.Generator) -> Array:
    """For each of the points chosen another, or itself, of its box."""
    order = np.argsort(boxes, kind="stable")
    first, count = np.searchsorted(boxes[order], boxes[chosen]), np.bincount(boxes)[boxes[chosen]]
    return order[first + (rng.random(len(chosen)) * count).astype(int)]
