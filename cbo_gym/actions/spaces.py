"""Action spaces that Gymnasium lacks: sparse points, grids, cells and super arms."""

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
# Rounding error up to which a coordinate is on a grid.
ON_GRID = 1e-9
# Number of levels up to which errors list all of them.
MAX_LISTED = 20


class Parametrised:
    """Base class of spaces that are equal if their ``parameters`` are: all arguments except ``seed`` and ``batch``."""

    parameters: tuple[Any, ...]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and super().__eq__(other) and self.parameters == other.parameters


class SparseBox(Parametrised, spaces.Box):
    """The unit box, limited to points that differ from ``null`` in at most ``max_interventions`` coordinates.

    Args:
        null: the point from which differences are counted, shape ``(q,)``, in [0, 1].
        max_interventions: the limit, 1 to q.
        levels: numbers of equally spaced values of the coordinates, as for :class:`GridBox`; None for any values.
        batch: None for the space of one point, or the number of independent points (shape ``(batch, q)``).

    Raises:
        ArgumentError: if ``max_interventions`` is out of range.
    """

    def __init__(
        self,
        null: Sequence[float] | np.ndarray,
        max_interventions: int,
        levels: Sequence[int | None] | None = None,
        seed: int | np.random.Generator | None = None,
        batch: int | None = None,
    ) -> None:
        self.null = np.asarray(null, dtype=np.float64)
        q = len(self.null)
        self.max_interventions = whole_number("max_interventions", max_interventions, at_least=1, at_most=q)
        self.levels = tuple(levels) if levels is not None and any(levels) else None
        #: The levels of the coordinates; None if they may have any values.
        self.grid = None if self.levels is None else GridBox(q, self.levels)
        self.parameters = tuple(self.null.tolist()), self.max_interventions, self.levels
        shape = (q,) if batch is None else (batch, q)
        super().__init__(0.0, 1.0, shape, np.float64, seed=seed)

    def sample(self, mask: None = None, probability: None = None) -> np.ndarray:
        """Return uniform values in ``max_interventions`` random coordinates, and null in the others."""
        order = self.np_random.random(self.shape).argsort(axis=-1)
        points = super().sample(mask, probability)
        points = points if self.grid is None else self.grid.from_uniform(points)
        return np.where(order < self.max_interventions, points, self.null)

    def contains(self, x: object) -> bool:
        return (
            super().contains(x)
            and bool((np.sum(np.asarray(x) != self.null, axis=-1) <= self.max_interventions).all())
            and (self.grid is None or self.grid.is_on(np.asarray(x)))
        )

    def keep_largest(self, points: np.ndarray) -> np.ndarray:
        """Project ``points`` of shape ``(..., q)`` to the space: null except for the largest differences."""
        points = points if self.grid is None else self.grid.nearest(points)
        distance = np.abs(points - self.null)
        rank = (-distance).argsort(axis=-1, kind="stable").argsort(axis=-1, kind="stable")
        return np.where(rank < self.max_interventions, points, self.null)

    def __repr__(self) -> str:
        return f"SparseBox(0.0, 1.0, {self.shape}, max_interventions={self.max_interventions})"


class GridBox(Parametrised, spaces.Box):
    """The points of the unit box some or all of whose coordinates are multiples of ``1 / (levels - 1)``.

    Args:
        dim: number of coordinates, at least 1.
        levels: number of equally spaced values, 0 and 1 included, of all coordinates, at least 2; or of each, None for
            those that may have any value in [0, 1].
        batch: None for the space of one point, or the number of independent points (shape ``(batch, dim)``).

    Raises:
        ArgumentError: if ``levels`` is not a whole number of at least 2, or not one for each coordinate.
    """

    def __init__(
        self,
        dim: int,
        levels: int | Sequence[int | None],
        seed: int | np.random.Generator | None = None,
        batch: int | None = None,
    ) -> None:
        counts = levels if isinstance(levels, Sequence) else [levels] * dim
        if len(counts) != dim:
            raise ArgumentError(f"levels must be a number, or one for each of {dim} coordinates; given {levels}")
        self.levels = tuple(n if n is None else whole_number("levels", n, at_least=2) for n in counts)
        self.dim = dim
        self.parameters = dim, self.levels
        # Numbers of steps between levels; 1 in the array for coordinates that may have any value.
        self._step_counts = [None if number is None else number - 1 for number in self.levels]
        self._steps = np.array([count or 1 for count in self._step_counts])
        self._is_free = np.array([count is None for count in self._step_counts])
        super().__init__(0.0, 1.0, (dim,) if batch is None else (batch, dim), np.float64, seed=seed)

    def all(self) -> np.ndarray:
        """Return every point of a grid, shape ``(count, dim)``, the last coordinate changing fastest.

        All coordinates must have levels.
        """
        steps = np.indices(tuple(self._steps + 1)).reshape(self.dim, -1).T
        return steps / self._steps

    def indices(self, points: np.ndarray) -> np.ndarray:
        """Return the indices in :meth:`all` of points of the grid, ``(..., dim)`` to ``(...)``."""
        steps = np.rint(np.multiply(points, self._steps)).astype(int)
        return steps @ np.append(np.cumprod(self._steps[:0:-1] + 1)[::-1], 1)

    def nearest(self, points: np.ndarray) -> np.ndarray:
        """Return the points of the grid nearest to ``points`` of shape ``(..., dim)``."""
        return np.where(self._is_free, points, np.round(points * self._steps) / self._steps)

    def sample(self, mask: None = None, probability: None = None) -> np.ndarray:
        points = self.np_random.integers(self._steps + 1, size=self.shape) / self._steps
        return np.where(self._is_free, super().sample(mask, probability), points) if self._is_free.any() else points

    def contains(self, x: object) -> bool:
        if not super().contains(x):
            return False
        return self.is_on(np.asarray(x, dtype=np.float64))

    def is_on(self, points: np.ndarray) -> bool:
        """Return whether all points ``(..., dim)`` are on the grid, up to rounding."""
        return bool((np.abs(points - self.nearest(points)) <= ON_GRID).all())

    def from_uniform(self, points: np.ndarray) -> np.ndarray:
        """Return points of the grid, all levels equally likely, from uniform points of the unit box."""
        steps = np.minimum(np.floor(points * (self._steps + 1)), self._steps) / self._steps
        return np.where(self._is_free, points, steps)

    @property
    def grid(self) -> GridBox:
        """The grid itself."""
        return self

    def is_off(self, index: int, value: float) -> bool:
        """Return whether a number is not one of the levels of a coordinate; quicker than :meth:`is_on`."""
        steps = self._step_counts[index]
        return steps is not None and abs(value - int(value * steps + 0.5) / steps) > ON_GRID

    def level_names(self, index: int) -> str:
        """Return the levels of a coordinate in words."""
        steps = self._step_counts[index] or 0
        if steps < MAX_LISTED:
            return ", ".join(f"{step}/{steps}" for step in range(steps + 1))
        return f"0/{steps}, 1/{steps}, ..., {steps}/{steps}"

    def __repr__(self) -> str:
        levels = self.levels if len(set(self.levels)) > 1 else self.levels[0]
        return f"GridBox(0.0, 1.0, {self.shape}, levels={levels})"


def unit_box(levels: Sequence[int | None]) -> spaces.Box:
    """Return the unit box of coordinates some of which have levels, see :class:`GridBox`."""
    if any(levels):
        return GridBox(len(levels), levels)
    return spaces.Box(0.0, 1.0, (len(levels),), dtype=np.float64)


class CellBox(Parametrised, spaces.Box):
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


class SuperArmSpace(Parametrised, spaces.MultiBinary):
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
def batch_parametrised(space: Any, n: int = 1) -> Space:
    """Return the space of ``n`` independent elements of a space."""
    return type(space)(*space.parameters, seed=deepcopy(space.np_random), batch=n)
