"""Pareto fronts against formulas and dense grids; the regret of a run by hand."""

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym import evaluate
from cbo_gym._util.fronts import (
    generational_distance_plus,
    hypervolume,
    inverted_generational_distance_plus,
    non_dominated,
)
from cbo_gym.agent import Agent
from cbo_gym.envs import oracle_of
from cbo_gym.envs.registry import find_entry
from cbo_gym.modes.oracles import SeveralObjectivesOracle
from cbo_gym.task import Action, Mode, Observation
from tests.support.environments import SEVERAL_OBJECTIVES

IDS = SEVERAL_OBJECTIVES


def oracle_on(env_id: str) -> SeveralObjectivesOracle:
    oracle = oracle_of(gym.make(env_id))
    assert isinstance(oracle, SeveralObjectivesOracle)
    return oracle


def mocbo1() -> np.ndarray:
    """Sums s up to 4 can be set; left to itself X2 is N(e, 1) where X3 - X4 is set to 2, so that s = 2 + e."""
    s = np.append(np.linspace(0.0, 4.0, 4001), rest := np.linspace(4.0, 2.0 + np.e, 701))
    variance = np.append(np.zeros(4001), np.ones_like(rest))
    return -np.stack([s**2 + variance, (s - 10.0) ** 2 + variance], -1)


def mocbo2() -> np.ndarray:
    x = np.linspace(0.0, 5.0, 20_001)
    return -np.stack([2.0 * x**2, np.sin(x**2) - 5.0 * x + 25.0], -1)


def mocbo3() -> np.ndarray:
    """X3, left alone, is U + N: E[X3 U] = 25."""
    x1, x2 = (grid.ravel() for grid in np.meshgrid(*[np.linspace(0.0, 5.0, 120)] * 2))
    return -np.stack([x1**2 + x2**2, (x2 - 5.0) ** 2 + (x1 - 10.0) ** 2, (x2 - 10.0) ** 2 - 25.0], -1)


@pytest.mark.parametrize(
    ("env_id", "front", "slack"),
    [(IDS[0], mocbo1, 1e-4), (IDS[1], mocbo2, 1e-4), (IDS[2], mocbo3, 0.015)],
)
def test_recorded_hypervolumes_are_those_of_theory(env_id: str, front, slack: float) -> None:
    """``slack`` is for the grid of what theory says: a share of the hypervolume."""
    oracle = oracle_on(env_id)
    best = oracle.optimum
    exact = hypervolume(front(), oracle.reference)
    assert abs(best.value - exact) <= 3.0 * best.standard_error + slack * exact
    assert best.standard_error < 0.01 * (best.value - best.random_value)


@pytest.mark.parametrize(
    "env_id", [pytest.param(env_id, marks=[] if env_id in IDS[1:5:3] else [pytest.mark.slow]) for env_id in IDS]
)
def test_recorded_fronts_are_reached_and_dominated_by_no_random_action(env_id: str) -> None:
    oracle = oracle_on(env_id)
    entry, front = find_entry(env_id), oracle.front
    assert (oracle.optimum.value, len(front.actions)) == (entry.optimum.value, len(entry.optimum.front))
    assert non_dominated(front.vectors).all()
    reached = type(oracle)(oracle.dynamics, seed=77).expected_vectors(front.actions, tolerance=0.0)
    width = np.ptp(front.vectors, axis=0)
    assert (np.abs(reached.value - front.vectors) <= 1e-3 * width + 5 * reached.standard_error + 1e-5).all()
    together = oracle.expected_rewards([front.actions]).value[0]
    share = 0.97 if len(oracle.reference) == 2 else 0.9  # that so few points of a curve, or of a surface, dominate
    assert share * oracle.optimum.value < together <= oracle.optimum.value * 1.001
    space = oracle.dynamics.action_space
    space.seed(1)
    random = oracle.expected_vectors([space.sample() for _ in range(100)])
    joined = hypervolume(np.concatenate([front.vectors, random.value]), oracle.reference)
    assert joined <= oracle.optimum.value + 3 * oracle.optimum.standard_error
    alone = np.array([hypervolume(one[None], oracle.reference) for one in random.value])
    error = np.hypot(alone.std() / 10.0, oracle.optimum.random_standard_error)
    assert abs(alone.mean() - oracle.optimum.random_value) < 5 * error


class Two(Agent):
    """Plays do(X1 = X2 = 2), then do(X1 = X2 = 0) twice, and recommends the last two actions."""

    modes = frozenset({Mode.HARD})
    several_objectives = True

    def act(self, observation: Observation) -> Action:
        place = 1.0 if len(self.history) == len(self.task.initial_data) else 1.0 / 3.0
        return {"target": self.task.targets.index(frozenset({"X1", "X2"})), "values": np.full(4, place)}

    def recommend(self) -> list[Action]:
        return [past.action for past in self.history[-2:]]


def test_the_regrets_of_a_run_by_hand() -> None:
    """E[Y1, Y2] is (16, 36) and then (0, 100)."""
    run = evaluate(Two(), "CBO/MOCBO1-v0", 0, horizon=3)
    oracle = oracle_on("CBO/MOCBO1-v0")
    first, second = np.array([-16.0, -36.0]), np.array([0.0, -100.0])
    widths = first - oracle.reference, second - oracle.reference
    alone, joint = widths[0].prod(), widths[0].prod() + (widths[1][0] - widths[0][0]) * widths[1][1]
    best, table = oracle.optimum.value, run.table
    assert table["instant_regret"].to_list() == pytest.approx([best - alone, best - joint, best - joint], abs=0.1)
    assert table["best_so_far_regret"].to_list() == table["instant_regret"].to_list()
    assert table["simple_regret"].to_list()[1:] == pytest.approx([best - joint, best - widths[1].prod()], abs=0.1)
    np.testing.assert_allclose(table["expected_rewards"].to_list()[:2], [first, second], atol=0.01)
    rewards = np.array(table["rewards"].to_list())
    assert table["reward"][0] == pytest.approx(hypervolume(rewards[:1], oracle.reference))
    front, told = oracle.front.vectors, np.array([second, second])
    assert table["gd_plus"][2] == pytest.approx(generational_distance_plus(told, front), abs=0.01)
    assert table["igd_plus"][2] == pytest.approx(inverted_generational_distance_plus(told, front), abs=0.05)
    assert len(table["recommended"][2]) == 2 * 5
    assert run.optimum == best
