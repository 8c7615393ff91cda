"""Processor time of a round of agents, recommendation included, on one thread: ``make benchmark``."""

from time import process_time
from typing import Any

import numpy as np
import pytest

from cbo_gym import Agent, agents
from cbo_gym.agents.cells.aggregated_gp import AggregatedGP, AverageKernel
from cbo_gym.evaluation.seed_ranges import TUNING
from tests.support.loop import AGENT_SEED, make

pytestmark = pytest.mark.benchmark
SEED = TUNING.start


def seconds_of_rounds(agent: Agent, env_id: str, rounds: int, **keywords: Any) -> np.ndarray:
    """Return the time of choosing, learning and recommending in each round."""
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


GP_BANDITS = ("CBO/GPBandit1-v0", "CBO/GPBandit1-S1-v0", "CBO/GPBandit2-v0")
# Agent, environment, number of rounds, how many of the last count, and the largest mean of a round in seconds.
CASES: list[tuple[Agent, str, int, int, float]] = [
    *((agents.MCBO(), f"CBO/Alpine2{noise}-v0", 30, 30, 0.25) for noise in ("", "-Noisy")),
    *((agents.EIFN(), f"CBO/Alpine2{noise}-v0", 30, 30, 0.3) for noise in ("", "-Noisy")),
    *((agents.EXCBO(), f"CBO/Alpine2{noise}-v0", 30, 30, 0.25) for noise in ("", "-Noisy")),
    *((agents.GPUCB(), f"CBO/Alpine2{noise}-v0", 30, 30, 0.03) for noise in ("", "-Noisy")),
    (agents.MCBO(), "CBO/Alpine2-v0", 100, 100, 0.3),
    (agents.MCBO(samples=128), "CBO/Dropwave-NoisyPublished-v0", 100, 100, 0.5),
    (agents.MCBO(), "CBO/Alpine2-Noisy-v0", 100, 100, 0.5),
    (agents.MCBO(), "CBO/ToyGraph-v0", 100, 100, 0.5),
    (agents.MCBO(), "CBO/Alpine2-v0", 1000, 100, 1.5),
    (agents.CBO(), "CBO/ToyGraph-v0", 1000, 100, 1.5),
    # Nearly all of 300 points are those of one scope.
    *((agents.CoCaBO(backend=backend), "CBO/CoCaFig1-v0", 310, 20, 1.0) for backend in ("plain", "warped")),
    *((agents.GPOO(), env_id, 80, 80, 6e-3) for env_id in GP_BANDITS),
    *((agents.GPOO(), env_id, 1000, 1000, 0.02) for env_id in GP_BANDITS),
    (agents.SSEMUCBJO(), "CBO/SSEMPeriodic-v0", 2000, 2000, 0.09),
]


@pytest.mark.parametrize(
    ("agent", "env_id", "rounds", "last", "limit"),
    [pytest.param(*case, id=f"{type(case[0]).__name__}-{case[1]}-{case[2]}") for case in CASES],
)
def test_a_round_takes_no_longer_than_its_limit(agent, env_id, rounds, last, limit):
    # This imports what the agent needs.
    seconds_of_rounds(agent, env_id, 2)
    seconds = seconds_of_rounds(agent, env_id, rounds)[-last:]
    print(f"\n{type(agent).__name__} on {env_id}: mean {seconds.mean():.3f} s, longest {seconds.max():.3f} s a round")
    assert seconds.mean() <= limit


def test_rounds_take_as_much_longer_as_there_are_more_nodes():
    """From 31 nodes to 127, of which a round takes two seconds at most; the first round fits the initial data."""
    seconds_of_rounds(agents.MCBO(), "CBO/BinaryTree-v0", 2)
    means = {
        2 ** (depth + 1) - 1: seconds_of_rounds(agents.MCBO(), "CBO/BinaryTree-v0", 12, depth=depth)[1:].mean()
        for depth in (2, 4, 6)
    }
    print("\n" + ", ".join(f"{nodes} nodes: {mean:.2f} s a round" for nodes, mean in means.items()))
    assert means[127] <= 2.0
    assert means[127] <= means[31] * 127 / 31


def test_a_round_of_sixty_thousand_super_arms_without_a_new_fit():
    seconds = seconds_of_rounds(agents.SSEMUCBJO(degree=3), "CBO/TrainDelay-v0", 40)
    print(f"\na round, most of them between two fits: {1e3 * np.median(seconds):.1f} ms (median)")
    assert np.median(seconds) < 0.1


def test_a_row_update_of_aggregated_observations_is_quadratic():
    """From 500 to 1,000 observations the time of an update grows by about 4, not by 8 as a factorisation would."""
    rng = np.random.default_rng(0)
    cells, gp = np.sort(rng.random((1100, 2, 1)), axis=1), AggregatedGP(AverageKernel(0.05, 0.1, 1), 0.1)
    seconds = []
    for cell in cells:
        start = process_time()
        gp.add(cell, 0.0)
        seconds.append(process_time() - start)
    early, late = np.median(seconds[450:550]), np.median(seconds[950:1050])
    print(f"\none update at 500: {1e3 * early:.2f} ms, at 1,000: {1e3 * late:.2f} ms")
    assert late < 6 * early
