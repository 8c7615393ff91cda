"""Formulas traced from mechanisms: what they compute, and how they read."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from html import unescape

import numpy as np
import pytest
from formulas import LETTERS, Expression, evaluate, lines_of, name_mathml, number_mathml, symbol

from cbo_gym.problems.base import clip_fraction, non_negative

X, Y = symbol("X"), symbol("Y")


def text_of(mathml: str) -> str:
    """What is written, without the layout, minus signs as hyphens."""
    return "".join(ET.fromstring(f"<math>{unescape(mathml)}</math>").itertext()).replace("\u2212", "-")


def written(expression: Expression) -> str:
    (line,) = lines_of("Z", expression)
    return "".join(text_of(piece) for piece in line).replace("\u2062", "").replace("\u2061", "")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (27.0 - 0.01 * X + Y, "Z=27-0.01X+Y"),
        (X * X * X, "Z=X3"),
        (-100.0 * (Y - X * X) * (Y - X * X), "Z=-100(Y-X2)2"),
        (X - (Y - 1.0), "Z=X-(Y-1)"),
        (np.exp(-X) / (1.0 + np.exp(-X)), "Z=e-X1+e-X"),
        (math.e ** (-X), "Z=e-X"),
        (np.exp(X) * 2.0 * math.pi, "Z=2πeX"),
        (non_negative(X + Y), "Z=max(X+Y,0)"),
        (clip_fraction(X), "Z=min(max(X,0),1)"),
        (0.5 * (X + Y - abs(X - Y)), "Z=min(X,Y)"),
        (sum([symbol(f"C{i}") for i in range(1, 51)]) / 50, "Z=C1+C2+…+C5050"),
    ],
)
def test_formulas_read_as_a_person_would_write_them(expression: Expression, text: str) -> None:
    assert written(expression) == text


def test_equal_expressions_are_one() -> None:
    assert 2.0 * X + Y is 2.0 * X + Y
    assert X + Y is not Y + X  # the order is the code's


def test_expressions_have_values_for_numbers_and_arrays() -> None:
    expression = np.tanh(X * Y) ** 2 + np.maximum(X, 0.5) / abs(Y) - np.sqrt(X)
    x, y = np.array([0.2, 1.7]), np.array([[3.0], [-2.0]])
    expected = np.tanh(x * y) ** 2 + np.maximum(x, 0.5) / abs(y) - np.sqrt(x)
    np.testing.assert_allclose(evaluate(expression, {"X": x, "Y": y}), expected)


def test_a_large_formula_names_what_it_holds_twice() -> None:
    part = np.exp(-X) + np.cos(X) * Y + 1.0
    lines = lines_of(
        "Z", part * part * np.sin(part) + np.tanh(part) * X + np.cos(part + Y) * np.sqrt(part) / (part + X)
    )
    assert [text_of(line[0])[0] for line in lines] == ["Z", LETTERS[0]]


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.0, "2"), (math.pi / 2, "π2"), (4 * math.pi, "4π"), (math.e, "e"), (0.123456789, "0.12346"), (1e-7, "10-7")],
)
def test_numbers(value: float, text: str) -> None:
    assert text_of(number_mathml(value)) == text


@pytest.mark.parametrize(("name", "parts"), [("X10", ["X", "10"]), ("I1_2", ["I", "1", ",", "2"]), ("Age", ["Age"])])
def test_names_have_indices(name: str, parts: list[str]) -> None:
    assert list(ET.fromstring(name_mathml(name)).itertext()) == parts
