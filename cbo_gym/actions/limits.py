"""Limits on the values that one action sets: linear inequalities and equalities, and cardinalities.

Examples: ``"feed1 + feed2 <= 5"``, ``"t1 <= t2"``, ``"1 <= a + b <= 3"``, ``"a + b + c == 1"`` and ``"at most 2 of a,
b, c"``. Each action keeps its limits exactly; a constraint, in contrast, concerns the expected value of an outcome.
Names are those of the coordinates, values are in native units. The three parts of this module read limits, move points
into them (:class:`Polytope`), and apply both to actions (:class:`Limits`).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cbo_gym._util.summation import add_up
from cbo_gym.actions.domains import Domains
from cbo_gym.errors import ArgumentError, did_you_mean, short_repr

MAX_LIMITS = 100
# Largest number of characters of a limit.
MAX_LENGTH = 1000
MAX_NUMBER = 1e100
# Distance from a limit up to which a point counts as inside, in units of the widths of the bounds.
TOLERANCE = 1e-9
# Distance by which a repaired point is inside, so that rounding errors do not break a limit.
MARGIN = 1e-12
# Smallest radius of the largest ball inside a set with a volume, in units of the widths of the bounds.
LEAST_RADIUS = 1e-6
# Number of points to try on the line from a point to the centre if coordinates have levels.
POINTS_ON_LINE = 65
# Number of steps of hit-and-run sampling, and further ones for each coordinate.
STEPS, STEPS_PER_COORDINATE = 20, 10
# Largest number of random sets of members that are drawn to find a feasible one.
SETS_TRIED = 20
FORMS = "'a + 2 * b <= 5', 'a <= b', 'a + b + c == 1' or 'at most 2 of a, b, c'"
SIGNS = {"≤": "<=", "⩽": "<=", "≥": ">=", "⩾": ">="}
AT_MOST = re.compile(r"\s*at\s+most\s+(?P<count>\S+)\s+of\s+(?P<names>.+)", re.I | re.S)


@dataclass(frozen=True)
class LinearLimit:
    """A limit ``low <= sum of coefficient * value <= high``.

    Attributes:
        statement: the limit as it was written.
        coefficients: name -> coefficient.
        low, high: the bounds of the sum, infinite without a bound; equal for an equality.
    """

    statement: str
    coefficients: Mapping[str, float]
    low: float
    high: float


@dataclass(frozen=True)
class Cardinality:
    """A limit ``at most <count> of <names>``: of values that an action sets, or of parameters that differ from null."""

    statement: str
    names: tuple[str, ...]
    count: int


# Reading ----------------------------------------------------------------------------------------------------


def read_limits(limits: object, names: Collection[str]) -> list[LinearLimit | Cardinality]:
    """Read limits that are written as strings.

    Args:
        limits: a list of at most 100 strings, or one string; ``<`` means ``<=``, ``>`` means ``>=``, and ``=`` means
            ``==``.
        names: names of the values.

    Raises:
        ArgumentError: naming the string that has another form, and its mistake.
    """
    strings = [limits] if isinstance(limits, str) else limits
    if not isinstance(strings, list | tuple) or len(strings) > MAX_LIMITS:
        raise ArgumentError(
            f"limits must be a list of at most {MAX_LIMITS} strings such as {FORMS}; given {short_repr(limits)}"
        )
    return [limit for string in strings for limit in _read(string, names)]


def _read(value: object, names: Collection[str]) -> list[LinearLimit | Cardinality]:
    if not isinstance(value, str) or len(value) > MAX_LENGTH:
        raise ArgumentError(
            f"a limit is a string of at most {MAX_LENGTH} characters such as {FORMS}; given {short_repr(value)}"
        )
    try:
        cardinality = AT_MOST.fullmatch(value)
        return [_read_cardinality(value, cardinality, names)] if cardinality else list(_read_relation(value, names))
    except _LimitError as error:
        raise ArgumentError(f"cannot read the limit {short_repr(value)}: {error}") from None


class _LimitError(Exception):
    """A mistake in a limit."""


def _read_cardinality(statement: str, match: re.Match[str], names: Collection[str]) -> Cardinality:
    listed = [name.strip() for name in match["names"].split(",")]
    for name in listed:
        _require_known(name, names)
    if len(set(listed)) < len(listed):
        raise _LimitError("it lists a name twice")
    if not match["count"].isdecimal() or not 1 <= int(match["count"]) < len(listed):
        raise _LimitError(f"of {len(listed)} names at most 1 to {len(listed) - 1} can be allowed")
    return Cardinality(statement, tuple(listed), int(match["count"]))


def _require_known(name: str, names: Collection[str]) -> None:
    if name not in names:
        raise _LimitError(f"{short_repr(name)} cannot be set{did_you_mean(name, names)}; what is set: {list(names)}")


def _read_relation(statement: str, names: Collection[str]) -> Iterable[LinearLimit]:
    spelled, by_identifier = _spell(statement, names)
    try:
        relation = ast.parse(spelled, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        relation = ast.Constant(None)
    if not isinstance(relation, ast.Compare):
        raise _LimitError(f"write it as {FORMS}")
    sides = [_sum_of(side, by_identifier, names) for side in (relation.left, *relation.comparators)]
    for sign, left, right in zip(relation.ops, sides, sides[1:], strict=False):
        difference = _add(left, right, -1.0)
        bound = -difference.pop("", 0.0)
        coefficients = {name: coefficient for name, coefficient in difference.items() if coefficient}
        if not coefficients or not math.isfinite(bound) or not all(map(math.isfinite, coefficients.values())):
            raise _LimitError("each relation must be between finite multiples of what is set, and not cancel out")
        match sign:
            case ast.LtE() | ast.Lt():
                yield LinearLimit(statement, coefficients, -math.inf, bound)
            case ast.GtE() | ast.Gt():
                yield LinearLimit(statement, coefficients, bound, math.inf)
            case ast.Eq():
                yield LinearLimit(statement, coefficients, bound, bound)
            case _:
                raise _LimitError("its signs must be <=, >= or ==")


def _spell(statement: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """Return the statement with each name replaced by an identifier, longest names first, and identifier -> name."""
    identifiers = {name: f"_{index}_" for index, name in enumerate(names)}
    longest_first = sorted(identifiers, key=len, reverse=True)
    patterns = "|".join(rf"(?<!\w){re.escape(name)}(?!\w)" if re.fullmatch(r"\w(.*\w)?", name, re.S)
                        else re.escape(name) for name in longest_first)  # fmt: skip
    spelled = re.sub(patterns, lambda match: f" {identifiers[match[0]]} ", statement) if patterns else statement
    for variant, sign in SIGNS.items():
        spelled = spelled.replace(variant, sign)
    # A single = is an equality too.
    spelled = re.sub(r"(?<![<>=!])=(?!=)", "==", spelled).strip()
    return spelled, {identifier: name for name, identifier in identifiers.items()}


def _sum_of(node: ast.expr, by_identifier: Mapping[str, str], names: Collection[str]) -> dict[str, float]:
    """Return name -> coefficient of an expression, with the constant under the empty name."""
    match node:
        case ast.Constant(int() | float() as number) if not isinstance(number, bool):
            if abs(number) > MAX_NUMBER:
                raise _LimitError(f"numbers must be at most {MAX_NUMBER:g}; choose a larger unit")
            return {"": float(number)}
        case ast.Name(identifier):
            if identifier not in by_identifier:
                _require_known(identifier, names)
            return {by_identifier[identifier]: 1.0}
        case ast.UnaryOp(ast.USub(), operand):
            return _add({}, _sum_of(operand, by_identifier, names), -1.0)
        case ast.UnaryOp(ast.UAdd(), operand):
            return _sum_of(operand, by_identifier, names)
        case ast.BinOp(left, ast.Add() | ast.Sub() as sign, right):
            terms, more_terms = _sum_of(left, by_identifier, names), _sum_of(right, by_identifier, names)
            return _add(terms, more_terms, 1.0 if isinstance(sign, ast.Add) else -1.0)
        case ast.BinOp(left, ast.Mult(), right):
            terms, factor = _sum_of(left, by_identifier, names), _sum_of(right, by_identifier, names)
            if set(factor) != {""}:
                terms, factor = factor, terms
            if set(factor) == {""}:
                return _add({}, terms, factor[""])
        case ast.BinOp(left, ast.Div(), right):
            terms, divisor = _sum_of(left, by_identifier, names), _sum_of(right, by_identifier, names)
            if set(divisor) == {""} and divisor[""]:
                return _add({}, terms, 1.0 / divisor[""])
    raise _LimitError("it must be linear: sums of names, each times a number")


def _add(left: Mapping[str, float], right: Mapping[str, float], factor: float) -> dict[str, float]:
    """Return ``left + factor * right``."""
    return {name: left.get(name, 0.0) + factor * right.get(name, 0.0) for name in {**left, **right}}


# Sets of points ---------------------------------------------------------------------------------------------


class Ball(NamedTuple):
    """The largest ball inside a polytope, in the subspace of its equalities."""

    centre: np.ndarray
    radius: float


class Polytope:
    """The points of a unit box that meet linear limits. Coordinates may have levels.

    Functions of points take NumPy arrays, or tensors if ``xp`` is torch; they are differentiable almost everywhere.
    A *share* is a native value as a share of the width of its bounds; with a linear scale it is the coordinate itself.

    Args:
        rows: coefficients of the shares, one row for each limit, ``r x d``.
        low, high: the bounds of each row's sum, infinite without a bound, ``(r,)`` each.
        domains: native units of the d coordinates.

    Attributes:
        dim: number of coordinates d.
    """

    def __init__(self, rows: np.ndarray, low: np.ndarray, high: np.ndarray, domains: Domains) -> None:
        self.dim = rows.shape[1]
        norms = np.linalg.norm(rows, axis=1)
        rows, low, high = rows / norms[:, None], low / norms, high / norms
        equal = low == high
        # Points meet ``equal @ shares = value`` and ``rows @ shares <= bound``.
        self._equal, self._value = rows[equal], high[equal]
        self._inverse = np.linalg.pinv(self._equal)
        has_high, has_low = ~equal & np.isfinite(high), ~equal & np.isfinite(low)
        # The bounds of the coordinates come first.
        unit = np.eye(self.dim)
        self._rows = np.concatenate([unit, -unit, rows[has_high], -rows[has_low]])
        self._bound = np.concatenate([np.ones(self.dim), np.zeros(self.dim), high[has_high], -low[has_low]])
        self._margin = np.where(np.arange(len(self._rows)) < 2 * self.dim, 0.0, MARGIN)
        self._varies = np.linalg.norm(self._rows @ _null_space(self._equal), axis=1) > TOLERANCE
        self._levels = np.array([count or 0 for count in domains.levels], dtype=float)
        self._warped = _warped(domains)
        self._pivots, self._coefficients, self._constants = _eliminate(self._equal, self._value, self._levels > 0)

    @property
    def is_point(self) -> bool:
        """Whether the equalities leave one point."""
        return not self._levels.any() and int(np.linalg.matrix_rank(self._equal)) == self.dim

    @cached_property
    def ball(self) -> Ball | None:
        """The largest ball inside; None if the set is empty, or has no volume."""
        free = self._levels == 0
        # The ball extends in the coordinates without levels, if there are any.
        moving = free if free.any() else ~free
        directions = _null_space(self._equal[:, moving])
        reach = np.linalg.norm(self._rows[:, moving] @ directions, axis=1)
        columns = np.column_stack([self._rows, reach])
        equalities = np.column_stack([self._equal, np.zeros(len(self._equal))])
        # A coordinate with m levels is a whole number over m - 1.
        scale = np.append(np.where(free, 1.0, np.maximum(self._levels - 1.0, 1.0)), 1.0)
        # Imported here, because it is slow to import.
        from scipy.optimize import Bounds, LinearConstraint, milp

        constraints = [LinearConstraint(columns / scale, -np.inf, self._bound)]
        if len(equalities):
            constraints.append(LinearConstraint(equalities / scale, self._value, self._value))
        # The variables are the centre and, last, the radius, which is maximised.
        solution = milp(
            np.append(np.zeros(self.dim), -1.0),
            integrality=np.append(~free, False),
            bounds=Bounds(np.zeros(self.dim + 1), np.append(scale[:-1], 1.0)),
            constraints=constraints,
        ).x
        if solution is None:
            return None
        centre, radius = np.where(free, solution[:-1], np.rint(solution[:-1])) / scale[:-1], float(solution[-1])
        if free.any() and radius < LEAST_RADIUS and (directions.shape[1] or free.all()):
            return None
        return Ball(self._round_to_levels(centre, np), radius)

    def _on_levels(self, shares: np.ndarray) -> np.ndarray:
        steps = np.maximum(self._levels - 1.0, 0.0) * shares
        return (np.abs(steps - np.rint(steps)) <= TOLERANCE * np.maximum(self._levels, 1.0)).all(axis=-1)

    def repair(self, points: Any, xp: Any = np) -> Any:
        """Move each of the points ``(..., d)`` that is outside towards the centre until it is inside."""
        centre, inverse, equal, value = (
            _like(points, xp, array) for array in (self._inner.centre, self._inverse, self._equal, self._value)
        )
        # Leave out rows whose sums follow from the equalities.
        rows, bound, margin = (
            _like(points, xp, array[self._varies]) for array in (self._rows, self._bound, self._margin)
        )
        old_shares = self._shares(points, xp)
        shares = old_shares - (old_shares @ equal.T - value) @ inverse.T if len(equal) else old_shares
        excess = shares @ rows.T - bound
        beyond = (excess + margin).clip(0.0)
        slack = (bound - margin - rows @ centre).clip(MARGIN)
        fraction = xp.where(excess > 0.0, beyond / (beyond + slack), 0.0 * excess)
        # No row varies if equalities leave a single point.
        fraction = xp.amax(fraction, -1)[..., None] if len(rows) else 0.0
        moved = (shares + fraction * (centre - shares)).clip(0.0, 1.0)
        if (self._levels > 0).any():
            moved = self._round_inside(moved, centre, xp)
        if xp is np:
            # Return points that are inside without rounding errors; tensors need the derivative of the projection.
            on_equalities = (np.abs(old_shares @ equal.T - value) <= MARGIN).all(-1)
            is_inside = on_equalities & (excess <= 0.0).all(-1) & self._on_levels(old_shares)
            moved = np.where(is_inside[..., None], old_shares, moved)
        return self._points(moved, xp, old_shares, points)

    @property
    def centre(self) -> np.ndarray:
        """The point farthest inside, ``(d,)``."""
        return self._points(self._inner.centre)

    @property
    def _inner(self) -> Ball:
        assert self.ball is not None, "an empty set has no points"
        return self.ball

    def _round_inside(self, shares: Any, centre: Any, xp: Any) -> Any:
        """Return the first point on the line from each point to the centre that is inside when rounded to levels."""
        numbers = shares if xp is np else shares.detach().cpu().numpy()
        step_sizes = np.ones(numbers.shape[:-1])
        is_done = np.zeros(numbers.shape[:-1], dtype=bool)
        for step in np.linspace(0.0, 1.0, POINTS_ON_LINE):
            if is_done.all():
                break
            rounded = self._round_to_levels(numbers + step * (self._inner.centre - numbers), np)
            inside = (rounded @ self._rows.T - self._bound <= TOLERANCE).all(axis=-1) & self._on_levels(rounded)
            step_sizes[inside & ~is_done] = step
            is_done |= inside
        steps = _like(shares, xp, step_sizes)[..., None]
        return self._round_to_levels(shares + steps * (centre - shares), xp)

    def _round_to_levels(self, shares: Any, xp: Any) -> Any:
        """Round to levels, and solve each equality for one coordinate, so that the points meet the equalities."""
        steps = _like(shares, xp, np.maximum(self._levels - 1.0, 1.0))
        has_levels = _mask_like(shares, xp, self._levels > 0)
        rounded = xp.where(has_levels, (shares * steps).round() / steps, shares)
        solved = _like(shares, xp, self._constants) - rounded @ _like(shares, xp, self._coefficients).T
        return _replace(rounded, {pivot: solved[..., index] for index, pivot in enumerate(self._pivots)}, xp)

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return about uniform points, ``count x d``, by hit-and-run sampling: Smith (1984), Efficient Monte Carlo."""
        shares = np.tile(self._inner.centre, (count, 1))
        basis = _null_space(self._equal)
        # Equalities may leave a single point.
        if self._inner.radius >= LEAST_RADIUS and basis.shape[1]:
            for _ in range(STEPS + STEPS_PER_COORDINATE * basis.shape[1]):
                directions = rng.standard_normal((count, basis.shape[1])) @ basis.T
                rates = directions @ self._rows.T
                slack = (self._bound - shares @ self._rows.T).clip(0.0)
                with np.errstate(divide="ignore", invalid="ignore"):
                    distances = slack / rates
                ahead = np.where(rates > MARGIN, distances, np.inf).min(axis=1)
                behind = np.where(rates < -MARGIN, distances, -np.inf).max(axis=1)
                shares = shares + (behind + rng.random(count) * (ahead - behind))[:, None] * directions
        return self.repair(self._points(shares.clip(0.0, 1.0)))

    def _shares(self, points: Any, xp: Any) -> Any:
        return _replace(points, {index: _share_of(scale, points[..., index]) for index, scale in self._warped}, xp)

    def _points(self, shares: Any, xp: Any = np, old_shares: Any = None, old_points: Any = None) -> Any:
        """Convert shares to coordinates; a share that equals its old share has exactly the old coordinate."""
        columns = {}
        for index, scale in self._warped:
            columns[index] = _coordinate_of(scale, shares[..., index])
            if old_shares is not None:
                is_same = shares[..., index] == old_shares[..., index]
                columns[index] = xp.where(is_same, old_points[..., index], columns[index])
        return _replace(shares, columns, xp)


def _like(points: Any, xp: Any, array: np.ndarray) -> Any:
    """Return an array of constants as ``points`` are: an array, or a tensor on their device."""
    return array if xp is np else xp.as_tensor(array).to(points)


def _mask_like(points: Any, xp: Any, mask: np.ndarray) -> Any:
    """Return a boolean array as ``points`` are: an array, or a tensor on their device."""
    return mask if xp is np else xp.as_tensor(mask).to(points.device)


def _replace(points: Any, columns: Mapping[int, Any], xp: Any) -> Any:
    """Return points ``(..., d)`` with other columns."""
    if not columns:
        return points
    return xp.stack([columns.get(index, points[..., index]) for index in range(points.shape[-1])], -1)


def _warped(domains: Domains) -> list[tuple[int, Any]]:
    """Return index and scale of each coordinate on a logarithmic scale, where coordinate and share differ."""
    return [(index, scale) for index, scale in enumerate(domains.scales) if getattr(scale, "scale", "") == "log"]


def _share_of(scale: Any, column: Any) -> Any:
    low, high = scale.to_native(0.0), scale.to_native(1.0)
    return (scale.to_native(column) - low) / (high - low)


def _coordinate_of(scale: Any, share: Any) -> Any:
    low, high = scale.to_native(0.0), scale.to_native(1.0)
    return scale.to_unit(low + (high - low) * share).clip(0.0, 1.0)


def _null_space(rows: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the directions that change no row's sum, ``d x k``."""
    if not len(rows):
        return np.eye(rows.shape[1])
    _, sizes, directions = np.linalg.svd(rows)
    return directions[int((sizes > TOLERANCE).sum()) :].T


def _eliminate(rows: np.ndarray, values: np.ndarray, discrete: np.ndarray) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Solve equalities for one coordinate each, if possible one without levels.

    Returns:
        the indices of k coordinates, the coefficients of the others, ``k x d``, and k constants, such that
        ``coordinate = constant - coefficients @ point`` for each of the k.
    """
    table, pivots = np.column_stack([rows, values]), list[int]()
    for row in range(len(table)):
        preference = np.abs(table[row, :-1]) * np.where(discrete, 1e-3, 1.0)
        pivot = int(preference.argmax())
        if abs(table[row, pivot]) <= TOLERANCE:
            continue
        table[row] /= table[row, pivot]
        others = np.arange(len(table)) != row
        table[others] -= table[others, pivot, None] * table[row]
        pivots.append(pivot)
    is_independent = np.abs(table[:, :-1]).max(axis=1, initial=0.0) > TOLERANCE
    coefficients, constants = table[is_independent, :-1], table[is_independent, -1]
    coefficients[:, pivots] = 0.0
    return pivots, coefficients, constants


# Limits of actions ------------------------------------------------------------------------------------------


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
        self._is_fixed = np.array([name in self.fixed for name in domains.names], dtype=bool)
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
        off_null = {name for name in self.domains.names if self._is_fixed_off_null(name)}
        return self._within_counts(chosen) and off_null <= set(chosen) and self.polytope(members) is not None

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
        changed = [name for name in self.domains.names if self._is_fixed_off_null(name)]
        for limit in self._cardinalities:
            if len(set(limit.names) & set(changed)) > limit.count:
                raise ArgumentError(
                    f"the fixed values of {', '.join(changed)} differ from their null values, which breaks "
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
                fixed_sum = float(row[~free] @ self._shares(self._held)[~free])
                rows.append(row[free])
                lows.append(low - fixed_sum)
                highs.append(high - fixed_sum)
            elif not low - slack <= float(row @ self._shares(self._held)) <= high + slack:
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

    def _shares(self, points: np.ndarray) -> np.ndarray:
        columns = {index: _share_of(scale, points[..., index]) for index, scale in _warped(self.domains)}
        return _replace(points, columns, np)

    def _allowed_members(self, preference: np.ndarray) -> np.ndarray:
        """Return members of parameters, as many as are allowed, those with a high preference first."""
        chosen = [name for name in self.domains.names if self._is_fixed_off_null(name)]
        for index in np.argsort(-preference, kind="stable"):
            name = self.domains.names[index]
            if name not in self.fixed and self._within_counts([*chosen, name]):
                chosen.append(name)
        return self.members_of(chosen)

    def _is_fixed_off_null(self, name: str) -> bool:
        """Return whether a parameter is fixed at another value than null."""
        index = self.domains.names.index(name)
        return self.null is not None and bool(self._is_fixed[index]) and self._held[index] != self.null[index]

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
            held = {index: xp.zeros_like(flat[:, index]) + self._held[index]
                    for index in np.flatnonzero(self._is_fixed).tolist()}  # fmt: skip
            flat = _replace(flat, held, xp)
        masks = are_set if xp is np else are_set.detach().cpu().numpy()
        patterns, pattern_of = np.unique(masks, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            columns = np.flatnonzero(pattern & ~self._is_fixed)
            polytope = self.polytope(pattern)
            if polytope is None or not len(columns):
                continue
            repaired = polytope.repair(flat[:, columns], xp)
            inside = {column: repaired[:, position] for position, column in enumerate(columns.tolist())}
            has_pattern = _mask_like(flat, xp, (pattern_of.reshape(-1) == number)[:, None])
            flat = xp.where(has_pattern, _replace(flat, inside, xp), flat)
        return flat.reshape(points.shape)

    def contains(self, points: np.ndarray, members: np.ndarray | None = None) -> np.ndarray:
        """Return whether points are inside, up to rounding errors, shape ``(...)``; levels are not checked.

        Args:
            points: coordinates in [0, 1], ``(..., q)``.
            members: the coordinates that are set, of the same shape; None for all.
        """
        flat = points.reshape(-1, points.shape[-1])
        are_set = np.ones(flat.shape, dtype=bool) if members is None else members.reshape(flat.shape)
        shares = self._shares(flat)
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
