"""Bandit algorithms on discrete tasks."""

import math
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from scipy.special import rel_entr

import cbo_gym
from cbo_gym import UnsupportedModeError, agents
from cbo_gym.agents.discrete.base import arms_of
from cbo_gym.agents.discrete.parallel_bandit import rarest
from cbo_gym.agents.discrete.ucb import confidence, upper_bounds
from cbo_gym.errors import ArgumentError
from cbo_gym.scm.scopes import minimal_intervention_sets
from cbo_gym.task import DiscreteTask
from tests.support.loop import begin_agent, make, play


def task_of(env_id: str, rounds: int = 100, **kwargs: Any) -> DiscreteTask:
    task = make(env_id, 0, rounds, **kwargs)[1]
    assert isinstance(task, DiscreteTask)
    return task


@pytest.mark.parametrize(
    ("env_id", "counts"),  # of all arms, those on minimal sets, and on possibly optimal ones
    [("Markovian", (81, 49, 4)), ("IV", (9, 5, 4)), ("XYZW", (27, 15, 7)), ("XYZWST", (243, 75, 16))],
)
def test_arms_on_fewer_sets(env_id: str, counts: tuple[int, int, int]) -> None:
    task = task_of(f"CBO/{env_id}Bandit-v0")
    found = tuple(len(arms_of(task, kind)) for kind in ("all", "minimal", "possibly_optimal"))
    minimal = minimal_intervention_sets(task.diagram, task.reward)
    assert found[1] == sum(2 ** len(target) for target in minimal)
    assert found == counts
    assert set(arms_of(task, "possibly_optimal")) < set(arms_of(task, "minimal")) < set(arms_of(task, "all"))


def test_upper_bounds_solve_their_equation() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 3000, 500)
    means, divergences = rng.integers(0, counts + 1) / counts, rng.uniform(1.0, 18.0, 500) / counts
    bounds = upper_bounds(means, divergences)
    assert ((means < bounds) & (bounds <= 1.0) | (means == 1.0) & (bounds == 1.0)).all()
    reached = rel_entr(means, bounds) + rel_entr(1.0 - means, 1.0 - bounds)
    inside = bounds < 1.0 - 1e-9
    np.testing.assert_allclose(reached[inside], divergences[inside], rtol=1e-6)
    assert confidence(10) == pytest.approx(math.log(10) + 3.0 * math.log(math.log(10)))


def test_ucb_plays_the_arm_with_the_greatest_bound() -> None:
    env, task = make("CBO/XYZWBandit-v0", 0, 200)
    agent = begin_agent(agents.UCB(), task, 1)
    observation, _ = env.reset(seed=0)
    for t in range(1, 201):
        action = agent.act(observation)
        if t <= len(task.arms):
            assert agent.counts[action] == 0
        else:
            bounds = upper_bounds(agent.sums / agent.counts, confidence(t) / agent.counts)
            assert bounds[int(action)] == bounds.max()
        observation, reward, _, _, info = env.step(action)
        agent.update(action, observation, float(reward), info)
    assert agent.counts.sum() == 200


def test_a_reward_between_0_and_1_counts_in_part() -> None:
    task = task_of("CBO/IVBandit-v0")
    agent = begin_agent(agents.TS(), task)
    for _ in range(400):
        agent.update(3, {"nodes": np.zeros(3)}, 0.25, {})
    assert agent.successes[3] - 1 == pytest.approx(100, abs=40)
    assert agent.successes[3] + agent.failures[3] == 402
    for reward in (-0.1, 1.5, math.nan):
        with pytest.raises(ArgumentError, match=r"TS needs rewards in \[0, 1\]; CBO/IVBandit-v0 gave"):
            agent.update(3, {"nodes": np.zeros(3)}, reward, {})


def test_the_parallel_bandit_observes_and_then_plays_what_it_has_not_seen() -> None:
    env, task = make("CBO/ParallelBandit-v0", 0, 201, causes=10, rare=3)
    agent = agents.ParallelBandit()
    played = [task.arms[int(action)] for action in play(agent, env, task, 0)[0]]
    assert played[:100] == [{}] * 100
    later = played[100:]
    assert {tuple(arm.items()) for arm in later} == {((f"X{i}", 1.0),) for i in (1, 2, 3)}
    assert {later.count(arm) for arm in later} <= {33, 34}
    assert task.arms[int(agent.recommend())] == {"X1": 1.0}
    seen = agent.means()[[task.arms.index({f"X{i}": 0.0}) for i in (1, 2, 3)]]
    np.testing.assert_array_equal(seen, np.mean([past.reward for past in agent.history[:100]]))  # always so


@pytest.mark.parametrize(
    ("shares", "found"),
    [
        ([1.0, 0.5, 0.5], [1]),
        ([1.0, 0.0, 1.0, 0.5, 0.5], [1]),
        ([1.0, 0.0, 1.0, 0.01, 0.99, 0.5, 0.5], [1, 3]),
        ([1.0, 0.2, 0.8, 0.2, 0.8, 0.2, 0.8], [1, 3, 5]),
    ],
)
def test_the_rarest_arms(shares: list[float], found: list[int]) -> None:
    assert rarest(np.array(shares)).tolist() == found


def test_successive_rejects_shares_its_rounds() -> None:
    env, task = make("CBO/IVBandit-v0", 0, 500)
    agent = agents.SuccessiveRejects()
    play(agent, env, task, 0)
    weight = 0.5 + sum(1.0 / i for i in range(2, 10))
    goals = [math.ceil((500 - 9) / (weight * left)) for left in range(9, 1, -1)]
    assert sorted(agent.counts)[:7] == goals[:7]
    assert agent.counts.sum() == 500
    assert len(agent.considered) == 1
    assert task.arms[int(agent.recommend())] == {"Z": 0.0}


def test_tasks_that_do_not_fit_are_refused() -> None:
    for agent, env_id, message in (
        (agents.POMISUCB(), "CBO/ParallelBandit-v0", "has no arms that set 50 variables at once, which may be optimal"),
        (agents.ParallelBandit(), "CBO/ConfoundedBandit-v0", "needs independent causes of the reward"),
        (agents.ParallelBandit(), "CBO/IVBandit-v0", "needs independent causes of the reward"),
    ):
        with pytest.raises(UnsupportedModeError, match=message):
            agent.reset(make(env_id, 0, 10)[1], 0)
    task = task_of("CBO/ParallelBandit-v0", causes=2, rare=1)
    with pytest.raises(UnsupportedModeError, match="needs arms that set one variable or none"):
        agents.ParallelBandit().reset(replace(task, arms=task.arms[1:]), 0)
    with pytest.raises(UnsupportedModeError, match=r"no arms that set \{X1, X2\}, which may be optimal"):
        agents.POMISTS().reset(task, 0)


def test_initial_data_count_and_arms_that_are_not_considered_are_no_harm() -> None:
    env = gym.make("CBO/IVBandit-v0")
    sizes = cbo_gym.envs.registry.InitialData(observational=2, random=20)
    task = cbo_gym.make_task(env, 0, horizon=30, initial_data=sizes)
    agent = agents.POMISUCB()
    actions, _ = play(agent, env, task, 0)
    assert agent.counts.sum() == 52
    assert {frozenset(task.arms[int(action)]) for action in actions} == {frozenset("X"), frozenset("Z")}
