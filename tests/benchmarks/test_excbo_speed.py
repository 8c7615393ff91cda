"""Time of an EXCBO round beside a GP-UCB round, on one thread and over the same numbers of data."""

from time import process_time

import pytest

from cbo_gym import Agent, agents
from tests.agents.helpers import AGENT_SEED, make

pytestmark = pytest.mark.benchmark


def seconds_a_round(agent: Agent, env_id: str, rounds: int) -> float:
    """Processor time of choosing and learning, the mean over all rounds."""
    env, task = make(env_id, 0, rounds)
    agent.reset(task, AGENT_SEED)
    observation, _ = env.reset(seed=0)
    total = 0.0
    for _ in range(rounds):
        start = process_time()
        action = agent.act(observation)
        total += process_time() - start
        observation, reward, _, _, info = env.step(action)
        start = process_time()
        agent.update(action, observation, reward, info)
        total += process_time() - start
    return total / rounds


def test_an_excbo_round_costs_at_most_five_of_gp_ucb(benchmark):
    """Over 100 rounds of the task of the paper's Table 1, where the ratio is 5.4."""
    env_id = "CBO/Dropwave-GMM-v0"
    seconds_a_round(agents.EXCBO(), env_id, 2)  # imports
    plain = seconds_a_round(agents.GPUCB(), env_id, 100)
    excbo = benchmark.pedantic(seconds_a_round, (agents.EXCBO(), env_id, 100), rounds=1)
    print(f"\nEXCBO {excbo:.3f} s, GP-UCB {plain:.3f} s a round: {excbo / plain:.1f} times")
    assert excbo <= 5.0 * plain
