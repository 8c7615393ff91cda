import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space, iterate

from cbo_gym.actions import BoxCodec, Domains
from cbo_gym.actions.policies import PolicyActions, spread_points
from cbo_gym.envs.wrappers import codec_of
from cbo_gym.errors import ArgumentError, ArgumentTypeError
from tests.support.environments import FIRST_OF_MODE

ENVS = {env_id: {} for env_id in FIRST_OF_MODE.values()} | {"CBO/Alpine2-v0": {"max_interventions": 2}}

every_mode = pytest.mark.parametrize(("env_id", "kwargs"), ENVS.items(), ids=ENVS.keys())


@every_mode
def test_every_point_is_an_action_and_a_batch_is_its_rows(env_id, kwargs):
    codec = codec_of(gym.make(env_id, **kwargs))
    space, rng = codec.space, np.random.default_rng(0)
    # At corners cells are empty and scores are tied.
    points = np.concatenate([rng.random((50, codec.dim)), rng.integers(0, 2, (50, codec.dim))])
    batch = iterate(batch_space(space, 100), codec.to_action(points))
    for row, point in zip(batch, points, strict=True):
        action = codec.to_action(point)
        assert space.contains(action)
        np.testing.assert_array_equal(spaces.flatten(space, row), spaces.flatten(space, action))


@every_mode
def test_the_point_and_the_numbers_of_an_action_lead_back_to_it(env_id, kwargs):
    codec = codec_of(gym.make(env_id, **kwargs))
    space = codec.space
    space.seed(0)
    for _ in range(20):
        action = space.sample()
        flat = codec.to_flat(action)
        chosen = codec.choice_index(action) if codec.choices else None
        from_point = codec.to_action(codec.to_point(action))
        for back in (from_point, codec.from_flat(flat), codec.from_numbers(codec.to_numbers(action), chosen)):
            assert space.contains(back)
            np.testing.assert_array_equal(spaces.flatten(space, back), spaces.flatten(space, action))
    for others in ([*flat, 0.0], flat[:-1]):
        with pytest.raises(ArgumentError, match="cannot be read from"):
            codec.from_flat(others)
    if codec.choices or space.dtype.kind == "i":
        with pytest.raises(ArgumentError, match="cannot be read from"):
            codec.from_flat([0.5, *flat[1:]])


def test_a_foreign_space_is_refused():
    env = gym.make("CBO/ToyGraph-v0")
    env.action_space = spaces.MultiDiscrete([2, 3])
    with pytest.raises(ArgumentTypeError, match="MultiDiscrete"):
        codec_of(env)


def test_spread_points_cover_the_box():
    points = spread_points(2, 64)
    assert points.shape == (64, 2)
    counts, *_ = np.histogram2d(*points.T, bins=8, range=[[0, 1], [0, 1]])
    assert (counts == 1).all()  # a (0, 6, 2)-net has one point in each square
    np.testing.assert_array_equal(points, spread_points(2, 64))
    assert not np.array_equal(points, spread_points(2, 64, seed=1))
    with pytest.raises(ValueError, match="count must be a whole number from 2 to 65536"):
        spread_points(2, 1)


def test_choices_of_policies_become_actions():
    codec = BoxCodec(spaces.Box(0.0, 1.0, (2,), dtype=np.float64), Domains([(0.0, 1.0)] * 2))
    continuous = PolicyActions(codec)
    assert continuous.space == spaces.Box(-1.0, 1.0, (2,), dtype=np.float32)
    np.testing.assert_allclose(continuous.to_action(np.float32([[-1.0, 0.5], [3.0, 0.0]])), [[0.0, 0.75], [1.0, 0.5]])
    discrete = PolicyActions(codec, 4)
    assert discrete.space == spaces.Discrete(4)
    np.testing.assert_array_equal(discrete.to_action(np.int64(3)), spread_points(2, 4)[3])
    np.testing.assert_array_equal(discrete.to_action(np.array([1, 1])), spread_points(2, 4)[[1, 1]])
    with pytest.raises(ValueError, match="from 2 to 65536"):
        PolicyActions(codec, 1)


def test_domains_are_shown_as_they_are_given():
    assert repr(Domains({"X": (0.0, 2.0)})) == "Domains({'X': (0.0, 2.0)})"
    assert repr(Domains([(0.0, 2.0)])) == "Domains(((0.0, 2.0),))"
