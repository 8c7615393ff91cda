"""Dominance, hypervolume, and distances between sets of vectors."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

Array = np.ndarray


def non_dominated(vectors: Array) -> Array:
    """Return a mask, shape ``(n,)``, of the vectors that no other vector dominates; of equal vectors only the first.

    A vector dominates another if no coordinate is smaller and one is larger.
    """
    vectors = np.asarray(vectors, dtype=float)
    mask = np.zeros(len(vectors), dtype=bool)
    # A vector comes after all vectors that dominate it; equal vectors keep their order.
    order = np.lexsort((np.arange(len(vectors)), *(-vectors.T[::-1])))
    mask[order] = _non_dominated_in_order(vectors[order])
    return mask


def _non_dominated_in_order(ordered: Array) -> Array:
    """Return the mask of :func:`non_dominated` for vectors in descending lexicographic order."""
    count, m = ordered.shape
    if m <= 2 or count < 2:
        best = np.maximum.accumulate(ordered[:, -1])
        return np.append(True, ordered[1:, -1] > best[:-1])[:count]
    if m == 3:
        return _staircase(ordered[:, 1:] - ordered[:, 1:].min(axis=0) + 1.0)[0]
    mask, candidates = np.zeros(count, dtype=bool), np.arange(count)
    while len(candidates):
        best, candidates = candidates[0], candidates[1:]
        mask[best] = True
        candidates = candidates[(ordered[candidates] > ordered[best]).any(axis=1)]
    return mask


def hypervolume(vectors: Array, reference: Array) -> float:
    """Return the volume that vectors dominate above a reference point (Zitzler & Thiele 1998).

    Args:
        vectors: shape ``(n, m)``, m at least 1; those that do not exceed the reference in all coordinates add nothing.
        reference: shape ``(m,)``.
    """
    above = np.asarray(vectors, dtype=float).reshape(-1, len(reference)) - np.asarray(reference, dtype=float)
    above = above[(above > 0.0).all(axis=1)]
    return _volume(above[non_dominated(above)])


def _volume(front: Array) -> float:
    """Return the hypervolume of positive vectors that do not dominate each other, by slices of the last objective."""
    if len(front) == 0:
        return 0.0
    if front.shape[1] == 1:
        return float(front.max())
    if front.shape[1] == 2:
        x, y = front[np.argsort(-front[:, 0], kind="stable")].T
        return float(x @ np.diff(np.maximum.accumulate(y), prepend=0.0))
    front = front[np.argsort(-front[:, -1], kind="stable")]
    depths = front[:, -1] - np.append(front[1:, -1], 0.0)
    if front.shape[1] == 3:
        return float(_staircase(front[:, :2])[1] @ depths)
    slices = [_volume(front[:k, :-1][non_dominated(front[:k, :-1])]) for k in range(1, len(front) + 1)]
    return float(np.array(slices) @ depths)


def _staircase(points: Array) -> tuple[Array, Array]:
    """Add points one by one to the area that they dominate; return whether each adds to it, and the area after each."""
    # The corners of the area from left to right; between xs[i - 1] and xs[i] it is ys[i] high.
    xs, ys = [0.0, np.inf], [np.inf, 0.0]
    area, steps = 0.0, []
    for x, y in points.tolist():
        right = bisect_left(xs, x)
        # Otherwise the next corner to the right dominates the point.
        if adds := y > ys[right]:
            area += (x - xs[right - 1]) * (y - ys[right])
            end = right + 1 if xs[right] == x else right
            start = right
            while ys[start - 1] <= y:
                start -= 1
                area += (xs[start] - xs[start - 1]) * (y - ys[start])
            xs[start:end], ys[start:end] = [x], [y]
        steps.append((adds, area))
    added, areas = np.array(steps).reshape(-1, 2).T
    return added.astype(bool), areas


def generational_distance_plus(vectors: Array, front: Array) -> float:
    """Return GD+, the mean distance of vectors to the nearest point of a front (Ishibuchi et al. 2015).

    Only shortfalls count: the distance of a vector a to a point z is the length of max(z - a, 0).

    Args:
        vectors: shape ``(n, m)``, n at least 1.
        front: shape ``(k, m)``, k at least 1.
    """
    return float(_shortfalls(vectors, front).min(axis=1).mean())


def inverted_generational_distance_plus(vectors: Array, front: Array) -> float:
    """Return IGD+, the mean distance of the points of a front to the nearest vector (Ishibuchi et al. 2015).

    Args:
        vectors: shape ``(n, m)``, n at least 1.
        front: shape ``(k, m)``, k at least 1.
    """
    return float(_shortfalls(vectors, front).min(axis=0).mean())


def _shortfalls(vectors: Array, front: Array) -> Array:
    """Return distances of vectors to points of a front, shape ``(n, k)``."""
    differences = np.asarray(front, dtype=float)[None] - np.asarray(vectors, dtype=float)[:, None]
    return np.sqrt(np.square(np.maximum(differences, 0.0)).sum(axis=-1))


def spread_out(vectors: Array, count: int) -> Array:
    """Return the indices of at most ``count`` vectors that are far from each other, in ascending order.

    The largest vectors of each objective are taken first, then repeatedly the vector that is farthest from those taken,
    with each objective in units of its range.

    Args:
        vectors: shape ``(n, m)``, n at least 1.
        count: at least m.
    """
    vectors = np.asarray(vectors, dtype=float)
    if len(vectors) <= count:
        return np.arange(len(vectors))
    scaled = (vectors - vectors.min(axis=0)) / np.maximum(np.ptp(vectors, axis=0), np.finfo(float).tiny)
    chosen = list(dict.fromkeys(scaled.argmax(axis=0).tolist()))
    nearest = np.min([np.square(scaled - scaled[index]).sum(axis=1) for index in chosen], axis=0)
    while len(chosen) < count:
        chosen.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, np.square(scaled - scaled[chosen[-1]]).sum(axis=1))
    return np.sort(chosen)
