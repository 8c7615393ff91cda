"""What agents are told of systems whose noise is unknown, and whose reward the experimenter defines."""

import gymnasium as gym
import pytest

from cbo_gym import make_task
from tests.problems.test_exogenous import IDS


@pytest.mark.parametrize("env_id", ["CBO/Chemostat-v0", *IDS])
def test_agents_are_not_told_the_noise(env_id: str) -> None:
    assert make_task(gym.make(env_id), seed=0).noise is None


@pytest.mark.parametrize("env_id", ["CBO/Chemostat-v1", "CBO/Epidemic-v0", "CBO/PooledTesting-v0"])
def test_agents_are_told_the_composition_but_not_the_noise(env_id: str) -> None:
    task = make_task(gym.make(env_id), seed=0)
    assert task.noise is None
    for _, observation, reward in task.initial_data:
        nodes = dict(zip(task.nodes, observation["nodes"], strict=True))
        del nodes["Y"]
        assert task.composition(nodes) == pytest.approx(reward, rel=1e-12)
