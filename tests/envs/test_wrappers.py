import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers.vector import TransformAction

from cbo_gym.envs import oracle_of
from cbo_gym.envs.wrappers import DiscreteAction, FlattenAction, OracleInfo, TopKMask, VectorOracleInfo, codec_of
from cbo_gym.errors import ArgumentError, ArgumentTypeError
from tests.support.environments import FIRST_OF_MODE
from tests.support.loop import reset


def test_flatten_action_picks_the_target_with_the_highest_score():
    env = FlattenAction(gym.make("CBO/ToyGraph-v0"))
    assert env.action_space.shape == (5,)
    env.reset(seed=0)
    *_, info = env.step(np.array([0.1, 0.2, 0.9, 0.3, 0.4]))
    assert info["intervention"] == {"X1": pytest.approx(-5 + 25 * 0.4)}
    *_, info = env.step(np.array([0.9, 0.2, 0.1, 0.3, 0.4]))
    assert info["intervention"] == {}


def test_flatten_action_sorts_the_corners_of_a_cell():
    env = reset(FlattenAction(gym.make("CBO/Dropwave-Aggregated-v0")))
    *_, info = env.step(np.array([0.75, 0.0, 0.25, 0.5]))
    (low_0, high_0), (low_1, high_1) = info["intervention"]["X0"]
    assert (low_0, high_0, low_1, high_1) == pytest.approx((-2.56, 2.56, -5.12, 0.0))


@pytest.mark.parametrize("env_id", FIRST_OF_MODE.values())
@pytest.mark.parametrize("wrapper", [FlattenAction, DiscreteAction])
def test_every_mode_can_be_played_flat(env_id, wrapper):
    env = reset(wrapper(gym.make(env_id)), 0, 0)
    rewards = [env.step(env.action_space.sample())[1] for _ in range(5)]
    assert np.isfinite(rewards).all()
    assert len(set(rewards)) > 1


def test_discrete_actions_differ_and_can_be_repeated():
    env = DiscreteAction(gym.make("CBO/Dropwave-v0"), count=16)
    assert env.action_space.n == 16
    env.reset(seed=0)
    rewards = [env.step(index)[1] for index in range(16)]
    assert len(set(rewards)) == 16
    assert env.step(3)[1] == rewards[3]
    with pytest.raises(gym.error.InvalidAction, match="from 0 to 15; given 16"):
        env.step(16)
    for count in (1, "a", 2.5, True, None):
        with pytest.raises(ArgumentError, match="count must be a whole number from 2 to 65536; given"):
            DiscreteAction(gym.make("CBO/Dropwave-v0"), count=count)
    with pytest.raises(ArgumentError, match=r"seed must be a whole number from 0 to .*; given"):
        DiscreteAction(gym.make("CBO/Dropwave-v0"), seed=2.5)


def test_top_k_mask_keeps_what_is_farthest_from_null():
    env = reset(TopKMask(gym.make("CBO/Alpine2-v0", max_interventions=2)))
    *_, info = env.step(np.array([0.5, 0.9, 0.55, 0.45, 0.0, 0.6]))
    native = [info["intervention"][node] for node in ("X0", "X1", "X2", "X3", "X4", "Y")]
    np.testing.assert_allclose(native, [5.0, 9.0, 5.0, 5.0, 0.0, 5.0])


def test_wrappers_name_what_they_need():
    with pytest.raises(TypeError, match="no flat view"):
        FlattenAction(gym.make("CartPole-v1"))
    with pytest.raises(TypeError, match="max_interventions"):
        TopKMask(gym.make("CBO/Alpine2-v0"))


def test_the_codec_is_that_of_the_actions_outside_of_the_wrappers():
    env = gym.make("CBO/ToyGraph-v0")
    codec = env.unwrapped.dynamics.codec
    assert codec_of(env) is codec_of(OracleInfo(env)) is codec
    flat = codec_of(FlattenAction(env))
    assert (flat.dim, flat.choices) == (codec.dim, ())
    np.testing.assert_array_equal(flat.to_action(np.full(5, 0.25)), np.full(5, 0.25))
    masked = TopKMask(gym.make("CBO/Alpine2-v0", max_interventions=2))
    assert codec_of(masked).space == masked.action_space


@pytest.mark.parametrize("env_id", FIRST_OF_MODE.values())
def test_oracle_info_adds_the_truth_and_changes_nothing_else(env_id):
    plain, telling = gym.make(env_id), OracleInfo(gym.make(env_id))
    plain.action_space.seed(0)
    expected = plain.reset(seed=3)
    handed, info = telling.reset(seed=3)
    assert info == expected[1]
    oracle = oracle_of(plain)
    for _ in range(3):
        action = plain.action_space.sample()
        seen = {key: value.copy() for key, value in handed.items()}
        truth = oracle.expected_in_round(oracle.dynamics.decode(action), seen).value
        for value in handed.values():
            value[:] = np.nan  # what an agent does to its observations is nothing to the wrapper
        ours, theirs = telling.step(action), plain.step(action)
        handed = ours[0]
        assert all(np.array_equal(ours[0][key], theirs[0][key]) for key in theirs[0])
        assert ours[1:4] == theirs[1:4]
        told = ours[4]
        assert set(told) == {*theirs[4], "expected_reward", "instant_regret"}
        assert told["expected_reward"] == truth
        best = oracle.best_in_round(plain.unwrapped.dynamics.decode(action), seen)
        assert told["instant_regret"] == best - truth


def test_oracle_info_is_made_again_from_its_spec():
    env = OracleInfo(gym.make("CBO/Dropwave-v0"))
    again = gym.make(env.spec)
    assert isinstance(again, OracleInfo)
    again.reset(seed=0)
    assert again.step(np.array([0.5, 0.5]))[4]["instant_regret"] == 0.0
    outside = reset(FlattenAction(OracleInfo(gym.make("CBO/ToyGraph-v0"))))
    assert "instant_regret" in outside.step(np.full(5, 0.5))[4]


def pair(env_id, how="vector_entry_point"):
    return gym.make_vec(env_id, num_envs=2, vectorization_mode=how)


@pytest.mark.parametrize(
    ("wrap", "message"),
    [
        (lambda: OracleInfo(FlattenAction(gym.make("CBO/ToyGraph-v0"))), "inside of wrappers that change actions"),
        (
            lambda: VectorOracleInfo(TransformAction(pair("CBO/Rosenbrock-v0"), np.abs)),
            "inside of wrappers that change",
        ),
        (lambda: OracleInfo(gym.make("CartPole-v1")), "an oracle needs an environment of cbo_gym; given CartPoleEnv"),
        (lambda: VectorOracleInfo(pair("CartPole-v1", "sync")), "an environment of cbo_gym"),
    ],
)
def test_the_oracles_wrappers_refuse_what_they_cannot_tell(wrap, message):
    with pytest.raises(ArgumentTypeError, match=message):
        wrap()


def test_the_step_that_resets_a_vector_environment_tells_no_reward():
    made = gym.make_vec("CBO/CoCaFig1-v0", num_envs=2, vectorization_mode="vector_entry_point", max_episode_steps=2)
    envs = reset(VectorOracleInfo(made), 0, 0)
    told = [set(envs.step(envs.action_space.sample())[4]) for _ in range(4)]
    truth = {"expected_reward", "instant_regret"}
    assert [truth <= keys for keys in told] == [True, True, False, True]
    assert not truth & told[2]


@pytest.mark.parametrize("wrapper", [FlattenAction, DiscreteAction])
def test_boxes_that_are_no_unit_box_of_ours_are_refused(wrapper):
    from gymnasium.wrappers import RescaleAction

    for env in (gym.make("Pendulum-v1"), RescaleAction(gym.make("CBO/Alpine2-v0"), -1.0, 1.0)):
        with pytest.raises(ArgumentTypeError, match="no flat view"):
            wrapper(env)
