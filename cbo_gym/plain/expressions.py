"""Known functions of nodes as lists of steps: written down by watching them, and carried out as they were written."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from cbo_gym.errors import ArgumentError, ArgumentTypeError
from cbo_gym.scm.values import Composition

NODE, NUMBER, DOUBLE = "node", "number", "double"  # a double is NumPy's, which divides by zero where Python's does not
OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "power": operator.pow,
    "negative": operator.neg,
    "absolute": abs,
    "same": lambda value: value,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for name in (
        "sin", "cos", "tan", "arctan", "sinh", "cosh", "tanh", "exp", "expm1", "log", "log1p", "sqrt", "square",
        "maximum", "minimum",
    )
} | {"numpy_power": np.power}  # fmt: skip
STEPS = OPERATORS | FUNCTIONS
BINARY = ("add", "subtract", "multiply", "divide", "power", "numpy_power", "maximum", "minimum")
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
            earlier = all(isinstance(one, int) and 0 <= one < place for one in given)
            known = name in STEPS and len(given) == 1 + (name in BINARY) and earlier
            if not (name in (NODE, NUMBER, DOUBLE) and len(given) == 1) and not known:
                raise ArgumentError(f"step {place} of an expression is {(name, *given)!r}, which is none")

    def __call__(self, nodes: Mapping[str, Any]) -> Any:
        found: list[Any] = []
        for name, *given in self.steps:
            if name == NODE:
                found.append(nodes[given[0]])
            elif name == NUMBER:
                # whole numbers have no largest one, and their squares of squares never end
                found.append(float(given[0]))
            elif name == DOUBLE:
                found.append(np.float64(given[0]))
            else:
                found.append(STEPS[name](*[found[place] for place in given]))
        return found[-1]


def traced(function: Composition, names: Sequence[str]) -> Expression:
    """A function of nodes, written down while it is applied to symbols.

    Args:
        function: of plain arithmetic and NumPy's elementary functions.
        names: of the nodes.

    Raises:
        ArgumentError: if it does anything else: compares, loops until something holds, or fails.
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

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **more: Any) -> _Symbol:
        name = "numpy_power" if ufunc is np.power else ufunc.__name__
        if method != "__call__" or more or name not in STEPS:
            raise ArgumentTypeError(f"{name} is none of {', '.join(STEPS)}")
        return self.after(name, *inputs)

    def after(self, name: str, *inputs: Any) -> _Symbol:
        places = [_place_of(one, self.steps) for one in inputs]
        return _Symbol(self.steps, (name, *places))

    def __bool__(self) -> NoReturn:
        raise ArgumentTypeError("it depends on comparisons")

    def __eq__(self, other: object) -> NoReturn:
        raise ArgumentTypeError("it compares nodes")

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__

    def __iter__(self) -> Iterator[Any]:
        raise ArgumentTypeError("it takes a node apart")

    def __neg__(self) -> _Symbol:
        return self.after("negative", self)

    def __abs__(self) -> _Symbol:
        return self.after("absolute", self)


def _place_of(value: Any, steps: list[Step]) -> int:
    if isinstance(value, _Symbol):
        if value.steps is not steps:
            raise ArgumentTypeError("symbols of two functions meet")
        return value.place
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.integer | np.floating):
        raise ArgumentTypeError(f"a {type(value).__name__} is not a number")
    steps.append((DOUBLE, float(value)) if isinstance(value, np.generic) else (NUMBER, value))
    return len(steps) - 1


def _binary(name: str) -> tuple[Callable[..., _Symbol], Callable[..., _Symbol]]:
    return (lambda self, other: self.after(name, self, other), lambda self, other: self.after(name, other, self))


for _method, _name in {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "pow": "power",
}.items():
    _forward, _backward = _binary(_name)
    setattr(_Symbol, f"__{_method}__", _forward)
    setattr(_Symbol, f"__r{_method}__", _backward)
