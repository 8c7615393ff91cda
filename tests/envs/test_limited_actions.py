"""Environments whose actions have limits: spaces, steps, initial data and the optimum."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import InvalidAction
from gymnasium.vector.utils import batch_space
from scipy.optimize import minimize

from cbo_gym import custom_problem, make_task
from cbo_gym.envs.oracle import oracle_of
from cbo_gym.envs.registration import custom_id
from cbo_gym.problems.base import Problem
from cbo_gym.referee.serialization import pack
from cbo_gym.testing import check_problem


def plant(**fields: Any) -> Problem:
    return custom_problem(
        {
            "growth": lambda feed, light: 2.0 * np.sqrt(feed + 0.01) + np.sin(light),
            "profit": lambda growth, heat, feed: growth * heat - 0.4 * heat**2 - 0.05 * feed,
        },
        reward="profit",
        **fields,
    )


BOUNDS = {"feed": (0.0, 4.0), "heat": (0.0, 5.0), "light": (0.0, 3.0)}


def set_plant(**fields: Any) -> Problem:
    """Return the same plant, whose settings are variables."""
    return custom_problem(
        {
            "feed": lambda: 1.0,
            "heat": lambda: 1.0,
            "light": lambda: 1.0,
            "growth": lambda feed, light: 2.0 * np.sqrt(feed + 0.01) + np.sin(light),
            "profit": lambda growth, heat, feed: growth * heat - 0.4 * heat**2 - 0.05 * feed,
        },
        reward="profit",
        manipulable=BOUNDS,
        targets=[list(BOUNDS)],
        **fields,
    )


def negative_yield(point: np.ndarray) -> float:
    feed, heat, light = point
    return float(-((2.0 * np.sqrt(feed + 0.01) + np.sin(light)) * heat - 0.4 * heat**2 - 0.05 * feed))


def constrained_optimum(equality: bool) -> float:
    """Return the best yield with feed + heat + light <= 4, or == 6, by SLSQP from several starts."""
    starts = np.random.default_rng(100).random((20, 3)) * [4.0, 5.0, 3.0]
    limit = (
        {"type": "eq", "fun": lambda x: x.sum() - 6.0} if equality else {"type": "ineq", "fun": lambda x: 4.0 - x.sum()}
    )
    ends = [
        minimize(negative_yield, start, bounds=[(0, 4), (0, 5), (0, 3)], constraints=limit, method="SLSQP")
        for start in starts
    ]
    return -min(end.fun for end in ends if end.success)


@pytest.mark.parametrize(
    ("mode", "equality"),
    [
        ("soft", False),
        ("hard", True),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (("soft", True), ("hard", False))),
    ],
)
def test_actions_keep_limits_in_environments(mode: str, equality: bool) -> None:
    limit = "feed + heat + light == 6" if equality else "feed + heat + light <= 4"
    problem = plant(actions=BOUNDS, limits=[limit]) if mode == "soft" else set_plant(limits=[limit])
    env = gym.make(custom_id(mode), problem=problem, max_episode_steps=9)
    base: Any = env.unwrapped
    space, codec = base.action_space, base.dynamics.codec
    check_problem(problem, mode=mode)

    assert all(space.contains(space.sample()) for _ in range(20))
    batch, again = batch_space(space, 300), batch_space(space, 300)
    batch.seed(100)
    again.seed(100)
    drawn = batch.sample()
    assert batch.contains(drawn)
    assert repr(drawn) == repr(again.sample())

    env.reset(seed=100)

    outside = {"target": 0, "values": np.full(3, 0.9)} if mode == "hard" else np.full(3, 0.9)
    with pytest.raises(InvalidAction, match="breaks 'feed"):
        env.step(outside)
    assert not space.contains(outside)
    env.step(codec.to_action(codec.to_point(outside)))

    task = make_task(env, seed=100, initial_data={"observational": 1, "random": 5})
    assert all(task.action_space.contains(past.action) for past in task.initial_data)
    assert len(pack(task)) > 0
    assert oracle_of(env).optimum.value == pytest.approx(constrained_optimum(equality), rel=1e-4)
