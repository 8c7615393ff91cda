"""Processor time of a round of the methods with Gaussian processes, fits and recommendation included, on one thread."""

from time import process_time
from typing import Any

import numpy as np
import pytest

from cbo_gym import Agent, agents
from cbo_gym.evaluation.seed_ranges import TUNING
from tests.support.loop import AGENT_SEED, make

pytestmark = pytest.mark.benchmark


SEED = TUNING.start


def seconds_of_rounds(agent: Agent, env_id: str, rounds: int, **keywords: Any) -> np.ndarray:
    """Of choosing, learning and recommending, by round."""
    env, task = make(env_id, SEED, rounds, **keywords)
    agent.reset(task, AGENT_SEED)
    observation, _ = env.reset(seed=SEED)
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
    ("build", "goal"), [(agents.MCBO, 0.25), (agents.EIFN, 0.3), (agents.EXCBO, 0.25), (agents.GPUCB, 0.03)]
)
def test_the_first_thirty_rounds_reach_the_goal(benchmark, build, goal, env_id):
    seconds_of_rounds(build(), env_id, 2)  # imports
    seconds = benchmark.pedantic(seconds_of_rounds, (build(), env_id, 30), rounds=1)
    print(f"\n{build.__name__} on {env_id}: mean {seconds.mean():.3f} s, longest {seconds.max():.3f} s a round")
    assert seconds.mean() <= goal


def test_rounds_take_as_much_longer_as_there_are_more_nodes(benchmark):
    """From 31 nodes to 127, of which a round takes two seconds at most; the first round fits the initial data."""
    seconds_of_rounds(agents.MCBO(), "CBO/BinaryTree-v0", 2)  # imports
    means = {
        2 ** (depth + 1) - 1: seconds_of_rounds(agents.MCBO(), "CBO/BinaryTree-v0", 12, depth=depth)[1:].mean()
        for depth in (2, 4, 6)
    }
    benchmark(lambda: None)
    print("\n" + ", ".join(f"{nodes} nodes: {mean:.2f} s a round" for nodes, mean in means.items()))
    assert means[127] <= 2.0
    assert means[127] <= means[31] * 127 / 31


@pytest.mark.parametrize(("build", "env_id"), [(agents.MCBO, "CBO/Alpine2-v0"), (agents.CBO, "CBO/ToyGraph-v0")])
def test_the_last_of_a_thousand_rounds_take_a_second_and_a_half_at_most(benchmark, build, env_id):
    seconds = benchmark.pedantic(seconds_of_rounds, (build(), env_id, 1000), rounds=1)
    print(f"\n{build.__name__} on {env_id}, rounds 901 to 1,000: mean {seconds[900:].mean():.2f} s")
    assert seconds[900:].mean() <= 1.5
