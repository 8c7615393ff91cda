"""Maxima of several functions at once, each with its own quasi-Newton state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

SUFFICIENT = 1e-4  # share of the gain that the slope promises with which a step is accepted (Armijo)
MAX_STEP = 2.0  # in every coordinate
MIN_SHRINK, MAX_SHRINK = 0.1, 0.5  # of a step that was not accepted
MAX_SHRINKS = 20
FLAT = 1e-5  # greatest slope at which an ascent ends
CURVED = 1e-10  # least cosine between a step and the change of slopes that updates a state

#: Points ``a x k`` of the functions with some indices, ``(a,)`` -> values ``(a,)`` and slopes ``a x k``
Functions = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass
class Ascents:
    """The state of ascents of h functions of k numbers.

    Attributes:
        points: the best points so far, ``h x k``.
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

    Every call of ``functions`` evaluates the next point of all ascents that go on.

    Args:
        functions: the functions; -inf where there is no value.
        starts: the first points, ``h x k``.
        lower: lower bounds, ``(k,)``.
        upper: upper bounds, ``(k,)``.
        iterations: the greatest number of accepted steps.
        gain: gain of a step, relative to the absolute value or 1, at which an ascent ends.
        inverses: initial :attr:`Ascents.inverses`, from similar functions; None if unknown.
    """
    count, dim = starts.shape
    points = np.clip(starts, lower, upper)
    inverses = np.zeros((count, dim, dim)) if inverses is None else inverses.copy()
    values, slopes = functions(points, np.arange(count))
    steps, sizes = np.zeros_like(points), np.zeros(count)
    shrinks, taken = np.zeros(count, dtype=int), np.zeros(count, dtype=int)
    fresh = going = np.isfinite(values)
    while going.any():
        steps[fresh] = _directions(points[fresh], slopes[fresh], inverses[fresh], lower, upper)
        sizes[fresh], shrinks[fresh] = 1.0, 0
        going = going & (np.abs(steps).max(-1) > 0.0)
        active = going.nonzero()[0]
        if not len(active):
            break
        trial = np.clip(points[active] + sizes[active, None] * steps[active], lower, upper)
        moves = trial - points[active]
        trial_values, trial_slopes = functions(trial, active)
        rise = (moves * slopes[active]).sum(-1)
        accepted = trial_values >= values[active] + SUFFICIENT * rise
        fresh = np.zeros(count, dtype=bool)
        fresh[active[accepted]] = True
        new, old = active[accepted], active[~accepted]
        inverses[new] = _update_inverses(inverses[new], moves[accepted], slopes[new] - trial_slopes[accepted])
        gains = trial_values[accepted] - values[new]
        scale = np.maximum(1.0, np.maximum(np.abs(values[new]), np.abs(trial_values[accepted])))
        points[new], values[new], slopes[new] = trial[accepted], trial_values[accepted], trial_slopes[accepted]
        taken[new] += 1
        going[new] = (gains > gain * scale) & (taken[new] < iterations)
        with np.errstate(all="ignore"):
            vertex = 0.5 * rise[~accepted] / (rise[~accepted] - trial_values[~accepted] + values[old])
        sizes[old] *= np.clip(np.nan_to_num(vertex, nan=0.0), MIN_SHRINK, MAX_SHRINK)
        shrinks[old] += 1
        going[old] = shrinks[old] < MAX_SHRINKS
        fresh &= going
    return Ascents(points, values, inverses)


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
    """Return BFGS updates of inverse Hessians, if the curvature along the step has the right sign."""
    product = (moves * changes).sum(-1)
    lengths = np.linalg.norm(moves, axis=-1) * np.linalg.norm(changes, axis=-1)
    is_curved = product > CURVED * lengths
    safe = np.where(is_curved, product, 1.0)
    scale = safe / np.maximum((changes**2).sum(-1), 1e-300)
    identity = np.eye(moves.shape[-1])
    unknown = np.abs(inverses).max((-2, -1), initial=0.0) == 0.0
    before = np.where(unknown[:, None, None], scale[:, None, None] * identity, inverses)
    shear = identity - moves[:, :, None] * changes[:, None] / safe[:, None, None]
    after = shear @ before @ shear.transpose(0, 2, 1) + moves[:, :, None] * moves[:, None] / safe[:, None, None]
    return np.where(is_curved[:, None, None], after, inverses)
