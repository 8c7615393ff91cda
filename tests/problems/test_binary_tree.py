"""BinaryTree against the recursion of its docstring, and its closed-form optimum against search."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize

from cbo_gym.problems import Problem
from cbo_gym.problems.systems.binary_tree import binary_tree
from cbo_gym.scm import Intervention
from tests.support.problems import nodes_follow

GOLDEN = 0.6180339887498949


def value_at(heap: int, depth: int, action: list[float], noise: dict[str, float]) -> float:
    """The value of the node at a heap position: root 1, children 2h and 2h + 1."""
    is_leaf = heap >= 2**depth
    children = [] if is_leaf else [value_at(2 * heap + side, depth, action, noise) for side in (0, 1)]
    difference = children[0] - children[1] if children else 0.0
    if heap == 1:
        return difference + noise.get("Y", 0.0)
    index = heap - 2
    peak = (GOLDEN * (index + 1)) % 1.0
    drive = 0.1 * difference + math.cos(2 * math.pi * (action[index] - peak))
    return 5 * math.tanh(drive) + noise.get(f"X{index}", 0.0)


def rewards_of(problem: Problem, points: np.ndarray) -> np.ndarray:
    return problem.scm.propagate((), Intervention.parameters(problem.to_native(points)))["Y"]


@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("noise_std", [0.0, 1.0])
def test_every_node_equals_the_recursion(depth: int, noise_std: float) -> None:
    def by_hand(action: list[float], u: dict[str, float]) -> dict[str, float]:
        indices = range(1, 2 ** (depth + 1))
        return {"Y" if place == 1 else f"X{place - 2}": value_at(place, depth, action, u) for place in indices}

    problem = binary_tree(depth, noise_std)
    nodes_follow(problem, np.random.default_rng(depth).random((20, problem.scm.action_dim)), by_hand)


def test_the_closed_form_is_the_best_of_all_peaks_and_troughs() -> None:
    """Each action moves its node between -1 and 1 of a cosine, and every mechanism is monotone in each parent."""
    problem = binary_tree(2)
    peaks = [(GOLDEN * (i + 1)) % 1.0 for i in range(6)]
    corners = [(np.array(peaks) + shift) % 1.0 for shift in itertools.product([0.0, 0.5], repeat=6)]
    rewards = rewards_of(problem, np.array(corners))
    best = rewards_of(problem, np.array(problem.optimal_action))
    assert rewards.max() == pytest.approx(best, abs=1e-12)
    assert (rewards > best - 1e-9).sum() == 1


@pytest.mark.parametrize("depth", [1, 2, 3, 6])
def test_no_search_beats_the_closed_form(depth: int) -> None:
    problem = binary_tree(depth)
    best = float(rewards_of(problem, np.array(problem.optimal_action)))
    rng = np.random.default_rng(0)
    points = rng.random((20_000 if depth < 6 else 2_000, problem.scm.action_dim))
    rewards = rewards_of(problem, points)
    assert rewards.max() < best
    near = np.clip(np.array(problem.optimal_action) + rng.normal(0.0, 0.02, points.shape), 0.0, 1.0)
    assert rewards_of(problem, near).max() <= best
    if depth == 6:
        return
    for start in points[np.argsort(rewards)[-4:]]:
        bounds = [(0.0, 1.0)] * len(start)
        found = optimize.minimize(lambda a: -float(rewards_of(problem, a)), start, bounds=bounds)
        assert -found.fun <= best + 1e-9
