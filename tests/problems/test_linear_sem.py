"""Linear SEM bandits: systems against matrix algebra, optima against enumeration."""

import gymnasium as gym
import numpy as np
import pytest

import cbo_gym
from cbo_gym.envs import oracle_of
from cbo_gym.problems.systems.linear_sem import enhanced_parallel, halved, hierarchical

SMALL = {
    "CBO/LinearSEMHierarchical5-v0": {"instance_seed": 300},
    "CBO/LinearSEMParallel5-v0": {"instance_seed": 301},
    "CBO/LinearSEMHalved-v0": {},
}
made = pytest.mark.parametrize(("env_id", "keywords"), SMALL.items())


def matrices(problem, subset):
    """The constants, and the weights ``B[cause, effect]``, of a subset's system."""
    names, indices = list(problem.scm.nodes), {i: v.name for v in problem.scm.variables for i in v.actions}
    switched = {name for i, name in indices.items() if subset[i]}
    constants, weights = np.zeros(len(names)), np.zeros((len(names),) * 2)
    for v in problem.scm.variables:
        if not v.actions:
            constants[names.index(v.name)] = v.mechanism.constant
            continue
        own = v.mechanism.interventional if v.name in switched else v.mechanism.observational
        constants[names.index(v.name)] = own[0]
        for cause, weight in zip(v.parents, own[1:], strict=True):
            weights[names.index(cause), names.index(v.name)] = weight
    return constants, weights


@made
def test_rounds_and_expected_rewards_are_those_of_matrix_algebra(env_id, keywords):
    envs = gym.make_vec(env_id, num_envs=200, vectorization_mode="vector_entry_point", **keywords)
    problem = envs.unwrapped.dynamics.problem
    subsets = np.random.default_rng(0).integers(2, size=(200, problem.scm.action_dim)).astype(np.int8)
    envs.reset(seed=100)
    observations, rewards, *_ = envs.step(subsets)
    assert (observations["nodes"][:, -1] == rewards).all()
    expected = oracle_of(envs).expected_rewards(list(subsets))
    assert not expected.standard_error.any()
    noise = []
    for subset, nodes, mean in zip(subsets, observations["nodes"], expected.value, strict=True):
        constants, weights = matrices(problem, subset)
        own = dict(zip(problem.scm.nodes, nodes, strict=True))
        noise.append([own[name] for name in problem.scm.nodes] @ (np.eye(len(nodes)) - weights) - constants)
        assert mean == pytest.approx((constants @ np.linalg.inv(np.eye(len(nodes)) - weights))[-1], abs=1e-12)
    std = problem.scm.variables[0].noise.std
    assert np.abs(np.mean(noise)) < 4 * std / np.sqrt(np.size(noise))
    assert np.std(noise) == pytest.approx(std, rel=0.1)


@made
def test_the_optimum_is_that_of_all_subsets(env_id, keywords):
    oracle = oracle_of(gym.make(env_id, **keywords))
    every = oracle.dynamics.all_actions()
    values = oracle.expected_rewards(list(every)).value
    assert len(every) == 2 ** every.shape[1]
    assert oracle.find_optimum().value == pytest.approx(values.max(), abs=1e-12)
    assert (oracle.find_optimum().action == every[values.argmax()]).all()


def test_graphs_are_those_of_the_papers():
    layered = hierarchical(degree=2, layers=3).scm.diagram
    assert layered.parents("X3") == layered.parents("X4") == ("X1", "X2")
    assert layered.parents("Y") == ("X5", "X6")
    assert not layered.parents("X1")
    for seed in range(300, 305):
        tree = enhanced_parallel(nodes=7, instance_seed=seed).scm.diagram
        assert set(tree.parents("Y")) == {f"X{i}" for i in range(1, 7)}
        assert [len(tree.parents(f"X{i}")) for i in range(1, 7)] == [0, 1, 1, 1, 1, 1]
    assert halved().scm.action_dim == 4


def test_other_systems_are_played_between_the_ends_of_their_parameters():
    env = gym.make("CBO/Custom-Subset-v0", problem="cbo_gym.problems.systems.function_networks:alpine2")
    env.reset(seed=0)
    *_, info = env.step([1, 0, 1, 0, 0, 1])
    assert [value for _, value in sorted(info["intervention"].items())] == [10.0, 0.0, 10.0, 0.0, 0.0, 10.0]
    with pytest.raises(gym.error.InvalidAction, match=r"0 or 1; given 0\.5"):
        env.step([0.5, 0, 1, 0, 0, 1])
    run = cbo_gym.evaluate("Random", "CBO/LinearSEMParallel5-v0", 100, horizon=20)
    assert (run.table["instant_regret"] >= 0).all()
