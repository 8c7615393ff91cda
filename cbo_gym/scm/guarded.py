"""Models whose values are finite numbers, or an error that names the variable."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cbo_gym.errors import OperationError
from cbo_gym.scm.intervention import Intervention
from cbo_gym.scm.model import StructuralCausalModel, not_finite
from cbo_gym.scm.system import NO_INTERVENTION, Draws, Values
from cbo_gym.scm.values import Floats

LARGEST = 1e300  # leaves room for sums


class GuardedModel(StructuralCausalModel):
    """A StructuralCausalModel of mechanisms that may fail: divide by zero, overflow, take a logarithm of -1.

    Every value is checked, latent ones included, which costs about a microsecond a variable. What a mechanism would
    have given where its variable is set does not count.
    """

    @np.errstate(all="ignore")  # what NumPy would warn of becomes an error
    def propagate(self, noise: Draws, intervention: Intervention = NO_INTERVENTION) -> Values:
        """Values of all variables; see :class:`~cbo_gym.scm.system.System`.

        Raises:
            OperationError: naming the first variable, causes first, that is no finite real number.
        """
        values = super().propagate(noise, intervention)
        for variable in self.variables:
            if not _is_fine(values[variable.name]):
                raise _blame(variable.name, {name: values[name] for name in (variable.name, *variable.parents)})
        return values


def _is_fine(value: Floats) -> bool:
    if isinstance(value, float):
        return -LARGEST <= value <= LARGEST
    array = np.asarray(value)
    return array.dtype.kind in "fiub" and bool((np.abs(array) <= LARGEST).all())


def _blame(name: str, values: Mapping[str, Floats]) -> OperationError:
    """The error for a variable, with the values at fault: its own and its causes'."""
    own = np.asarray(values[name])
    if own.dtype.kind not in "fiub":
        return not_finite(name, f"gives {own.reshape(-1)[0]!r}")
    columns = dict(zip(values, np.broadcast_arrays(*values.values()), strict=True))
    place = np.unravel_index(np.argmin(np.abs(columns[name]) <= LARGEST), columns[name].shape)
    row = {one: float(column[place]) for one, column in columns.items()}
    found = f"gives {row.pop(name)}"
    return not_finite(name, f"{found} at {', '.join(f'{one} = {x:.6g}' for one, x in row.items())}" if row else found)
