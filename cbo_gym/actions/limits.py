"""Limits on the values that one action sets: linear inequalities and equalities, and cardinalities.

Examples: ``"feed1 + feed2 <= 5"``, ``"t1 <= t2"``, ``"1 <= a + b <= 3"``, ``"a + b + c == 1"`` and ``"at most 2 of a,
b, c"``. Each action keeps its limits exactly; a constraint, in contrast, concerns the expected value of an outcome.
Names are those of the coordinates, values are in native units.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from cbo_gym._util.summation import add_up
from cbo_gym.actions.domains import Domains
from cbo_gym.actions.limit_statements import Cardinality, LinearLimit, read_limits
from cbo_gym.actions.polytope import TOLERANCE, Polytope, like, replace_columns, to_shares, warped_scales
from cbo_gym.errors import ArgumentError

# Largest number of random sets of members that are drawn to find a feasible one.
SETS_TRIED = 20


class Limits:
    """Limits of the values that an action sets.

    Points are coordinates in [0, 1], ``(..., q)``. Their *members*, a boolean array of the same shape, are the
    coordinates that an action sets. If an action is the vector of all parameters, the others are at *null*, the value
    without a change. If it sets variables, the others are left to the system, and a limit counts each of them with its
    most favourable value within its bounds.

    Args:
        statements: the limits, see :func:`read_limits`.
        domains: names and native units of the coordinates.
        null: coordinates of unchanged parameters; "at most" counts the others. None if actions set variables; "at
            most" then counts the variables that are set.
        fixed: name -> coordinate that every action has.
        required: further names that every action sets.

    Raises:
        ArgumentError: for a limit that cannot be read, or limits that leave at most one setting, naming them.
    """

    def __init__(
        self,
        statements: Sequence[str],
        domains: Domains,
        null: Sequence[float] | None = None,
        *,
        fixed: Mapping[str, float] | None = None,
        required: Collection[str] = (),
    ) -> None:
        limits = read_limits(statements, domains.names)
        self.statements = tuple([statements] if isinstance(statements, str) else statements)
        self.domains = domains
        self.null = None if null is None else tuple(map(float, null))
        self.fixed, self.required = dict(fixed or {}), frozenset(required)
        self._linear = [limit for limit in limits if isinstance(limit, LinearLimit)]
        self._cardinalities = [limit for limit in limits if isinstance(limit, Cardinality)]
        for limit in self._linear:
            for name in limit.coefficients:
                if domains.categories(domains.names.index(name)):
                    raise ArgumentError(
                        f"the limit {limit.statement!r} calculates with {name!r}, which is a category, not a number"
                    )
        # Values of the coordinates that are not free: fixed, or at null.
        self._held = np.array([self.fixed.get(name, 0.0 if null is None else null[index])
                               for index, name in enumerate(domains.names)])  # fmt: skip
        self._warped = warped_scales(domains)
        self._held_shares = to_shares(self._held, self._warped)
        self._is_fixed = np.array([name in self.fixed for name in domains.names], dtype=bool)
        # Names of the parameters that are fixed at another value than null.
        self._off_null = [
            name for name, unchanged in zip(domains.names, self.null or (), strict=False)
            if self.fixed.get(name, unchanged) != unchanged
        ]  # fmt: skip
        self._polytopes: dict[tuple[bool, ...], Polytope | None] = {}
        self._default_members = self._first_members()

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.statements, self.domains, self.null, tuple(self.fixed.items()), self.required

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Limits) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"Limits({list(self.statements)})"

    def steer(self, fixed: Mapping[str, float], required: Collection[str] = ()) -> Limits:
        """Return these limits with fixed coordinates and names that must be set; raise ArgumentError if they clash."""
        return Limits(self.statements, self.domains, self.null, fixed=fixed, required=required)

    # Sets of coordinates --------------------------------------------------------------------------------

    @property
    def restricts_changes(self) -> bool:
        """Whether "at most" limits how many parameters may differ from null, so that actions choose which do."""
        return self.null is not None and bool(self._cardinalities)

    def can_change(self, members: np.ndarray) -> bool:
        """Return whether just these parameters, a mask ``(q,)``, may differ from null at once."""
        chosen = [name for name, is_set in zip(self.domains.names, members, strict=True) if is_set]
        is_allowed = self._within_counts(chosen) and set(self._off_null) <= set(chosen)
        return is_allowed and self.polytope(members) is not None

    def can_set(self, names: Collection[str]) -> bool:
        """Return whether an action may set just the variables of these names."""
        if not self.required | set(self.fixed) <= set(names) or not self._within_counts(names):
            return False
        # Without linear limits there is always a setting, so no linear program is solved.
        return not self._linear or self.polytope(self.members_of(names)) is not None

    def members_of(self, names: Collection[str]) -> np.ndarray:
        """Return which coordinates have these names, ``(q,)``."""
        return np.array([name in names for name in self.domains.names], dtype=bool)

    def _within_counts(self, names: Collection[str]) -> bool:
        return all(len(set(limit.names) & set(names)) <= limit.count for limit in self._cardinalities)

    def _first_members(self) -> np.ndarray:
        """Return coordinates that an action may set, as many as possible; raise ArgumentError if there are none."""
        count = len(self.domains)
        if not self.restricts_changes:
            all_members = np.ones(count, dtype=bool)
            # If variables are set and some values are fixed, only some sets of variables may have a setting; each set
            # is checked when it is used.
            if self.null is not None or not self.fixed:
                self._require_settings(all_members)
            return all_members
        for limit in self._cardinalities:
            if len(set(limit.names) & set(self._off_null)) > limit.count:
                raise ArgumentError(
                    f"the fixed values of {', '.join(self._off_null)} differ from their null values, which breaks "
                    f"{limit.statement!r}; fix fewer of them"
                )
        rng = np.random.default_rng(0)
        for _ in range(50 * SETS_TRIED):
            members = self._allowed_members(rng.random(count))
            if self.polytope(members) is not None:
                return members
        raise ArgumentError(
            f"no setting was found that meets all of {', '.join(map(repr, self.statements))} within the bounds; change "
            "one of them"
        )

    def _require_settings(self, members: np.ndarray) -> None:
        """Raise ArgumentError if no setting meets the limits, naming as few limits as possible."""
        if self._has_settings(self.polytope(members)):
            return
        conflicting = list(self._linear)
        for limit in self._linear:
            fewer = [other for other in conflicting if other is not limit]
            if not self._has_settings(self._polytope(members, fewer)):
                conflicting = fewer
        names = {name for limit in conflicting for name in limit.coefficients}
        bounds = [self._bounds_in_words(index) for index, name in enumerate(self.domains.names) if name in names]
        statements = " and ".join(dict.fromkeys(repr(limit.statement) for limit in conflicting))
        raise ArgumentError(
            f"{statements} {'leaves' if len(conflicting) == 1 else 'leave'} no room within the bounds "
            f"{', '.join(bounds)}; a study needs more than one possible setting"
        )

    def _bounds_in_words(self, index: int) -> str:
        name, (low, high) = self.domains.names[index], self.domains.intervals[index]
        if name in self.fixed:
            return f"{name} = {float(self.domains.scales[index].to_native(self.fixed[name])):g}"
        return f"{name} from {low:g} to {high:g}"

    def _has_settings(self, polytope: Polytope | None) -> bool:
        """Return whether more than one setting is left, or one if values are fixed."""
        return polytope is not None and (bool(self.fixed) or not polytope.is_point)

    def polytope(self, members: np.ndarray) -> Polytope | None:
        """Return the allowed values of the members that are not fixed; None if there are none."""
        key = tuple(members.tolist())
        if key not in self._polytopes:
            self._polytopes[key] = self._polytope(members, self._linear)
        return self._polytopes[key]

    def _polytope(self, members: np.ndarray, limits: Sequence[LinearLimit]) -> Polytope | None:
        rows, lows, highs = [], [], []
        free = members & ~self._is_fixed
        for limit in limits:
            row, low, high = self._row(limit, members)
            slack = TOLERANCE * float(np.abs(row).sum()) + TOLERANCE
            if row[free].any():
                fixed_sum = float(row[~free] @ self._held_shares[~free])
                rows.append(row[free])
                lows.append(low - fixed_sum)
                highs.append(high - fixed_sum)
            elif not low - slack <= float(row @ self._held_shares) <= high + slack:
                return None
        coordinates = zip(self.domains.names, self.domains.intervals, free, strict=True)
        domains = Domains({name: interval for name, interval, is_free in coordinates if is_free})
        matrix = np.array(rows).reshape(len(rows), len(domains))
        polytope = Polytope(matrix, np.array(lows), np.array(highs), domains)
        return None if len(domains) and polytope.ball is None else polytope

    def _row(self, limit: LinearLimit, members: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Return the coefficients of the members' shares ``(q,)``, 0 for others, and the bounds of their sum."""
        row, low, high = np.zeros(len(self.domains)), limit.low, limit.high
        for name, coefficient in limit.coefficients.items():
            index = self.domains.names.index(name)
            lower, upper = self.domains.intervals[index]
            # Smallest and largest contribution to the sum, besides that of a share.
            least, most = sorted([coefficient * lower, coefficient * upper])
            if members[index]:
                row[index] = coefficient * (upper - lower)
                least = most = coefficient * lower
            elif self.null is not None:
                least = most = coefficient * float(self.domains.scales[index].to_native(self.null[index]))
            low, high = low - most, high - least
        return row, low, high

    def _allowed_members(self, preference: np.ndarray) -> np.ndarray:
        """Return members of parameters, as many as are allowed, those with a high preference first."""
        chosen = list(self._off_null)
        for index in np.argsort(-preference, kind="stable"):
            name = self.domains.names[index]
            if name not in self.fixed and self._within_counts([*chosen, name]):
                chosen.append(name)
        return self.members_of(chosen)

    def choose_members(self, points: np.ndarray) -> np.ndarray:
        """Return the members of points ``(..., q)`` of all parameters: those farthest from null."""
        assert self.null is not None, "without null values, actions choose the set"
        if not self._cardinalities:
            return np.ones(points.shape, dtype=bool)
        distances = np.abs(points - self.null).reshape(-1, points.shape[-1])
        chosen = np.array([self._allowed_members(distance) for distance in distances], dtype=bool)
        for row, members in enumerate(chosen):
            if self.polytope(members) is None:
                chosen[row] = self._default_members
        return chosen.reshape(points.shape)

    def draw_members(self, rng: np.random.Generator) -> np.ndarray:
        """Return random members of parameters, ``(q,)``."""
        if self._cardinalities:
            for _ in range(SETS_TRIED):
                members = self._allowed_members(rng.random(len(self.domains)))
                if self.polytope(members) is not None:
                    return members
        return self._default_members

    # Points ---------------------------------------------------------------------------------------------

    def nearest(self, points: np.ndarray) -> np.ndarray:
        """Return vectors of all parameters inside the limits, ``(..., q)``; a point that is inside stays as it is."""
        members = self.choose_members(points)
        return self.repair(np.where(members | self._is_fixed, points, self._held), members)

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return random vectors of all parameters, ``count x q``."""
        members = [self.draw_members(rng) for _ in range(count)]
        return self.sample_each(np.array(members, dtype=bool).reshape(count, len(self.domains)), rng)

    def sample_each(self, members: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return about uniform values of the members of each row ``(n, q)``, see :meth:`sample`."""
        points = np.empty(members.shape)
        patterns, pattern_of = np.unique(members, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            rows = np.flatnonzero(pattern_of.reshape(-1) == number)
            points[rows] = self.sample(pattern, len(rows), rng)
        return points

    def repair(self, points: Any, members: Any, xp: Any = np) -> Any:
        """Return points inside the limits; a point that is inside stays as it is.

        Args:
            points: coordinates in [0, 1], ``(..., q)``.
            members: the coordinates that are set, of the same shape; the others stay as they are.
            xp: the library of the points and members: numpy or torch.
        """
        flat, are_set = points.reshape(-1, points.shape[-1]), members.reshape(-1, points.shape[-1])
        if self.fixed:
            flat = xp.where(like(flat, xp, self._is_fixed), like(flat, xp, self._held), flat)
        masks = are_set if xp is np else are_set.detach().cpu().numpy()
        patterns, pattern_of = np.unique(masks, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            columns = np.flatnonzero(pattern & ~self._is_fixed)
            polytope = self.polytope(pattern)
            if polytope is None or not len(columns):
                continue
            repaired = polytope.repair(flat[:, columns], xp)
            inside = {column: repaired[:, position] for position, column in enumerate(columns.tolist())}
            has_pattern = like(flat, xp, (pattern_of.reshape(-1) == number)[:, None])
            flat = xp.where(has_pattern, replace_columns(flat, inside, xp), flat)
        return flat.reshape(points.shape)

    def contains(self, points: np.ndarray, members: np.ndarray | None = None) -> np.ndarray:
        """Return whether points are inside, up to rounding errors, shape ``(...)``; levels are not checked.

        Args:
            points: coordinates in [0, 1], ``(..., q)``.
            members: the coordinates that are set, of the same shape; None for all.
        """
        flat = points.reshape(-1, points.shape[-1])
        are_set = np.ones(flat.shape, dtype=bool) if members is None else members.reshape(flat.shape)
        shares = to_shares(flat, self._warped)
        inside = (np.abs(flat - self._held) <= TOLERANCE)[:, self._is_fixed].all(axis=1)
        for pattern in np.unique(are_set, axis=0):
            has_pattern = (are_set == pattern).all(axis=1)
            for limit in self._linear:
                row, low, high = self._row(limit, pattern)
                total, slack = shares[has_pattern] @ row, TOLERANCE * float(np.linalg.norm(row))
                inside[has_pattern] &= (low - slack <= total) & (total <= high + slack)
        if self.null is not None:
            for cardinality in self._cardinalities:
                is_changed = (flat != np.array(self.null))[:, self.members_of(cardinality.names)]
                inside &= is_changed.sum(axis=1) <= cardinality.count
        return inside.reshape(points.shape[:-1])

    def sample(self, members: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return about uniform values of the members, ``count x q``; the others are at null, or uniform."""
        points = self.domains.round(rng.random((count, len(self.domains))))
        free = members & ~self._is_fixed
        if self.null is not None:
            points = np.where(free, points, self._held)
        points[:, self._is_fixed] = self._held[self._is_fixed]
        polytope = self.polytope(members)
        if polytope is not None and free.any():
            points[:, free] = polytope.sample(count, rng)
        return points

    def broken_by(self, values: Mapping[str, Any], tolerance: float = TOLERANCE) -> list[str]:
        """Return the limits that a setting breaks by more than a share of the bounds' widths.

        Args:
            values: name -> native number or label of a category, of all values that are set, perhaps out of bounds.
            tolerance: the share.
        """
        broken = []
        members = self.members_of(values)
        lows = dict(zip(self.domains.names, (low for low, _ in self.domains.intervals), strict=True))
        for limit in self._linear:
            row, low, high = self._row(limit, members)
            coefficients = {name: factor for name, factor in limit.coefficients.items() if name in values}
            total = add_up(factor * (values[name] - lows[name]) for name, factor in coefficients.items())
            slack = tolerance * float(np.abs(row).sum())
            if not low - slack <= total <= high + slack:
                broken.append(limit.statement)
        for cardinality in self._cardinalities:
            changed = [name for name in cardinality.names if name in values and self._differs(name, values[name])]
            if len(changed) > cardinality.count:
                broken.append(cardinality.statement)
        return list(dict.fromkeys(broken))

    def _differs(self, name: str, value: Any) -> bool:
        """Return whether "at most" counts a value that is set: any value of a variable, or a parameter off null."""
        if self.null is None:
            return True
        index = self.domains.names.index(name)
        if self.domains.categories(index):
            value = self.domains.number(name, value)
        return abs(float(self.domains.scales[index].to_unit(value)) - self.null[index]) > TOLERANCE
