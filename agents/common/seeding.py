"""Copies of action spaces with their own random streams."""

from __future__ import annotations

from copy import deepcopy

from cbo_gym.actions import Space


def seeded_copy(space: Space, seed: int) -> Space:
    """Return a copy of ``space`` with a new random stream; the stream of the original does not change."""
    copy = deepcopy(space)
    copy.seed(seed)
    return copy
