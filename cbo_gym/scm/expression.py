"""Functions of named nodes as lists of elementary steps, which :func:`trace` records by a call with symbols.

Known rewards of tasks are sent to other processes in this form, equations written as strings are parsed into it, and
the formulas on the pages of environments come from the steps of their mechanisms.
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
from cbo_gym.scm.straight_line import compile_function
from cbo_gym.scm.values import Composition, Floats

# Kinds of leaves. A double is a number of NumPy: division by a double 0 gives inf or nan instead of an error.
NODE, NUMBER, DOUBLE = "node", "number", "double"


def real_power(base: Any, exponent: Any) -> Floats:
    """Return ``base ** exponent``, or nan if that is complex.

    A whole number becomes a float, which can overflow: powers of powers of whole numbers would take forever.
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
    "equal": operator.eq, "not_equal": operator.ne,
}  # fmt: skip
_BINARY: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
    "floor_divide": operator.floordiv, "modulo": operator.mod, "power": operator.pow, "numpy_power": np.power,
    "real_power": real_power, "maximum": np.maximum, "minimum": np.minimum, **_COMPARISONS,
}  # fmt: skip
_TERNARY: dict[str, Callable[..., Any]] = {"clip": np.clip, "where": np.where}
STEPS = _UNARY | _BINARY | _TERNARY
ARITY = dict.fromkeys(_UNARY, 1) | dict.fromkeys(_BINARY, 2) | dict.fromkeys(_TERNARY, 3)
MAX_STEPS = 100_000
# ("node", name), ("number", number), or an operation and the indices of its operands.
Step = tuple[Any, ...]


@dataclass(frozen=True)
class Expression:
    """A function of named nodes, whose values are numbers, arrays or tensors.

    Args:
        steps: each a node, a number or an operation on earlier steps; the last one gives the function's value.

    Raises:
        ArgumentError: if a step is of another form.
    """

    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(map(tuple, self.steps)))
        if not self.steps or len(self.steps) > MAX_STEPS:
            raise ArgumentError(f"an expression has 1 to {MAX_STEPS} steps; given {len(self.steps)}")
        for index, (name, *operands) in enumerate(self.steps):
            are_earlier = all(type(operand) is int and 0 <= operand < index for operand in operands)
            is_operation = name in STEPS and len(operands) == ARITY[name] and are_earlier
            is_leaf = name in (NODE, NUMBER, DOUBLE) and len(operands) == 1
            if not is_leaf and not is_operation:
                raise ArgumentError(
                    f"step {index} of an expression is {(name, *operands)!r}, which is not a node, a number or an "
                    "operation on earlier steps"
                )

    def __call__(self, nodes: Mapping[str, Any]) -> Any:
        return self._function(nodes)

    def __reduce__(self) -> tuple[object, ...]:
        return Expression, (self.steps,)

    @cached_property
    def _function(self) -> Callable[[Mapping[str, Any]], Any]:
        """The compiled steps; names and numbers are bound to identifiers."""
        scope: dict[str, Any] = dict(STEPS)
        lines = []
        for index, (name, *operands) in enumerate(self.steps):
            if name == NODE:
                scope[f"name{index}"] = operands[0]
                lines.append(f"step{index} = nodes[name{index}]")
            elif name in (NUMBER, DOUBLE):
                # Integers become floats, because repeated squares of Python's integers would grow without bound.
                scope[f"step{index}"] = float(operands[0]) if name == NUMBER else np.float64(operands[0])
            else:
                lines.append(f"step{index} = {name}({', '.join(f'step{operand}' for operand in operands)})")
        return compile_function("nodes", [*lines, f"return step{len(self.steps) - 1}"], scope)


def trace(function: Composition, names: Sequence[str]) -> Expression:
    """Record the steps of a function of nodes while it is applied to symbols.

    Args:
        function: a function of plain arithmetic and NumPy's elementary functions.
        names: names of the nodes.

    Raises:
        ArgumentError: if the function branches on a comparison, loops on a condition, or fails.
    """
    if isinstance(function, Expression):
        return function
    steps: list[Step] = []
    try:
        index = _index_of(function({name: _Symbol(steps, (NODE, name)) for name in names}), steps)
    except Exception as error:
        # A user's function may raise anything.
        raise ArgumentError(f"the known composition of the reward cannot be traced: {error}") from error
    return Expression((*steps, ("same", index)))


class _Symbol:
    """Value of a node or a step while a function is traced; an operation on it adds a step."""

    def __init__(self, steps: list[Step], step: Step) -> None:
        self.steps = steps
        steps.append(step)
        self.index = len(steps) - 1

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
        if method == "outer" or any(isinstance(operand, np.ndarray) for operand in inputs):
            # Arrays of objects call the operators of their entries.
            arrays = [np.array(operand, dtype=object) for operand in inputs]
            return getattr(ufunc, method)(*arrays, **keywords)
        name = {"power": "numpy_power", "remainder": "modulo"}.get(ufunc.__name__, ufunc.__name__)
        if method != "__call__" or keywords or name not in STEPS:
            raise ArgumentTypeError(f"{name} is not one of {', '.join(STEPS)}")
        return self.apply(name, *inputs)

    def apply(self, name: str, *inputs: Any) -> _Symbol:
        return _Symbol(self.steps, (name, *[_index_of(operand, self.steps) for operand in inputs]))

    def clip(self, low: Any, high: Any, out: None = None) -> _Symbol:
        """Clip, as ``numpy.clip`` calls it."""
        return self.apply("clip", self, low, high)

    def __bool__(self) -> NoReturn:
        raise ArgumentTypeError("it depends on comparisons")

    def __iter__(self) -> Iterator[Any]:
        raise ArgumentTypeError("it iterates over a node")


def _index_of(value: Any, steps: list[Step]) -> int:
    if isinstance(value, _Symbol):
        if value.steps is not steps:
            raise ArgumentTypeError("it mixes the symbols of two functions")
        return value.index
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise ArgumentTypeError(f"a {type(value).__name__} is not a number")
    steps.append((DOUBLE, float(value)) if isinstance(value, np.generic) else (NUMBER, value))
    return len(steps) - 1


def _method(name: str, *, swapped: bool = False) -> Callable[..., Any]:
    def method(*inputs: Any) -> Any:
        # The array's own operator then calls ``__array_ufunc__`` of the symbol.
        if isinstance(inputs[-1], np.ndarray):
            return NotImplemented
        return inputs[0].apply(name, *(inputs[::-1] if swapped else inputs))

    return method


for _word, _name in {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
                     "floordiv": "floor_divide", "mod": "modulo", "pow": "power"}.items():  # fmt: skip
    setattr(_Symbol, f"__{_word}__", _method(_name))
    setattr(_Symbol, f"__r{_word}__", _method(_name, swapped=True))
for _name, _function in _COMPARISONS.items():
    setattr(_Symbol, f"__{_function.__name__}__", _method(_name))
for _word, _name in {"__neg__": "negative", "__abs__": "absolute", **{name: name for name in _ELEMENTARY}}.items():
    # NumPy calls ``exp`` of the entries of an array.
    setattr(_Symbol, _word, _method(_name))
