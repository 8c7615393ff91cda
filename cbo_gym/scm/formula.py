"""Mechanisms written as Python expressions: ``eval`` is for strings of this package; users' equations are parsed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cbo_gym.scm.values import Floats


def non_negative(x: Any) -> Floats:
    """Return max(x, 0) in plain arithmetic, which is faster on a float than a NumPy function."""
    return 0.5 * (x + abs(x))


def sigmoid(x: Any) -> Floats:
    """Return the logistic function of x."""
    return 1.0 / (1.0 + np.exp(-x))


FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": abs, "non_negative": non_negative, "sigmoid": sigmoid} | {
    name: getattr(np, name) for name in ("absolute", "clip", "cos", "exp", "log", "power", "sin", "sqrt", "tan")
}


@dataclass(frozen=True)
class Formula:
    """A mechanism written as an expression in its arguments; it is copied and pickled as a string."""

    arguments: tuple[str, ...]
    expression: str

    @cached_property
    def function(self) -> Callable[..., Floats]:
        return eval(f"lambda {', '.join(self.arguments)}: {self.expression}", {**FUNCTIONS, "pi": math.pi})

    def __call__(self, *values: Floats) -> Floats:
        return self.function(*values)

    def __reduce__(self) -> tuple[object, ...]:
        return Formula, (self.arguments, self.expression)
