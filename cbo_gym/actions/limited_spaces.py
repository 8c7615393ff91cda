"""Action spaces whose actions keep limits such as ``"a + b <= 5"``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from cbo_gym.actions.limits import Limits
from cbo_gym.actions.spaces import Parametrised, Space, batch_parametrised


class LimitedBox(Parametrised, spaces.Box):
    """Points of the unit box within limits; a point has a coordinate for each parameter.

    Args:
        limits: the limits.
        batch: None for the space of one point, or the number of independent points (shape ``(batch, q)``).
    """

    def __init__(self, limits: Limits, seed: int | np.random.Generator | None = None, batch: int | None = None) -> None:
        self.limits = limits
        self.parameters = (limits,)
        q = len(limits.domains)
        #: The levels of the coordinates; None if they may have any values.
        self.grid = limits.domains.grid
        super().__init__(0.0, 1.0, (q,) if batch is None else (batch, q), np.float64, seed=seed)

    def sample(self, mask: None = None, probability: None = None) -> np.ndarray:
        """Return about uniform points."""
        return self.limits.draw(math.prod(self.shape[:-1]), self.np_random).reshape(self.shape)

    def contains(self, x: object) -> bool:
        if not super().contains(x):
            return False
        points = np.asarray(x, dtype=np.float64)
        return bool(self.limits.contains(points).all()) and (self.grid is None or self.grid.is_on(points))

    def __repr__(self) -> str:
        return f"LimitedBox(0.0, 1.0, {self.shape}, {self.limits})"


class LimitedDict(Parametrised, spaces.Dict):
    """Choices of a set of variables, with values within limits.

    Args:
        spaces: the space of the values of all variables, under ``"values"``, and of the set's index, under any key.
        sets: the sets of variables, in the order of their indices.
        limits: the limits.
    """

    def __init__(
        self,
        spaces: Mapping[str, Space],
        sets: Sequence[frozenset[str]],
        limits: Limits,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        self.sets, self.limits = tuple(sets), limits
        self.parameters = self.sets, limits
        self.memberships = np.array([limits.members_of(chosen) for chosen in self.sets])
        super().__init__(dict(spaces), seed=seed)

    def _members(self, action: Mapping[str, Any]) -> np.ndarray:
        (key,) = set(self.spaces) - {"values"}
        return self.memberships[np.asarray(action[key])]

    def sample(self, mask: Any = None, probability: Any = None) -> dict[str, Any]:
        """Return a random set, and about uniform values of its variables."""
        action = super().sample(mask, probability)
        members = self._members(action)
        values = self.limits.sample_each(np.atleast_2d(members), self.spaces["values"].np_random)
        return {**action, "values": values.reshape(members.shape)}

    def contains(self, x: Any) -> bool:
        return super().contains(x) and bool(self.limits.contains(np.asarray(x["values"]), self._members(x)).all())

    def __repr__(self) -> str:
        return f"LimitedDict({dict(self.spaces)}, {self.limits})"


batch_space.register(LimitedBox)(batch_parametrised)


@batch_space.register(LimitedDict)
def _batch_choices(space: LimitedDict, n: int = 1) -> Space:
    entries = {key: batch_space(entry, n) for key, entry in space.spaces.items()}
    return LimitedDict(entries, space.sets, space.limits, seed=deepcopy(space.np_random))
