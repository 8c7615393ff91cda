"""Formulas traced from mechanisms: what they compute, and how they read."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

from cbo_gym.problems.base import clip_fraction
from cbo_gym.scm.expression import STEPS, trace
from cbo_gym.scm.formula import non_negative
from website.maths.formulas import LETTERS, Formula, name_latex, number_latex

C = [f"C{i}" for i in range(1, 51)]
Mechanism = Callable[[Any, Any], Any]


def formula_of(mechanism: Mechanism) -> Formula:
    return Formula(trace(lambda nodes: mechanism(nodes["X"], nodes["Y"]), ["X", "Y"]))


@pytest.mark.parametrize(
    ("mechanism", "latex"),
    [
        (lambda x, y: 27.0 - 0.01 * x + y, r"Z = 27 {} - 0.01\,X {} + Y"),
        (lambda x, y: x * x * x, "Z = X^{3}"),
        (lambda x, y: -100.0 * (y - x * x) * (y - x * x), r"Z = - 100\,\left(Y - X^{2}\right)^{2}"),
        (lambda x, y: x - (y - 1.0), r"Z = X {} - \left(Y - 1\right)"),
        (lambda x, y: np.exp(-x) / (1.0 + np.exp(-x)), r"Z = \frac{e^{- X}}{1 + e^{- X}}"),
        (lambda x, y: math.e ** (-x), "Z = e^{- X}"),
        (lambda x, y: np.exp(x) * 2.0 * math.pi, r"Z = 2\,\pi\,e^{X}"),
        (lambda x, y: np.exp(-2.0 * (x - y)) / 3, r"Z = \frac{\exp\left(- 2\,\left(X - Y\right)\right)}{3}"),
        (lambda x, y: non_negative(x + y), r"Z = \max\left(X + Y, 0\right)"),
        (lambda x, y: clip_fraction(x), r"Z = \min\left(\max\left(X, 0\right), 1\right)"),
        (lambda x, y: np.clip(x, 0.0, y) ** 2, r"Z = \min\left(\max\left(X, 0\right), Y\right)^{2}"),
        (lambda x, y: 0.5 * (x + y - abs(x - y)), r"Z = \min\left(X, Y\right)"),
        (lambda x, y: 3 * (x > y) + (x + y) % 2, r"Z = 3\,\left[X > Y\right] {} + \left(X + Y\right) \bmod 2"),
        (
            lambda x, y: np.sum(np.sqrt(x - np.array([0.5, 1.5]))),
            r"Z = \sqrt{X - 0.5} {} + \sqrt{X - 1.5}",
        ),
    ],
)
def test_formulas_read_as_a_person_would_write_them(mechanism: Mechanism, latex: str) -> None:
    (line,) = formula_of(mechanism).lines("Z")
    assert " ".join(line) == latex


def test_of_many_like_terms_the_first_two_and_the_last_are_written_out() -> None:
    (line,) = Formula(trace(lambda nodes: sum(nodes[name] for name in C) / 50, C)).lines("Z")
    assert line == [r"Z = \frac{C_{1} + C_{2} + \dots + C_{50}}{50}"]


def test_expressions_have_the_values_of_the_function() -> None:
    def function(x: Any, y: Any) -> Any:
        return np.tanh(x * y) ** 2 + np.maximum(x, 0.5) / abs(y) - np.sqrt(x) + (x > y) + np.clip(y, 0.0, x)

    x, y = np.array([0.2, 1.7]), np.array([[3.0], [-2.0]])
    value = sympy.lambdify(sympy.symbols("X Y", real=True), formula_of(function).value, [STEPS, "numpy"])
    np.testing.assert_allclose(value(x, y), function(x, y))


def test_a_large_formula_names_what_it_holds_twice() -> None:
    def mechanism(x: Any, y: Any) -> Any:
        part = np.exp(-x) + np.cos(x) * y + 1.0
        return part * part * np.sin(part) + np.tanh(part) * x + np.cos(part + y) * np.sqrt(part) / (part + x)

    first, second = formula_of(mechanism).lines("Z")
    assert second == [f"{LETTERS[0]} = e^{{- X}}", r"{} + \cos{\left(X \right)}\,Y", "{} + 1"]
    assert LETTERS[0] in first[0]


@pytest.mark.parametrize(
    ("value", "latex"),
    [
        (2.0, "2"), (math.pi / 2, r"0.5\,\pi"), (math.pi / 3, r"\frac{\pi}{3}"), (-4 * math.pi, r"- 4\,\pi"),
        (math.e, "e"), (0.123456789, "0.12346"), (1e-7, "10^{-7}"), (2.5e-7, r"2.5 \cdot 10^{-7}"),
    ],
)  # fmt: skip
def test_numbers(value: float, latex: str) -> None:
    assert number_latex(value) == latex


@pytest.mark.parametrize(
    ("name", "latex"),
    [
        ("X10", "X_{10}"), ("I1_2", "I_{1,2}"), ("Age", r"\mathrm{Age}"), ("U(X0)", "U_{X_{0}}"),
        ("z(FULD)", r"z_{\mathrm{FULD}}"),
    ],
)  # fmt: skip
def test_names_have_indices(name: str, latex: str) -> None:
    assert name_latex(name) == latex
