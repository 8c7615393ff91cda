import importlib
import sys

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3 import DQN, PPO, SAC

from cbo_gym import evaluate, sweep
from cbo_gym.agent import UnsupportedModeError
from cbo_gym.envs.wrappers import FlattenAction
from cbo_gym.errors import ArgumentError, ArgumentTypeError, MissingExtraError
from cbo_gym.evaluation import load_runs
from cbo_gym.integrations.sb3 import Policy, VecEnv
from tests.support.environments import FIRST_OF_MODE

ALGORITHMS = {
    "PPO": (PPO, None, {"n_steps": 8, "batch_size": 16, "n_epochs": 1}),
    "SAC": (SAC, None, {"learning_starts": 8, "batch_size": 8}),
    "DQN": (DQN, 32, {"learning_starts": 8, "batch_size": 8}),
}


@pytest.mark.parametrize(
    ("env_id", "name"),
    [
        pytest.param(env_id, name, marks=[] if name == "PPO" or mode == "hard" else [pytest.mark.slow])
        for mode, env_id in FIRST_OF_MODE.items()
        for name in ALGORITHMS
    ],
)
def test_every_algorithm_trains_on_every_mode(env_id, name):
    """By default one of them on all modes, the others where a choice is among the numbers of an action."""
    algorithm, discrete, parameters = ALGORITHMS[name]
    venv = VecEnv(env_id, num_envs=4, discrete=discrete, seed=0)
    before = algorithm("MultiInputPolicy", venv, gamma=0.0, seed=0, **parameters)
    weights = [p.detach().clone() for p in before.policy.parameters()]
    before.learn(64)
    assert before.num_timesteps >= 64
    assert any(not np.array_equal(p.detach(), w) for p, w in zip(before.policy.parameters(), weights, strict=True))


def test_experiments_are_those_of_the_scalar_environment():
    assert VecEnv("CBO/BinaryTree-v0(depth=1)").action_space.shape == (2,)
    venv = VecEnv("CBO/Alpine2-Noisy-v0", num_envs=3, seed=5)
    venv.reset()
    actions = np.random.default_rng(0).uniform(-1, 1, (4, 3, 6))
    batched = [venv.step(step) for step in actions]
    for index in range(3):
        env = FlattenAction(gym.make("CBO/Alpine2-Noisy-v0"))
        env.reset(seed=5 + index)
        for step, (observation, rewards, *_) in zip(actions, batched, strict=True):
            one, reward, *_ = env.step((step[index] + 1) / 2)
            assert rewards[index] == pytest.approx(reward)
            np.testing.assert_allclose(observation["nodes"][index], one["nodes"])


def test_the_end_of_an_episode_is_where_the_library_looks_for_it():
    venv = VecEnv("CBO/Dropwave-v0", num_envs=2, seed=0)
    venv.reset()
    steps = [venv.step(np.zeros((2, 2))) for _ in range(101)]
    assert [bool(dones.all()) for _, _, dones, _ in steps] == [False] * 99 + [True, False]
    observation, _, _, infos = steps[99]
    assert infos[0]["TimeLimit.truncated"]
    np.testing.assert_allclose(infos[0]["terminal_observation"]["nodes"], [0.0, 1.0])
    np.testing.assert_array_equal(observation["nodes"], np.zeros((2, 2)))


def test_a_trained_policy_plays_as_an_agent(tmp_path):
    venv = VecEnv("CBO/PSAContextual2-v0", num_envs=2, seed=0)
    model = PPO("MultiInputPolicy", venv, n_steps=8, batch_size=16, n_epochs=1, seed=0).learn(16)
    with pytest.raises(ArgumentTypeError, match=r"PPO is not an agent.*; .*sb3.Policy\(model\) makes an agent"):
        evaluate(model, "CBO/PSAContextual2-v0", 0, horizon=3)
    policy = Policy(model)
    run = evaluate(policy, "CBO/PSAContextual2-v0", 0, horizon=3)
    assert run.status == "finished"
    assert sweep(policy, "CBO/PSAContextual2-v0", 1, tmp_path, horizon=3, n_jobs=1)["finished"] == 1
    (again,) = load_runs(tmp_path)
    assert again.curve("expected_reward") == pytest.approx(run.curve("expected_reward"))
    with pytest.raises(ArgumentError, match=r"trained on actions in Box\(.*those of CBO/Dropwave-v0 are in"):
        evaluate(policy, "CBO/Dropwave-v0", 0, horizon=1)
    numbers = Policy(DQN("MultiInputPolicy", VecEnv("CBO/Dropwave-v0", discrete=8), buffer_size=100, seed=0))
    assert evaluate(numbers, "CBO/Dropwave-v0", 0, horizon=2).agent == "Policy"


def test_pictures_of_all_experiments():
    venv = VecEnv("CBO/ToyGraph-v0", num_envs=2, seed=0, render_mode="rgb_array")
    one = gym.make("CBO/ToyGraph-v0", render_mode="rgb_array")
    one.reset(seed=0)
    venv.reset()
    height, width, _ = one.render().shape
    assert venv.render().shape in ((height, 2 * width, 3), (2 * height, width, 3))
    with pytest.raises(ArgumentError, match="render_mode='rgb_array'"):
        VecEnv("CBO/ToyGraph-v0").get_images()


def test_what_the_experiments_share_cannot_be_set_one_by_one():
    venv = VecEnv("CBO/Dropwave-v0", num_envs=2)
    assert venv.get_attr("num_envs", [0]) == [2]
    assert venv.env_is_wrapped(FlattenAction) == [False, False]
    with pytest.raises(NotImplementedError, match="share one system"):
        venv.set_attr("num_envs", 3)
    with pytest.raises(NotImplementedError, match="stepped together"):
        venv.env_method("reset")
    with pytest.raises(UnsupportedModeError, match="maximises one reward; CBO/MOCBO1-v0 has several objectives: "):
        VecEnv("CBO/MOCBO1-v0")


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3.common.vec_env", None)
    monkeypatch.delitem(sys.modules, "cbo_gym.integrations.sb3")
    with pytest.raises(MissingExtraError, match=r"cbo_gym.integrations.sb3 needs .*\.\[sb3\]"):
        importlib.import_module("cbo_gym.integrations.sb3")
