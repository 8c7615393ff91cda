"""SSEM-UCB-JO: scores of all super arms, and a whole run: ``make benchmark``."""

from time import perf_counter

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym import evaluate, make_task
from cbo_gym.actions.spaces import SuperArmSpace
from cbo_gym.agents import SSEMUCBJO
from cbo_gym.agents.super_arms.payoff_polynomials import PayoffPolynomials, PolynomialsAboutZero
from cbo_gym.agents.super_arms.signal_moments import SignalMoments

pytestmark = pytest.mark.benchmark


@pytest.mark.parametrize("kind", [PayoffPolynomials, PolynomialsAboutZero])
def test_optimistic_payoffs_of_sixty_thousand_super_arms(benchmark, kind):
    super_arms = SuperArmSpace(20, 6).all()
    assert len(super_arms) == 60_460
    rng = np.random.default_rng(0)
    moments = SignalMoments(20, 3, 1.0)
    for _ in range(50):
        moments.add(np.ones(20), rng.random(20))
    expansion = kind(super_arms, 3, 1.0).fit(lambda z: z.sum(axis=-1) ** 2, np.zeros(20), moments.spread())

    def bounds():
        return expansion.optimistic(*moments.intervals(0.01 * moments.confidence(50, 6)))

    assert np.isfinite(benchmark(bounds)).all()
    seconds = benchmark.stats.stats.median
    print(f"\n{kind.__name__}, degree 3: {1e3 * seconds:.1f} ms (median)")
    assert seconds < 0.1


def test_a_round_without_a_new_fit():
    """TrainDelay, 60,460 super arms, degree 3: all of ``act`` and ``update``."""
    env = gym.make("CBO/TrainDelay-v0", max_episode_steps=40)
    agent = SSEMUCBJO(degree=3)
    agent.reset(make_task(env, seed=0), seed=0)
    observation, _ = env.reset(seed=0)
    seconds = []
    for _ in range(40):
        start, before = perf_counter(), agent.model.system
        action = agent.act(observation)
        if agent.model.system is before:
            seconds.append(perf_counter() - start)
        observation, reward, _, _, info = env.step(action)
        agent.update(action, observation, reward, info)
    print(f"\na round between two fits: {1e3 * np.median(seconds):.1f} ms (median of {len(seconds)})")
    assert np.median(seconds) < 0.1


def test_a_whole_run():
    """SSEMPeriodic, ten base arms, degree 4, 2,000 rounds."""
    seconds = evaluate("SSEM-UCB-JO", "CBO/SSEMPeriodic-v0", 0).seconds.sum()
    print(f"\n2,000 rounds: {seconds:.1f} s")
    assert seconds < 180.0
