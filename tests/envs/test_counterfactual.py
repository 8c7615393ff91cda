"""What a round would have given under another action, on the same noise."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym.envs.registry import entries
from tests.support.loop import reset

# contextual mode has an environment of its own here; where rounds depend on those before them, two runs that play
# different actions part: see the modes' own tests
ASIDE = ("contextual", "adversarial", "dynamic", "partial")
ENVS = {entry.mode: entry.id for entry in entries() if entry.mode not in ASIDE}
ENVS |= {"contextual": "CBO/CoCaFig1-v0", "cyclic": "CBO/TrainDelay-v0"}
every_mode = pytest.mark.parametrize("env_id", ENVS.values(), ids=ENVS.keys())


def assert_same(one, other) -> None:
    """Observation, reward, terminated, truncated and info, bit for bit."""
    assert one[0].keys() == other[0].keys()
    for key in one[0]:
        np.testing.assert_array_equal(one[0][key], other[0][key])
    for first, second in zip(one[1:4], other[1:4], strict=True):
        np.testing.assert_array_equal(first, second)
    assert repr(one[4]) == repr(other[4])


@every_mode
@pytest.mark.parametrize("make", [gym.make, partial(gym.make_vec, num_envs=3)], ids=["one", "many"])
def test_it_is_what_another_run_on_the_same_noise_gives_and_changes_nothing(env_id, make, block) -> None:
    """One run asks between its steps, across a refill of the noise; two others play what was done and asked."""
    env, played, other = (make(env_id, max_episode_steps=block + 2) for _ in range(3))
    for each in (env, played, other):
        reset(each, 5, 1)
    for _ in range(block + 2):
        action, alternative = env.action_space.sample(), env.action_space.sample()
        happened = env.step(action)
        assert_same(happened, played.step(action))
        imagined = other.step(alternative)
        asked = env.unwrapped.counterfactual
        for chosen, expected in ((action, happened), (alternative, imagined)):
            if make is gym.make:  # whose wrapper truncates
                expected = (*expected[:3], False, expected[4])
            assert_same(asked(chosen), expected)
    if make is gym.make:
        assert (env.unwrapped.round, env.unwrapped.total_reward) == (
            played.unwrapped.round,
            played.unwrapped.total_reward,
        )
        assert env.unwrapped.values == played.unwrapped.values
        assert env.unwrapped.intervened == played.unwrapped.intervened
        return
    assert happened[3].all()
    env.step(action)  # resets
    with pytest.raises(gym.error.ResetNeeded, match="no round has been played"):
        env.counterfactual(action)


def test_additive_noise_drops_out_of_the_difference() -> None:
    """ToyGraph under do(X1 = x): Y = exp(-x / 20) - cos(x) + noise, and both actions meet one noise."""
    env = reset(gym.make("CBO/ToyGraph-v0").unwrapped)
    target = env.problem.targets.index(frozenset({"X1"}))
    _, first, _, _, info = env.step({"target": target, "values": np.array([0.5, 0.2])})
    _, second, _, _, other = env.counterfactual({"target": target, "values": np.array([0.5, 0.9])})
    x, y = info["intervention"]["X1"], other["intervention"]["X1"]
    difference = np.exp(-x / 20.0) - np.cos(x) - np.exp(-y / 20.0) + np.cos(y)
    assert first - second == pytest.approx(difference, abs=1e-12)


@pytest.mark.parametrize("make", [gym.make, gym.make_vec])
def test_before_a_round_there_is_nothing_to_ask(make) -> None:
    env = make("CBO/Dropwave-v0").unwrapped
    action = env.action_space.sample()
    with pytest.raises(gym.error.ResetNeeded, match="call step before counterfactual"):
        env.counterfactual(action)
    env.reset(seed=0)
    with pytest.raises(gym.error.ResetNeeded, match="call step before counterfactual"):
        env.counterfactual(action)
    env.step(action)
    with pytest.raises(gym.error.InvalidAction, match=r"must lie in|outside"):
        env.counterfactual(action + 2.0)
