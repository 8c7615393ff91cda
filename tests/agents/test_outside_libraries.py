"""Agents that wrap other libraries: Optuna's samplers and Stable-Baselines3's algorithms."""

import gc
import pickle
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
import stable_baselines3  # noqa: F401  (here, because importing it draws from the global random stream)

from cbo_gym import Round
from cbo_gym.agents import AskTell, Optuna, StableBaselines3
from cbo_gym.errors import MissingExtraError
from tests.support.loop import AGENT_SEED, begin_agent, make, play, start_agent


@pytest.mark.parametrize(
    "algorithm", ["PPO", "DQN", *(pytest.param(a, marks=pytest.mark.slow) for a in ("A2C", "SAC", "TD3", "DDPG"))]
)
def test_agents_go_on_learning_after_the_horizon(algorithm):
    env, task = make("CBO/Dropwave-v0", 0, 12)
    agent = begin_agent(StableBaselines3(algorithm), task, AGENT_SEED)
    observation, _ = env.reset(seed=0)
    for _ in range(20):
        action = agent.act(observation)
        observation, reward, _, _, info = env.step(action)
        agent.update(action, observation, reward, info)


def test_a_dropped_agent_leaves_no_thread():
    env, task = make("CBO/Dropwave-v0", 0, 3)
    before = threading.active_count()
    agent = StableBaselines3()
    play(agent, env, task, 0)
    assert threading.active_count() == before + 1
    with pytest.raises(TypeError):  # an error in the library reaches the caller
        begin_agent(StableBaselines3("PPO", n_steps="many"), task).act(env.reset(seed=0)[0])
    del agent
    gc.collect()
    assert threading.active_count() == before


class Listener(AskTell):
    """Proposes the same point of a cell's box again and again, and lists the rewards that it is given."""

    def start(self, dim, seed):
        self.heard = []

    def ask(self):
        return np.array([0.9, 0.1, 0.2, 0.8])

    def tell(self, point, reward):
        self.heard.append((point, reward))


def test_an_optimiser_learns_the_reward_of_the_point_that_it_proposed():
    env, task = make("CBO/Dropwave-Aggregated-v0", 0, 2)
    past = Round(np.array([[0.1, 0.2], [0.3, 0.4]]), {}, 0.5)
    task = replace(task, initial_data=(past,))
    agent = Listener()
    actions, rewards = play(agent, env, task, 0)
    np.testing.assert_array_equal(actions[0], [[0.2, 0.1], [0.9, 0.8]])
    assert len(agent.heard) == 3
    np.testing.assert_array_equal(agent.heard[0][0], [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_array_equal(agent.heard[-1][0], [0.9, 0.1, 0.2, 0.8])
    np.testing.assert_array_equal(agent.points, [point for point, _ in agent.heard])
    np.testing.assert_array_equal(agent.rewards, [0.5, *rewards])


def test_optuna_is_pickled_while_it_plays():
    agent = start_agent(Optuna(), "CBO/Dropwave-v0", 2)
    again = pickle.loads(pickle.dumps(agent))
    assert again.act(None).tolist() == agent.act(None).tolist()


@pytest.mark.parametrize(
    ("build", "library", "extra"),
    [(Optuna, "optuna", "optuna"), (StableBaselines3, "stable_baselines3", "sb3")],
)
def test_a_missing_library_is_named_by_its_extra(monkeypatch, build, library, extra):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=rf"the agent {build.__name__} needs .*\.\[{extra}\]"):
        build()
