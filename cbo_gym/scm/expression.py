"""Functions of named quantities as lists of steps: traced by a call with symbols, and carried out as they were written.

The rewards that agents are told travel to other processes so, equations that are written as text are read into steps,
and the formulas on the pages of environments are those of the steps of their mechanisms.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from cbo_gym.errors import ArgumentError, ArgumentTypeError
from cbo_gym.scm.straight_line import written
from cbo_gym.scm.values import Composition, Floats

NODE, NUMBER, DOUBLE = "node", "number", "double"  # a double is NumPy's, which divides by zero where Python's does not


def real_power(base: Any, exponent: Any) -> Floats:
    """Return ``base ** exponent``, nan where that is complex: Python's numbers would go on with complex ones.

    Whole numbers become floats, which overflow: a tower of powers of whole numbers might never end.
    """
    power = (base * 1.0) ** exponent
    return math.nan if isinstance(power, complex) else power


_ELEMENTARY = (
    "sin", "cos", "tan", "arctan", "sinh", "cosh", "tanh", "exp", "expm1", "log", "log1p", "sqrt", "square",
)  # fmt: skip
_UNARY: dict[str, Callable[..., Any]] = {
    "negative": operator.neg,
    "absolute": abs,
    "numpy_absolute": np.absolute,
    "same": lambda value: value,
    **{name: getattr(np, name) for name in _ELEMENTARY},
}
_COMPARISONS = {
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip
_BINARY: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "modulo": operator.mod, "power": operator.pow, "numpy_power": np.power,
    "real_power": real_power, "maximum": np.maximum, "minimum": np.minimum, "equal": operator.eq,
    "not_equal": operator.ne, **_COMPARISONS,
}  # fmt: skip
_TERNARY: dict[str, Callable[..., Any]] = {"clip": np.clip, "where": np.where}
STEPS = _UNARY | _BINARY | _TERNARY
ARITY = dict.fromkeys(_UNARY, 1) | dict.fromkeys(_BINARY, 2) | dict.fromkeys(_TERNARY, 3)
MOST_STEPS = 100_000
Step = tuple[Any, ...]  # ("node", name), ("number", number), or an operation and the places of what it is applied to


@dataclass(frozen=True)
class Expression:
    """A function of numbers, arrays or tensors by name: each step is a node, a number or an operation on earlier steps.

    Raises:
        ArgumentError: if a step is none of these.
    """

    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(map(tuple, self.steps)))
        if not self.steps or len(self.steps) > MOST_STEPS:
            raise ArgumentError(f"an expression has 1 to {MOST_STEPS} steps; given {len(self.steps)}")
        for place, (name, *given) in enumerate(self.steps):
            earlier = all(type(one) is int and 0 <= one < place for one in given)
            known = name in STEPS and len(given) == ARITY[name] and earlier
            if not (name in (NODE, NUMBER, DOUBLE) and len(given) == 1) and not known:
                raise ArgumentError(f"step {place} of an expression is {(name, *given)!r}, which is none")

    def __call__(self, nodes: Mapping[str, Any]) -> Any:
        return self._function(nodes)

    def __reduce__(self) -> tuple[object, ...]:
        return Expression, (self.steps,)

    @cached_property
    def _function(self) -> Callable[[Mapping[str, Any]], Any]:
        """The steps as lines of Python; names and numbers are bound to words before they go into a line."""
        scope: dict[str, Any] = dict(STEPS)
        lines = []
        for place, (name, *given) in enumerate(self.steps):
            if name == NODE:
                scope[f"name{place}"] = given[0]
                lines.append(f"step{place} = nodes[name{place}]")
            elif name in (NUMBER, DOUBLE):
                # whole numbers have no largest one, and their squares of squares never end
                scope[f"step{place}"] = float(given[0]) if name == NUMBER else np.float64(given[0])
            else:
                lines.append(f"step{place} = {name}({', '.join(f'step{one}' for one in given)})")
        return written("nodes", [*lines, f"return step{len(self.steps) - 1}"], scope)


def traced(function: Composition, names: Sequence[str]) -> Expression:
    """Write a function of nodes down while it is applied to symbols.

    Args:
        function: of plain arithmetic and NumPy's elementary functions.
        names: of the nodes.

    Raises:
        ArgumentError: if it does anything else: decides by a comparison, loops until something holds, or fails.
    """
    if isinstance(function, Expression):
        return function
    steps: list[Step] = []
    try:
        place = _place_of(function({name: _Symbol(steps, (NODE, name)) for name in names}), steps)
    except Exception as error:  # whatever a user's function raises
        raise ArgumentError(f"the known composition of the reward cannot be written down: {error}") from error
    return Expression((*steps, ("same", place)))


class _Symbol:
    """Stands for a node or a step while a function is watched."""

    def __init__(self, steps: list[Step], step: Step) -> None:
        self.steps = steps
        steps.append(step)
        self.place = len(steps) - 1

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **more: Any) -> Any:
        if method == "outer" or any(isinstance(one, np.ndarray) for one in inputs):
            # arrays of objects call the operators of their entries
            arrays = [np.array(one, dtype=object) for one in inputs]
            return getattr(ufunc, method)(*arrays, **more)
        name = {"power": "numpy_power", "remainder": "modulo"}.get(ufunc.__name__, ufunc.__name__)
        if method != "__call__" or more or name not in STEPS:
            raise ArgumentTypeError(f"{name} is none of {', '.join(STEPS)}")
        return self.after(name, *inputs)

    def after(self, name: str, *inputs: Any) -> _Symbol:
        places = [_place_of(one, self.steps) for one in inputs]
        return _Symbol(self.steps, (name, *places))

    def clip(self, low: Any, high: Any, out: None = None) -> _Symbol:
        """What NumPy's function calls."""
        return self.after("clip", self, low, high)

    def __bool__(self) -> NoReturn:
        raise ArgumentTypeError("it depends on comparisons")

    def __eq__(self, other: object) -> NoReturn:
        raise ArgumentTypeError("it compares nodes")

    __ne__ = __eq__

    def __iter__(self) -> Iterator[Any]:
        raise ArgumentTypeError("it takes a node apart")


def _place_of(value: Any, steps: list[Step]) -> int:
    if isinstance(value, _Symbol):
        if value.steps is not steps:
            raise ArgumentTypeError("symbols of two functions meet")
        return value.place
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise ArgumentTypeError(f"a {type(value).__name__} is not a number")
    steps.append((DOUBLE, float(value)) if isinstance(value, np.generic) else (NUMBER, value))
    return len(steps) - 1


def _method(name: str, *, swapped: bool = False) -> Callable[..., Any]:
    def method(*inputs: Any) -> Any:
        if isinstance(inputs[-1], np.ndarray):  # which asks the other operand's ``__array_ufunc__``
            return NotImplemented
        return inputs[0].after(name, *(inputs[::-1] if swapped else inputs))

    return method


for _word, _name in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "mod": "modulo",
                     "pow": "power"}.items():  # fmt: skip
    setattr(_Symbol, f"__{_word}__", _method(_name))
    setattr(_Symbol, f"__r{_word}__", _method(_name, swapped=True))
for _name, _function in _COMPARISONS.items():
    setattr(_Symbol, f"__{_function.__name__}__", _method(_name))
for _word, _name in {"__neg__": "negative", "__abs__": "absolute", **{name: name for name in _ELEMENTARY}}.items():
    setattr(_Symbol, _word, _method(_name))  # NumPy calls ``exp`` of the entries of an array
