"""Component functions: formulas, factors, and the bound of the slope."""

import math

import numpy as np
import pytest

from cbo_gym.scm import Linear, Periodic, Polynomial, Sum, Tanh

FORMULAS = [
    (Linear(-0.7), lambda x: -0.7 * x),
    (Polynomial((0.5, -1.0, 2.0)), lambda x: 0.5 * x - x**2 + 2 * x**3),
    (Periodic(0.6), lambda x: 0.6 * math.sin(2 * math.pi * x)),
    (Periodic(0.6, 1.5), lambda x: 0.6 * math.sin(3 * math.pi * x)),
    (Tanh(2.0, 3.0, -1.0), lambda x: 2 * (math.tanh(3 * x - 1) - math.tanh(-1))),
    (Tanh(-1.0, -2.0, 0.5), lambda x: -(math.tanh(-2 * x + 0.5) - math.tanh(0.5))),
    (Sum((Linear(0.2), Tanh(1.0))), lambda x: 0.2 * x + math.tanh(x)),
]
POINTS = np.linspace(-2.0, 3.0, 41)

each = pytest.mark.parametrize(("component", "formula"), FORMULAS, ids=lambda part: type(part).__name__)


@each
def test_values_on_arrays_and_floats(component, formula):
    expected = [formula(x) for x in POINTS.tolist()]
    np.testing.assert_allclose(component(POINTS), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose([component(x) for x in POINTS.tolist()], expected, rtol=1e-12, atol=1e-12)
    assert component(0.0) == pytest.approx(0.0, abs=1e-15)


@each
def test_a_factor(component, formula):
    np.testing.assert_allclose(component.multiply(-1.5)(POINTS), -1.5 * component(POINTS), rtol=1e-12, atol=1e-12)


@each
@pytest.mark.parametrize(("low", "high"), [(-2.0, 3.0), (0.0, 1.0), (1.0, 1.1), (-1.5, -1.0)])
def test_no_slope_is_above_the_bound_and_the_bound_is_close(component, formula, low, high):
    x = np.linspace(low, high, 20_001)
    slopes = np.abs(np.diff(component(x)) / np.diff(x))
    bound = component.steepest(low, high)
    assert slopes.max() <= bound + 1e-6
    if not isinstance(component, Periodic | Sum):  # the bounds of these hold for any interval, or add up
        assert slopes.max() >= bound - 1e-2


@each
@pytest.mark.parametrize(("low", "high"), [(-2.0, 3.0), (0.0, 1.0), (1.0, 1.1), (-1.5, -1.0), (0.2, 0.3)])
def test_no_value_is_outside_the_image_and_the_image_is_close(component, formula, low, high):
    values = component(np.linspace(low, high, 20_001))
    smallest, largest = component.image(low, high)
    assert smallest <= values.min() + 1e-12
    assert values.max() <= largest + 1e-12
    assert smallest == pytest.approx(values.min(), abs=1e-6)
    assert largest == pytest.approx(values.max(), abs=1e-6)


def test_empty_polynomials_and_sums_are_refused():
    with pytest.raises(ValueError, match="at least one coefficient"):
        Polynomial(())
    with pytest.raises(ValueError, match="at least one component"):
        Sum(())
