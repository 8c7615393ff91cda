"""Hard-intervention graphs: equations written out again, and means by quadrature."""

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from scipy import optimize

from cbo_gym.problems import Problem
from cbo_gym.problems.systems.hard_graphs import complete_graph, psa_graph, toy_graph
from cbo_gym.scm import Distribution, Intervention, Normal, Uniform

Do = Mapping[str, float]
Draw = dict[str, float]


def toy_by_hand(u: Draw, do: Do) -> Draw:
    x0 = do.get("X0", u["X0"])
    x1 = do.get("X1", math.exp(-x0) + u["X1"])
    return {"X0": x0, "X1": x1, "Y": -(math.cos(x1) - math.exp(-x1 / 20) + u["Y"])}


def sigmoid(x: float) -> float:
    return math.exp(x) / (1 + math.exp(x))


def psa_by_hand(u: Draw, do: Do) -> Draw:
    age = u["Age"]
    bmi = 27 - 0.01 * age + u["BMI"]
    aspirin = do.get("Aspirin", sigmoid(-8 + 0.10 * age + 0.03 * bmi))
    statin = do.get("Statin", sigmoid(-13 + 0.10 * age + 0.20 * bmi))
    cancer = sigmoid(2.2 - 0.05 * age + 0.01 * bmi - 0.04 * statin + 0.02 * aspirin)
    psa = 6.8 + 0.04 * age - 0.15 * bmi - 0.60 * statin + 0.55 * aspirin + cancer + u["Y"]
    return {"Age": age, "BMI": bmi, "Aspirin": aspirin, "Statin": statin, "Cancer": cancer, "Y": -psa}


def complete_by_hand(u: Draw, do: Do) -> Draw:
    f = u["F"]
    a = f**2 + u["U1"] + u["A"]
    b = do.get("B", u["U2"] + u["B"])
    c = math.exp(-b) + u["C"]
    d = do.get("D", math.exp(-c) / 10 + u["D"])
    e = do.get("E", math.cos(a) + c / 10 + u["E"])
    cost = math.cos(d) - d / 5 + math.sin(e) - e / 4 + u["U1"] + math.exp(-u["U2"]) + u["Y"]
    return {"F": f, "A": a, "B": b, "C": c, "D": d, "E": e, "Y": -cost}


GRAPHS = [
    pytest.param(toy_graph(), toy_by_hand, id="ToyGraph"),
    pytest.param(psa_graph(), psa_by_hand, id="PSAGraph"),
    pytest.param(complete_graph(), complete_by_hand, id="CompleteGraph"),
]
ByHand = Callable[[Draw, Do], Draw]


@pytest.mark.parametrize(("problem", "by_hand"), GRAPHS)
def test_every_variable_equals_its_equation_under_every_target(problem: Problem, by_hand: ByHand) -> None:
    scm, rng = problem.scm, np.random.default_rng(0)
    for target in problem.targets:
        do = {name: float(rng.uniform(*problem.manipulable[name])) for name in sorted(target)}
        noise = scm.draw_noise(rng, 100)
        values = scm.propagate(noise, Intervention.do(do))
        for i in range(100):
            draw = {v.name: float(column[i]) for v, column in zip(scm.noisy, noise, strict=True)}
            for name, expected in by_hand(draw, do).items():
                found = float(np.broadcast_to(values[name], 100)[i])
                assert found == pytest.approx(expected, rel=1e-10, abs=1e-10), (name, do)


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (toy_graph(), dict.fromkeys(["X0", "X1", "Y"], Normal(0.0, 1.0))),
        (psa_graph(), {"Age": Uniform(55.0, 75.0), "BMI": Normal(0.0, 0.7), "Y": Normal(0.0, 0.4)}),
        (complete_graph(), dict.fromkeys(["U1", "U2", *"FABCDEY"], Normal(0.0, 1.0))),
    ],
    ids=["ToyGraph", "PSAGraph", "CompleteGraph"],
)
def test_exogenous_distributions(problem: Problem, expected: dict[str, Distribution]) -> None:
    assert {v.name: v.noise for v in problem.scm.noisy} == expected


def test_diagrams() -> None:
    assert toy_graph().scm.diagram.directed == {("X0", "X1"), ("X1", "Y")}
    psa = psa_graph().scm.diagram
    assert {name: psa.parents(name) for name in psa.nodes} == {
        "Age": (),
        "BMI": ("Age",),
        "Aspirin": ("Age", "BMI"),
        "Statin": ("Age", "BMI"),
        "Cancer": ("Age", "BMI", "Aspirin", "Statin"),
        "Y": ("Age", "BMI", "Aspirin", "Statin", "Cancer"),
    }
    complete = complete_graph().scm.diagram
    assert complete.directed == {tuple(edge) for edge in ["FA", "BC", "CD", "AE", "CE", "DY", "EY"]}
    assert complete.bidirected == {frozenset("AY"), frozenset("BY")}
    assert complete_graph().scm.nodes == tuple("FABCDEY")


def sets(*listed: str) -> set[frozenset[str]]:
    return {frozenset(names.split()) for names in listed}


def test_targets_and_domains() -> None:
    toy, psa, complete = toy_graph(), psa_graph(), complete_graph()
    assert set(toy.targets) == sets("", "X0", "X1")
    assert set(psa.targets) == sets("", "Aspirin", "Statin", "Aspirin Statin")
    assert set(complete.targets) == sets("", "B", "D", "E", "B D", "B E", "D E")
    assert dict(toy.manipulable) == {"X0": (-5, 5), "X1": (-5, 20)}
    assert dict(psa.manipulable) == {"Aspirin": (0, 1), "Statin": (0, 1)}
    assert dict(complete.manipulable) == {"B": (-5, 4), "D": (-5, 5), "E": (-6, 3)}


# ToyGraph's optima by quadrature ------------------------------------------------------------------------------

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def toy_mean_set_x1(x1: float) -> float:
    return math.exp(-x1 / 20) - math.cos(x1)


def toy_mean_set_x0(x0: float) -> float:
    """X1 is normal around exp(-x0), so both terms have a closed form."""
    mean = math.exp(-x0)
    return math.exp(-mean / 20 + 0.5 / 400) - math.cos(mean) * math.exp(-0.5)


def maximise(function: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    grid = np.linspace(low, high, 20_001)
    start = grid[int(np.argmax([function(x) for x in grid]))]
    width = (high - low) / 20_000
    bounds = max(low, start - width), min(high, start + width)
    found = optimize.minimize_scalar(lambda x: -function(x), bounds=bounds, method="bounded")
    return float(found.x), float(-found.fun)


def package_mean(problem: Problem, do: Do) -> float:
    """E[Y | do] of the package's own ToyGraph by a tensor grid over the two noises that matter."""
    u0, u1 = np.meshgrid(NODES, NODES, indexing="ij")
    rewards = np.broadcast_to(problem.scm.propagate((u0, u1, 0.0), Intervention.do(do))["Y"], u0.shape)
    return float(WEIGHTS @ rewards @ WEIGHTS)


def test_toy_graph_optimum() -> None:
    x1, best = maximise(toy_mean_set_x1, -5.0, 20.0)
    assert (x1, best) == (pytest.approx(-3.2003, abs=5e-5), pytest.approx(2.17181, abs=5e-6))
    x0, second = maximise(toy_mean_set_x0, -5.0, 5.0)
    assert (x0, second) == (pytest.approx(-1.122, abs=5e-4), pytest.approx(1.46375, abs=5e-6))
    problem = toy_graph()
    assert package_mean(problem, {"X1": x1}) == pytest.approx(best, abs=1e-9)
    assert package_mean(problem, {"X0": x0}) == pytest.approx(second, abs=1e-9)
    for value in (-1.5, 0.0, 2.0):
        assert package_mean(problem, {"X0": value}) == pytest.approx(toy_mean_set_x0(value), abs=1e-9)
        assert package_mean(problem, {"X0": value, "X1": 3.0}) == pytest.approx(toy_mean_set_x1(3.0), abs=1e-9)
