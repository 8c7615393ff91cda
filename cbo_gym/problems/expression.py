"""Mechanisms written as text: ``"2 * exp(-dose) * Light + u"``.

Only arithmetic, comparisons and the functions listed in ``FUNCTIONS`` are allowed. The text is checked against that
list before it is compiled, so a file of equations can compute numbers and nothing else.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from cbo_gym.errors import ArgumentError
from cbo_gym.scm import Floats

FUNCTIONS: dict[str, object] = {
    "abs": np.abs,
    "arctan": np.arctan,
    "clip": np.clip,
    "cos": np.cos,
    "exp": np.exp,
    "log": np.log,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "where": np.where,
}
CONSTANTS = {"pi": np.pi, "e": np.e}
RESERVED = frozenset({*FUNCTIONS, *CONSTANTS})
# Not `and`, `or`, `not`, `in`, `is` and chains of comparisons: they fail on arrays, though not on single numbers.
_ALLOWED = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.Name, ast.Load, ast.Call,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.UAdd, ast.USub,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip


def compile_equation(text: str) -> Callable[..., Floats]:
    """The function of an equation's right-hand side; its argument names are the names in the text, sorted.

    Raises:
        ArgumentError: if the text is no expression, or holds something that is not allowed.
    """
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise ArgumentError(f"cannot read the equation {text!r}: {error.msg}") from error
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        _check(node, text)
        if isinstance(node, ast.Constant):
            node.value = _number(node.value, text)
        if isinstance(node, ast.Name) and node.id in FUNCTIONS and id(node) not in called:
            raise ArgumentError(f"the function {node.id} in the equation {text!r} needs arguments: {node.id}(...)")
    names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - RESERVED)
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg(name) for name in names], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    function = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, tree.body)))
    return eval(compile(function, f"<{text}>", "eval"), {"__builtins__": {}, **FUNCTIONS, **CONSTANTS})


def _number(value: Any, text: str) -> float:
    """A constant as a float: a tower of powers of whole numbers, which have no largest one, might never end."""
    try:
        return float(value)
    except OverflowError as error:
        raise ArgumentError(f"a number in the equation {text!r} is too large") from error


def _check(node: ast.AST, text: str) -> None:
    if not isinstance(node, _ALLOWED):
        raise ArgumentError(f"{type(node).__name__} is not allowed in the equation {text!r}; write arithmetic")
    if isinstance(node, ast.Constant) and type(node.value) not in (int, float):
        raise ArgumentError(f"{node.value!r} in the equation {text!r} is no number")
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        raise ArgumentError(
            f"comparisons in the equation {text!r} must be of two values: (a < x) * (x < b), not a < x < b"
        )
    if isinstance(node, ast.Call):
        named = node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        if named not in FUNCTIONS or node.keywords:
            raise ArgumentError(f"{named}(...) is not allowed in the equation {text!r}; functions: {sorted(FUNCTIONS)}")
