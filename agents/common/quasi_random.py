"""Quasi-random numbers from scrambled Sobol sequences."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

# Least distance of uniform numbers from 0 and 1, at which quantiles may be infinite.
EDGE = 1e-9


def uniforms(names: Collection[str], count: int, seed: int) -> dict[str, Tensor]:
    """Return uniform numbers in (0, 1), ``(count,)`` for each name."""
    return _columns(names, _draw(len(names), count, seed))


def normals(names: Collection[str], count: int, seed: int) -> dict[str, Tensor]:
    """Return standard normal numbers, ``(count,)`` for each name."""
    return _columns(names, torch.special.ndtri(_draw(len(names), count, seed)))


# Cached, because many agents use the same numbers in every round.
@lru_cache(maxsize=32)
def _draw(dim: int, count: int, seed: int) -> Tensor:
    engine = SobolEngine(max(1, dim), scramble=True, seed=seed)
    return engine.draw(count, dtype=torch.float64).clamp(EDGE, 1.0 - EDGE)


def _columns(names: Collection[str], points: Tensor) -> dict[str, Tensor]:
    return dict(zip(names, points.unbind(-1), strict=False))
