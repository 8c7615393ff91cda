"""Rates of the environments beside Gymnasium's Pendulum, measured in the same run: ``make benchmark``."""

from time import perf_counter

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym.envs.registry import entries
from cbo_gym.scm import Intervention
from tests.support.loop import reset

pytestmark = pytest.mark.benchmark
STEPS = 20_000
SAMPLES = 100_000
LONG = 10**9
SLOWER = {  # least share of Pendulum's rate, where it is not 1
    "masked": 0.6,  # a round draws signals and errors of observation for every node, and reports two vectors
    "contextual": 0.7,  # a round also propagates the noise of the next one, for its context
    "adversarial": 0.5,  # a round also works out what the adversary replies to the action
    "partial": 0.2,  # a round looks for parts made with the same parameters, and finds out which nodes it makes
    "dynamic": 0.7,  # a round also goes through the slices before its own, as they were implemented
    "CBO/PooledTesting-v0": 0.8,  # five of ten mechanisms compute a week of testing, with powers
}


def steps_per_second(env_id, repeats=5):
    """The best of several loops through ``gym.make``'s wrappers, one fixed action."""
    env = reset(gym.make(env_id, max_episode_steps=LONG), 0, 0)
    action = env.action_space.sample()
    step = env.step
    step(action)
    rates = []
    for _ in range(repeats):
        start = perf_counter()
        for _ in range(STEPS):
            step(action)
        rates.append(STEPS / (perf_counter() - start))
    return max(rates)


@pytest.mark.parametrize("env_id", [entry.id for entry in entries()])
def test_a_step_is_no_slower_than_pendulum(benchmark, env_id):
    pendulum = steps_per_second("Pendulum-v1")
    ours = steps_per_second(env_id)
    benchmark.extra_info.update({"steps_per_second": round(ours), "pendulum": round(pendulum)})
    print(f"\n{env_id}: {ours:,.0f} steps/s; Pendulum-v1: {pendulum:,.0f}")
    env = reset(gym.make(env_id, max_episode_steps=LONG))
    benchmark(env.step, env.action_space.sample())
    points = getattr(env.unwrapped.dynamics, "representative_points", None)
    # A single point costs the array operations of many, and the rate is promised for up to ten nodes and the reward.
    if points == 1 or len(env.unwrapped.scm.nodes) > 11:
        return
    # A step in aggregated mode evaluates the system at every representative point: evaluations are compared there.
    least = SLOWER.get(env_id, SLOWER.get(env.unwrapped.mode, 1.0))
    assert ours * (points or 1) >= least * pendulum


@pytest.mark.parametrize("distinct_actions", [False, True])
def test_vectorised_sampling(benchmark, distinct_actions):
    """At least 8 million samples a second under one action; with an action a sample it is reported alone."""
    problem = gym.make("CBO/Alpine2-Noisy-v0").unwrapped.problem
    rng = np.random.default_rng(0)
    points = rng.random((SAMPLES, 6) if distinct_actions else 6)
    intervention = Intervention.parameters(problem.to_native(points))
    benchmark.pedantic(problem.scm.sample, (SAMPLES, rng, intervention), rounds=50, warmup_rounds=5)
    rate = SAMPLES / benchmark.stats.stats.median
    benchmark.extra_info["million_samples_per_second"] = round(rate / 1e6, 1)
    print(f"\ndistinct actions {distinct_actions}: {rate / 1e6:.1f} M samples/s (median of 50)")
    if not distinct_actions:
        assert rate >= 8e6


@pytest.mark.parametrize("num_envs", [16, 1024])
def test_the_vector_environment(benchmark, num_envs):
    envs = gym.make_vec(
        "CBO/Alpine2-Noisy-v0", num_envs=num_envs, vectorization_mode="vector_entry_point", max_episode_steps=LONG
    )
    reset(envs, 0, 0)
    benchmark(envs.step, envs.action_space.sample())
    rate = num_envs / benchmark.stats.stats.median
    benchmark.extra_info["env_steps_per_second"] = round(rate)
    print(f"\n{num_envs} environments: {rate:,.0f} steps/s in all")
