"""Random actions from a stream of an agent's own."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from gymnasium import spaces


def seeded_copy(space: spaces.Space[Any], seed: int) -> spaces.Space[Any]:
    """A copy of ``space`` with a random stream of its own; the original's is left alone."""
    copy = deepcopy(space)
    copy.seed(seed)
    return copy
