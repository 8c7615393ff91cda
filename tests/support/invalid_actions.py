"""Checks that an invalid action is refused and changes nothing."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import InvalidAction

import cbo_gym  # noqa: F401  (registers the environments)


def check_refused(env_id: str, action: Any, message: str, **kwargs: Any) -> None:
    """Check that ``action`` raises with ``message``, and that the next rounds are as if it had not been tried."""
    tried, twin = (gym.make(env_id, **kwargs).unwrapped for _ in range(2))
    for env in (tried, twin):
        env.reset(seed=9)
    good = twin.action_space.sample()
    for rounds in (0, 2):  # before the noise is first drawn, and in the middle of a block
        for _ in range(rounds):
            for env in (tried, twin):
                env.step(good)
        before = (tried.round, tried.total_reward, dict(tried.values))
        with pytest.raises(InvalidAction, match=message):
            tried.step(action)
        assert (tried.round, tried.total_reward, dict(tried.values)) == before
        ours, theirs = tried.step(good), twin.step(good)
        np.testing.assert_array_equal(ours[0]["nodes"], theirs[0]["nodes"])
        assert ours[1:] == theirs[1:]


def check_vector_refused(env_id: str, actions: Any, message: str) -> None:
    tried, twin = (gym.make_vec(env_id, num_envs=3, vectorization_mode="vector_entry_point") for _ in range(2))
    good = twin.action_space.sample()
    for envs in (tried, twin):
        envs.reset(seed=9)
        envs.step(good)
    with pytest.raises(InvalidAction, match=message):
        tried.step(actions)
    ours, theirs = tried.step(good), twin.step(good)
    np.testing.assert_array_equal(ours[0]["nodes"], theirs[0]["nodes"])
    assert ours[-1]["round"].tolist() == theirs[-1]["round"].tolist() == [2, 2, 2]
