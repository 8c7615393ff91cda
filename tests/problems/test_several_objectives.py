"""The systems with several objectives: mechanisms against simulations of their own, and what a problem refuses."""

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import truncnorm

from cbo_gym import sample
from cbo_gym.actions import Costs
from cbo_gym.errors import ArgumentError
from cbo_gym.modes import make_dynamics
from cbo_gym.problems import Problem
from cbo_gym.problems.outcomes import Outcomes
from cbo_gym.problems.systems.hard_graphs import toy_graph
from cbo_gym.problems.systems.several_objectives import mocbo1, mocbo2
from cbo_gym.task import Constraint, Objective

N = 30_000


def simulated(name: str, do: dict[str, float], seed: int) -> dict[str, np.ndarray]:
    """Samples by the published equations, written down again."""
    rng = np.random.default_rng(seed)
    v: dict[str, np.ndarray] = {}

    def put(variable: str, natural: np.ndarray) -> None:
        v[variable] = np.full(N, do[variable]) if variable in do else natural

    def normal(scale: float = 1.0) -> np.ndarray:
        return scale * rng.standard_normal(N)

    if name == "MOCBO1":
        put("X3", normal()), put("X4", normal())
        put("X1", ((v["X3"] - v["X4"]) / 2) ** 3 + normal())
        put("X2", np.exp((v["X3"] - v["X4"]) / 2) + normal())
        put("Y1", (v["X1"] + v["X2"]) ** 2 + normal())
        put("Y2", (v["X1"] + v["X2"] - 10) ** 2 + normal())
    elif name == "MOCBO2":
        u = rng.choice([-4.0, 4.0], N)
        put("X4", normal() ** 2 + u)
        put("X1", v["X4"] / 2 + normal() ** 2)
        put("X2", normal() ** 2), put("X3", normal() ** 2)
        put("Y1", np.log1p(v["X1"] ** 2) + 2 * v["X2"] ** 2)
        put("Y2", np.sin(v["X2"] ** 2) - v["X3"] ** 2 - v["X2"] * v["X3"] + 50)
    elif name == "MOCBO3":
        u = rng.choice([-5.0, 5.0], N)
        put("X1", normal()), put("X2", normal()), put("X3", u + normal())
        put("Y1", v["X1"] ** 2 + v["X2"] ** 2 + normal())
        put("Y2", (v["X2"] - 5) ** 2 + (v["X1"] - 10) ** 2 + normal())
        put("Y3", (v["X2"] - 10) ** 2 - v["X3"] * u + normal())
    else:
        put("Calories", rng.uniform(-100, 100, N))
        put("BMR", 1500 + 10 * truncnorm(-0.5, 0.5).rvs(N, random_state=rng))
        put("Height", 175 + 10 * truncnorm(-1, 2).rvs(N, random_state=rng))
        put("Age", 65 + normal())
        put("Weight", (v["BMR"] + 6.8 * v["Age"] - 5 * v["Height"]) / (13.7 + v["Calories"] * 150 / 7716))
        put("BMI", v["Weight"] / (v["Height"] / 100) ** 2)
        put("Aspirin", 1 / (1 + np.exp(8 - 0.1 * v["Age"] - 0.03 * v["BMI"])))
        put("Statin", 1 / (1 + np.exp(13 - 0.1 * v["Age"] - 0.2 * v["BMI"])))
        drugs = 0.02 * v["Aspirin"] - 0.04 * v["Statin"]
        put("Cancer", 1 / (1 + np.exp(-2.2 + 0.05 * v["Age"] - 0.01 * v["BMI"] - drugs)))
        level = 6.8 + 0.04 * v["Age"] - 0.15 * v["BMI"] - 0.6 * v["Statin"] + 0.55 * v["Aspirin"] + v["Cancer"]
        put("PSA", level + normal(0.4))
    return v


@pytest.mark.parametrize("name", ["MOCBO1", "MOCBO2", "MOCBO3", "MOCBOHealth"])
def test_the_mechanisms_are_the_published_ones(name: str) -> None:
    problem = gym.make(f"CBO/{name}-v0").unwrapped.problem
    rng = np.random.default_rng(0)
    for index, target in enumerate(problem.targets[:: max(1, len(problem.targets) // 4)]):
        do = {one: float(rng.uniform(*problem.manipulable[one])) for one in sorted(target)}
        ours = sample(f"CBO/{name}-v0", N, do=do, seed=index)
        theirs = simulated(name, do, seed=index + 50)
        for node in problem.scm.nodes:
            left, right = ours[node].to_numpy(), theirs[node]
            for power in (1, 2):
                a, b = (values**power for values in (left, right))
                error = np.hypot(a.std(), b.std()) / np.sqrt(N)
                assert abs(a.mean() - b.mean()) <= 5 * error + 1e-9, (do, node, power)


def test_the_targets_are_minimal_sets_and_all_variables() -> None:
    for build, count in ((mocbo1, 14), (mocbo2, 13)):
        problem = build()
        assert len(problem.targets) == count
        assert frozenset(problem.manipulable) in problem.targets
    assert {frozenset(pair) for pair in mocbo2().scm.diagram.bidirected} == {frozenset({"X4", "Y1"})}
    assert ("X2", "Y1") in mocbo2().scm.diagram.directed  # which the published diagram lacks


def with_objectives(*objectives: Objective, **more: object) -> Problem:
    toy = toy_graph()
    outcomes = Outcomes("Y", objectives=objectives, **more)  # type: ignore[arg-type]
    targets = [frozenset(), frozenset({"X0"})]
    return Problem("Toy", toy.scm, "", "", manipulable={"X0": (-5.0, 5.0)}, targets=targets, outcomes=outcomes)


Y, X1, PAID = Objective("Y"), Objective("X1", "minimize"), Objective("cost", "minimize")


def test_what_objectives_must_be() -> None:
    assert with_objectives(Y, X1).outcomes.objectives == (Y, X1)
    assert with_objectives(Y, PAID, costs=Costs(base=1.0)).outcomes.has_cost_objective
    for objectives, more, message in (
        ((Y,), {}, "two or more different"),
        ((Y, Y), {}, "two or more different"),
        ((Y, Objective("X1", "up")), {}, "direction of an objective is one of"),  # type: ignore[arg-type]
        ((Y, Objective("X0")), {}, r"cannot be set, or 'cost'; given 'X0'; choose from \['X1', 'Y'\]"),
        ((Y, Objective("X2")), {}, "given 'X2'"),
        ((X1, PAID), {"costs": Costs(base=1.0)}, "reward 'Y' must be among"),
        ((Y, PAID), {}, "'cost' needs costs"),
        ((Y, X1), {"constraints": (Constraint("X1", "<=", 1.0),)}, "several objectives cannot have constraints"),
    ):
        with pytest.raises(ArgumentError, match=message):
            with_objectives(*objectives, **more)


def test_other_modes_and_instances_refuse_several_objectives() -> None:
    with pytest.raises(ArgumentError, match="several objectives, which are played in the modes soft, hard"):
        make_dynamics("cbo_gym.problems.systems.several_objectives:alpine2_cost", "aggregated")
    with pytest.raises(ArgumentError, match="set instance=0"):
        gym.make("CBO/MOCBO1-v0", instance=3)
    with pytest.raises(ArgumentError, match="several objectives cannot have constraints"):
        gym.make("CBO/MOCBO1-v0", constraints=["X1 <= 1"])
    with pytest.raises(ArgumentError, match=r"objectives \['minimize Y1'\] are nodes that agents do not know"):
        gym.make("CBO/MOCBO1-v0", graph="wrong", graph_omitted=["Y1"])
