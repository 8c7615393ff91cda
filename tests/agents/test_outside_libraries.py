"""Agents that wrap other libraries: Optuna's samplers and Stable-Baselines3's algorithms."""

from __future__ import annotations

import gc
import random
import sys
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import stable_baselines3  # noqa: F401  (here, because importing it draws from the global random stream)
import torch

from cbo_gym import Round, agents
from cbo_gym.agents import AskTell, Optuna, StableBaselines3
from cbo_gym.errors import ArgumentError, MissingExtraError
from tests.agents.helpers import AGENT_SEED, flat, make, play
from tests.registered import FIRST_OF_MODE

BUILDERS = {
    "TPE": Optuna,
    "CMA-ES": partial(Optuna, sampler="CMA-ES"),
    "PPO": StableBaselines3,
    "SAC": partial(StableBaselines3, algorithm="SAC"),
    "DQN": partial(StableBaselines3, algorithm="DQN"),
}

every_builder = pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS.keys())


@pytest.mark.parametrize(
    ("name", "env_id"),
    [
        pytest.param(
            name, env_id, marks=[] if name in ("TPE", "PPO") or mode in ("soft", "hard") else [pytest.mark.slow]
        )
        for name in BUILDERS
        for mode, env_id in FIRST_OF_MODE.items()
    ],
)
def test_runs_repeat_and_leave_the_process_alone(name, env_id):
    """By default one method of each library on all modes, the others on two."""
    build = BUILDERS[name]
    env, task = make(env_id, 0, 25)
    states = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    agent = build()
    first, _ = play(agent, env, task, 0)
    again, _ = play(agent, env, task, 0)
    for one, two in zip(first, again, strict=True):
        assert task.action_space.contains(one)
        np.testing.assert_array_equal(flat(one), flat(two))
    assert random.getstate() == states[0]
    assert np.array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), states[2])
    assert task.action_space.contains(agent.recommend())


@every_builder
def test_seeds_differ(build):
    env, task = make("CBO/Alpine2-v0", 0, 15)
    observation, _ = env.reset(seed=0)
    chosen = []
    for seed in (1, 2):
        agent = build()
        agent.reset(task, seed)
        chosen.append(agent.act(observation))
    assert not np.array_equal(*chosen)


@pytest.mark.parametrize("algorithm", ["PPO", "A2C", "SAC", "TD3", "DDPG", "DQN"])
def test_whoever_plays_on_learns_on(algorithm):
    env, task = make("CBO/Dropwave-v0", 0, 12)
    agent = StableBaselines3(algorithm)
    agent.reset(task, AGENT_SEED)
    observation, _ = env.reset(seed=0)
    for _ in range(30):
        action = agent.act(observation)
        observation, reward, _, _, info = env.step(action)
        agent.update(action, observation, reward, info)


def test_a_dropped_agent_leaves_no_thread():
    env, task = make("CBO/Dropwave-v0", 0, 3)
    before = threading.active_count()
    agent = StableBaselines3()
    play(agent, env, task, 0)
    assert threading.active_count() == before + 1
    del agent
    gc.collect()
    assert threading.active_count() == before


def test_an_error_in_the_library_reaches_the_caller():
    env, task = make("CBO/Dropwave-v0", 0, 3)
    agent = StableBaselines3("PPO", n_steps="many")
    agent.reset(task, 0)
    with pytest.raises(TypeError):
        agent.act(env.reset(seed=0)[0])


@pytest.mark.parametrize("build", [BUILDERS["TPE"], BUILDERS["CMA-ES"], BUILDERS["DQN"]], ids=["TPE", "CMA-ES", "DQN"])
def test_they_beat_random_where_it_is_easy(build):
    means = {}
    for name, builder in {"agent": build, "random": agents.Random}.items():
        rewards = []
        for seed in range(3):
            env, task = make("CBO/Rosenbrock-v0", seed, 100)
            rewards.append(play(builder(), env, task, seed)[1][50:].mean())
        means[name] = np.mean(rewards)
    assert means["agent"] > means["random"]


class Listener(AskTell):
    """Asks for the same point of a cell's box again and again and writes down what it hears."""

    def start(self, dim, seed):
        self.heard = []

    def ask(self):
        return np.array([0.9, 0.1, 0.2, 0.8])

    def tell(self, point, reward):
        self.heard.append((point, reward))


def test_an_optimiser_hears_of_the_point_that_it_asked_for():
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


@pytest.mark.parametrize(
    ("build", "parameters", "message"),
    [
        (Optuna, {"sampler": "NSGA"}, "given 'NSGA'$"),
        (Optuna, {"sampler": "tpe"}, r"given 'tpe'; did you mean 'TPE'\?"),
        (StableBaselines3, {"algorithm": "HER"}, "given 'HER'$"),
        (StableBaselines3, {"algorithm": "PP0"}, r"given 'PP0'; did you mean 'PPO'\?"),
    ],
)
def test_unknown_methods_are_named(build, parameters, message):
    with pytest.raises(ArgumentError, match=f"must be one of .*{message}"):
        build(**parameters)


@pytest.mark.parametrize(
    ("build", "library", "extra"),
    [(Optuna, "optuna", "optuna"), (StableBaselines3, "stable_baselines3", "sb3")],
)
def test_a_missing_library_is_named_by_its_extra(monkeypatch, build, library, extra):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=rf"the agent {build.__name__} needs .*cbo-gym\[{extra}\]"):
        build()
