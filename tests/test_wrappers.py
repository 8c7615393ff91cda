import gymnasium as gym
import numpy as np
import pytest

from cbo_gym.wrappers import FlattenAction, TopKMask


def test_flatten_action_picks_the_target_with_the_highest_score():
    env = FlattenAction(gym.make("CBO/ToyGraph-v0"))
    assert env.action_space.shape == (5,)
    env.reset(seed=0)
    *_, info = env.step(np.array([0.1, 0.2, 0.9, 0.3, 0.4]))
    assert info["intervention"] == {"X1": pytest.approx(-5 + 25 * 0.4)}
    *_, info = env.step(np.array([0.9, 0.2, 0.1, 0.3, 0.4]))
    assert info["intervention"] == {}


def test_top_k_mask_keeps_what_is_farthest_from_null():
    env = TopKMask(gym.make("CBO/Alpine2-v0", max_interventions=2))
    env.reset(seed=0)
    *_, info = env.step(np.array([0.5, 0.9, 0.55, 0.45, 0.0, 0.6]))
    native = [info["intervention"][node] for node in ("X0", "X1", "X2", "X3", "X4", "Y")]
    np.testing.assert_allclose(native, [5.0, 9.0, 5.0, 5.0, 0.0, 5.0])


def test_wrappers_name_what_they_need():
    with pytest.raises(TypeError, match=r"Dict\(target, values\)"):
        FlattenAction(gym.make("CBO/Alpine2-v0"))
    with pytest.raises(TypeError, match="max_interventions"):
        TopKMask(gym.make("CBO/Alpine2-v0"))
