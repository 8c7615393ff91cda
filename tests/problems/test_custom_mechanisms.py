"""Mechanisms as people write them: for single numbers, with defaults, with names that Python normalises."""

import math
import random
from functools import partial

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym import custom_problem, load_problem
from cbo_gym.envs import oracle_of
from cbo_gym.errors import ArgumentError
from cbo_gym.scm import CausalDiagram, Intervention, Uniform


def branches(x, u):
    if x > 0.5 and u > 0.4:
        return x + u
    return u


def mutates(x, u):
    u *= 2.0
    u += x
    return u


class Hill:
    """An object that can be called."""

    def __init__(self, half: float) -> None:
        self.half = half

    def __call__(self, x, u):
        return float(x) / (self.half + x) + u


def hill(x, u, half=0.5, *, power=2):
    return x**power / (half**power + x**power) + u


FUNCTIONS = {
    "if": (branches, lambda x, u: np.where((x > 0.5) & (u > 0.4), x + u, u)),
    "math": (lambda x, u: math.exp(-x) + u, lambda x, u: np.exp(-x) + u),
    "max of Python": (lambda x, u: max(x, u), np.maximum),
    "one maximum of all": (lambda x, u: np.max(x) + np.mean(u), np.add),
    "a table": (lambda x, u: [0.0, 1.0][int(2 * x)] + u, lambda x, u: np.where(x < 0.5, 0.0, 1.0) + u),
    "a constant": (lambda x, u: 3 if u < 2 else x, lambda x, u: 3.0 + 0.0 * x * u),
    "changes its input": (mutates, lambda x, u: 2 * u + x),
    "an object": (Hill(0.5), lambda x, u: x / (0.5 + x) + u),
    "defaults": (hill, lambda x, u: x**2 / (0.25 + x**2) + u),
    "partial": (partial(hill, power=1), lambda x, u: x / (0.5 + x) + u),
    "NumPy": (lambda x, u: np.where(x > 0.5, x, 0.0) + u, lambda x, u: np.where(x > 0.5, x, 0.0) + u),
    "fails in part": (lambda x, u: math.sqrt(x) + u if x >= 0 else math.nan, lambda x, u: np.sqrt(x) + u),
}  # fmt: skip


def own(function, **more):
    return custom_problem(
        {"M": function, "Y": lambda M: 1.0 * M},  # noqa: N803
        reward="Y",
        noise={"M": Uniform(0.0, 1.0)},
        actions={"x": (0.0, 1.0)},
        **more,
    )


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_experiments_are_not_mixed(kind):
    function, expected = FUNCTIONS[kind]
    scm = own(function).scm
    noise, actions = np.random.default_rng(0).random((2, 7, 50))
    values = scm.propagate((noise,), Intervention(soft=[actions]))
    np.testing.assert_allclose(values["Y"], expected(actions, noise))
    crossed = scm.propagate((noise[:1],), Intervention(soft=[actions[:, :1]]))
    rows = np.broadcast_arrays(actions[:, :1], noise[:1])
    np.testing.assert_allclose(np.broadcast_to(crossed["Y"], (7, 50)), expected(*rows))


REFUSED = {
    "random": (lambda x, u: x + random.random() + u, "M gives .* and then .* for the same arguments; .* argument u"),
    "no return": (lambda x, u: None, "M must take numbers and give one; it fails with TypeError: None is not a number"),
    "a text": (lambda x, u: f"{x + u}", "TypeError: '.*' is not a number"),
    "a wrong shape": (lambda x, u: np.array([x, u]), "is not a number"),
    "arrays alone": (lambda x, u: x.sum() + u, "fails with AttributeError: 'float' object has no attribute 'sum'"),
    "a misspelt name": (lambda x, u: x + upsilon, "fails with NameError: name 'upsilon'"),  # noqa: F821
    "a ufunc": (np.exp, "has no signature|takes"),
    "any number of arguments": (lambda *values: 0.0, r"takes \['\*values'\], which are not plain .* as lambda dose, u"),
    "an unknown argument": (lambda x, u, z: 0.0, r"takes \['z'\], which are neither variables"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_mechanism_is_refused_when_the_problem_is_made(kind):
    function, message = REFUSED[kind]
    with pytest.raises(ArgumentError, match=message):
        own(function)


# U+00B5 is U+03BC to Python, a ligature two letters, a long s an s, and full-width letters are plain ones
NAMES = ["\xb5", "\ufb01t", "dri\u017ft", "\uff58"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_python_normalises_are_kept_as_they_are_written(name, tmp_path):
    scope = {}
    exec(f"def reward({name}, u): return 2.0 * {name} + u", scope)
    made = custom_problem(
        {name: lambda u: u, "Y": scope["reward"]},
        reward="Y",
        noise={name: 1.0, "Y": 0.1},
        manipulable={name: (0.0, 1.0)},
    )
    file = tmp_path / "own.yaml"
    file.write_text(
        f"name: N\nreward: Y\nvariables:\n  {name}: {{equation: u, noise: 1}}\n"
        f"  Y: {{equation: 2 * {name} + u, noise: 1}}\n"
        f"manipulable: {{{name}: [0, 1]}}\n",
        encoding="utf-8",
    )
    for problem in (made, load_problem(file)):
        assert problem.scm.nodes == (name, "Y")
        assert problem.scm.diagram == CausalDiagram([name, "Y"], [(name, "Y")])


def test_names_that_are_one_in_python_are_refused():
    with pytest.raises(ArgumentError, match=r"'\\xb5' and '\\u03bc' are one name in Python; rename one of them"):
        custom_problem({"\xb5": lambda: 1.0, "\u03bc": lambda: 2.0}, reward="\xb5")
    with pytest.raises(ArgumentError, match="cannot be a name: u stands for a variable's own noise"):
        custom_problem({"u": lambda: 1.0}, reward="u")


def test_effects_of_the_reward_are_left_out():
    problem = custom_problem(
        {"X": lambda u: u, "Y": lambda X: X**2, "Price": lambda Y, u: 3 * Y + u, "Fee": lambda Price: Price / 2},  # noqa: N803
        reward="Y",
        noise={"X": 1.0, "Price": 0.1},
        manipulable={"X": (0.0, 1.0)},
        latent=["Fee"],
        diagram="dag { X -> Y -> Price }",
    )
    assert problem.scm.nodes == ("X", "Y")
    with pytest.raises(ArgumentError, match=r"depends on itself, through \['Price'\]"):
        custom_problem({"Y": lambda Price: Price, "Price": lambda Y: Y}, reward="Y")  # noqa: N803


def test_an_optimum_beside_a_jump_is_found():
    """The reward falls from 0.3 to 0 where x falls to 0.7."""
    jump = custom_problem(
        {"x": lambda u: u, "y": lambda x, u: np.where(x > 0.7, 1.0 - x, 0.0) + u},
        reward="y",
        noise={"x": 0.1, "y": 0.1},
        manipulable={"x": (0.0, 1.0)},
    )
    optimum = oracle_of(gym.make("CBO/Custom-Hard-v0", problem=jump)).optimum
    assert optimum.value == pytest.approx(0.3, abs=1e-3)
    assert optimum.value > optimum.random_value
