"""Mechanisms written as Python expressions: ``eval`` is for strings of this package; users' equations are parsed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
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


# Names that an expression may use.
SCOPE: dict[str, Any] = {"abs": abs, "non_negative": non_negative, "pi": math.pi, "sigmoid": sigmoid} | {
    name: getattr(np, name) for name in ("absolute", "clip", "cos", "exp", "log", "power", "sin", "sqrt", "tan")
}


@dataclass(frozen=True)
class Formula:
    """A mechanism written as an expression in its arguments; it is copied and pickled as a string."""

    arguments: tuple[str, ...]
    expression: str

    @cached_property
    def function(self) -> Callable[..., Floats]:
        return eval(f"lambda {', '.join(self.arguments)}: {self.expression}", dict(SCOPE))

    def __call__(self, *values: Floats) -> Floats:
        return self.function(*values)

    def inline(self, values: Sequence[str]) -> str:
        """Return the expression with the code of each value in place of its argument."""
        codes = dict(zip(self.arguments, values, strict=True))
        return re.sub(r"\b[A-Za-z_]\w*", lambda match: codes.get(match[0], match[0]), self.expression)

    def __reduce__(self) -> tuple[object, ...]:
        return Formula, (self.arguments, self.expression)
