"""Adversarial mode: moves depend on the seed, the round and past actions alone; they are seen after the round."""

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import InvalidAction

from cbo_gym import make_task
from cbo_gym.errors import ArgumentError
from tests.support.loop import reset

ONE, THREE = "CBO/Dropwave-Penny-v0", "CBO/Alpine2-Perturb-v0"  # coordinates of the adversary
ROUNDS = 40
pytestmark = pytest.mark.usefixtures("block")


def bare(env_id: str, seed: int = 0, **keywords: Any) -> Any:
    return reset(gym.make(env_id, max_episode_steps=None, **keywords).unwrapped, seed, seed)


def moves_of(env: Any, actions: list[np.ndarray]) -> np.ndarray:
    return np.array([env.step(action)[0]["adversary"] for action in actions])


def sampled(env: Any, count: int = ROUNDS) -> list[np.ndarray]:
    return [env.action_space.sample() for _ in range(count)]


@pytest.mark.parametrize("adversary", ["adaptive", "random"])
def test_a_move_does_not_depend_on_the_action_that_it_meets(adversary: str) -> None:
    one, other = (bare(THREE, adversary=adversary) for _ in range(2))
    actions = sampled(one)
    for action in actions:
        other_action = one.action_space.sample()
        observation = one.step(action)[0]
        imagined = one.counterfactual(other_action)[0]
        np.testing.assert_array_equal(observation["adversary"], imagined["adversary"])
        np.testing.assert_array_equal(other.step(action)[0]["nodes"], observation["nodes"])


def test_only_the_adaptive_adversary_depends_on_actions_before() -> None:
    for adversary, depends in (("adaptive", True), ("random", False), ("fixed", False)):
        one, other = (bare(THREE, adversary=adversary) for _ in range(2))
        same = (moves_of(one, sampled(one)) == moves_of(other, sampled(other)[::-1])).all()
        assert same != depends


def test_the_informed_adversary_replies_to_the_very_action() -> None:
    env = bare(THREE, adversary="informed")
    rewards = env.dynamics.game.rewards
    worst, known = [], []
    for action in sampled(env) * 5:
        imagined = env.action_space.sample()
        earned = [(action, env.step(action)[1]), (imagined, env.counterfactual(imagined)[1])]
        for played, reward in earned:
            own = rewards[env.dynamics.game.index_of(played.tolist())]
            worst.append(bool(np.isclose(reward, own.min())))
            known.append(np.isclose(own, own.min()).mean())
    expected = np.mean(0.8 + 0.2 * np.array(known))
    assert all(worst[:2])  # no move of the first round is at random
    assert abs(np.mean(worst) - expected) < 5 * math.sqrt(expected * (1 - expected) / len(worst) * 2)


def test_moves_at_random_are_uniform_and_change_with_the_seed() -> None:
    moves = moves_of(bare(ONE, adversary="random"), [np.zeros(2)] * 1000)
    found, counts = np.unique(moves.round(9), return_counts=True)
    np.testing.assert_allclose(found, [0, 1 / 3, 2 / 3, 1], atol=1e-9)
    assert (np.abs(counts / 1000 - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 1000)).all()
    assert (moves_of(bare(ONE, seed=1, adversary="random"), [np.zeros(2)] * 40) != moves[:40]).any()


def test_the_adaptive_adversary_replies_to_the_past() -> None:
    """Against one action for long it plays what is worst for it, but for a fifth of the rounds."""
    env = bare("CBO/Ackley-Perturb-v0")
    action = np.array([1.0, 2.0, 2.0, 1.0]) / 3.0
    seen = [env.step(action)[:2] for _ in range(500)]
    rewards = np.array([reward for _, reward in seen])[50:]
    share = np.isclose(rewards, rewards.min()).mean()
    at_random = 0.2 * len(np.unique(rewards.round(9))) / 16
    assert 0.75 < share < 0.85 + at_random


def test_the_fixed_adversary_plays_what_hurts_random_play_most() -> None:
    env_id = "CBO/Ackley-Penny-v0"

    def mean_against(adversary: Any) -> float:
        env = bare(env_id, adversary=adversary)
        return float(np.mean([env.step(action)[1] for action in env.action_space.all()]))

    means = [mean_against([[level]]) for level in (0.0, 1 / 3, 2 / 3, 1.0)]
    assert np.ptp(means) > 0.1
    assert mean_against("fixed") == pytest.approx(min(means), abs=1e-12)


def test_a_function_is_given_the_past_actions_and_no_others() -> None:
    asked: list[np.ndarray] = []

    def mover(past: np.ndarray) -> list[float]:
        asked.append(past)
        return [past[-1, 0] if len(past) else 0.5]

    env = bare(ONE, adversary=mover)
    actions = sampled(env, 6)
    moves = moves_of(env, actions)
    np.testing.assert_allclose(moves[1:, 0], [action[0] for action in actions[:-1]], atol=1e-12)
    assert moves[0, 0] == pytest.approx(0.5)
    for count, past in enumerate(asked):
        np.testing.assert_allclose(past, np.reshape(actions[:count], (count, 2)), atol=1e-12)
    envs = reset(gym.make_vec(ONE, 2, vectorization_mode="vector_entry_point", adversary=mover))
    first = np.array([[0.0, 1.0], [1.0, 1.0]])
    envs.step(first)
    np.testing.assert_allclose(envs.step(first)[0]["adversary"], first[:, :1], atol=1e-12)


@pytest.mark.parametrize("given", [[1.5], [-0.1], [math.nan], [0.5, 0.5], [], "a", None])
def test_a_function_with_a_move_out_of_range_fails_before_anything_changes(given: Any) -> None:
    wrong: list[Any] = [[0.5], given]
    env = bare(ONE, adversary=lambda past: wrong[min(len(past), len(wrong) - 1)])
    env.step(np.zeros(2))
    values, total = dict(env.values), env.total_reward
    with pytest.raises(ArgumentError, match=r"the adversary's move in round 2 must be 1 numbers in \[0, 1\]; given"):
        env.step(np.zeros(2))
    assert (env.round, env.values, env.total_reward) == (1, values, total)
    wrong[1] = [1.0]
    mended = bare(ONE, adversary=[[0.5], [1.0]])
    mended.step(np.zeros(2))
    np.testing.assert_array_equal(env.step(np.ones(2))[0]["nodes"], mended.step(np.ones(2))[0]["nodes"])


NO_MOVES = [[], [[1.2]], [[-1e-9]], [[math.inf]], [[0.1, 0.2]], [0.5], [["a"]], 3, [[0.5], [0.5, 0.5]]]


@pytest.mark.parametrize(
    ("adversary", "message"),
    [
        *((moves, r"moves must be a list of one or more, each 1 numbers in \[0, 1\]; given") for moves in NO_MOVES),
        ("adaptiv", r"one of adaptive, informed, random, fixed, a list.*given 'adaptiv'.*adaptive"),
    ],
)
def test_moves_are_played_in_turn_and_what_is_no_strategy_is_refused(adversary: Any, message: str) -> None:
    moves = [[0.0], [0.25], [1.0]]
    env = bare(ONE, adversary=moves)
    np.testing.assert_allclose(moves_of(env, [np.zeros(2)] * 5), [*moves, *moves[:2]], atol=1e-12)
    with pytest.raises(ArgumentError, match=message):
        gym.make(ONE, adversary=adversary)


@pytest.mark.parametrize("action", [[0.5, 0.0], [1 / 3, 0.66], [1 / 3 + 1e-6, 0.0]])
def test_an_action_off_the_grid_is_refused(action: list[float]) -> None:
    env = bare(ONE)
    with pytest.raises(InvalidAction, match=r"action\[[01]\] must be one of 0/3, 1/3, 2/3, 3/3; given"):
        env.step(np.array(action))
    assert env.round == 0
    envs = reset(gym.make_vec(ONE, 2, vectorization_mode="vector_entry_point"))
    with pytest.raises(InvalidAction, match=r"actions\[1\] is outside GridBox"):
        envs.step(np.array([[0.0, 1.0], action]))


def test_a_task_tells_what_the_adversary_may_do_and_initial_data_what_it_did() -> None:
    task = make_task(gym.make(THREE), seed=0)
    assert task.action_nodes == {"X0": (0,), "X1": (1,), "X2": (2,), "Y": (3,)}
    assert task.adversary_nodes == {"X0": (0,), "X1": (1,), "X2": (2,)}
    assert task.adversary_domains == ((0.0, 2.0),) * 3
    assert (task.levels, task.noise, len(task.initial_data)) == (4, None, 9)
    replayed = reset(gym.make(THREE, adversary=[past.observation["adversary"].tolist() for past in task.initial_data]))
    for past in task.initial_data:
        np.testing.assert_allclose(replayed.step(past.action)[0]["nodes"], past.observation["nodes"], rtol=1e-12)
    assert len({tuple(past.observation["adversary"]) for past in task.initial_data}) > 1


def test_a_picture_shows_the_move_at_the_nodes_that_it_enters() -> None:
    env = reset(gym.make(THREE, render_mode="rgb_array", adversary=[[0.0, 1 / 3, 1.0]]).unwrapped)
    before = env.dynamics.node_entries(None, {})
    env.step(np.zeros(4))
    played = env.dynamics.against(env.dynamics.decode(np.zeros(4)), np.array([0.0, 1 / 3, 1.0]))
    after = env.dynamics.node_entries(played, env.values)
    assert [entry.label for entry in before["X1"]] == ["x1 = -", "z1 = - (adversary)"]
    assert [entry.label for entry in after["X1"]] == ["x1 = 0.0", "z1 = 0.67 (adversary)"]
    assert [entry.label for entry in after["X2"]] == ["x2 = 0.0", "z2 = 2.00 (adversary)"]
    assert [entry.label for entry in after["Y"]] == ["x3 = 0.0"]
    assert env.dynamics.affected_nodes() == {"X0": "x0, z0", "X1": "x1, z1", "X2": "x2, z2", "Y": "x3"}
    assert env.render().any()
