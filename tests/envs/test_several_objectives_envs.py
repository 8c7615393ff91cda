"""Environments with several objectives: rewards as MO-Gymnasium has them, scalar and vectorised."""

import gymnasium as gym
import numpy as np
import pytest

import cbo_gym
from cbo_gym.envs.wrappers import FlattenAction, OracleInfo
from cbo_gym.errors import ArgumentError
from tests.support.loop import reset

IDS = ["CBO/MOCBO3-v0", "CBO/Alpine2-Cost-v0", "CBO/PSAGraph-Cost-v0"]


@pytest.mark.parametrize("env_id", IDS)
def test_rewards_are_arrays_of_the_reward_space_and_info_has_them_by_name(env_id: str) -> None:
    env = reset(gym.make(env_id), 0, 0)
    objectives = env.unwrapped.problem.outcomes.objectives
    total = np.zeros(len(objectives))
    for _ in range(5):
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert env.unwrapped.reward_space.contains(reward)
        assert not terminated
        assert not truncated
        total += reward
        nodes = dict(zip(env.unwrapped.dynamics.nodes, observation["nodes"], strict=True)) | {"cost": info.get("cost")}
        for one, number in zip(objectives, reward, strict=True):
            assert number == one.sign * info["objectives"][one.name] == one.sign * nodes[one.name]
    np.testing.assert_allclose(env.unwrapped.total_reward, total)
    assert not hasattr(gym.make("CBO/ToyGraph-v0").unwrapped, "reward_space")


@pytest.mark.parametrize("env_id", IDS)
def test_vectorised_environments_play_the_same(env_id: str) -> None:
    envs = gym.make_vec(env_id, num_envs=3, vectorization_mode="vector_entry_point")
    singles = [gym.make(env_id) for _ in range(3)]
    envs.reset(seed=7)
    for place, env in enumerate(singles):
        env.reset(seed=7 + place)
    envs.action_space.seed(1)
    for _ in range(4):
        actions = envs.action_space.sample()
        _, rewards, *_, info = envs.step(actions)
        assert rewards.shape == (3, *envs.unwrapped.reward_space.shape)
        for place, env in enumerate(singles):
            own = {k: v[place] for k, v in actions.items()} if isinstance(actions, dict) else actions[place]
            _, reward, *_, told = env.step(own)
            np.testing.assert_allclose(rewards[place], reward, rtol=1e-12)
            for name, value in told["objectives"].items():
                assert info["objectives"][name][place] == pytest.approx(value, rel=1e-12)


def test_counterfactuals_rendering_and_the_oracle_in_info() -> None:
    env = reset(gym.make("CBO/PSAGraph-Cost-v0", render_mode="ansi"))
    action = {"target": 3, "values": np.array([0.5, 0.5])}
    _, reward, *_, info = env.step(action)
    _, again, *_, told = env.unwrapped.counterfactual(action)
    np.testing.assert_array_equal(reward, again)
    assert told["objectives"] == info["objectives"]
    _, other, *_, told = env.unwrapped.counterfactual({"target": 0, "values": np.array([0.5, 0.5])})
    assert told["objectives"]["cost"] == -other[1] == 0.0
    assert "cost 1.2" in env.render()
    with_truth = reset(OracleInfo(gym.make("CBO/PSAGraph-Cost-v0")))
    *_, info = with_truth.step(action)
    assert 0.0 <= info["expected_reward"] < with_truth.oracle.optimum.value
    assert info["instant_regret"] == with_truth.oracle.optimum.value - info["expected_reward"]


def test_tasks_tell_the_objectives_and_initial_rewards_are_arrays() -> None:
    task = cbo_gym.make_task("CBO/MOCBO1-v0", seed=3)
    assert [str(one) for one in task.objectives] == ["minimize Y1", "minimize Y2"]
    nodes = task.initial_data[0].observation["nodes"]
    np.testing.assert_array_equal(task.initial_data[0].reward, -nodes[[task.nodes.index("Y1"), task.nodes.index("Y2")]])
    assert cbo_gym.make_task("CBO/ToyGraph-v0").objectives == ()
    assert isinstance(cbo_gym.make_task("CBO/ToyGraph-v0").initial_data[0].reward, float)


def test_functions_of_one_number_refuse_them() -> None:
    from cbo_gym.integrations.botorch_function import CausalTestFunction

    with pytest.raises(ArgumentError, match="several objectives, and this function gives one number"):
        CausalTestFunction("CBO/MOCBO1-v0")


def test_mo_gymnasium_takes_them() -> None:
    wrappers = pytest.importorskip("mo_gymnasium.wrappers")
    weights = np.array([0.2, 0.3, 0.5])
    plain, weighted = gym.make("CBO/MOCBO3-v0"), wrappers.LinearReward(gym.make("CBO/MOCBO3-v0"), weights)
    plain.reset(seed=5), weighted.reset(seed=5)
    plain.action_space.seed(0)
    for _ in range(3):
        action = plain.action_space.sample()
        _, vector, *_ = plain.step(action)
        _, number, *_, info = weighted.step(action)
        assert number == vector @ weights
        np.testing.assert_array_equal(info["vector_reward"], vector)
    flat = reset(FlattenAction(wrappers.LinearReward(gym.make("CBO/PSAGraph-Cost-v0"))))
    assert np.isscalar(flat.step(flat.action_space.sample())[1])
    recorded = reset(wrappers.MORecordEpisodeStatistics(gym.make("CBO/Alpine2-Cost-v0")))
    assert recorded.step(np.full(6, 0.5))[1].shape == (2,)
