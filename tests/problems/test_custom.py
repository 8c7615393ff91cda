import pickle
import re
from copy import deepcopy

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym import custom_problem, load_problem
from cbo_gym.errors import ArgumentError
from cbo_gym.modes.oracles import Oracle
from cbo_gym.problems.custom.expression import Equation
from cbo_gym.scm import CausalDiagram, Normal, Uniform

GREENHOUSE = """
name: Greenhouse
description: Light and heat make plants grow.
reward: Yield
variables:
  Light: {equation: u, noise: {Uniform: [0, 1]}}
  Growth: {equation: "Light * exp(-(heat - 22)**2 / 50) + u", noise: 0.1}
  Yield: Growth * price - 0.1 * price**2
actions: {heat: [10, 30], price: [0, 8]}
manipulable: {Light: [0, 1], Growth: [0, 2]}
"""


def greenhouse(**changes):
    arguments = {
        "mechanisms": {
            "Light": lambda u: u,
            "Growth": lambda u, heat, Light: Light * np.exp(-((heat - 22) ** 2) / 50) + u,  # noqa: N803
            "Yield": lambda Growth, price: Growth * price - 0.1 * price**2,  # noqa: N803
        },
        "reward": "Yield",
        "noise": {"Light": Uniform(0.0, 1.0), "Growth": 0.1},
        "actions": {"heat": (10.0, 30.0), "price": (0.0, 8.0)},
        "manipulable": {"Light": (0.0, 1.0), "Growth": (0.0, 2.0)},
    }
    return custom_problem(**arguments | changes)


ALONE = {"noise": {}, "manipulable": {}}


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "greenhouse.yaml"
    file.write_text(GREENHOUSE)
    return file


def test_the_graph_is_read_off_the_mechanisms():
    problem = greenhouse()
    assert problem.scm.nodes == ("Light", "Growth", "Yield")
    assert problem.scm.diagram.directed == {("Light", "Growth"), ("Growth", "Yield")}
    assert [variable.actions for variable in problem.scm.variables] == [(), (0,), (1,)]
    assert [variable.noise for variable in problem.scm.variables][:2] == [Uniform(0.0, 1.0), Normal(0.0, 0.1)]
    assert problem.targets == [frozenset(), frozenset({"Light"}), frozenset({"Growth"})]


def test_equations_and_functions_give_the_same_rounds(path):
    action = np.array([0.3, 0.8])
    rewards = []
    for problem in (greenhouse(), str(path), load_problem(path)):
        env = gym.make("CBO/Custom-v0", problem=problem)
        env.reset(seed=3)
        rewards.append([env.step(action)[1] for _ in range(5)])
    np.testing.assert_allclose(rewards[0], rewards[1])
    np.testing.assert_array_equal(rewards[1], rewards[2])


def test_the_optimum_is_computed(path):
    optimum = Oracle(gym.make("CBO/Custom-v0", problem=str(path)).unwrapped.dynamics).optimum
    # E[Light] = 1/2 at heat 22: maximise p/2 - p^2/10, at p = 2.5
    assert optimum.value == pytest.approx(0.625, abs=1e-4)
    np.testing.assert_allclose(optimum.action, [0.6, 2.5 / 8], atol=0.01)


def test_a_diagram_is_checked_against_the_mechanisms():
    right = CausalDiagram(["Light", "Growth", "Yield"], [("Light", "Growth"), ("Growth", "Yield")])
    assert greenhouse(diagram=right).name == "Custom"
    wrong = CausalDiagram(["Light", "Growth", "Yield"], [("Light", "Yield"), ("Growth", "Yield")])
    with pytest.raises(ValueError, match=r"only in the diagram \['Light -> Yield'\].*\['Light -> Growth'\]"):
        greenhouse(diagram=wrong)
    confounded = CausalDiagram(right.nodes, right.directed, [("Light", "Yield")])
    with pytest.raises(ValueError, match=r"confounded pairs only in the diagram \['Light <-> Yield'\]"):
        greenhouse(diagram=confounded)
    with pytest.raises(ValueError, match=r"variables \['Rain'\]"):
        greenhouse(diagram=CausalDiagram([*right.nodes, "Rain"], right.directed))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"noise": {"Light": 1.0, "Growth": 0.1, "Rain": 1.0}}, r"noise names \['Rain'\]"),
        ({"noise": {"Light": 1.0, "Growth": 0.1, "Yield": 1.0}}, "Yield does not take u"),
        ({"actions": {"heat": (10.0, 30.0)}}, r"Yield takes \['price'\]"),
        ({"actions": {"heat": (0, 1), "price": (0, 1), "water": (0, 1)}}, r"no mechanism takes .*\['water'\]"),
        ({"actions": {"heat": (0, 1), "price": (0, 1), "Light": (0, 1)}}, r"\['Light'\] are both"),
        ({"latent": ["Rain"]}, r"latent names \['Rain'\]"),
        (
            {"reward": "Growth", "manipulable": {}},
            r"as \['Yield'\] do not, takes .* \['price'\]",
        ),
        ({"reward": "Light", "contexts": ["Growth"]}, r"contexts names \['Growth'\], effects of the reward Light"),
        ({"reward": "Light"}, r"manipulable names \['Growth'\], effects of the reward Light, .* leave it out"),
        ({"manipulable": {"Yield": (0.0, 1.0)}}, r"cannot be manipulable"),
        ({"targets": [["Light", "Rain"]]}, "'Rain' cannot be set"),
        ({"mechanisms": [1]}, r"mechanisms must be a mapping by name, .* given \[1\]"),
        (
            {"mechanisms": {"Light": "u"}, "reward": "Light", **ALONE},
            "must be a function; given 'u'; .* a YAML file has equations as strings",
        ),
        ({"mechanisms": {1: lambda u: u}}, "the keys of mechanisms must be a list of names; given"),
        ({"reward": ["Yield"]}, r"reward must be a string; given \['Yield'\]"),
        ({"reward": "Profit"}, r"reward names \['Profit'\]"),
        ({"noise": {"Light": "much", "Growth": 0.1}}, "the noise of Light must be a finite number .* given 'much'"),
        ({"noise": 0.1}, "noise must be a mapping"),
        ({"latent": "Light"}, "latent must be a list of names; given 'Light'"),
        ({"targets": "Light"}, "targets must be a list of sets of names, .* given 'Light'"),
        ({"manipulable": {"Light": "01"}}, "'Light' must be low < high, two finite numbers; given '01'"),
        ({"manipulable": {"Light": (0.0, np.nan)}}, r"'Light' must be low < high, .* given \(0.0, nan\)"),
        ({"manipulable": {"Light": (0, 10**400)}}, "'Light' must be low < high"),
        ({"actions": {"heat": None, "price": (0, 1)}}, "'heat' must be low < high, .* given None"),
    ],
)
def test_what_does_not_fit_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        greenhouse(**changes)


@pytest.mark.parametrize("entry", ["observed: false", "latent: true", "latent: true, observed: false"])
def test_a_variable_of_a_file_is_latent_either_way(path, entry):
    path.write_text(
        GREENHOUSE.replace("Light: {equation: u", f"Light: {{{entry}, equation: u").replace("{Light: [0, 1], ", "{")
    )
    assert load_problem(path).scm.nodes == ("Growth", "Yield")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("noise: 0.1", "noise: {Cauchy: [0]}", "Cauchy"),
        ("noise: 0.1", "noise: {Normal: [0, 1, 2]}", "noise of Growth"),
        ("noise: 0.1", "noise: -1", "at least 0"),
        ("heat - 22", "heat - ", "cannot read the equation"),
        ("  Light:", "  exp:", "'exp' cannot be a name"),
        ("name: Greenhouse", "name: [", "flow sequence"),
        (
            "Light: {",
            "Light: {latnt: true, ",
            r"field variables.Light.latnt: there is no such field among equation, latent, noise, observed; "
            r"did you mean 'latent'\?$",
        ),
        ("Light: {", "Light: {latent: true, observed: true, ", "Light is latent and observed; leave out one"),
        (
            "reward: Yield",
            "rewards: Yield",
            "field rewards: there is no such field among actions, .* mean 'reward'",
        ),
        (
            "reward: Yield",
            "reward: 7",
            "field reward: .* given 7; a string that looks like a number .* quotation marks",
        ),
        ("noise: 0.1", "noise: {Normal: 3}", r"field variables.Growth.noise.*Normal: .* list, given 3$"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(path, old, new, message):
    path.write_text(GREENHOUSE.replace(old, new))
    with pytest.raises(ArgumentError, match=rf"(?s)cannot load the problem .*greenhouse\.yaml: .*{message}"):
        load_problem(path)


def test_an_environment_needs_a_problem():
    for make in (gym.make, gym.make_vec):
        with pytest.raises(ArgumentError, match=r"give the problem .* problem=.*custom_problem.*YAML"):
            make("CBO/Custom-v0")


def many(count):
    names = [f"X{i}" for i in range(count)]
    return {
        "mechanisms": {name: Equation("u") for name in names} | {"Y": Equation(" + ".join(names))},
        "reward": "Y",
        "noise": dict.fromkeys(names, 1.0),
        "manipulable": dict.fromkeys(names, (0.0, 1.0)),
    }


def test_of_many_manipulable_variables_the_targets_are_to_be_given():
    assert len(custom_problem(**many(10)).targets) == 1024
    with pytest.raises(ArgumentError, match=r"40 manipulable variables have more than 1024 .* as targets"):
        custom_problem(**many(40))
    assert len(custom_problem(**many(40), targets=[[], ["X1"]]).targets) == 2


def test_many_latent_variables_are_projected_out_in_time(tmp_path):
    """Each depends on all before it: there are 2^60 ways through them."""
    file = tmp_path / "latent.yaml"
    rows = ["L0: {equation: a, observed: false}"]
    rows += [f"L{i}: {{equation: {' + '.join(f'L{j}' for j in range(i))}, observed: false}}" for i in range(1, 60)]
    string = "\n  ".join(["variables:", *rows, "Y: L59"])
    file.write_text(f"name: Latent\nreward: Y\nactions: {{a: [0, 1]}}\n{string}\n")
    assert load_problem(file).scm.action_nodes == {"Y": (0,)}


def test_too_many_variables_are_refused(tmp_path):
    file = tmp_path / "many.yaml"
    file.write_text("name: Many\nreward: X0\nvariables:\n" + "".join(f"  X{i}: 1.0 * e\n" for i in range(201)))
    with pytest.raises(ArgumentError, match="field variables: Dictionary should have at most 200 items"):
        load_problem(file)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere\.yaml"):
        gym.make("CBO/Custom-v0", problem=str(tmp_path / "nowhere.yaml"))


@pytest.mark.parametrize(
    "string",
    [
        "__import__('os')",
        "x.real",
        "(lambda: 1)()",
        "[x for x in y]",
        "'text'",
        "open(x)",
        "exp(x, out=y)",
        "x if y else z",
        "exp.__class__(x)",
        "x[0]",
        "True",
        "x and y",
        "not x",
        "x in y",
        "x @ y",
        "x | y",
        "where(0 < x < 1, x, 0)",
        "exp + x",
    ],
)
def test_equations_hold_nothing_but_arithmetic(string):
    with pytest.raises(ValueError, match=r"not allowed|is not a number|of two values|exp\(\.\.\.\)"):
        Equation(string)


def test_towers_of_powers_end_soon():
    tower = Equation(" ** ".join(["a"] * 90))
    with pytest.raises(OverflowError):
        tower(3)
    with np.errstate(over="ignore"):
        assert not np.isfinite(tower(np.array([3, 7]))).any()
    assert tower(1) == 1.0


def test_huge_constants_end_with_an_error():
    with pytest.raises(ArgumentError, match=r"9 \*\* .* in the equation '9 .* not a finite number"):
        Equation("9 ** 9 ** 9 ** 9 + x")  # in whole numbers it would not end
    with pytest.raises(ArgumentError, match="too large"):
        Equation("1" + 400 * "0" + " + x")


@pytest.mark.parametrize(
    ("string", "message"),
    [
        ("maximum(A, B, C)", r"maximum\(...\) in the equation 'maximum\(A, B, C\)' takes 2 arguments; given 3"),
        ("exp(heat, 2, 3, 4)", r"exp\(...\) .* takes 1 argument; given 4"),
        ("clip(x)", r"clip\(...\) .* takes 3 arguments; given 1"),
        ("where(x > 0)", r"where\(...\) .* takes 3 arguments; given 1"),
    ],
)
def test_functions_take_as_many_arguments_as_they_have(string, message):
    with pytest.raises(ArgumentError, match=message):
        Equation(string)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "string", ["x + 1 / 0", "x * log(0)", "(-1) ** 0.5 + x", "exp(9999)", "1e999 * x", "5 % 0", "x * sqrt(0 - 1)"]
)
def test_a_part_that_does_not_vary_must_be_a_finite_number(string):
    with pytest.raises(ArgumentError, match=rf"in the equation '{re.escape(string)}' is not a finite number"):
        Equation(string)


@pytest.mark.parametrize(
    ("string", "message"),
    [
        ("x + " * 400 + "x", "nested more than 200 deep"),
        ("-" * 4000 + "x", "nested more than 200 deep"),
        ("(" * 300 + "x" + ")" * 300, "too many nested parentheses"),
        ("x" * 5001, "has 5001 characters; at most 5000"),
        ("\0x", "null bytes"),
        (5, "an equation is a string; given 5"),
        ("__debug__ * x", "__debug__ .* cannot be a name"),
        ("x * 0x" + "f" * 4500, "a number in the equation .* is not a finite number"),
    ],
)
def test_an_equation_is_not_endless(string, message):
    with pytest.raises(ArgumentError, match=message) as raised:
        Equation(string)
    assert len(str(raised.value)) < 300


def test_equations_are_pickled_as_strings():
    equation = Equation("sqrt(abs(x)) + y ** 2")
    for other in (deepcopy(equation), pickle.loads(pickle.dumps(equation))):
        assert other == equation
        assert other(4.0, 3.0) == 11.0


def test_equations_compute_on_numbers_and_arrays():
    function = Equation("where(x > 0, sqrt(abs(x)), -pi) + 2 * y ** 2 % 5")
    x, y = np.array([-1.0, 4.0]), np.array([1.0, 2.0])
    expected = np.where(x > 0, np.sqrt(np.abs(x)), -np.pi) + 2 * y**2 % 5
    np.testing.assert_allclose(function(x, y), expected)
    assert function(4.0, 2.0) == pytest.approx(expected[1])
    assert np.isnan(Equation("x ** 0.5")(-1.0))
    assert Equation("x ** (0 - 2)")(-2.0) == 0.25


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">=", "==", "!="])
@pytest.mark.parametrize(
    "form", ["(a {} 0.5) + (b {} 0.5)", "(a {} 0.5) - (b {} 0.5)", "-(a {} 0.5) + 0 * b", "abs(a {} 0.5) * b"]
)
def test_comparisons_are_numbers_alone_and_in_arrays(operator, form):
    string = form.replace("{}", operator)
    rows = [(0.2, 0.3), (0.5, 0.5), (0.9, 0.7), (0.9, 0.1)]
    truth = [eval(string, {"abs": abs}, {"a": a, "b": b}) for a, b in rows]
    assert [Equation(string)(*row) for row in rows] == truth
    np.testing.assert_array_equal(Equation(string)(*np.transpose(rows)), truth)
