"""Rounding of suggested values to significant digits, such as those that a balance or a pump can be set to.

A :class:`~cbo_gym.study.Range` states the number of digits. Rounding must not break the limits of the study.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product
from typing import Any

import numpy as np

from cbo_gym.actions.codec import Codec
from cbo_gym.actions.domains import Range
from cbo_gym.actions.limit_statements import LinearLimit, read_limits
from cbo_gym.actions.limits import Limits
from cbo_gym.errors import ArgumentError
from cbo_gym.task import Action

# Number of values that are rounded both down and up; further values are rounded only to the nearest number.
MAX_ROUNDED_BOTH_WAYS = 12
# Number of points on the line from an action to the centre of the limits, which are rounded in turn.
LINE_POINTS = 65
# Number of random actions whose rounding is tested when a study is created.
TESTED_ACTIONS = 20


def require_digits(codec: Codec) -> None:
    """Check that rounded values can meet the limits."""
    names = _names_with_digits(codec)
    if not names or codec.limits is None:
        return
    for limit in read_limits(codec.limits.statements, codec.domains.names):
        if isinstance(limit, LinearLimit) and limit.low == limit.high and (clash := names & set(limit.coefficients)):
            raise ArgumentError(
                f"{sorted(clash)[0]} has digits, and rounded values cannot keep {limit.statement!r}; give it a step, "
                "or leave its digits out"
            )
    rng = np.random.default_rng(0)
    for _ in range(TESTED_ACTIONS):
        round_digits(codec, codec.draw(rng))


def round_digits(codec: Codec, action: Action, fixed: Mapping[str, Any] | None = None) -> Action:
    """Return the nearest action within the limits whose values have the digits of their ranges.

    Each value is rounded down and up, except ``fixed`` values. If no combination is within the limits, the same is done
    with the next point on the line from the action to the centre of the limits.
    """
    domains, limits, settings = codec.domains, codec.limits, codec.to_native(action)
    names = _names_with_digits(codec) & set(settings) - set(fixed or ())
    columns = [domains.names.index(name) for name in sorted(names)]
    if not columns:
        return action
    flat = codec.to_flat(action)
    # Before the values stands the choice of a target, if actions have one.
    choice, start = flat[: -len(domains)], np.array(flat[-len(domains) :])
    if limits is None:
        return codec.from_flat([*choice, *_roundings(codec, columns, start)[0]])
    point, centre = start, None
    for share in np.linspace(0.0, 1.0, LINE_POINTS):
        if share > 0.0:
            if centre is None:
                centre = _centre(codec.steer(fixed) if fixed else limits, start, settings)
            point = domains.round(start + share * (centre - start))
        roundings = _roundings(codec, columns, point)
        members = np.broadcast_to(limits.members_of(settings), roundings.shape)
        allowed = np.flatnonzero(limits.contains(roundings, members))
        if len(allowed):
            return codec.from_flat([*choice, *roundings[allowed[0]]])
    raise ArgumentError(
        f"no setting of {', '.join(settings)} with the digits of their ranges was found within the limits; allow more "
        "digits"
    )


def _names_with_digits(codec: Codec) -> set[str]:
    domains = codec.domains.typed.items()
    return {name for name, domain in domains if isinstance(domain, Range) and domain.digits is not None}


def _roundings(codec: Codec, columns: list[int], point: np.ndarray) -> np.ndarray:
    """Return all points ``n x q`` that differ from a point ``(q,)`` by rounding its columns, the nearest first."""
    candidates: list[list[float]] = []
    for column in columns:
        domain: Any = codec.domains.intervals[column]
        # Converting may leave the bounds.
        native = min(max(float(domain.to_native(point[column])), domain.low), domain.high)
        # The nearest number, then the number on the other side.
        rounded = domain.round(native)[: 2 if len(candidates) < MAX_ROUNDED_BOTH_WAYS else 1]
        candidates.append([min(max(float(domain.to_unit(number)), 0.0), 1.0) for number in rounded])
    combinations = list(product(*candidates))
    points = np.tile(point, (len(combinations), 1))
    points[:, columns] = combinations
    return points[np.argsort(np.square(points - point).sum(axis=1), kind="stable")]


def _centre(limits: Limits, point: np.ndarray, names: Collection[str]) -> np.ndarray:
    """Return a point ``(q,)`` far inside the limits."""
    # An action sets either the variables ``names``, or all parameters, of which those farthest from null may differ.
    members = limits.members_of(names) if limits.null is None else limits.choose_members(point)
    polytope, centre = limits.polytope(members), point.copy()
    if polytope is not None and polytope.ball is not None:
        centre[members & ~limits.members_of(limits.fixed)] = polytope.centre
    return centre.clip(0.0, 1.0)
