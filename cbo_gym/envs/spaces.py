"""Action spaces that Gymnasium lacks."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space


class SparseBox(spaces.Box):
    """The unit box, limited to points that differ from ``null`` in at most ``max_interventions`` coordinates.

    Args:
        null: the point from which differences are counted, shape ``(q,)``, in [0, 1].
        max_interventions: the limit, 1 to q.
        batch: None for the space of one point, or the number of independent points (shape ``(batch, q)``).

    Raises:
        ValueError: if ``max_interventions`` is out of range.
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
        if max_interventions not in range(1, q + 1):
            raise ValueError(f"max_interventions must be a whole number from 1 to {q}; given {max_interventions!r}")
        self.max_interventions = int(max_interventions)
        shape = (q,) if batch is None else (batch, q)
        super().__init__(0.0, 1.0, shape, np.float64, seed=seed)

    def sample(self, mask: None = None, probability: None = None) -> np.ndarray:
        """``max_interventions`` coordinates, chosen at random, get uniform values; the rest are null."""
        order = self.np_random.random(self.shape).argsort(axis=-1)
        return np.where(order < self.max_interventions, super().sample(mask, probability), self.null)

    def contains(self, x: Any) -> bool:
        return super().contains(x) and bool(
            (np.sum(np.asarray(x) != self.null, axis=-1) <= self.max_interventions).all()
        )

    def keep_largest(self, points: np.ndarray) -> np.ndarray:
        """Move ``points`` of shape ``(..., q)`` into the space: null except for the largest differences."""
        distance = np.abs(points - self.null)
        rank = (-distance).argsort(axis=-1, kind="stable").argsort(axis=-1, kind="stable")
        return np.where(rank < self.max_interventions, points, self.null)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SparseBox)
            and super().__eq__(other)
            and self.max_interventions == other.max_interventions
            and np.array_equal(self.null, other.null)
        )

    def __repr__(self) -> str:
        return f"SparseBox(0.0, 1.0, {self.shape}, max_interventions={self.max_interventions})"


@batch_space.register(SparseBox)
def _batch_sparse_box(space: SparseBox, n: int = 1) -> SparseBox:
    return SparseBox(space.null, space.max_interventions, seed=deepcopy(space.np_random), batch=n)


class CellBox(spaces.Box):
    """Non-empty cells of the unit box: a lower and an upper corner, lower < upper in every coordinate.

    Args:
        dim: number of coordinates d, at least 1.
        batch: None for the space of one cell (shape ``(2, d)``), or the number of independent cells.

    Raises:
        ValueError: if ``dim`` is below 1.
    """

    def __init__(self, dim: int, seed: int | np.random.Generator | None = None, batch: int | None = None) -> None:
        if dim < 1:
            raise ValueError(f"a cell needs at least one coordinate; given dim={dim}")
        self.dim = dim
        super().__init__(0.0, 1.0, (2, dim) if batch is None else (batch, 2, dim), np.float64, seed=seed)

    def sample(self, mask: None = None, probability: None = None) -> np.ndarray:
        """Two uniform points; coordinate by coordinate the smaller goes to the lower corner."""
        corners = np.sort(super().sample(mask, probability), axis=-2)
        if np.all(corners[..., 0, :] < corners[..., 1, :]):
            return corners
        return self.sample(mask, probability)  # equal coordinates have probability zero, but floats can be equal

    def contains(self, x: Any) -> bool:
        if not super().contains(x):
            return False
        corners = np.asarray(x)
        return bool((corners[..., 0, :] < corners[..., 1, :]).all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CellBox) and super().__eq__(other)

    def __repr__(self) -> str:
        return f"CellBox(0.0, 1.0, {self.shape})"


@batch_space.register(CellBox)
def _batch_cell_box(space: CellBox, n: int = 1) -> CellBox:
    return CellBox(space.dim, seed=deepcopy(space.np_random), batch=n)
