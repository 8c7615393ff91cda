"""Constraints that actions must meet in expectation, read from strings: a keyword of any environment.

With ``gym.make("CBO/ToyGraph-v0", constraints=["X0 <= 3"])`` only actions with E[X0 | action] <= 3 are feasible.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Literal, NamedTuple

from cbo_gym._util.arguments import number_in
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.problems.outcomes import COST, Outcomes
from cbo_gym.task import Constraint, GraphKnowledge

MAX_CONSTRAINTS = 100
#: A strict inequality is read as a non-strict one, because for real numbers the difference does not matter.
SIDES: dict[str, Literal["<=", ">="]] = {
    "<=": "<=", "≤": "<=", "⩽": "<=", "<": "<=", ">=": ">=", "≥": ">=", "⩾": ">=", ">": ">=",
}  # fmt: skip
SIGN = "|".join(SIDES)
NUMBER = r"[^<>=≤≥⩽⩾]+"
# The strings before and after the name of the node in a constraint.
BEFORE = re.compile(rf"\s*(?:(?P<number>{NUMBER})(?P<sign>{SIGN})\s*)?")
AFTER = re.compile(rf"\s*(?:(?P<sign>{SIGN})(?P<number>{NUMBER}))?")


def constrain(outcomes: Outcomes, constraints: object, names: Collection[str]) -> Outcomes:
    """Return the outcomes with their constraints replaced by those that :func:`read_constraints` reads, unless None."""
    return outcomes if constraints is None else replace(outcomes, constraints=read_constraints(constraints, names))


def read_constraints(constraints: object, names: Collection[str]) -> tuple[Constraint, ...]:
    """Read constraints from a list of strings; equal ones are returned once.

    Args:
        constraints: at most 100 strings such as ``"acid level <= 2"``, ``"2 >= acid level"`` or
            ``"0 <= acid level <= 2"``, which is two constraints; or one such string. ``<`` means ``<=``, and
            ``>`` means ``>=``.
        names: the system's variables. If a string contains several names, the longest is taken.

    Raises:
        ArgumentError: if a string has another form or its threshold is not a number; the message names the string.
    """
    strings = [constraints] if isinstance(constraints, str) else constraints
    if not isinstance(strings, list | tuple) or len(strings) > MAX_CONSTRAINTS:
        raise ArgumentError(
            f"constraints must be a list of at most {MAX_CONSTRAINTS} strings such as 'X <= 1.5'; "
            f"given {short_repr(constraints)}"
        )
    return tuple(dict.fromkeys(constraint for string in strings for constraint in _read(string, names)))


def require_compatible(constraints: Collection[Constraint]) -> None:
    """Raise ArgumentError if two constraints on a node contradict each other.

    Studies call it, because they have no simulator that could tell whether an action is feasible.
    """
    for lower, upper in product(constraints, constraints):
        if lower.node == upper.node and lower.side == ">=" and upper.side == "<=" and lower.threshold > upper.threshold:
            raise ArgumentError(f"no value meets both {lower} and {upper}; change one of the two constraints")


class _Match(NamedTuple):
    """A way to read a string: the node, and a side and a threshold for each limit, the lower limit first."""

    node: str
    limits: list[tuple[Literal["<=", ">="], str]]

    @property
    def thresholds(self) -> list[float | None]:
        """The numbers of the limits; None for a threshold that is not a number."""
        return [number_in(threshold) for _, threshold in self.limits]


def _read(value: object, names: Collection[str]) -> list[Constraint]:
    string = value if isinstance(value, str) else ""
    matches = list(_matches(string, names))
    # An operand that is neither a variable nor a number is taken for a name; check_constraints reports it as unknown.
    operands = [operand.strip() for operand in re.split(SIGN, string)]
    unknown_names = [operand for operand in operands if operand and "=" not in operand and number_in(operand) is None]
    candidates = [*matches, *_matches(string, unknown_names)]
    match = next((candidate for candidate in candidates if None not in candidate.thresholds), None)
    if match is None:
        raise ArgumentError(_reading_error(string, value, matches))
    sides, thresholds = [side for side, _ in match.limits], [float(threshold or 0.0) for threshold in match.thresholds]
    if len(set(sides)) < len(sides) or thresholds[0] > thresholds[-1]:
        raise ArgumentError(
            f"the constraint {short_repr(value)} needs both signs in one direction and the smaller number on the "
            "smaller side, as in '0 <= NODE <= 2'"
        )
    return [Constraint(match.node, side, threshold) for side, threshold in zip(sides, thresholds, strict=True)]


def _reading_error(string: str, value: object, matches: Sequence[_Match]) -> str:
    """Return why no match has numbers as thresholds."""
    if matches:
        node, limits = matches[0]
        threshold = limits[matches[0].thresholds.index(None)][1].strip()
        return (
            f"the threshold of the constraint {short_repr(value)} on {node!r} is not a number: {short_repr(threshold)}"
        )
    is_equality = "=" in string and not re.search("[<>≤≥⩽⩾]", string)
    remedy = "; for an equality, write a narrow interval such as '1.9 <= NODE <= 2.1'" if is_equality else ""
    return (
        f"cannot read the constraint {short_repr(value)}; write 'NODE <= NUMBER', 'NODE >= NUMBER' or "
        f"'NUMBER <= NODE <= NUMBER'{remedy}"
    )


def _matches(string: str, names: Collection[str]) -> Iterator[_Match]:
    """Yield the ways to read a string as a name with a number on at least one side, longer names first."""
    for name in sorted(names, key=len, reverse=True):
        for match in re.finditer(re.escape(name), string):
            before, after = BEFORE.fullmatch(string[: match.start()]), AFTER.fullmatch(string[match.end() :])
            if before is None or after is None or not (before["sign"] or after["sign"]):
                continue
            limits: list[tuple[Literal["<=", ">="], str]] = []
            if before["sign"]:
                limits.append((">=" if SIDES[before["sign"]] == "<=" else "<=", before["number"]))
            if after["sign"]:
                limits.append((SIDES[after["sign"]], after["number"]))
            yield _Match(name, sorted(limits, reverse=True))


def require_known(outcomes: Outcomes, knowledge: GraphKnowledge) -> None:
    """Raise ArgumentError if agents do not know a constrained node or an objective."""
    nodes = list(knowledge.nodes)
    if hidden := [str(constraint) for constraint in outcomes.constraints if constraint.node not in nodes]:
        raise ArgumentError(f"the constraints {hidden} are on nodes that agents do not know; they know {nodes}")
    if hidden := [str(objective) for objective in outcomes.objectives if objective.name not in (*nodes, COST)]:
        raise ArgumentError(f"the objectives {hidden} are nodes that agents do not know; they know {nodes}")
