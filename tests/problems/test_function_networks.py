"""Function networks against their formulas, written out again with math alone, and their known optima."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from cbo_gym.envs.registry import find_entry
from cbo_gym.problems import Problem
from cbo_gym.problems.systems.function_networks import (
    ALPINE2_PEAK,
    ALPINE2_TROUGH,
    ackley,
    alpine2,
    dropwave,
    rosenbrock,
)
from cbo_gym.scm import Intervention
from tests.support.problems import nodes_follow

Draw = dict[str, float]  # exogenous value of each noisy variable; absent where there is none


def ripple(radius: float) -> float:
    return (1 + math.cos(12 * radius)) / (2 + 0.5 * radius**2)


def dropwave_by_hand(a: list[float], u: Draw) -> Draw:
    x0 = math.sqrt((10.24 * a[0] - 5.12) ** 2 + (10.24 * a[1] - 5.12) ** 2) + u.get("X0", 0.0)
    return {"X0": x0, "Y": ripple(x0) + u.get("Y", 0.0)}


def published_dropwave_by_hand(a: list[float], u: Draw) -> Draw:
    norm = math.hypot(10.24 * a[0] - 5.12, 10.24 * a[1] - 5.12)
    return {"X0": norm + u["U0"], "Y": ripple(norm) + u["Y"]}


def wave(x: float) -> float:
    return math.sqrt(x) * math.sin(x)


def alpine2_by_hand(a: list[float], u: Draw) -> Draw:
    values = {"X0": -wave(10 * a[0]) + u.get("X0", 0.0)}
    previous = "X0"
    for i, name in enumerate(["X1", "X2", "X3", "X4", "Y"], start=1):
        values[name] = wave(10 * a[i]) * values[previous] + u.get(name, 0.0)
        previous = name
    return values


def rosenbrock_by_hand(a: list[float], u: Draw) -> Draw:
    x = [4 * (coordinate - 0.5) for coordinate in a]
    values: Draw = {}
    running = 0.0
    for i, name in enumerate(["X0", "X1", "X2", "Y"]):
        running += -100 * (x[i + 1] - x[i] ** 2) ** 2 - (1 - x[i]) ** 2 + u.get(name, 0.0)
        values[name] = running
    return values


def ackley_by_hand(a: list[float], u: Draw) -> Draw:
    x = [4 * (coordinate - 0.5) for coordinate in a]
    x0 = sum(v**2 for v in x) / 6
    x1 = sum(math.cos(2 * math.pi * v) for v in x) / 6
    return {"X0": x0, "X1": x1, "Y": 20 * math.exp(-0.2 * math.sqrt(x0)) + math.exp(x1) - 20 - math.e}


CASES = [
    pytest.param(dropwave(), dropwave_by_hand, id="Dropwave"),
    pytest.param(dropwave(noise_std=0.1), dropwave_by_hand, id="Dropwave-Noisy"),
    pytest.param(dropwave(0.1, noise_free_parent=True), published_dropwave_by_hand, id="Dropwave-NoisyPublished"),
    pytest.param(alpine2(), alpine2_by_hand, id="Alpine2"),
    pytest.param(alpine2(noise_std=1.0), alpine2_by_hand, id="Alpine2-Noisy"),
    pytest.param(rosenbrock(), rosenbrock_by_hand, id="Rosenbrock"),
    pytest.param(rosenbrock(noise_std=1.0), rosenbrock_by_hand, id="Rosenbrock-Noisy"),
    pytest.param(ackley(), ackley_by_hand, id="Ackley"),
]


def expected_reward(problem: Problem, action: list[float]) -> float:
    """The noiseless reward: E[Y | a] for the problems whose noise enters linearly or not at all."""
    scm = problem.scm
    zeros = tuple(0.0 for _ in scm.noisy)
    return float(scm.propagate(zeros, Intervention.parameters(problem.to_native(action)))[scm.reward])


@pytest.mark.parametrize(("problem", "by_hand"), CASES)
def test_every_node_equals_its_formula(problem: Problem, by_hand: Callable[[list[float], Draw], Draw]) -> None:
    nodes_follow(problem, np.random.default_rng(1).random((100, problem.scm.action_dim)), by_hand)


@pytest.mark.parametrize("build", [dropwave, alpine2, rosenbrock])
def test_every_node_has_noise_of_the_stated_size(build: Callable[..., Problem]) -> None:
    problem = build(noise_std=0.7)
    assert [v.name for v in problem.scm.noisy] == list(problem.scm.nodes)
    assert {(v.noise.mean, v.noise.std) for v in problem.scm.noisy} == {(0.0, 0.7)}


@pytest.mark.parametrize(
    ("problem", "best"),
    [
        (dropwave(), 1.0),
        (dropwave(0.1, noise_free_parent=True), 1.0),
        (alpine2(), 381.149),
        (alpine2(1.0), 381.149),
        (rosenbrock(), 0.0),
        (rosenbrock(1.0), 0.0),
        (ackley(), 0.0),
    ],
)
def test_the_stated_maximiser_reaches_the_known_optimum(problem: Problem, best: float) -> None:
    assert expected_reward(problem, problem.optimal_action) == pytest.approx(best, abs=6e-4 if best > 1 else 1e-12)


@pytest.mark.parametrize(
    "problem", [dropwave(0.1, noise_free_parent=True), alpine2(1.0), rosenbrock(1.0)], ids=lambda p: p.name
)
def test_noiseless_mean_holds_where_it_is_claimed(problem: Problem) -> None:
    assert problem.noiseless_mean
    rng = np.random.default_rng(0)
    for action in rng.random((8, problem.scm.action_dim)):
        intervention = Intervention.parameters(problem.to_native(action))
        rewards = problem.scm.sample(20_000, rng, intervention)["Y"]
        standard_error = rewards.std() / math.sqrt(rewards.size)
        assert abs(rewards.mean() - expected_reward(problem, action)) < 4.5 * standard_error


@pytest.mark.parametrize("build", [dropwave, alpine2, rosenbrock, ackley])
def test_inner_nodes_can_be_set_to_what_actions_can_reach(build: Callable[..., Problem]) -> None:
    problem = build()
    # the extremes of these networks lie at the corners and at the stationary points of Alpine2's factor
    levels = [0.0, 0.375, 0.5, 0.75, 1.0]
    if build is alpine2:
        levels = [ALPINE2_TROUGH / 10, ALPINE2_PEAK / 10]
    grid = np.array(list(itertools.product(levels, repeat=problem.scm.action_dim)))
    values = problem.scm.propagate((), Intervention.parameters(problem.to_native(grid)))
    for name, domain in problem.manipulable.items():
        assert (values[name].min(), values[name].max()) == pytest.approx(domain)
    assert set(problem.targets) == {frozenset(), *[frozenset({name}) for name in problem.manipulable]} | (
        {frozenset({"X0", "X1"})} if build is ackley else set()
    )


@pytest.mark.parametrize(("name", "best"), [("Alpine2", 374.41761577734), ("Rosenbrock", -3609.0), ("Ackley", 0.0)])
def test_the_best_hard_intervention_is_at_the_end_of_the_chain(name: str, best: float) -> None:
    # Alpine2: 2.80813^5 at X4 times the factor at x = 5; Rosenbrock: X2 = 0 and the last term at x = y = -2
    assert find_entry(f"CBO/{name}-Hard-v0").optimum.value == pytest.approx(best, abs=1e-6)
