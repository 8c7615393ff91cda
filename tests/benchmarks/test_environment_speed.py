"""Rates of the environments beside Gymnasium's Pendulum, measured in turn in the same run: ``make benchmark``."""

from statistics import median
from time import process_time

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym.envs.registry import entries
from cbo_gym.scm import Intervention
from tests.support.loop import reset

pytestmark = pytest.mark.benchmark
# Rounds of an episode, which is as long as a run: in partial mode a round takes longer the more were played.
STEPS = 500
PAIRS = 9
SAMPLES = 100_000
LONG = 10**9
# Least share of Pendulum's rate; a round of partial mode looks for parts made with the same parameters.
LEAST = {"partial": 0.2}


def seconds_of(env, action):
    """Return the processor time of an episode of one action, through the wrappers of ``gym.make``."""
    env.reset(seed=0)
    step, start = env.step, process_time()
    for _ in range(STEPS):
        step(action)
    return process_time() - start


def share_of_pendulum(env_id):
    """Return the rate of an environment as a share of Pendulum's, the median of interleaved pairs of episodes."""
    envs = [reset(gym.make(name, max_episode_steps=LONG), 0, 0) for name in ("Pendulum-v1", env_id)]
    actions = [env.action_space.sample() for env in envs]
    pairs = [list(map(seconds_of, envs, actions)) for _ in range(PAIRS)]
    return median(theirs / ours for theirs, ours in pairs)


@pytest.mark.parametrize("env_id", [entry.id for entry in entries()])
def test_a_step_takes_at_most_twice_as_long_as_pendulums(env_id):
    share = share_of_pendulum(env_id)
    print(f"\n{env_id}: {share:.2f} of the rate of Pendulum-v1")
    env = gym.make(env_id).unwrapped
    points = getattr(env.dynamics, "representative_points", None)
    # A single point costs the array operations of many, and the rate is promised for up to ten nodes and the reward.
    if points == 1 or len(env.scm.nodes) > 11:
        return
    # A step in aggregated mode evaluates the system at every representative point: evaluations are compared there.
    assert share * (points or 1) >= LEAST.get(env.mode, 0.5)


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
