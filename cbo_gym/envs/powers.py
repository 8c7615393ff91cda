"""Arrays whose powers are those of Python's floats, so that a batch of rounds equals its single rounds bit for bit.

Mechanisms are written once for floats and arrays. Of what they are made of, NumPy's functions and the four basic
operations give the same bits for both. ``**`` does not: of floats the C library takes it, of arrays NumPy's own code,
which is faster and now and then one unit off in the last place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from cbo_gym.errors import OperationError
from cbo_gym.feedback import Feedback
from cbo_gym.scm import Floats, Intervention


class FloatPowers(np.ndarray):
    """An array on which ``**`` is the C library's, and on whatever is computed from it as well."""

    def __pow__(self, exponent: Any, modulo: None = None) -> Any:
        return np.float_power(self, exponent)

    def __rpow__(self, base: Any, modulo: None = None) -> Any:
        return np.float_power(base, self)

    def __array_function__(self, function: Any, types: Any, arguments: Any, keywords: Any) -> Any:
        """NumPy's functions that are no ufuncs, ``where`` among them, would give plain arrays."""
        result = super().__array_function__(function, types, arguments, keywords)
        return result.view(type(self)) if isinstance(result, np.ndarray) else result


class _PowerTakenError(Exception):
    """A power is to be taken."""


class _NoPowers(FloatPowers):
    def __pow__(self, exponent: Any, modulo: None = None) -> Any:
        raise _PowerTakenError

    __rpow__ = __pow__


def takes_powers(feedback: Feedback) -> bool:
    """Whether a single round takes powers of floats; what does not is faster on plain arrays."""
    if feedback.own_axes:  # a single round is played on arrays as well
        return False
    point = feedback.codec.to_action(np.full((1, feedback.codec.dim), 0.5))
    noise = feedback.scm.draw_noise(np.random.default_rng(0), 1)
    intervention = feedback.decode_batch(point)
    try:
        with np.errstate(all="ignore"):  # nobody asked for this round
            feedback.play(viewed_as(_NoPowers, noise), intervention_as(_NoPowers, intervention))
    except (_PowerTakenError, OperationError):  # a round that fails does not say what others take
        return True
    return False


def viewed_as(kind: type[np.ndarray], columns: Iterable[Floats]) -> tuple[Any, ...]:
    """The same columns with their arrays of a kind; numbers stay as they are."""
    return tuple([column.view(kind) if isinstance(column, np.ndarray) else column for column in columns])


def intervention_as(kind: type[np.ndarray], intervention: Intervention) -> Intervention:
    """The same batch of interventions with their arrays of a kind, masks apart."""
    values = viewed_as(kind, [value for _, value in intervention.hard.values()])
    masks = [mask for mask, _ in intervention.hard.values()]
    hard = dict(zip(intervention.hard, zip(masks, values, strict=True), strict=True))
    return Intervention(viewed_as(kind, intervention.soft), hard)
