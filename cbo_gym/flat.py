"""FlatActions: any mode's action space as points of a unit box, one point or a batch of them.

Reinforcement learning libraries and black-box optimisers search a box; the wrappers, the outside agents and the
Stable-Baselines3 environments all read its points here, so that a point means the same action to each of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from gymnasium import spaces

from cbo_gym.envs.spaces import CellBox, SparseBox, SuperArmSpace
from cbo_gym.task import Action

NARROWEST = 2.0**-40  # width given to a cell whose corners coincide


class FlatActions(ABC):
    """Between points in [0, 1]^dim and the actions of one space.

    Attributes:
        dim: number of coordinates.
    """

    dim: int

    @abstractmethod
    def to_action(self, points: np.ndarray) -> Action:
        """The actions of points: shape ``(dim,)`` to one action, ``(n, dim)`` to a batch of ``n``."""

    @abstractmethod
    def to_point(self, action: Action) -> np.ndarray:
        """A point of one action, shape ``(dim,)``; :meth:`to_action` leads back."""


class _Box(FlatActions):
    """A box is flat already."""

    def __init__(self, space: spaces.Box) -> None:
        self.dim = space.shape[0]

    def to_action(self, points: np.ndarray) -> Action:
        return points

    def to_point(self, action: Action) -> np.ndarray:
        return np.asarray(action, dtype=np.float64)


class _Sparse(_Box):
    """Of the coordinates the ones farthest from null are kept, as many as the limit allows."""

    def __init__(self, space: SparseBox) -> None:
        super().__init__(space)
        self._space = space

    def to_action(self, points: np.ndarray) -> Action:
        return self._space.keep_largest(points)


class _SuperArm(FlatActions):
    """A score for each base arm: of those above one half the highest are selected, as many as the limit allows."""

    def __init__(self, space: SuperArmSpace) -> None:
        self.dim = space.arms
        self._space = space

    def to_action(self, points: np.ndarray) -> Action:
        return self._space.keep_largest(points)

    def to_point(self, action: Action) -> np.ndarray:
        return np.asarray(action, dtype=np.float64)


class _Cell(FlatActions):
    """Two corners one after the other; coordinate by coordinate the smaller number goes to the lower corner."""

    def __init__(self, space: CellBox) -> None:
        self.dim = 2 * space.dim

    def to_action(self, points: np.ndarray) -> Action:
        lower, upper = np.sort(points.reshape(*points.shape[:-1], 2, -1), axis=-2).swapaxes(0, -2)
        lower = np.minimum(lower, 1.0 - NARROWEST)
        return np.stack([lower, np.maximum(upper, lower + NARROWEST)], axis=-2)

    def to_point(self, action: Action) -> np.ndarray:
        return np.ravel(action).astype(np.float64)


class _Choice(FlatActions):
    """One score for each target set or scope, the highest of which is chosen; then the values."""

    def __init__(self, space: spaces.Dict) -> None:
        self._chosen = next(key for key in space if key != "values")
        self._count = int(space[self._chosen].n)  # type: ignore[attr-defined]
        self.dim = self._count + space["values"].shape[0]  # type: ignore[index]

    def to_action(self, points: np.ndarray) -> Action:
        chosen = points[..., : self._count].argmax(axis=-1)
        return {self._chosen: chosen, "values": points[..., self._count :]}

    def to_point(self, action: Action) -> np.ndarray:
        scores = np.zeros(self._count)
        scores[int(action[self._chosen])] = 1.0
        return np.concatenate([scores, np.asarray(action["values"], dtype=np.float64)])


def flat_actions(space: spaces.Space[Any]) -> FlatActions:
    """The flat view of an action space.

    Raises:
        TypeError: if the space is none of this package's.
    """
    if isinstance(space, SparseBox):
        return _Sparse(space)
    if isinstance(space, SuperArmSpace):
        return _SuperArm(space)
    if isinstance(space, CellBox):
        return _Cell(space)
    if isinstance(space, spaces.Box) and len(space.shape) == 1:
        return _Box(space)
    if isinstance(space, spaces.Dict) and "values" in space.spaces and len(space.spaces) == 2:
        return _Choice(space)
    raise TypeError(f"no flat view of the action space {space}; only those of cbo_gym's environments have one")


class PolicyActions:
    """What the policies of Stable-Baselines3 choose, as actions of any mode.

    Args:
        space: of the actions.
        count: None for policies that choose a point of ``Box(-1, 1, (dim,))``, as PPO and SAC do; a number for those
            that choose one of that many evenly spread actions, as DQN does.

    Attributes:
        space: what the policies choose from.

    Raises:
        TypeError: if the action space is none of this package's.
        ValueError: if ``count`` is below 2.
    """

    def __init__(self, space: spaces.Space[Any], count: int | None = None) -> None:
        self._flat = flat_actions(space)
        self._points = None if count is None else spread_points(self._flat.dim, count)
        self.space: spaces.Space[Any]
        if self._points is None:
            self.space = spaces.Box(-1.0, 1.0, (self._flat.dim,), dtype=np.float32)
        else:
            self.space = spaces.Discrete(len(self._points))

    def to_action(self, chosen: Any) -> Action:
        """The action of one choice, or the batch of actions of many; points outside the box are clipped."""
        if self._points is not None:
            return self._flat.to_action(self._points[chosen])
        return self._flat.to_action(np.clip((np.asarray(chosen, dtype=np.float64) + 1.0) / 2.0, 0.0, 1.0))


def spread_points(dim: int, count: int, seed: int = 0) -> np.ndarray:
    """``count`` points that fill [0, 1]^dim evenly: a scrambled Sobol sequence, shape ``(count, dim)``.

    Raises:
        ValueError: if ``count`` is below 2.
    """
    if count < 2:
        raise ValueError(f"count must be at least 2, or there is nothing to choose; given {count}")
    from scipy.stats import qmc  # late: slow to import, and needed only here

    power = (count - 1).bit_length()  # a full power of two keeps the sequence balanced
    points = qmc.Sobol(dim, scramble=True, rng=np.random.default_rng(seed)).random_base2(power)
    return points[:count]
