"""Aggregated mode: means over points, noise, invalid cells, regret."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import InvalidAction
from scipy.integrate import quad

from cbo_gym import evaluate, make_task
from cbo_gym.actions.cells import representative_points
from cbo_gym.envs import CausalBanditEnv, oracle_of
from cbo_gym.envs.registry import InitialData
from cbo_gym.modes import make_dynamics
from cbo_gym.modes.oracles import Oracle
from cbo_gym.problems.systems.function_networks import alpine2
from tests.support.invalid_actions import check_refused
from tests.support.loop import reset

CELL = np.array([[0.2], [0.5]])


def function(env: Any) -> Any:
    return env.unwrapped.scm.variables[-1].mechanism


def test_feedback_is_the_mean_over_the_points_of_every_node_under_one_draw_of_noise() -> None:
    problem = alpine2(noise_std=1.0)
    cells, points = CausalBanditEnv(problem, mode="aggregated", points=7), CausalBanditEnv(problem)
    reset(cells, 3, 0)
    for round_ in range(5):
        cell = cells.action_space.sample()
        observation, reward, *_ = cells.step(cell)
        seen = []
        for point in representative_points(cell, 7):
            reset(points, 3, 0)
            for _ in range(round_):
                points.step(np.full(6, 0.5))
            seen.append(points.step(point)[0]["nodes"])
        np.testing.assert_allclose(observation["nodes"], np.mean(seen, axis=0), rtol=1e-12)
        np.testing.assert_array_equal(observation["nodes"], observation["aggregate"])
        assert reward == observation["aggregate"][-1]


def test_noise_enters_the_mean_once() -> None:
    env = reset(gym.make("CBO/GPBandit1-v0", max_episode_steps=2000))
    rewards = np.array([env.step(CELL)[1] for _ in range(1000)])
    assert rewards.std() == pytest.approx(0.1, rel=0.1)
    expected = function(env)(representative_points(CELL, 10)[:, 0], 0.0).mean()
    assert abs(rewards.mean() - expected) < 4 * 0.1 / np.sqrt(1000)


def test_nodes_that_no_action_reaches_are_left_as_they_are_and_info_has_native_units() -> None:
    env = reset(gym.make("CBO/Dropwave-Aggregated-v0", noise_std=0.1, noise_free_parent=True).unwrapped)
    env.step(env.action_space.sample())
    assert np.ndim(env.values["U0"]) == 0
    estimate = oracle_of(env).expected_rewards([env.action_space.sample() for _ in range(4)])
    assert estimate.value.shape == (4,)
    env = reset(gym.make("CBO/Rosenbrock-Aggregated-v0").unwrapped)
    cell = np.array([[0.0, 0.25, 0.0, 0.0, 0.5], [1.0, 0.5, 0.5, 1.0, 1.0]])
    assert env.step(cell)[-1]["intervention"] == {
        "X0": ((-2.0, 2.0), (-1.0, 0.0)),
        "X1": ((-1.0, 0.0), (-2.0, 0.0)),
        "X2": ((-2.0, 0.0), (-2.0, 2.0)),
        "Y": ((-2.0, 2.0), (0.0, 2.0)),
    }


def test_the_integral_is_the_mean_over_the_cell() -> None:
    env = reset(gym.make("CBO/GPBandit2-v0", integral=True, noise_std=0.0))
    f = function(env)
    expected = quad(lambda x: float(f(x, 0.0)), 0.2, 0.5, epsabs=1e-12)[0] / 0.3
    assert env.step(CELL)[1] == pytest.approx(expected, abs=1e-6)
    assert make_task(env, seed=0).integral


BAD = [
    pytest.param([[0.3], [0.3]], "coordinate 0 of the cell goes from 0.3 to 0.3: the cell is empty", id="empty"),
    pytest.param([[0.6], [0.3]], "from 0.6 to 0.3: the cell is inverted; give the lower corner first", id="inverted"),
    pytest.param([[0.5], [1.2]], r"from 0.5 to 1.2, outside the box; it must lie in \[0, 1\]", id="above"),
    pytest.param([[-0.1], [0.5]], "from -0.1 to 0.5, outside the box", id="below"),
    pytest.param([[0.1, 0.1], [0.2, 0.2]], r"given shape \(2, 2\)", id="too many coordinates"),
]


@pytest.mark.parametrize(("action", "message"), BAD)
def test_invalid_cells_are_refused_and_nothing_happens(action: Any, message: str) -> None:
    check_refused("CBO/GPBandit1-v0", action, message)


def test_a_batch_names_the_first_invalid_cell() -> None:
    envs = reset(gym.make_vec("CBO/GPBandit1-v0", num_envs=3, vectorization_mode="vector_entry_point"))
    cells = np.tile(CELL, (3, 1, 1))
    cells[1] = [[0.4], [0.1]]
    with pytest.raises(InvalidAction, match=r"actions\[1\]: coordinate 0 .* inverted"):
        envs.step(cells)
    with pytest.raises(InvalidAction, match=r"shape \(n, 2, 1\); given \(3, 2\)"):
        envs.step(cells[..., 0])


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"points": 0}, "representative points S must be a whole number from 1 to 10000; given 0"),
        ({"arity": 1}, "arity K must be a whole number from 2 to 100; given 1"),
    ],
)
def test_bad_keywords(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gym.make("CBO/GPBandit1-v0", **keywords)


def test_initial_data_are_the_whole_box_and_random_cells() -> None:
    env = gym.make("CBO/Dropwave-Aggregated-v0")
    task = make_task(env, seed=0, initial_data=InitialData(observational=2, random=3))
    assert len(task.initial_data) == 5
    np.testing.assert_array_equal(task.initial_data[1].action, [[0.0, 0.0], [1.0, 1.0]])
    for past in task.initial_data:
        assert past.action in task.action_space
        assert set(past.observation) == {"nodes", "aggregate"}
        assert past.reward == past.observation["aggregate"][-1]


def test_the_oracle_averages_over_the_points() -> None:
    env = gym.make("CBO/Dropwave-Aggregated-v0").unwrapped
    env.action_space.seed(0)
    cells = [env.action_space.sample() for _ in range(3)]
    found = oracle_of(env).expected_rewards(cells).value
    soft = Oracle(make_dynamics(env.problem, "soft"))
    for cell, value in zip(cells, found, strict=True):
        points = representative_points(cell, env.dynamics.representative_points)
        assert value == pytest.approx(soft.expected_rewards(list(points)).value.mean(), rel=1e-12)


def test_the_oracle_averages_noise_out_at_every_point() -> None:
    """Noisy Dropwave is not linear in its noise: the mean over points of E[Y | point]."""
    env = gym.make("CBO/Dropwave-Aggregated-v0", noise_std=0.1, points=5).unwrapped
    cell = np.array([[0.45, 0.5], [0.5, 0.6]])
    oracle = oracle_of(env)
    found = oracle.expected_rewards([cell], tolerance=0.01)
    points = list(representative_points(cell, 5))
    soft = Oracle(make_dynamics(env.problem, "soft")).expected_rewards(points, tolerance=0.01)
    assert abs(found.value[0] - soft.value.mean()) < 5 * (found.standard_error[0] + soft.standard_error.mean())
    scalar = oracle.mean_of(env.dynamics.decode(cell), tolerance=0.01)
    assert scalar.value.shape == ()
    assert scalar.value == pytest.approx(found.value[0], abs=5 * found.standard_error[0])


@pytest.mark.parametrize("name", ["Dropwave", "Rosenbrock"])
def test_regret_is_counted_from_the_best_point(name: str) -> None:
    cells, points = (oracle_of(gym.make(f"CBO/{name}{mode}-v0")) for mode in ("-Aggregated", ""))
    assert cells.optimum.value == pytest.approx(points.optimum.value, rel=1e-9, abs=1e-9)
    assert cells.find_optimum().value == pytest.approx(cells.optimum.value, rel=1e-12, abs=1e-12)


def test_the_evaluator_scores_recommended_cells_by_aggregated_regret() -> None:
    run = evaluate("tests.support.agents:Centre", "CBO/GPBandit1-v0", seed=0, horizon=3)
    env = gym.make("CBO/GPBandit1-v0")
    middle = function(env)(representative_points(np.array([[0.25], [0.75]]), 10)[:, 0], 0.0).mean()
    np.testing.assert_allclose(run.table["simple_regret"], run.optimum - middle, rtol=1e-12)
    np.testing.assert_allclose(run.table["instant_regret"], run.optimum - middle, rtol=1e-12)
    assert run.table["action"].to_list() == [[0.25, 0.75]] * 3
