"""Action spaces that Gymnasium lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from itertools import combinations
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from cbo_gym._util.arguments import whole_number
from cbo_gym.errors import ArgumentError

Space = spaces.Space[Any]
# Tolerance of the coordinates of a grid, because 3 / 7 is not 3 times 1 / 7.
ON_GRID = 1e-9


class _Parametrised:
    """Base class; ``parameters`` are all arguments of the constructor but ``seed`` and ``batch``."""

    parameters: tuple[Any, ...]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and super().__eq__(other) and self.parameters == other.parameters


class SparseBox(_Parametrised, spaces.Box):
    """The unit box, limited to points that differ from ``null`` in at most ``max_interventions`` coordinates.

    Args:
        null: the point from which differences are counted, shape ``(q,)``, in [0, 1].
        max_interventions: the limit, 1 to q.
        batch: None for the space of one point, or the number of independent points (shape ``(batch, q)``).

    Raises:
        ArgumentError: if ``max_interventions`` is out of range.
    """

    def __init__(
        self,
        null: Sequence[float] | np.ndarray,
        max_interventions: int,
        seed: int | np.random.Generator | None = None,
        batch: int | None = None,
    ) -> None:
        self.null = np.asarray(null, dtype=np.float64)
        q = len(self.null)
        self.max_interventions = whole_number("max_interventions", max_interventions, at_least=1, at_most=q)
        self.parameters = tuple(self.null.tolist()), self.max_interventions
        shape = (q,) if batch is None else (batch, q)
        super().__init__(0.0, 1.0, shape, np.float64, seed=seed)

    def sample(self, mask: None = None, probability: None = None) -> np.ndarray:
        """Return uniform values in ``max_interventions`` random coordinates, and null in the others."""
        order = self.np_random.random(self.shape).argsort(axis=-1)
        return np.where(order < self.max_interventions, super().sample(mask, probability), self.null)

    def contains(self, x: object) -> bool:
        return super().contains(x) and bool(
            (np.sum(np.asarray(x) != self.null, axis=-1) <= self.max_interventions).all()
        )

    def keep_largest(self, points: np.ndarray) -> np.ndarray:
        """Project ``points`` of shape ``(..., q)`` to the space: null except for the largest differences."""
        distance = np.abs(points - self.null)
        rank = (-distance).argsort(axis=-1, kind="stable").argsort(axis=-1, kind="stable")
        return np.where(rank < self.max_interventions, points, self.null)

    def __repr__(self) -> str:
        return f"SparseBox(0.0, 1.0, {self.shape}, max_interventions={self.max_interventions})"


class GridBox(_Parametrised, spaces.Box):
    """The points of the unit box whose coordinates are multiples of ``1 / (levels - 1)``.

    Args:
        dim: number of coordinates, at least 1.
        levels: number of equally spaced values of a coordinate, 0 and 1 included, at least 2.
        batch: None for the space of one point, or the number of independent points (shape ``(batch, dim)``).

    Raises:
        ArgumentError: if ``levels`` is not a whole number of at least 2.
    """

    def __init__(
        self, dim: int, levels: int, seed: int | np.random.Generator | None = None, batch: int | None = None
    ) -> None:
        self.levels = whole_number("levels", levels, at_least=2)
        self.dim = dim
        self.parameters = dim, self.levels
        super().__init__(0.0, 1.0, (dim,) if batch is None else (batch, dim), np.float64, seed=seed)

    def all(self) -> np.ndarray:
        """Return every point, shape ``(levels**dim, dim)``; the last coordinate changes fastest."""
        steps = np.indices((self.levels,) * self.dim).reshape(self.dim, -1).T
        return steps / (self.levels - 1)

    def indices(self, points: np.ndarray) -> np.ndarray:
        """Return the indices in :meth:`all` of points of the grid, ``(..., dim)`` to ``(...)``."""
        steps = np.rint(np.multiply(points, self.levels - 1)).astype(int)
        return steps @ self.levels ** np.arange(self.dim - 1, -1, -1)

    def nearest(self, points: np.ndarray) -> np.ndarray:
        """Return the points of the grid nearest to ``points`` of shape ``(..., dim)``."""
        return np.round(points * (self.levels - 1)) / (self.levels - 1)

    def sample(self, mask: None = None, probability: None = None) -> np.ndarray:
        return self.np_random.integers(self.levels, size=self.shape) / (self.levels - 1)

    def contains(self, x: object) -> bool:
        if not super().contains(x):
            return False
        points = np.asarray(x, dtype=np.float64)
        return bool((np.abs(points - self.nearest(points)) <= ON_GRID).all())

    def __repr__(self) -> str:
        return f"GridBox(0.0, 1.0, {self.shape}, levels={self.levels})"


class CellBox(_Parametrised, spaces.Box):
    """Non-empty cells of the unit box: a lower and an upper corner, lower < upper in every coordinate.

    Args:
        dim: number of coordinates d, at least 1.
        batch: None for the space of one cell (shape ``(2, d)``), or the number of independent cells.

    Raises:
        ArgumentError: if ``dim`` is below 1.
    """

    def __init__(self, dim: int, seed: int | np.random.Generator | None = None, batch: int | None = None) -> None:
        if dim < 1:
            raise ArgumentError(f"a cell needs at least one coordinate; given dim={dim}")
        self.dim = dim
        self.parameters = (dim,)
        super().__init__(0.0, 1.0, (2, dim) if batch is None else (batch, 2, dim), np.float64, seed=seed)

    def sample(self, mask: None = None, probability: None = None) -> np.ndarray:
        """Return the smaller and the larger coordinates of two uniform points."""
        corners = np.sort(super().sample(mask, probability), axis=-2)
        if np.all(corners[..., 0, :] < corners[..., 1, :]):
            return corners
        # Floats can be equal, although equal coordinates have probability zero.
        return self.sample(mask, probability)

    def contains(self, x: object) -> bool:
        if not super().contains(x):
            return False
        corners = np.asarray(x)
        return bool((corners[..., 0, :] < corners[..., 1, :]).all())

    def __repr__(self) -> str:
        return f"CellBox(0.0, 1.0, {self.shape})"


class SuperArmSpace(_Parametrised, spaces.MultiBinary):
    """Subsets of N base arms as 0/1 vectors with at most ``size`` ones.

    Args:
        arms: number N of base arms.
        size: the limit s, 1 to N.
        batch: None for the space of one super arm, or the number of independent ones (shape ``(batch, N)``).

    Raises:
        ArgumentError: if ``size`` is out of range.
    """

    def __init__(
        self, arms: int, size: int, seed: int | np.random.Generator | None = None, batch: int | None = None
    ) -> None:
        self.arms = arms
        self.size = whole_number("super_arm_size", size, at_least=1, at_most=arms)
        self.parameters = arms, self.size
        super().__init__(arms if batch is None else (batch, arms), seed=seed)

    @property
    def count(self) -> int:
        """Number of super arms, the empty one included."""
        return sum(math.comb(self.arms, k) for k in range(self.size + 1))

    def all(self) -> np.ndarray:
        """Return every super arm, shape ``(count, N)``: the empty one, then by size and in lexicographic order."""
        super_arms = np.zeros((self.count, self.arms), dtype=np.int8)
        row = 1
        for k in range(1, self.size + 1):
            members = np.array(list(combinations(range(self.arms), k)))
            np.put_along_axis(super_arms[row : row + len(members)], members, 1, axis=1)
            row += len(members)
        return super_arms

    def sample(self, mask: np.ndarray | None = None, probability: np.ndarray | None = None) -> np.ndarray:
        """Draw uniformly from all super arms."""
        weights = [math.comb(self.arms, k) / self.count for k in range(self.size + 1)]
        size = self.np_random.choice(self.size + 1, p=weights, size=(*self.shape[:-1], 1))
        order = self.np_random.random(self.shape).argsort(axis=-1)
        return (order < size).astype(self.dtype)

    def contains(self, x: Any) -> bool:
        return super().contains(x) and bool((np.sum(x, axis=-1) <= self.size).all())

    def keep_largest(self, scores: np.ndarray) -> np.ndarray:
        """Return the super arms of the highest ``scores`` above one half, shape ``(..., N)``."""
        rank = (-scores).argsort(axis=-1, kind="stable").argsort(axis=-1, kind="stable")
        return ((rank < self.size) & (scores > 0.5)).astype(self.dtype)

    def __repr__(self) -> str:
        return f"SuperArmSpace({self.shape}, size={self.size})"


@batch_space.register(SparseBox)
@batch_space.register(GridBox)
@batch_space.register(CellBox)
@batch_space.register(SuperArmSpace)
def _batch(space: Any, n: int = 1) -> Space:
    return type(space)(*space.parameters, seed=deepcopy(space.np_random), batch=n)
