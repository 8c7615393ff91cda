"""Local maxima of several functions at once by BFGS, for the fits of several GPs whose densities share tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

# A step is accepted if it gains this share of what the slope promises (Armijo).
SUFFICIENT = 1e-4
# Greatest absolute change of a coordinate in one step.
MAX_STEP = 2.0
# Limits of the factor by which a step shrinks if it is not accepted, and the number of times until the ascent ends.
MIN_SHRINK, MAX_SHRINK, MAX_SHRINKS = 0.1, 0.5, 20
# An ascent ends if no slope is greater.
FLAT = 1e-5
# The inverse Hessian is updated only if the cosine between a step and the change of slopes is greater.
CURVED = 1e-10

#: Points ``a x k`` and the indices of a functions, ``(a,)`` -> their values ``(a,)`` and slopes ``a x k``.
Functions = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass
class Ascents:
    """The ends of the ascents of h functions of k numbers.

    Attributes:
        points: the best points, ``h x k``.
        values: the values there, ``(h,)``.
        inverses: approximations of the inverse of the negative Hessian, ``h x k x k``; 0 before the first update.
    """

    points: np.ndarray
    values: np.ndarray
    inverses: np.ndarray


def maximise(
    functions: Functions,
    starts: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    iterations: int,
    gain: float,
    inverses: np.ndarray | None = None,
) -> Ascents:
    """Return local maxima of h functions within bounds, by projected BFGS with backtracking.

    Args:
        functions: the functions; their value is -inf where they are not defined.
        starts: the first points, ``h x k``.
        lower: lower bounds, ``(k,)``.
        upper: upper bounds, ``(k,)``.
        iterations: the greatest number of accepted steps.
        gain: an ascent ends if a step gains less than this share of the absolute value, or of 1 if that is greater.
        inverses: initial :attr:`Ascents.inverses`, from similar functions; None if unknown.
    """
    count, dim = starts.shape
    points = np.minimum(np.maximum(starts, lower), upper)
    inverses = np.zeros((count, dim, dim)) if inverses is None else inverses.copy()
    values, slopes = functions(points, np.arange(count))
    ends = Ascents(points.copy(), values.copy(), inverses.copy())
    steps = _directions(points, slopes, inverses, lower, upper)
    # All arrays have one row for each ascent that has not ended; ``active`` are the indices of their functions.
    active: np.ndarray = np.arange(count)
    sizes: np.ndarray = np.ones(count)
    shrinks, steps_taken = np.zeros(count, dtype=int), np.zeros(count, dtype=int)
    running = np.isfinite(values) & steps.any(-1)
    while True:
        if not running.all():
            ends.points[active], ends.values[active], ends.inverses[active] = points, values, inverses
            active, points, values, slopes, inverses, steps, sizes, shrinks, steps_taken = (
                state[running]
                for state in (active, points, values, slopes, inverses, steps, sizes, shrinks, steps_taken)
            )
        if not len(active):
            return ends
        trial = np.minimum(np.maximum(points + sizes[:, None] * steps, lower), upper)
        moves = trial - points
        trial_values, trial_slopes = functions(trial, active)
        rise, gains = (moves * slopes).sum(-1), trial_values - values
        accepted = trial_values >= values + SUFFICIENT * rise
        scale = np.maximum(1.0, np.maximum(np.abs(values), np.abs(trial_values)))
        steps_taken += accepted
        # Shrink a step that is not accepted to the vertex of the parabola through both values and the slope.
        with np.errstate(all="ignore"):
            vertex = np.nan_to_num(0.5 * rise / (rise - trial_values + values), nan=0.0)
        sizes = np.where(accepted, 1.0, sizes * np.minimum(np.maximum(vertex, MIN_SHRINK), MAX_SHRINK))
        shrinks = np.where(accepted, 0, shrinks + 1)
        running = np.where(accepted, (gains > gain * scale) & (steps_taken < iterations), shrinks < MAX_SHRINKS)
        column = accepted[:, None]
        updated = _update_inverses(inverses, moves, slopes - trial_slopes)
        inverses = np.where(column[..., None], updated, inverses)
        points, slopes = np.where(column, trial, points), np.where(column, trial_slopes, slopes)
        values = np.where(accepted, trial_values, values)
        steps = np.where(column, _directions(points, slopes, inverses, lower, upper), steps)
        running &= steps.any(-1)


def _directions(
    points: np.ndarray, slopes: np.ndarray, inverses: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """Return quasi-Newton steps in the coordinates that are not held at a bound; 0 where the function is flat."""
    free = ~(((points <= lower) & (slopes < 0.0)) | ((points >= upper) & (slopes > 0.0)))
    slopes = np.where(free, slopes, 0.0)
    steps = np.where(free, (inverses @ slopes[..., None])[..., 0], 0.0)
    climbs = (steps * slopes).sum(-1) > 0.0
    steepest = slopes / np.maximum(1.0, np.abs(slopes).sum(-1, keepdims=True))
    steps = np.where(climbs[:, None], steps, steepest)
    steps *= np.minimum(1.0, MAX_STEP / np.maximum(np.abs(steps).max(-1, keepdims=True), MAX_STEP))
    return np.where(np.abs(slopes).max(-1, keepdims=True) > FLAT, steps, 0.0)


def _update_inverses(inverses: np.ndarray, moves: np.ndarray, changes: np.ndarray) -> np.ndarray:
    """Return BFGS updates, unless a move lacks a maximum's curvature; ``changes`` are how much the slopes decreased."""
    product = (moves * changes).sum(-1)
    lengths = np.linalg.norm(moves, axis=-1) * np.linalg.norm(changes, axis=-1)
    is_curved = product > CURVED * lengths
    safe = np.where(is_curved, product, 1.0)
    scale = safe / np.maximum((changes**2).sum(-1), 1e-300)
    identity = np.eye(moves.shape[-1])
    is_first = np.logical_not(inverses.any((-2, -1)))
    before = np.where(is_first[:, None, None], scale[:, None, None] * identity, inverses)
    shear = identity - moves[:, :, None] * changes[:, None] / safe[:, None, None]
    after = shear @ before @ shear.transpose(0, 2, 1) + moves[:, :, None] * moves[:, None] / safe[:, None, None]
    return np.where(is_curved[:, None, None], after, inverses)
