"""Mechanisms written as text: ``"2 * exp(-dose) * Light + u"``.

Only arithmetic, comparisons and the functions listed in ``FUNCTIONS`` are allowed. The text is checked against that
list before it is compiled, so a file of equations can compute numbers and nothing else.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable
from inspect import Parameter, Signature
from typing import Any
from unicodedata import normalize

import numpy as np

from cbo_gym.errors import ArgumentError, shown
from cbo_gym.scm import Floats

FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {  # with the number of arguments
    "abs": (np.abs, 1),
    "arctan": (np.arctan, 1),
    "clip": (np.clip, 3),
    "cos": (np.cos, 1),
    "exp": (np.exp, 1),
    "log": (np.log, 1),
    "maximum": (np.maximum, 2),
    "minimum": (np.minimum, 2),
    "sin": (np.sin, 1),
    "sqrt": (np.sqrt, 1),
    "tan": (np.tan, 1),
    "tanh": (np.tanh, 1),
    "where": (np.where, 3),
}
CONSTANTS = {"pi": np.pi, "e": np.e}
UNNAMEABLE = "__debug__"  # no argument of Python's can be called so
RESERVED = frozenset({*FUNCTIONS, *CONSTANTS, UNNAMEABLE})
LONGEST = 5_000  # characters
DEEPEST = 200  # parts within parts; a sum of n terms counts n
SHOWN = 100  # characters of an equation in an error
# Not `and`, `or`, `not`, `in`, `is` and chains of comparisons: they fail on arrays, though not on single numbers.
_ALLOWED = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.Name, ast.Load, ast.Call,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.UAdd, ast.USub,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip
_POWER = "power of"  # no name that a text could hold


def real_power(base: Any, exponent: Any) -> Floats:
    """``base ** exponent``, nan where that is complex: Python's numbers would go on with complex ones.

    Whole numbers become floats, which overflow: a tower of powers of whole numbers might never end.
    """
    power = (base * 1.0) ** exponent
    return math.nan if isinstance(power, complex) else power


_SCOPE = {"__builtins__": {}, _POWER: real_power, **{name: function for name, (function, _) in FUNCTIONS.items()}}


def spelling(names: Iterable[str]) -> dict[str, str]:
    """Each name behind the form that Python gives it in code: ``µ`` (U+00B5) becomes ``μ`` (U+03BC) there.

    Raises:
        ArgumentError: if two names have one form.
    """
    found: dict[str, str] = {}
    for name in names:
        other = found.setdefault(normalize("NFKC", name), name)
        if other != name:
            raise ArgumentError(f"{other!a} and {name!a} are one name in Python; rename one of them")
    return found


class Equation:
    """The right-hand side of an equation as a function; its arguments are the names in the text, sorted.

    Args:
        text: the right-hand side. Equations are copied, compared and sent to other processes as their texts.

    Raises:
        ArgumentError: if the text is no expression, holds something that is not allowed, or a part of it that does
            not vary is not a finite number.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        tree, shown = _parse(text), _shown(text)
        called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            _check(node, shown)
            if isinstance(node, ast.Name) and node.id in FUNCTIONS and id(node) not in called:
                raise ArgumentError(f"the function {node.id} in the equation {shown} needs arguments: {node.id}(...)")
        names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - RESERVED)
        self.__signature__ = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])
        self._function = _compile(tree, names, text)

    def __call__(self, *values: Floats) -> Floats:
        return self._function(*values)

    def __reduce__(self) -> tuple[object, ...]:
        return Equation, (self.text,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equation) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Equation({self.text!r})"


def _parse(text: str) -> ast.Expression:
    if not isinstance(text, str):
        raise ArgumentError(f"an equation is a text; given {shown(text)}")
    if len(text) > LONGEST:
        raise ArgumentError(f"the equation {_shown(text)} has {len(text)} characters; at most {LONGEST} are allowed")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        if _depth(tree) <= DEEPEST:
            return tree
    except SyntaxError as error:
        raise ArgumentError(f"cannot read the equation {_shown(text)}: {error.msg}") from error
    except ValueError as error:
        raise ArgumentError(f"cannot read the equation {_shown(text)}: {error}") from error
    except (RecursionError, MemoryError):
        pass
    raise ArgumentError(f"the equation {_shown(text)} is nested more than {DEEPEST} deep; split it into variables")


def _shown(text: str) -> str:
    return repr(text) if len(text) <= SHOWN else f"{text[:SHOWN]!r}..."


def _depth(tree: ast.AST) -> int:
    layer, depth = [tree], 0
    while layer:
        layer, depth = [child for node in layer for child in ast.iter_child_nodes(node)], depth + 1
    return depth


def _compile(tree: ast.Expression, names: list[str], text: str) -> Callable[..., Floats]:
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(name) for name in names], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    with np.errstate(all="ignore"):
        body: ast.expr = _Folding(_shown(text)).visit(tree.body)
    return _evaluate(ast.Lambda(arguments, body))


def _evaluate(node: ast.expr) -> Any:
    whole = ast.fix_missing_locations(ast.Expression(node))
    return eval(compile(whole, "<equation>", "eval"), _SCOPE)


class _Folding(ast.NodeTransformer):
    """Replaces parts that do not vary by their values, all as floats, so that what is wrong there is found at once.

    In whole numbers, which have no largest one, a tower of powers might never end.
    """

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def visit(self, node: ast.AST) -> Any:
        self.generic_visit(node)
        if isinstance(node, ast.Name):
            return ast.Constant(CONSTANTS[node.id]) if node.id in CONSTANTS else node
        if isinstance(node, ast.expr) and all(isinstance(part, ast.Constant) for part in _parts(node)):
            return ast.Constant(self._value(node))
        if isinstance(node, ast.Compare):  # a float: truth values of numbers and of arrays add up differently
            return ast.BinOp(ast.Constant(1.0), ast.Mult(), node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not _is_whole(node.right):
            return ast.Call(ast.Name(_POWER, ast.Load()), [node.left, node.right], [])
        return node

    def _value(self, node: ast.expr) -> float:
        try:
            value = float(node.value if isinstance(node, ast.Constant) else _evaluate(node))  # type: ignore[arg-type]
        except (ArithmeticError, TypeError):  # TypeError: complex
            value = math.nan
        if not math.isfinite(value):
            raise ArgumentError(
                f"{_written(node)} in the equation {self._shown} is not a finite number: it is too large, "
                "divides by zero, or takes a logarithm or a root where there is none"
            )
        return value


def _written(node: ast.expr) -> str:
    try:
        return ast.unparse(node)[:SHOWN]
    except ValueError:  # a whole number of thousands of digits, which Python does not write
        return "a number"


def _parts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Call):
        return node.args
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]


def _is_whole(exponent: ast.expr) -> bool:
    """Whether a power of it is never complex."""
    return isinstance(exponent, ast.Constant) and float(exponent.value).is_integer()  # type: ignore[arg-type]


def _check(node: ast.AST, shown: str) -> None:
    if not isinstance(node, _ALLOWED):
        raise ArgumentError(f"{type(node).__name__} is not allowed in the equation {shown}; write arithmetic")
    if isinstance(node, ast.Name) and node.id == UNNAMEABLE:
        raise ArgumentError(f"{UNNAMEABLE} in the equation {shown} cannot be a name; call it something else")
    if isinstance(node, ast.Constant) and type(node.value) not in (int, float):
        raise ArgumentError(f"{_written(node)} in the equation {shown} is not a number")
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        raise ArgumentError(
            f"comparisons in the equation {shown} must be of two values: (a < x) * (x < b), not a < x < b"
        )
    if isinstance(node, ast.Call):
        _check_call(node, shown)


def _check_call(node: ast.Call, shown: str) -> None:
    named = node.func.id if isinstance(node.func, ast.Name) else "(...)"
    if named not in FUNCTIONS or node.keywords:
        raise ArgumentError(f"{named}(...) is not allowed in the equation {shown}; functions: {sorted(FUNCTIONS)}")
    wanted, given = FUNCTIONS[named][1], len(node.args)
    if given != wanted:
        raise ArgumentError(
            f"{named}(...) in the equation {shown} takes {wanted} argument{'s' * (wanted > 1)}; given {given}"
        )
