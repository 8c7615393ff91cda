"""Cells of the unit box, the actions of aggregated mode: how they are split, and the points that represent them.

A cell is an array of shape ``(2, d)``: its lower and its upper corner. Environments average over the representative
points of a cell, and agents model the average over the same points.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from cbo_gym._util.arguments import whole_number

# Number of points, a prime, whose mean stands for the integral over a cell.
INTEGRAL_POINTS = 1021
# Largest number of points; choosing them takes a second or two in six dimensions.
MAX_POINTS = 10_000
# Largest number of parts of a cell.
MAX_PARTS = 100
# Largest number of candidates for the multiplier of a lattice.
MULTIPLIERS = 256
# Weight of each coordinate; with 1, the highest-order interactions would dominate on small lattices.
WEIGHT = 0.3


def unit_cell(dim: int) -> np.ndarray:
    """Return the whole unit box, shape ``(2, dim)``."""
    return np.stack([np.zeros(dim), np.ones(dim)])


def split(cell: np.ndarray, arity: int) -> np.ndarray:
    """Cut a cell along its longest edge (the first of equals) into equal parts, shape ``(arity, 2, d)``."""
    require_arity(arity)
    lower, upper = cell
    axis = int(np.argmax(upper - lower))
    edges = np.linspace(lower[axis], upper[axis], arity + 1)
    parts = np.tile(cell, (arity, 1, 1))
    parts[:, 0, axis], parts[:, 1, axis] = edges[:-1], edges[1:]
    return parts


def representative_points(cells: np.ndarray, count: int) -> np.ndarray:
    """Return :func:`unit_points` scaled to each cell: ``(..., 2, d)`` to ``(..., count, d)``."""
    lower, upper = cells[..., :1, :], cells[..., 1:, :]
    return lower + (upper - lower) * unit_points(count, cells.shape[-1])


@lru_cache(maxsize=64)
def unit_points(count: int, dim: int) -> np.ndarray:
    """Return the representative points of the unit box, shape ``(count, dim)``: a centred rank-1 lattice.

    Each coordinate runs over the centres of ``count`` equal sub-intervals. They are paired as in Korobov's lattices,
    ``z = (1, a, a^2, ...) mod count``, with the multiplier ``a`` prime to ``count`` that has the smallest worst-case
    error in a weighted Korobov space of smoothness 2 (Sloan & Joe, Lattice Methods for Multiple Integration, 1994). A
    prime ``count`` gives the best choice.
    """
    require_points(count)
    steps = np.arange(count)[:, None]
    candidates = [a for a in range(1, count + 1) if math.gcd(a, count) == 1] if dim > 1 else [1]
    evenly_spaced = candidates[:: math.ceil(len(candidates) / MULTIPLIERS)]
    lattices = (steps * np.array([pow(a, j, count) for j in range(dim)]) % count for a in evenly_spaced)
    points = (min(lattices, key=lambda lattice: _korobov_error(lattice / count)) + 0.5) / count
    # Read-only, because the cache shares it.
    points.flags.writeable = False
    return points


def _korobov_error(points: np.ndarray) -> float:
    """Return the squared worst-case error of a lattice with the origin, up to a constant: weighted P_2 + 1."""
    bernoulli = points * points - points + 1.0 / 6.0
    return float((1.0 + WEIGHT * 2.0 * np.pi**2 * bernoulli).prod(axis=-1).mean())


def require_points(count: int) -> int:
    """Return a number of representative points as an int; raise ArgumentError unless it is 1 to ``MAX_POINTS``."""
    return whole_number("the number of representative points S", count, at_least=1, at_most=MAX_POINTS)


def require_arity(arity: int) -> int:
    """Return a number of parts of a cell as an int; raise ArgumentError unless it is 2 to ``MAX_PARTS``."""
    return whole_number("the partition's arity K", arity, at_least=2, at_most=MAX_PARTS)
