"""Rounding of suggestions to the significant digits of a study's ranges."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product
from typing import Any

import numpy as np

from cbo_gym.actions.codec import Codec
from cbo_gym.actions.domains import Range
from cbo_gym.actions.limits import Limits, LinearLimit, read_limits
from cbo_gym.errors import ArgumentError
from cbo_gym.task import Action

# Number of values that are rounded both down and up; the others are rounded to the nearest number.
MAX_TRIED = 12
# Number of points that are tried on the way from an action to the centre of the limits.
WAY = 65
# Number of random actions that must have a rounded action within the limits when a study is created.
DRAWN = 20


def require_digits(codec: Codec) -> None:
    """Check that rounded values can meet the limits.

    Raises:
        ArgumentError: for an equality of values with digits, or if no rounded setting is found within the limits.
    """
    names = _ranges(codec)
    if not names or codec.limits is None:
        return
    for limit in read_limits(codec.limits.statements, codec.domains.names):
        if isinstance(limit, LinearLimit) and limit.low == limit.high and (clash := names & set(limit.coefficients)):
            raise ArgumentError(
                f"{sorted(clash)[0]} has digits, and rounded values cannot keep {limit.statement!r}; give it a step, "
                "or leave its digits out"
            )
    rng = np.random.default_rng(0)
    for _ in range(DRAWN):
        round_digits(codec, codec.draw(rng))


def round_digits(codec: Codec, action: Action, fixed: Mapping[str, Any] | None = None) -> Action:
    """Return the nearest action within the limits whose values have the digits of their ranges.

    Each value is rounded down and up. If no combination is within the limits, the values of the next point on the way
    to the centre of the limits are rounded.

    Args:
        codec: the codec of the action.
        action: an element of the action space.
        fixed: name -> value that stays as it is.

    Raises:
        ArgumentError: if no such action is found.
    """
    domains, limits, settings = codec.domains, codec.limits, codec.to_native(action)
    columns = [domains.names.index(name) for name in sorted(_ranges(codec) & set(settings) - set(fixed or ()))]
    if not columns:
        return action
    flat = codec.to_flat(action)
    chosen, point = flat[: -len(domains)], np.array(flat[-len(domains) :])
    if limits is None:
        return codec.from_flat([*chosen, *_neighbours(codec, columns, point)[0]])
    centre = None
    for share in np.linspace(0.0, 1.0, WAY):
        if share and centre is None:
            centre = _centre(codec.steer(fixed) if fixed else limits, point, settings)
        around = _neighbours(
            codec, columns, point if centre is None else domains.round(point + share * (centre - point))
        )
        members = np.broadcast_to(limits.members_of(settings), around.shape)
        inside = np.flatnonzero(limits.contains(around, members))
        if len(inside):
            return codec.from_flat([*chosen, *around[inside[0]]])
    raise ArgumentError(
        f"no setting of {', '.join(settings)} with the digits of their ranges was found within the limits; allow more "
        "digits"
    )


def _ranges(codec: Codec) -> set[str]:
    """Return the names whose ranges have digits."""
    domains = codec.domains.typed.items()
    return {name for name, domain in domains if isinstance(domain, Range) and domain.digits is not None}


def _neighbours(codec: Codec, columns: list[int], point: np.ndarray) -> np.ndarray:
    """Return a point ``(q,)`` with its columns rounded down and up, ``n x q``, the nearest first."""
    either_side: list[list[float]] = []
    for column in columns:
        domain: Any = codec.domains.intervals[column]
        # Converting may leave the bounds.
        native = min(max(float(domain.to_native(point[column])), domain.low), domain.high)
        count = 2 if len(either_side) < MAX_TRIED else 1
        either_side.append([min(max(float(domain.to_unit(near)), 0.0), 1.0) for near in domain.round(native)[:count]])
    combined = list(product(*either_side))
    points = np.tile(point, (len(combined), 1))
    points[:, columns] = combined
    return points[np.argsort(np.square(points - point).sum(axis=1), kind="stable")]


def _centre(limits: Limits, point: np.ndarray, names: Collection[str]) -> np.ndarray:
    """Return a point ``(q,)`` far inside the limits that sets the coordinates ``names``, as the given point does."""
    members = limits.members_of(names) if limits.null is None else limits.choose_members(point)
    free, polytope, centre = members & ~limits.members_of(limits.fixed), limits.polytope(members), point.copy()
    if polytope is not None and polytope.ball is not None:
        centre[free] = polytope.centre
    return centre.clip(0.0, 1.0)
