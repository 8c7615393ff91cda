"""The reward as a known function of other variables, written as ``"0.7 * biomass - 2 * feed ** 2"``."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cbo_gym.errors import ArgumentError
from cbo_gym.problems.custom.expression import Equation, spelling


@dataclass(frozen=True)
class KnownReward:
    """A reward that follows from other variables, for methods that model these instead of the reward.

    Args:
        equation: the function; it has only arithmetic, because its arguments may be numbers, arrays or tensors.
        names: names of the variables, in the order of the equation's arguments.
        sign: -1 if the reward is minimised, because agents maximise; else 1.
    """

    equation: Equation
    names: tuple[str, ...]
    sign: float

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """Return the reward that agents maximise, given variable -> value."""
        return self.sign * self.equation(*[values[name] for name in self.names])


def known_reward(expression: str, reward: str, variables: Sequence[str], sign: float) -> KnownReward:
    """Read the expression that the reward equals."""
    equation = Equation(expression)
    if any(isinstance(node, ast.Call) for node in ast.walk(ast.parse(expression.strip(), mode="eval"))):
        raise ArgumentError(
            f"the composition {expression!r} calls a function; write it with + - * / ** alone: e ** x for exp(x), "
            "x ** 0.5 for sqrt(x)"
        )
    # Identifier in the equation -> name of the variable.
    names_by_identifier = spelling(variables)
    names = tuple(names_by_identifier.get(name, name) for name in equation.__signature__.parameters)
    others = [name for name in variables if name != reward]
    if unknown := sorted(set(names) - set(others)):
        raise ArgumentError(f"the composition of {reward} names {unknown}; it can name {others}")
    return KnownReward(equation, names, sign)
