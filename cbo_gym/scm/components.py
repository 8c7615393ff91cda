"""Component functions of separable structural equation models: analytic functions of one variable.

Each knows bounds of its values and of its slope, which prove that a cyclic model has a solution.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbo_gym._util.summation import add_up
from cbo_gym.errors import ArgumentError
from cbo_gym.scm.values import FloatOrArray


class Component(ABC):
    """An analytic function of one variable, evaluated elementwise on floats and arrays.

    A new family needs the four methods. The bounds ``image`` and ``steepest`` must never be too small.
    """

    @abstractmethod
    def __call__(self, x: FloatOrArray) -> FloatOrArray: ...

    @abstractmethod
    def multiply(self, factor: float) -> Component:
        """Return the function times ``factor``."""

    @abstractmethod
    def image(self, low: float, high: float) -> tuple[float, float]:
        """Return an interval, as small as possible, that contains all values on ``[low, high]``."""

    @abstractmethod
    def steepest(self, low: float, high: float) -> float:
        """Return an upper bound, as small as possible, of the absolute derivative on ``[low, high]``."""


@dataclass(frozen=True)
class Linear(Component):
    """``slope * x``."""

    slope: float = 1.0

    def __call__(self, x: FloatOrArray) -> FloatOrArray:
        return self.slope * x

    def multiply(self, factor: float) -> Component:
        return Linear(factor * self.slope)

    def image(self, low: float, high: float) -> tuple[float, float]:
        return _hull(self(low), self(high))

    def steepest(self, low: float, high: float) -> float:
        return abs(self.slope)


@dataclass(frozen=True)
class Polynomial(Component):
    """``c_1 x + c_2 x^2 + ...``; ``coefficients`` are c_1, c_2, ..., so the value at 0 is 0."""

    coefficients: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "coefficients", tuple(float(c) for c in self.coefficients))
        if not self.coefficients:
            raise ArgumentError("a polynomial needs at least one coefficient, that of x")

    def __call__(self, x: Any) -> Any:
        value = 0.0
        for coefficient in reversed(self.coefficients):
            value = (value + coefficient) * x
        return value

    def multiply(self, factor: float) -> Component:
        return Polynomial(tuple(factor * c for c in self.coefficients))

    def image(self, low: float, high: float) -> tuple[float, float]:
        derivative = np.polynomial.Polynomial([0.0, *self.coefficients]).deriv()
        return _hull(*self(_with_ends(derivative, low, high)))

    def steepest(self, low: float, high: float) -> float:
        derivative = np.polynomial.Polynomial([0.0, *self.coefficients]).deriv()
        return float(np.abs(derivative(_with_ends(derivative.deriv(), low, high))).max())


@dataclass(frozen=True)
class Periodic(Component):
    """``amplitude * sin(2 pi frequency x)``."""

    amplitude: float = 1.0
    frequency: float = 1.0

    def __call__(self, x: FloatOrArray) -> FloatOrArray:
        return self.amplitude * np.sin(2.0 * math.pi * self.frequency * x)

    def multiply(self, factor: float) -> Component:
        return Periodic(factor * self.amplitude, self.frequency)

    def image(self, low: float, high: float) -> tuple[float, float]:
        # Extrema are at odd quarters of the period, so any five quarters in a row contain a maximum and a minimum.
        quarters_per_unit = 4.0 * abs(self.frequency)
        quarters = np.arange(math.ceil(quarters_per_unit * low), quarters_per_unit * high)[:5]
        return _hull(*self(np.array([low, high])), *self(quarters / quarters_per_unit))

    def steepest(self, low: float, high: float) -> float:
        return abs(2.0 * math.pi * self.frequency * self.amplitude)


@dataclass(frozen=True)
class Tanh(Component):
    """``amplitude * (tanh(scale x + shift) - tanh(shift))``, so the value at 0 is 0."""

    amplitude: float = 1.0
    scale: float = 1.0
    shift: float = 0.0

    def __call__(self, x: FloatOrArray) -> FloatOrArray:
        return self.amplitude * (np.tanh(self.scale * x + self.shift) - math.tanh(self.shift))

    def multiply(self, factor: float) -> Component:
        return Tanh(factor * self.amplitude, self.scale, self.shift)

    def image(self, low: float, high: float) -> tuple[float, float]:
        return _hull(float(self(low)), float(self(high)))

    def steepest(self, low: float, high: float) -> float:
        ends = self.scale * low + self.shift, self.scale * high + self.shift
        steepest_at = 0.0 if min(ends) <= 0.0 <= max(ends) else min(map(abs, ends))
        return abs(self.amplitude * self.scale) * (1.0 - math.tanh(steepest_at) ** 2)


@dataclass(frozen=True)
class Sum(Component):
    """The sum of several components."""

    parts: tuple[Component, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise ArgumentError("a sum needs at least one component")

    def __call__(self, x: Any) -> Any:
        return add_up(component(x) for component in self.parts)

    def multiply(self, factor: float) -> Component:
        return Sum(tuple(component.multiply(factor) for component in self.parts))

    def image(self, low: float, high: float) -> tuple[float, float]:
        images = [component.image(low, high) for component in self.parts]
        return add_up(image[0] for image in images), add_up(image[1] for image in images)

    def steepest(self, low: float, high: float) -> float:
        return add_up(component.steepest(low, high) for component in self.parts)


def _hull(*values: float) -> tuple[float, float]:
    return float(min(values)), float(max(values))


def _with_ends(derivative: np.polynomial.Polynomial, low: float, high: float) -> np.ndarray:
    """Return the ends of an interval and, inside it, the roots of the derivative of a polynomial."""
    # The real part of a complex root only adds a point.
    stationary = np.real(derivative.roots())
    return np.concatenate([[low, high], stationary[(low < stationary) & (stationary < high)]])
