"""Hard-intervention graphs: equations written out again, and means by quadrature."""

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from cbo_gym.problems import Problem
from cbo_gym.problems.systems.hard_graphs import complete_graph, psa_graph, toy_graph
from cbo_gym.scm import Intervention

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
