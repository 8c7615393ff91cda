"""Shift targets: the equations by hand, and the optimum as a least-squares problem in the box."""

import gymnasium as gym
import numpy as np
import pytest
from scipy.optimize import lsq_linear

from cbo_gym.envs import oracle_of
from cbo_gym.errors import ArgumentError
from cbo_gym.problems.systems.shift_targets import shift_target
from tests.support.problems import nodes_follow

SHAPES = [(5, "complete", 2), (10, "path", 5), (8, "random", 3)]


def matrices(problem):
    *nodes, reward = problem.scm.variables
    names = [variable.name for variable in nodes]
    weights = np.zeros((len(nodes), len(nodes)))
    for row, variable in zip(weights, nodes, strict=True):
        row[[names.index(parent) for parent in variable.parents]] = variable.mechanism.weights
    return weights, np.array(reward.mechanism.target), np.array([variable.noise.std for variable in nodes])


@pytest.mark.parametrize(("nodes", "shape", "targets"), SHAPES)
def test_the_target_is_reached_by_a_shift_of_length_1_of_nodes_of_variance_1(nodes, shape, targets):
    problem = shift_target(nodes, shape, targets, instance_seed=3)
    weights, target, stds = matrices(problem)
    effects = np.linalg.inv(np.eye(nodes) - weights)
    np.testing.assert_allclose(np.square(effects * stds).sum(1), 1.0)
    found = lsq_linear(effects, target, (-1.0, 1.0), tol=1e-14)
    assert found.cost == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(found.x, problem.to_native(problem.optimal_action), atol=1e-6)
    assert np.linalg.norm(found.x) == pytest.approx(1.0)
    assert (np.abs(found.x) > 1e-6).sum() == targets


def test_rounds_follow_the_equations_by_hand():
    problem = shift_target(4, "complete", 2)
    weights, target, _ = matrices(problem)

    def by_hand(action, noise):
        values = []
        for i, row in enumerate(weights):
            shift = 2.0 * action[i] - 1.0
            values.append(float(row[:i] @ values) + shift + noise[f"X{i}"])
        return {"X3": values[3], "Y": noise["Y"] - float(np.square(np.array(values) - target).sum())}

    nodes_follow(problem, np.random.default_rng(100).random((5, 4)), by_hand, rel=1e-9)


def test_expected_rewards_are_distances_of_means_also_by_simulation():
    for label in ("CBO/ShiftTarget5-v0", "CBO/ShiftTarget10-v0"):
        env = gym.make(label).unwrapped
        weights, target, _ = matrices(env.dynamics.problem)
        actions = list(np.random.default_rng(100).random((3, len(target))))
        means = np.linalg.solve(np.eye(len(target)) - weights, 2.0 * np.array(actions).T - 1.0).T
        np.testing.assert_allclose(oracle_of(env).expected_rewards(actions).value, -np.square(means - target).sum(1))
        for action, mean in zip(actions, means, strict=True):
            rewards = env.scm.sample(20_000, np.random.default_rng(100), env.dynamics.decode(action))["Y"]
            exact = -np.square(mean - target).sum()
            assert rewards.mean() == pytest.approx(exact, abs=4.5 * rewards.std() / np.sqrt(rewards.size))
        assert oracle_of(env).optimum.value == pytest.approx(0.0, abs=1e-12)


def test_arguments_are_checked():
    with pytest.raises(ArgumentError, match="shape must be one of"):
        shift_target(shape="star")
    with pytest.raises(ArgumentError, match="targets must be a whole number from 1 to 5"):
        shift_target(targets=6)
