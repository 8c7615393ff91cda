"""Processor time of a round of the methods with Gaussian processes, fits and recommendation included, on one thread."""

from time import process_time

import numpy as np
import pytest

from cbo_gym import Agent, agents
from tests.agents.helpers import AGENT_SEED, make

pytestmark = pytest.mark.benchmark


def seconds_of_rounds(agent: Agent, env_id: str, rounds: int) -> np.ndarray:
    """Of choosing, learning and recommending, by round."""
    env, task = make(env_id, 0, rounds)
    agent.reset(task, AGENT_SEED)
    observation, _ = env.reset(seed=0)
    seconds = []
    for _ in range(rounds):
        start = process_time()
        action = agent.act(observation)
        chosen = process_time() - start
        observation, reward, _, _, info = env.step(action)
        start = process_time()
        agent.update(action, observation, reward, info)
        agent.recommend()
        seconds.append(chosen + process_time() - start)
    return np.array(seconds)


@pytest.mark.parametrize("env_id", ["CBO/Alpine2-v0", "CBO/Alpine2-Noisy-v0"])
@pytest.mark.parametrize(
    ("build", "goal"), [(agents.MCBO, 0.3), (agents.EIFN, 0.3), (agents.EXCBO, 0.3), (agents.GPUCB, 0.03)]
)
def test_the_first_thirty_rounds_reach_the_goal(benchmark, build, goal, env_id):
    seconds_of_rounds(build(), env_id, 2)  # imports
    seconds = benchmark.pedantic(seconds_of_rounds, (build(), env_id, 30), rounds=1)
    print(f"\n{build.__name__} on {env_id}: mean {seconds.mean():.3f} s, longest {seconds.max():.3f} s a round")
    assert seconds.mean() <= goal
