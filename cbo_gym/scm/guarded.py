"""Models that raise an error naming the variable if a value is not a finite number."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cbo_gym.errors import OperationError
from cbo_gym.scm.intervention import Intervention
from cbo_gym.scm.model import StructuralCausalModel, not_finite_error
from cbo_gym.scm.system import NO_INTERVENTION, Draws, System, Values
from cbo_gym.scm.values import Floats

# Large enough for any use, and small enough that sums do not overflow.
LARGEST = 1e300


class GuardedModel(StructuralCausalModel):
    """A StructuralCausalModel of mechanisms that may fail: divide by zero, overflow, take a logarithm of -1.

    Every value is checked, latent ones included, which costs about a microsecond a variable. A mechanism may fail where
    its variable is set, because its value is not used there.
    """

    # NumPy's warnings are off, because every value is checked below.
    @np.errstate(all="ignore")
    def propagate(self, noise: Draws, intervention: Intervention = NO_INTERVENTION) -> Values:
        """Return the values of all variables; see :class:`~cbo_gym.scm.system.System`.

        Raises:
            OperationError: naming the first variable in topological order that is not a finite real number.
        """
        values = super().propagate(noise, intervention)
        for variable in self.variables:
            if not _is_finite(values[variable.name]):
                raise _error_of(variable.name, {name: values[name] for name in (variable.name, *variable.parents)})
        return values

    # Every variable is checked, not only those asked for and their causes.
    natural_values = System.natural_values


def _is_finite(value: Floats) -> bool:
    if isinstance(value, float):
        return -LARGEST <= value <= LARGEST
    array = np.asarray(value)
    return array.dtype.kind in "fiub" and bool((np.abs(array) <= LARGEST).all())


def _error_of(name: str, values: Mapping[str, Floats]) -> OperationError:
    """Return the error for a variable, with its value and those of its causes."""
    array = np.asarray(values[name])
    if array.dtype.kind not in "fiub":
        return not_finite_error(name, f"gives {array.reshape(-1)[0]!r}")
    columns = dict(zip(values, np.broadcast_arrays(*values.values()), strict=True))
    # The first experiment with a value that is not finite.
    index = np.unravel_index(np.argmin(np.abs(columns[name]) <= LARGEST), columns[name].shape)
    problem = f"gives {float(columns.pop(name)[index])}"
    causes = ", ".join(f"{cause} = {float(column[index]):.6g}" for cause, column in columns.items())
    return not_finite_error(name, f"{problem} at {causes}" if causes else problem)
