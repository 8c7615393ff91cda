"""Masked mode: super arms as actions, signals as observations, function networks as masked problems."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import cbo_gym
from cbo_gym.envs.registry import InitialData
from cbo_gym.modes import make_dynamics
from cbo_gym.problems.systems.function_networks import ackley, alpine2
from cbo_gym.scm import Polynomial, Uniform
from tests.support.loop import reset

NETWORKS = ["Alpine2", "Rosenbrock"]


@pytest.mark.parametrize("size", [0, -1, 11, 2.5, True, None, "six"])
def test_the_limit_must_be_from_one_to_the_number_of_arms(size: Any) -> None:
    if size is None:
        assert gym.make("CBO/SSEMPeriodic-v0", super_arm_size=None).action_space.size == 6
        return
    with pytest.raises(ValueError, match=rf"super_arm_size must be a whole number from 1 to 10.*given {size!r}"):
        gym.make("CBO/SSEMPeriodic-v0", super_arm_size=size)


@pytest.mark.parametrize("env_id", ["CBO/SSEMPeriodic-v0", "CBO/TrainDelay-v0", "CBO/Alpine2-Masked-v0"])
def test_signals_are_seen_where_they_are_let_through(env_id: str) -> None:
    everything, some = (gym.make(env_id, super_arm_size=6) for _ in range(2))
    count = everything.action_space.arms
    arm = np.zeros(count, dtype=np.int8)
    arm[[0, 2, 3]] = 1
    full = np.zeros(count, dtype=np.int8)
    full[:6] = 1
    everything.reset(seed=4)
    some.reset(seed=4)
    for _ in range(20):
        all_signals = everything.step(full)[0]["exogenous"]
        observation, *_, info = some.step(arm)
        np.testing.assert_allclose(observation["exogenous"][:6], all_signals[:6] * arm[:6])
        assert not observation["exogenous"][6:].any()
        assert (all_signals[:6] != 0).sum() >= 4  # the quantiles of real signals hold zeros
        assert list(info["intervention"].values()) == arm.tolist()


def test_initial_data_hold_the_signals() -> None:
    env = gym.make("CBO/SSEMPeriodic-v0")
    task = cbo_gym.make_task(env, seed=1, initial_data=InitialData(observational=2, random=5))
    assert len(task.initial_data) == 7
    for index, (action, observation, reward) in enumerate(task.initial_data):
        assert task.action_space.contains(action)
        assert task.observation_space.contains(observation)
        assert ((observation["exogenous"] != 0) == (action == 1)).all()
        assert reward == observation["nodes"][-1]
        assert action.any() == (index >= 2)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_masked_network_is_the_network_at_the_actions_drawn(name: str) -> None:
    masked, soft = (gym.make(f"CBO/{name}{suffix}-v0").unwrapped for suffix in ("-Masked", ""))
    masked.reset(seed=2)
    soft.reset(seed=2)
    masked.action_space.seed(0)
    null = np.array(soft.problem.null_action)
    for _ in range(50):
        arm = masked.action_space.sample()
        seen = masked.step(arm)[0]
        action = np.where(arm == 1, seen["exogenous"], null)
        expected = soft.step(action)[0]["nodes"]
        np.testing.assert_allclose(seen["nodes"], expected, rtol=1e-12, atol=1e-12)


def test_signals_are_uniform_and_confound_the_nodes_that_they_enter() -> None:
    masked = make_dynamics(ackley(), "masked")
    assert masked.scm.diagram.bidirected == {frozenset({"X0", "X1"})}
    assert masked.scm.action_nodes == {"X0": tuple(range(6)), "X1": tuple(range(6))}
    assert make_dynamics(alpine2(), "masked").scm.diagram.bidirected == frozenset()
    assert masked.super_arm_size == 3
    assert [v.noise for v in masked.scm.noisy] == [Uniform()] * 6


def test_extensions_are_keywords_of_the_environment() -> None:
    env = reset(gym.make("CBO/SSEMPeriodic-v0", feedback="selected"))
    arm = np.array([1, 0, 0, 1, 0, 0, 0, 0, 0, 1])
    nodes = env.step(arm)[0]["nodes"]
    assert ((nodes[:-1] != 0) == (arm == 1)).all()
    squared = reset(gym.make("CBO/SSEMPeriodic-v0", payoff=Polynomial((0.0, 1.0)), mask="endogenous"))
    observation, reward, *_ = squared.step(arm)
    assert reward == pytest.approx((observation["nodes"][:-1][arm == 1] ** 2).sum())
    assert observation["exogenous"].all()
