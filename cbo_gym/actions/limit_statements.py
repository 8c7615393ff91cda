"""Reading of limits that are written as strings: linear inequalities and equalities, and cardinalities."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from cbo_gym.errors import ArgumentError, did_you_mean, short_repr

MAX_LIMITS = 100
# Largest number of characters of a limit.
MAX_LENGTH = 1000
MAX_NUMBER = 1e100
FORMS = "'a + 2 * b <= 5', 'a <= b', 'a + b + c == 1' or 'at most 2 of a, b, c'"
SIGNS = {"≤": "<=", "⩽": "<=", "≥": ">=", "⩾": ">="}
AT_MOST = re.compile(r"\s*at\s+most\s+(?P<count>\S+)\s+of\s+(?P<names>.+)", re.I | re.S)


@dataclass(frozen=True)
class LinearLimit:
    """A limit ``low <= sum of coefficient * value <= high``.

    Attributes:
        statement: the limit as it was written.
        coefficients: name -> coefficient.
        low, high: the bounds of the sum, infinite without a bound; equal for an equality.
    """

    statement: str
    coefficients: Mapping[str, float]
    low: float
    high: float


@dataclass(frozen=True)
class Cardinality:
    """A limit ``at most <count> of <names>``: of values that an action sets, or of parameters that differ from null."""

    statement: str
    names: tuple[str, ...]
    count: int


def read_limits(limits: object, names: Collection[str]) -> list[LinearLimit | Cardinality]:
    """Read limits that are written as strings.

    Args:
        limits: a list of at most 100 strings, or one string; ``<`` means ``<=``, ``>`` means ``>=``, and ``=`` means
            ``==``.
        names: names of the values.

    Raises:
        ArgumentError: naming the string that has another form, and its mistake.
    """
    strings = [limits] if isinstance(limits, str) else limits
    if not isinstance(strings, list | tuple) or len(strings) > MAX_LIMITS:
        raise ArgumentError(
            f"limits must be a list of at most {MAX_LIMITS} strings such as {FORMS}; given {short_repr(limits)}"
        )
    return [limit for string in strings for limit in _read(string, names)]


def _read(value: object, names: Collection[str]) -> list[LinearLimit | Cardinality]:
    if not isinstance(value, str) or len(value) > MAX_LENGTH:
        raise ArgumentError(
            f"a limit is a string of at most {MAX_LENGTH} characters such as {FORMS}; given {short_repr(value)}"
        )
    try:
        cardinality = AT_MOST.fullmatch(value)
        return [_read_cardinality(value, cardinality, names)] if cardinality else list(_read_relation(value, names))
    except _LimitError as error:
        raise ArgumentError(f"cannot read the limit {short_repr(value)}: {error}") from None


class _LimitError(Exception):
    """A mistake in a limit."""


def _read_cardinality(statement: str, match: re.Match[str], names: Collection[str]) -> Cardinality:
    listed = [name.strip() for name in match["names"].split(",")]
    for name in listed:
        _require_known(name, names)
    if len(set(listed)) < len(listed):
        raise _LimitError("it lists a name twice")
    if not match["count"].isdecimal() or not 1 <= int(match["count"]) < len(listed):
        raise _LimitError(f"of {len(listed)} names at most 1 to {len(listed) - 1} can be allowed")
    return Cardinality(statement, tuple(listed), int(match["count"]))


def _require_known(name: str, names: Collection[str]) -> None:
    if name not in names:
        raise _LimitError(f"{short_repr(name)} cannot be set{did_you_mean(name, names)}; what is set: {list(names)}")


def _read_relation(statement: str, names: Collection[str]) -> Iterable[LinearLimit]:
    spelled, by_identifier = _spell(statement, names)
    try:
        relation = ast.parse(spelled, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        relation = ast.Constant(None)
    if not isinstance(relation, ast.Compare):
        raise _LimitError(f"write it as {FORMS}")
    sides = [_sum_of(side, by_identifier, names) for side in (relation.left, *relation.comparators)]
    for sign, left, right in zip(relation.ops, sides, sides[1:], strict=False):
        difference = _add(left, right, -1.0)
        bound = -difference.pop("", 0.0)
        coefficients = {name: coefficient for name, coefficient in difference.items() if coefficient}
        if not coefficients or not math.isfinite(bound) or not all(map(math.isfinite, coefficients.values())):
            raise _LimitError("each relation must be between finite multiples of what is set, and not cancel out")
        match sign:
            case ast.LtE() | ast.Lt():
                yield LinearLimit(statement, coefficients, -math.inf, bound)
            case ast.GtE() | ast.Gt():
                yield LinearLimit(statement, coefficients, bound, math.inf)
            case ast.Eq():
                yield LinearLimit(statement, coefficients, bound, bound)
            case _:
                raise _LimitError("its signs must be <=, >= or ==")


def _spell(statement: str, names: Collection[str]) -> tuple[str, dict[str, str]]:
    """Return the statement with each name replaced by an identifier, longest names first, and identifier -> name."""
    identifiers = {name: f"_{index}_" for index, name in enumerate(names)}
    longest_first = sorted(identifiers, key=len, reverse=True)
    patterns = "|".join(rf"(?<!\w){re.escape(name)}(?!\w)" if re.fullmatch(r"\w(.*\w)?", name, re.S)
                        else re.escape(name) for name in longest_first)  # fmt: skip
    spelled = re.sub(patterns, lambda match: f" {identifiers[match[0]]} ", statement) if patterns else statement
    for variant, sign in SIGNS.items():
        spelled = spelled.replace(variant, sign)
    # A single = is an equality too.
    spelled = re.sub(r"(?<![<>=!])=(?!=)", "==", spelled).strip()
    return spelled, {identifier: name for name, identifier in identifiers.items()}


def _sum_of(node: ast.expr, by_identifier: Mapping[str, str], names: Collection[str]) -> dict[str, float]:
    """Return name -> coefficient of an expression, with the constant under the empty name."""
    match node:
        case ast.Constant(int() | float() as number) if not isinstance(number, bool):
            if abs(number) > MAX_NUMBER:
                raise _LimitError(f"numbers must be at most {MAX_NUMBER:g}; choose a larger unit")
            return {"": float(number)}
        case ast.Name(identifier):
            if identifier not in by_identifier:
                _require_known(identifier, names)
            return {by_identifier[identifier]: 1.0}
        case ast.UnaryOp(ast.USub(), operand):
            return _add({}, _sum_of(operand, by_identifier, names), -1.0)
        case ast.UnaryOp(ast.UAdd(), operand):
            return _sum_of(operand, by_identifier, names)
        case ast.BinOp(left, ast.Add() | ast.Sub() as sign, right):
            terms, more_terms = _sum_of(left, by_identifier, names), _sum_of(right, by_identifier, names)
            return _add(terms, more_terms, 1.0 if isinstance(sign, ast.Add) else -1.0)
        case ast.BinOp(left, ast.Mult(), right):
            terms, factor = _sum_of(left, by_identifier, names), _sum_of(right, by_identifier, names)
            if set(factor) != {""}:
                terms, factor = factor, terms
            if set(factor) == {""}:
                return _add({}, terms, factor[""])
        case ast.BinOp(left, ast.Div(), right):
            terms, divisor = _sum_of(left, by_identifier, names), _sum_of(right, by_identifier, names)
            if set(divisor) == {""} and divisor[""]:
                return _add({}, terms, 1.0 / divisor[""])
    raise _LimitError("it must be linear: sums of names, each times a number")


def _add(left: Mapping[str, float], right: Mapping[str, float], factor: float) -> dict[str, float]:
    """Return ``left + factor * right``."""
    return {name: left.get(name, 0.0) + factor * right.get(name, 0.0) for name in {**left, **right}}
