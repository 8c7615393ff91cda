"""Points that meet linear limits: emptiness, repair and sampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cbo_gym.actions.domains import Domains

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
        self._warped = warped_scales(domains)
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
            like(points, xp, array) for array in (self._inner.centre, self._inverse, self._equal, self._value)
        )
        # Leave out rows whose sums follow from the equalities.
        rows, bound, margin = (
            like(points, xp, array[self._varies]) for array in (self._rows, self._bound, self._margin)
        )
        old_shares = to_shares(points, self._warped, xp)
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
        steps = like(shares, xp, step_sizes)[..., None]
        return self._round_to_levels(shares + steps * (centre - shares), xp)

    def _round_to_levels(self, shares: Any, xp: Any) -> Any:
        """Round to levels, and solve each equality for one coordinate, so that the points meet the equalities."""
        steps = like(shares, xp, np.maximum(self._levels - 1.0, 1.0))
        has_levels = like(shares, xp, self._levels > 0)
        rounded = xp.where(has_levels, (shares * steps).round() / steps, shares)
        solved = like(shares, xp, self._constants) - rounded @ like(shares, xp, self._coefficients).T
        return replace_columns(rounded, {pivot: solved[..., index] for index, pivot in enumerate(self._pivots)}, xp)

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

    def _points(self, shares: Any, xp: Any = np, old_shares: Any = None, old_points: Any = None) -> Any:
        """Convert shares to coordinates; a share that equals its old share has exactly the old coordinate."""
        columns = {}
        for index, scale in self._warped:
            columns[index] = _coordinate_of(scale, shares[..., index])
            if old_shares is not None:
                is_same = shares[..., index] == old_shares[..., index]
                columns[index] = xp.where(is_same, old_points[..., index], columns[index])
        return replace_columns(shares, columns, xp)


def like(points: Any, xp: Any, array: np.ndarray) -> Any:
    """Return constants as ``points`` are: an array, or a tensor on their device, of their type unless it is a mask."""
    return array if xp is np else xp.as_tensor(array).to(points.device if array.dtype == bool else points)


def replace_columns(points: Any, columns: Mapping[int, Any], xp: Any) -> Any:
    """Return points ``(..., d)`` with other columns."""
    if not columns:
        return points
    return xp.stack([columns.get(index, points[..., index]) for index in range(points.shape[-1])], -1)


def warped_scales(domains: Domains) -> list[tuple[int, Any]]:
    """Return index and scale of each coordinate on a logarithmic scale, where coordinate and share differ."""
    return [(index, scale) for index, scale in enumerate(domains.scales) if getattr(scale, "scale", "") == "log"]


def to_shares(points: Any, warped: Sequence[tuple[int, Any]], xp: Any = np) -> Any:
    """Convert coordinates to shares, given the :func:`warped_scales`."""
    return replace_columns(points, {index: _share_of(scale, points[..., index]) for index, scale in warped}, xp)


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
