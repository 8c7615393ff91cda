"""Mechanisms from strings: ``"2 * exp(-dose) * Light + u"``.

Only arithmetic, comparisons and the functions listed in ``FUNCTIONS`` are allowed. The string is parsed and never run
as Python, so that a file of equations can only compute numbers.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable
from inspect import Parameter, Signature
from typing import Any
from unicodedata import normalize

import numpy as np

from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.scm import Floats
from cbo_gym.scm.expression import ARITY, NODE, NUMBER, STEPS, Expression, Step

_NAMES = ("arctan", "clip", "cos", "exp", "log", "maximum", "minimum", "sin", "sqrt", "tan", "tanh", "where")
FUNCTIONS = {"abs": "numpy_absolute"} | {name: name for name in _NAMES}
CONSTANTS = {"pi": math.pi, "e": math.e}
# The only identifier that Python does not allow as the name of an argument.
UNNAMEABLE = "__debug__"
RESERVED = frozenset({*FUNCTIONS, *CONSTANTS, UNNAMEABLE})
MAX_CHARACTERS = 5_000
# Largest depth of the syntax tree; a sum of n terms has depth n.
MAX_DEPTH = 200
# Number of characters of an equation that an error shows.
SHOWN = 100
# The operators `and`, `or`, `not`, `in`, `is` and chains of comparisons are missing because they fail on arrays.
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide", ast.FloorDiv: "floor_divide",
    ast.Mod: "modulo", ast.Pow: "power", ast.UAdd: "same", ast.USub: "negative", ast.Lt: "less",
    ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal", ast.Eq: "equal", ast.NotEq: "not_equal",
}  # fmt: skip


def spelling(names: Iterable[str]) -> dict[str, str]:
    """Return the spelling of each name in parsed Python code -> the name.

    Python's parser normalises identifiers: it reads ``µ`` (U+00B5) as ``μ`` (U+03BC), for example.

    Raises:
        ArgumentError: if two names have the same spelling in code.
    """
    spelled: dict[str, str] = {}
    for name in names:
        other = spelled.setdefault(normalize("NFKC", name), name)
        if other != name:
            raise ArgumentError(f"{other!a} and {name!a} are one name in Python; rename one of them")
    return spelled


class Equation:
    """The right-hand side of an equation as a function, whose arguments are the names in it, sorted.

    Args:
        string: the right-hand side. Two equations are equal if their strings are, and a pickle has only the string.

    Raises:
        ArgumentError: if the string is not an expression, contains something that is not allowed, or a constant part
            of it is not a finite number.
    """

    def __init__(self, string: str) -> None:
        self.string = string
        tree = _parse(string)
        reader = _Reader(_abbreviate(string))
        index = reader.index(reader.read(tree.body))
        self._expression = Expression((*reader.steps, ("same", index)))
        self._names = sorted(reader.nodes)
        self.__signature__ = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in self._names])

    def __call__(self, *values: Floats) -> Floats:
        return self._expression(dict(zip(self._names, values, strict=True)))

    def __reduce__(self) -> tuple[object, ...]:
        return Equation, (self.string,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equation) and self.string == other.string

    def __hash__(self) -> int:
        return hash(self.string)

    def __repr__(self) -> str:
        return f"Equation({self.string!r})"


def _parse(string: str) -> ast.Expression:
    if not isinstance(string, str):
        raise ArgumentError(f"an equation is a string; given {short_repr(string)}")
    if len(string) > MAX_CHARACTERS:
        raise ArgumentError(
            f"the equation {_abbreviate(string)} has {len(string)} characters; at most {MAX_CHARACTERS} are allowed"
        )
    try:
        tree = ast.parse(string.strip(), mode="eval")
        if _depth(tree) <= MAX_DEPTH:
            return tree
    except SyntaxError as error:
        raise ArgumentError(f"cannot read the equation {_abbreviate(string)}: {error.msg}") from error
    except ValueError as error:
        raise ArgumentError(f"cannot read the equation {_abbreviate(string)}: {error}") from error
    except (RecursionError, MemoryError):
        pass
    raise ArgumentError(
        f"the equation {_abbreviate(string)} is nested more than {MAX_DEPTH} deep; split it into variables"
    )


def _abbreviate(string: str) -> str:
    return repr(string) if len(string) <= SHOWN else f"{string[:SHOWN]!r}..."


def _depth(tree: ast.AST) -> int:
    layer, depth = [tree], 0
    while layer:
        layer, depth = [child for node in layer for child in ast.iter_child_nodes(node)], depth + 1
    return depth


class _Index(int):
    """Index in ``_Reader.steps`` of the step that computes a part of the tree; the value of a constant is a float."""


class _Reader:
    """Converter of a syntax tree to the steps of an :class:`Expression`.

    Constant parts are evaluated at once, so that their errors are raised when the file is read. All numbers are floats,
    because a tower of powers of Python's unlimited integers might take forever.

    Attributes:
        nodes: Name -> index of the step that reads its value.
        steps: Steps so far.
    """

    def __init__(self, equation: str) -> None:
        self._equation = equation
        self.nodes: dict[str, _Index] = {}
        self.steps: list[Step] = []

    def read(self, node: ast.expr) -> float | _Index:
        """Return the value of a part of the tree if it is constant, else the index of its step."""
        match node:
            case ast.Name():
                return self._read_name(node.id)
            case ast.Constant():
                if type(node.value) not in (int, float):
                    raise ArgumentError(f"{_unparse(node)} in the equation {self._equation} is not a number")
                return self._apply(node, "same", node.value)
            case ast.Call():
                return self._apply(node, self._function_of(node), *map(self.read, node.args))
            case ast.UnaryOp():
                return self._apply(node, self._operator(node.op), self.read(node.operand))
            case ast.BinOp():
                name, left, right = self._operator(node.op), self.read(node.left), self.read(node.right)
                if name == "power" and (isinstance(right, _Index) or not right.is_integer()):
                    name = "real_power"
                return self._apply(node, name, left, right)
            case ast.Compare():
                if len(node.ops) > 1:
                    raise ArgumentError(
                        f"comparisons in the equation {self._equation} must be of two values: (a < x) * (x < b), "
                        "not a < x < b"
                    )
                name = self._operator(node.ops[0])
                is_true = self._apply(node, name, self.read(node.left), self.read(node.comparators[0]))
                # Make it a float, because truth values add up differently as numbers and in arrays.
                return self._apply(node, "multiply", 1.0, is_true)
        raise self._refusal(type(node).__name__, "write arithmetic")

    def _read_name(self, name: str) -> float | _Index:
        if name == UNNAMEABLE:
            raise ArgumentError(
                f"{UNNAMEABLE} in the equation {self._equation} cannot be a name; call it something else"
            )
        if name in FUNCTIONS:
            raise ArgumentError(f"the function {name} in the equation {self._equation} needs arguments: {name}(...)")
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name not in self.nodes:
            self.nodes[name] = self._step(NODE, name)
        return self.nodes[name]

    def _function_of(self, node: ast.Call) -> str:
        name = node.func.id if isinstance(node.func, ast.Name) else "(...)"
        if name not in FUNCTIONS or node.keywords:
            raise self._refusal(f"{name}(...)", f"functions: {sorted(FUNCTIONS)}")
        wanted, count = ARITY[FUNCTIONS[name]], len(node.args)
        if count != wanted:
            raise ArgumentError(
                f"{name}(...) in the equation {self._equation} takes {wanted} argument{'s' * (wanted > 1)}; "
                f"given {count}"
            )
        return FUNCTIONS[name]

    def _operator(self, node: ast.AST) -> str:
        if type(node) not in OPERATORS:
            raise self._refusal(type(node).__name__, "write arithmetic")
        return OPERATORS[type(node)]

    def _refusal(self, construct: str, instead: str) -> ArgumentError:
        return ArgumentError(f"{construct} is not allowed in the equation {self._equation}; {instead}")

    def _apply(self, node: ast.expr, name: str, *operands: Any) -> float | _Index:
        """Return the value of an operation on constants, else the index of a new step; ``node`` is for errors."""
        if any(isinstance(operand, _Index) for operand in operands):
            return self._step(name, *map(self.index, operands))
        try:
            with np.errstate(all="ignore"):
                value = float(STEPS[name](*map(float, operands)))
        except (ArithmeticError, TypeError):
            # A complex result raises TypeError.
            value = math.nan
        if not math.isfinite(value):
            raise ArgumentError(
                f"{_unparse(node)} in the equation {self._equation} is not a finite number: it is too large, "
                "divides by zero, or takes a logarithm or a root that does not exist"
            )
        return value

    def _step(self, *step: object) -> _Index:
        self.steps.append(step)
        return _Index(len(self.steps) - 1)

    def index(self, value: float | _Index) -> int:
        return int(value if isinstance(value, _Index) else self._step(NUMBER, value))


def _unparse(node: ast.expr) -> str:
    try:
        return ast.unparse(node)[:SHOWN]
    except ValueError:
        # Python refuses to print an integer of thousands of digits.
        return "a number"
