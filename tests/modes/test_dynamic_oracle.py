"""Best sequences and myopic bests, against brute force over grids and closed forms."""

from itertools import product

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym.envs import CausalBanditEnv, oracle_of
from cbo_gym.envs.registry import entries
from cbo_gym.modes import make_dynamics, oracle_for
from cbo_gym.modes.dynamic.oracle import DynamicOracle

ENTRIES = [entry for entry in entries() if entry.mode == "dynamic"]


def oracle_on(name, trials=1, **parameters):
    return oracle_for(make_dynamics(f"cbo_gym.problems.systems.dynamic:{name}", "dynamic", trials=trials, **parameters))


def grid_actions(dynamics, points):
    """All actions whose values lie on a grid, without repetitions."""
    count = len(dynamics.manipulable)
    found = []
    for place, chosen in enumerate(dynamics.codec.sets):
        members = [i for i, name in enumerate(dynamics.manipulable) if name in chosen]
        for values in product(np.linspace(0.0, 1.0, points), repeat=len(members)):
            whole = np.full(count, 0.5)
            whole[members] = values
            found.append({"target": place, "values": whole})
    return found


def test_two_slices_by_brute_force() -> None:
    """Every pair of grid actions is played in an environment; no pair is better than the best sequence."""
    oracle = oracle_on("nonstat", slices=2)
    env = CausalBanditEnv("cbo_gym.problems.systems.dynamic:nonstat", mode="dynamic", trials=1, slices=2)
    actions = grid_actions(oracle.dynamics, 7)
    best = -np.inf
    for first in actions:
        env.reset(seed=0)
        earned = env.step(first)[1]
        env.step(first)  # in the second slice, in which others might have been played
        best = max(best, (earned + max(env.counterfactual(second)[1] for second in actions)) / 2)
    optimum = oracle.find_optimum()
    assert optimum.value >= best - 1e-9
    assert optimum.value <= best + 0.25 * (optimum.value - optimum.random_value)  # the grid is coarse
    assert oracle.value_of(oracle.myopic_sequence()) <= optimum.value + 1e-9


def test_the_best_of_stat_is_known() -> None:
    """Y_t = Y_{t-1} + exp(-Z/20) - cos Z, greatest at Z = -3, the end of its domain."""
    oracle = oracle_on("stat", slices=2)
    each = np.exp(3.0 / 20.0) - np.cos(3.0)
    assert oracle.value_of(oracle.myopic_sequence()) == pytest.approx(1.5 * each, rel=1e-9)  # the mean of 1 and 2 times
    past = oracle.past_of([])
    assert oracle.best_after(past).value == pytest.approx(each, rel=1e-9)


def test_the_myopic_best_hangs_on_what_was_implemented() -> None:
    oracle = oracle_on("ind")
    low, high = oracle.dynamics.manipulable["X"]
    bad = {"target": 3, "values": np.array([1.0, 1.0])}  # X = Z = 3
    after_bad, after_best = oracle.past_of([bad]), oracle.past_of([oracle.best_after(oracle.past_of([])).action])
    gain = oracle.best_after(after_best).value - oracle.best_after(after_bad).value
    assert (low, high) == (-3.0, 3.0)
    assert gain == pytest.approx(
        oracle.best_after(oracle.past_of([])).value - oracle.expected_rewards([bad]).value[0], abs=1e-6
    )


def test_a_run_is_judged_by_the_past_that_it_made() -> None:
    env = gym.make("CBO/DCBOMultiv-v0", trials=2, max_episode_steps=6)
    oracle = oracle_of(env)
    assert isinstance(oracle, DynamicOracle)
    env.reset(seed=0)
    env.action_space.seed(3)
    played, rewards, seen = [], [], [env.reset(seed=0)[0]]
    for _ in range(6):
        played.append(env.action_space.sample())
        observation, reward, *_ = env.step(played[-1])
        rewards.append(reward)
        seen.append(observation)
    scores = oracle.score(played, played, seen)
    np.testing.assert_allclose(scores.expected.value, rewards, rtol=1e-9)  # there is no noise
    np.testing.assert_allclose(scores.recommended.value, rewards, rtol=1e-9)
    assert (scores.best >= np.array(rewards) - 1e-9).all()
    assert len(set(scores.best[:2])) == len(set(scores.best[2:4])) == 1
    rng = np.random.default_rng(0)
    for place, ends in enumerate([[], [1], [1, 3]]):
        past = oracle.past_of([played[end] for end in ends])
        env.action_space.seed(int(rng.integers(100)))
        others = oracle.expected_after([env.action_space.sample() for _ in range(2000)], past).value
        assert others.max() <= scores.best[2 * place] + 1e-9
        assert others.mean() == pytest.approx(scores.at_random[2 * place], abs=0.15)


def test_with_noise_the_expectation_is_that_of_many_rounds() -> None:
    oracle = oracle_on("stat", trials=1, slices=2, trial_noise=1.0)
    first, second = ({"target": place, "values": np.array([0.7, 0.2])} for place in (1, 2))
    estimate = oracle.mean_of(
        oracle.dynamics.in_round(oracle.dynamics.decode(second), oracle.past_of([first])), tolerance=0.01
    )
    env = CausalBanditEnv("cbo_gym.problems.systems.dynamic:stat", mode="dynamic", trials=1, slices=2, trial_noise=1.0)
    rewards = []
    env.reset(seed=0)
    env.step(first)
    for _ in range(4000):  # the last slice goes on
        rewards.append(env.step(second)[1])
    error = np.std(rewards) / len(rewards) ** 0.5
    assert abs(np.mean(rewards) - estimate.value) < 5.0 * np.hypot(error, estimate.standard_error)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_recorded_optima_are_not_beaten_by_random_sequences(entry) -> None:
    oracle = oracle_of(gym.make(entry.id))
    best, space = oracle.optimum, oracle.dynamics.action_space
    assert best.value == entry.optimum.value
    assert f"slice {oracle.dynamics.slices.count - 1}: do(" in best.action
    space.seed(4)
    values = [oracle.value_of([space.sample() for _ in range(oracle.dynamics.slices.count)]) for _ in range(200)]
    assert max(values) <= best.value + 1e-9
    assert np.mean(values) == pytest.approx(best.random_value, abs=5 * np.std(values) / 200**0.5)
