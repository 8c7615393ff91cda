"""Detect mechanisms that fail on arrays or mix their entries, and apply them entry by entry.

Oracles evaluate a custom problem on arrays of rounds, but a user may write a mechanism that takes only numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cbo_gym.actions import Domains, Interval
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.scm import Floats, Variable
from cbo_gym.scm.model import mechanism_error

# Number of values of each argument with which a mechanism is tried.
ROWS = 4
# Positions of these values in a domain, from 0 to 1: unordered and unevenly spaced.
SHARES = (0.55, 0.9, 0.2, 0.7)
# Values that replace those of a mechanism that gives no finite number.
SUBSTITUTES = (0.5, 1.5, 0.25, 1.0)


@dataclass(frozen=True)
class Elementwise:
    """A variable's function of numbers, applied to arrays entry by entry. Arithmetic errors become nan."""

    name: str
    function: Callable[..., Any]

    def __call__(self, *values: Floats) -> Floats:
        if all(np.ndim(value) == 0 for value in values):
            return self._apply(*values)
        return np.asarray(np.frompyfunc(self._apply, len(values), 1)(*values), dtype=float)

    def _apply(self, *values: Floats) -> float:
        try:
            result = self.function(*values)
            return result if type(result) is float else _number(result)
        # The module math raises ValueError.
        except (ArithmeticError, ValueError):
            return np.nan
        except Exception as error:
            raise mechanism_error(self.name, error) from error


def elementwise(
    variables: Sequence[Variable], manipulable: Mapping[str, Interval], actions: Sequence[Interval]
) -> Iterator[Variable]:
    """Yield the variables, each with a mechanism that gives the same on an array as on its entries one by one.

    Each mechanism is tried on a few values of its arguments: draws of noise, points of the domains of variables and
    soft parameters, and for variables without a domain the values of their mechanisms. A mechanism that fails on arrays
    of these values, or gives other results on them, is replaced by an :class:`Elementwise`.

    Args:
        variables: causes before effects.
        manipulable: variable -> the domain of its hard interventions.
        actions: domains of the soft parameters.

    Raises:
        ArgumentError: for a mechanism that fails at every value, gives no number, or gives two for the same arguments.
    """
    rng = np.random.default_rng(0)
    columns: dict[str, list[float]] = {}
    for variable in variables:
        causes = [columns[parent] for parent in variable.parents]
        causes += [_points_in(actions[index]) for index in variable.actions]
        causes.append([float(draw) for draw in variable.noise.sample(rng, ROWS)])
        values, takes_arrays = _try_mechanism(variable, causes)
        column = [x if np.isfinite(x) else y for x, y in zip(values, SUBSTITUTES, strict=True)]
        domain = _points_in(manipulable[variable.name]) if variable.name in manipulable else column
        columns[variable.name] = [column[0], *domain[1:]]
        if takes_arrays:
            yield variable
        else:
            yield replace(variable, mechanism=Elementwise(variable.name, variable.mechanism))


def _points_in(domain: Interval) -> list[float]:
    domains = Domains([domain])
    return domains.points_to_native(domains.round([[share] for share in SHARES]))[:, 0].tolist()


def _try_mechanism(variable: Variable, causes: list[list[float]]) -> tuple[list[float], bool]:
    """Return the values at the rows of the causes, and whether arrays give the same.

    ``causes`` has the values of each argument; row i consists of the i-th value of every argument.
    """
    name, function = variable.name, variable.mechanism
    rows = list(zip(*causes, strict=True))
    with np.errstate(all="ignore"):
        results = [_attempt(function, row) for row in rows]
        if errors := [error for _, error in results if error]:
            _require_success(name, errors, len(rows))
        values = [value for value, _ in results]
        _require_repeatable(name, values, [_attempt(function, row)[0] for row in rows])
        columns = [np.array(column) for column in causes]
        if not _agrees(function, columns, values):
            return values, False
        # An oracle also gives arrays of two axes that broadcast together: here odd arguments vary along the first axis
        # and even ones along the second.
        crossed = [column[:, None] if index % 2 else column for index, column in enumerate(columns)]
        grid = np.empty((ROWS, ROWS))
        for i, j in np.ndindex(ROWS, ROWS):
            row = [column[i if index % 2 else j] for index, column in enumerate(causes)]
            grid[i, j], _ = _attempt(function, row)
        return values, _agrees(function, crossed, grid)


def _attempt(function: Callable[..., Any], row: Sequence[float]) -> tuple[float, Exception | None]:
    """Return the value of a function, and None; or nan, and the error that it raised."""
    try:
        return _number(function(*row)), None
    # A user's function may raise anything.
    except Exception as error:
        return np.nan, error


def _number(result: Any) -> float:
    if np.ndim(result) or result is None or isinstance(result, str):
        raise TypeError(f"{short_repr(result)} is not a number")
    return np.nan if np.iscomplexobj(result) else float(result)


def _require_success(name: str, errors: Sequence[Exception], tried: int) -> None:
    """Refuse a mechanism that fails at all values, unless all errors are of arithmetic."""
    are_arithmetic = all(isinstance(error, ArithmeticError) or "math " in str(error) for error in errors)
    if len(errors) < tried or are_arithmetic:
        return
    error = errors[0]
    raise ArgumentError(
        f"the mechanism of {name} must take numbers and give one; it fails with {type(error).__name__}: {error}"
    ) from error


def _require_repeatable(name: str, values: Sequence[float], repeated: Sequence[float]) -> None:
    for value, other in zip(values, repeated, strict=True):
        if value != other and not np.isnan(value):
            raise ArgumentError(
                f"the mechanism of {name} gives {value:.6g} and then {other:.6g} for the same arguments; it must not "
                "keep a state or draw random numbers: randomness enters by the argument u, which noise describes"
            )


def _agrees(function: Callable[..., Any], columns: Sequence[np.ndarray], expected: Any) -> bool:
    """Return whether a function of arrays gives the expected values, nan and inf included, and changes no array."""
    arguments, expected_values = [column.copy() for column in columns], np.array(expected)
    try:
        result = np.asarray(function(*arguments))
        values, finite = np.broadcast_to(result, expected_values.shape), np.isfinite(expected_values)
        largest = np.max(np.abs(expected_values[finite]), initial=0.0)
        return (
            result.dtype.kind in "fiub"
            and np.allclose(values[finite], expected_values[finite], rtol=1e-9, atol=1e-9 * largest)
            and not np.isfinite(values[~finite]).any()
            and all(map(np.array_equal, arguments, columns))
        )
    # A user's function may raise anything.
    except Exception:
        return False
