"""Masked mode: super arms as actions, signals as observations, function networks as masked problems."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector.utils import batch_space, iterate

import cbo_gym
from cbo_gym.envs import AggregatedEnv, MaskedEnv, SoftEnv, SuperArmSpace
from cbo_gym.problems.function_networks import ackley, alpine2
from cbo_gym.problems.hard_graphs import toy_graph
from cbo_gym.problems.ssem import ssem_periodic
from cbo_gym.scm import Polynomial

NETWORKS = ["Dropwave", "Alpine2", "Rosenbrock", "Ackley"]


def test_super_arms_are_drawn_uniformly() -> None:
    space = SuperArmSpace(5, 2, seed=0)
    drawn = np.array([space.sample() for _ in range(8000)])
    assert drawn.dtype == np.int8
    assert all(space.contains(arm) for arm in drawn)
    arms, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(arms) == space.count == 1 + 5 + 10
    expected = 8000 / 16
    assert np.abs(counts - expected).max() < 4.5 * np.sqrt(expected)


@pytest.mark.parametrize(("arms", "size", "count"), [(4, 1, 5), (4, 4, 16), (6, 3, 42), (10, 6, 848), (20, 6, 60_460)])
def test_all_super_arms_are_listed_once(arms: int, size: int, count: int) -> None:
    space = SuperArmSpace(arms, size)
    listed = space.all()
    assert len(listed) == space.count == count
    assert len(np.unique(listed, axis=0)) == count
    assert set(np.unique(listed)) <= {0, 1}
    assert listed.sum(axis=1).max() == size
    if arms <= 6:
        wanted = [x for x in itertools.product((0, 1), repeat=arms) if sum(x) <= size]
        assert sorted(map(tuple, listed.tolist())) == sorted(wanted)


def test_what_a_space_of_super_arms_contains() -> None:
    space = SuperArmSpace(4, 2)
    for arm, inside in [
        (np.array([1, 0, 0, 1]), True),
        (np.zeros(4, dtype=np.int8), True),
        (np.array([1, 1, 0, 1]), False),
        (np.array([1, 0, 2, 0]), False),
        (np.array([1, 0, 0]), False),
        (np.array([[1, 0, 0, 1]]), False),
        ("arms", False),
    ]:
        assert space.contains(arm) is inside


def test_batches_of_super_arms() -> None:
    space = SuperArmSpace(5, 2, seed=3)
    batch = batch_space(space, 300)
    arms = batch.sample()
    assert arms.shape == (300, 5)
    assert batch.contains(arms)
    assert all(space.contains(arm) for arm in iterate(batch, arms))
    assert len(np.unique(arms, axis=0)) == 16
    arms[7] = 1
    assert not batch.contains(arms)


def test_spaces_are_seeded_compared_and_copied() -> None:
    space = SuperArmSpace(5, 2, seed=1)
    again = pickle.loads(pickle.dumps(space))
    assert space == again == copy.deepcopy(space)
    assert space != SuperArmSpace(5, 3)
    assert space != SuperArmSpace(6, 2)
    np.testing.assert_array_equal([space.sample() for _ in range(9)], [again.sample() for _ in range(9)])
    assert repr(space) == "SuperArmSpace((5,), size=2)"


def test_scores_become_the_best_super_arm() -> None:
    space = SuperArmSpace(5, 2)
    assert space.keep_largest(np.array([0.9, 0.6, 0.1, 0.7, 0.5])).tolist() == [1, 0, 0, 1, 0]
    assert space.keep_largest(np.array([0.1, 0.6, 0.1, 0.2, 0.5])).tolist() == [0, 1, 0, 0, 0]


@pytest.mark.parametrize("size", [0, -1, 11, 2.5, True, None, "six"])
def test_the_limit_must_be_from_one_to_the_number_of_arms(size: Any) -> None:
    if size is None:
        assert gym.make("CBO/SSEMPeriodic-v0", super_arm_size=None).action_space.size == 6
        return
    with pytest.raises(ValueError, match=rf"super_arm_size must be a whole number from 1 to 10.*given {size!r}"):
        gym.make("CBO/SSEMPeriodic-v0", super_arm_size=size)


def test_a_problem_without_soft_parameters_has_no_masked_mode() -> None:
    with pytest.raises(ValueError, match="ToyGraph has no soft parameters, so no masked mode"):
        MaskedEnv(toy_graph())


@pytest.mark.parametrize("kind", [SoftEnv, AggregatedEnv])
def test_a_masked_problem_has_no_mode_of_continuous_actions(kind: Any) -> None:
    with pytest.raises(ValueError, match="SSEMPeriodic is a masked problem, with parameters 0 or 1"):
        kind(ssem_periodic())


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
    from cbo_gym.registry import InitialData

    env = gym.make("CBO/SSEMPeriodic-v0")
    task = cbo_gym.make_task(env, seed=1, initial_data=InitialData(observational=2, random=5))
    assert len(task.initial_data) == 7
    for place, (action, observation, reward) in enumerate(task.initial_data):
        assert task.action_space.contains(action)
        assert task.observation_space.contains(observation)
        assert ((observation["exogenous"] != 0) == (action == 1)).all()
        assert reward == observation["nodes"][-1]
        assert action.any() == (place >= 2)


def test_the_task_of_a_separable_sem() -> None:
    env = gym.make("CBO/SSEMPeriodic-v0")
    task, problem = cbo_gym.make_task(env, seed=0), env.unwrapped.problem
    assert task.super_arm_size == 6
    assert len(task.action_domains) == 10
    assert task.horizon == 2000
    assert task.signal_range == (0.0, 1.0)
    assert task.nodes == (*(f"y{i}" for i in range(1, 11)), "Y")
    assert task.action_nodes == {f"y{i + 1}": (i,) for i in range(10)}
    assert set(task.signal_family.ranges) == {"location", "scale"}
    assert task.noise is None
    values = {name: np.array([1.0, 2.0]) for name in task.nodes[:-1]}
    assert task.composition(values).tolist() == [10.0, 20.0]
    assert [component(0.25) for component in task.components] == [0.25, pytest.approx(1.0)]
    told = {id(component) for component in task.components}
    assert told.isdisjoint(id(c) for c in problem.scm._arguments["components"].values())


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


def test_a_signal_that_enters_several_nodes_confounds_them() -> None:
    env = MaskedEnv(ackley())
    assert env.scm.diagram.bidirected == {frozenset({"X0", "X1"})}
    assert env.scm.action_nodes == {"X0": tuple(range(6)), "X1": tuple(range(6))}
    assert MaskedEnv(alpine2()).scm.diagram.bidirected == frozenset()
    assert env.super_arm_size == 3


def test_a_masked_networks_signals_are_uniform() -> None:
    env = MaskedEnv(alpine2(), super_arm_size=6)
    env.reset(seed=0)
    signals = np.array([env.step(np.ones(6))[0]["exogenous"] for _ in range(3000)])
    assert np.abs(signals.mean(axis=0) - 0.5).max() < 4.5 * np.sqrt(1 / 12 / 3000)
    assert np.abs(np.quantile(signals, [0.1, 0.9], axis=0) - [[0.1], [0.9]]).max() < 0.03


def test_extensions_are_keywords_of_the_environment() -> None:
    env = gym.make("CBO/SSEMPeriodic-v0", feedback="selected")
    env.reset(seed=0)
    arm = np.array([1, 0, 0, 1, 0, 0, 0, 0, 0, 1])
    nodes = env.step(arm)[0]["nodes"]
    assert ((nodes[:-1] != 0) == (arm == 1)).all()
    squared = gym.make("CBO/SSEMPeriodic-v0", payoff=Polynomial((0.0, 1.0)), model_noise_std=0.1)
    squared.reset(seed=0)
    observation, reward, *_ = squared.step(arm)
    assert reward == pytest.approx((observation["nodes"][:-1] ** 2).sum())
    assert len(squared.unwrapped.scm.noisy) == 40
    activated = gym.make("CBO/SSEMPeriodic-v0", activation=Polynomial((0.0, 1.0))).unwrapped
    activated.reset(seed=0)
    observation, *_ = activated.step(arm)
    assert observation["nodes"][0] == pytest.approx(observation["exogenous"][0] ** 2, abs=0.3)
    masked = gym.make("CBO/SSEMPeriodic-v0", mask="endogenous")
    masked.reset(seed=0)
    observation, reward, *_ = masked.step(arm)
    assert reward == pytest.approx(observation["nodes"][:-1][arm == 1].sum())
    assert observation["exogenous"].all()


def test_a_ready_problem() -> None:
    env = MaskedEnv(ssem_periodic(instance_seed=3), super_arm_size=2)
    assert env.action_space == SuperArmSpace(10, 2)
    assert env.action_space.count == 56
