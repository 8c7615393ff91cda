import gymnasium as gym
import numpy as np
import pytest

from cbo_gym.registry import entries
from cbo_gym.wrappers import DiscreteAction, FlattenAction, TopKMask

FIRST_OF_MODE = {entry.mode: entry.id for entry in reversed(entries())}


def test_flatten_action_picks_the_target_with_the_highest_score():
    env = FlattenAction(gym.make("CBO/ToyGraph-v0"))
    assert env.action_space.shape == (5,)
    env.reset(seed=0)
    *_, info = env.step(np.array([0.1, 0.2, 0.9, 0.3, 0.4]))
    assert info["intervention"] == {"X1": pytest.approx(-5 + 25 * 0.4)}
    *_, info = env.step(np.array([0.9, 0.2, 0.1, 0.3, 0.4]))
    assert info["intervention"] == {}


def test_flatten_action_sorts_the_corners_of_a_cell():
    env = FlattenAction(gym.make("CBO/Dropwave-Aggregated-v0"))
    env.reset(seed=0)
    *_, info = env.step(np.array([0.75, 0.0, 0.25, 0.5]))
    (low_0, high_0), (low_1, high_1) = info["intervention"]["X0"]
    assert (low_0, high_0, low_1, high_1) == pytest.approx((-2.56, 2.56, -5.12, 0.0))


@pytest.mark.parametrize("env_id", FIRST_OF_MODE.values())
@pytest.mark.parametrize("wrapper", [FlattenAction, DiscreteAction])
def test_every_mode_can_be_played_flat(env_id, wrapper):
    env = wrapper(gym.make(env_id))
    env.reset(seed=0)
    env.action_space.seed(0)
    rewards = [env.step(env.action_space.sample())[1] for _ in range(5)]
    assert np.isfinite(rewards).all()
    assert len(set(rewards)) > 1


def test_flatten_action_refuses_points_outside_the_box():
    env = FlattenAction(gym.make("CBO/ToyGraph-v0"))
    env.reset(seed=0)
    with pytest.raises(gym.error.InvalidAction, match="must lie in"):
        env.step(np.full(5, 1.5))


def test_discrete_actions_differ_and_can_be_repeated():
    env = DiscreteAction(gym.make("CBO/Dropwave-v0"), count=16)
    assert env.action_space.n == 16
    env.reset(seed=0)
    rewards = [env.step(index)[1] for index in range(16)]
    assert len(set(rewards)) == 16
    assert env.step(3)[1] == rewards[3]
    with pytest.raises(gym.error.InvalidAction, match=r"0\.\.15"):
        env.step(16)
    with pytest.raises(ValueError, match="at least 2"):
        DiscreteAction(gym.make("CBO/Dropwave-v0"), count=1)


def test_top_k_mask_keeps_what_is_farthest_from_null():
    env = TopKMask(gym.make("CBO/Alpine2-v0", max_interventions=2))
    env.reset(seed=0)
    *_, info = env.step(np.array([0.5, 0.9, 0.55, 0.45, 0.0, 0.6]))
    native = [info["intervention"][node] for node in ("X0", "X1", "X2", "X3", "X4", "Y")]
    np.testing.assert_allclose(native, [5.0, 9.0, 5.0, 5.0, 0.0, 5.0])


def test_wrappers_name_what_they_need():
    with pytest.raises(TypeError, match="no flat view"):
        FlattenAction(gym.make("CartPole-v1"))
    with pytest.raises(TypeError, match="max_interventions"):
        TopKMask(gym.make("CBO/Alpine2-v0"))
