"""Partial mode: purchases of nodes, against a simulation by hand."""

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym import evaluate, make_task
from cbo_gym.envs import CausalBanditEnv, oracle_of
from cbo_gym.envs.registry import entries
from cbo_gym.envs.scalar import NoiseStream
from cbo_gym.errors import ArgumentError
from cbo_gym.problems.systems.purchases import manufacturing
from cbo_gym.scm import Intervention

IDS = [entry.id for entry in entries() if entry.mode == "partial"]
NOISY = "CBO/AckleySine-Noisy-v0"
PRICES = {"f0": 5.0, "f1": 10.0, "f2": 10.0, "f3": 45.0}


def started(env_id="CBO/Manufacturing-v0", **parameters):
    env = gym.make(env_id, **parameters).unwrapped
    env.reset(seed=3)
    return env


def bought(env, observation):
    return {name for name, flag in zip(env.scm.nodes, observation["bought"], strict=True) if flag}


def test_rounds_are_those_of_a_simulation_that_keeps_a_stock_by_hand():
    """Random purchases on few values, so that parts are met again; noise is kept with them."""
    count, rng = 3, np.random.default_rng(0)
    env = gym.make_vec(NOISY, budget=None, num_envs=count, vectorization_mode="vector_entry_point")
    env.reset(seed=5)
    twins = [started(NOISY) for _ in range(count)]
    for index, twin in enumerate(twins):
        twin.reset(seed=5 + index)
    streams = [NoiseStream(twin.scm, twin.np_random) for twin in twins]
    stocks, spent, reused = [{} for _ in range(count)], np.zeros(count), 0
    for _ in range(30):
        nodes, values = rng.integers(2, size=count), np.repeat(rng.integers(2, size=(count, 1)), 6, axis=1) * 0.5
        observation, reward, *_ = env.step({"node": nodes, "values": values})
        for index, (node, point) in enumerate(zip(nodes, values, strict=True)):
            noise, key = streams[index].draw(), point[0]
            made = {"f0"} if node == 0 else {"f1"} if key in stocks[index] else {"f0", "f1"}
            do = {} if "f0" in made else {"f0": (True, stocks[index][key])}
            reused += bool(do)
            outcome = twins[index].scm.propagate(noise, Intervention(tuple(4.0 * point - 2.0), do))
            if "f0" in made:
                stocks[index][key] = outcome["f0"]
            spent[index] += sum({"f0": 1.0, "f1": 9.0}[name] for name in made)  # of few whole numbers
            expected = [outcome["f0"] if "f0" in made else 0.0, outcome["f1"] if node else -7.0]
            np.testing.assert_allclose(observation["nodes"][index], expected, rtol=1e-12)
            assert observation["bought"][index].tolist() == [float("f0" in made), float(node)]
            assert reward[index] == pytest.approx(expected[1], rel=1e-12)
        np.testing.assert_allclose(observation["spent"][:, 0], spent)
    assert reused > 5


def test_a_full_evaluation_costs_the_same_at_once_and_node_after_node():
    at_once, in_turn = started(budget=None), started(budget=None)
    point = np.array([0.1, 0.7, 0.4, 0.9])
    whole, reward, *_, info = at_once.step({"node": 3, "values": point})
    assert bought(at_once, whole) == set(PRICES)
    assert info["cost"] == 70.0
    for node, name in enumerate(PRICES):
        observation, last, *_, info = in_turn.step({"node": node, "values": point})
        assert bought(in_turn, observation) == {name}
        assert info["cost"] == PRICES[name]
        assert observation["nodes"][node] == whole["nodes"][node]
    assert last == reward == whole["nodes"][-1]
    assert observation["spent"] == whole["spent"] == 70.0


def test_parts_of_several_rounds_are_assembled_and_others_made():
    env = started(budget=None)
    first, second = np.array([0.1, 0.7, 0.4, 0.9]), np.array([0.3, 0.2, 0.8, 0.5])
    env.step({"node": 1, "values": first})
    env.step({"node": 2, "values": second})
    mixed = np.concatenate([first[:2], second[2:]])
    observation, *_, info = env.step({"node": 3, "values": mixed})
    assert (bought(env, observation), info["cost"]) == ({"f3"}, 45.0)
    observation, *_, info = env.step({"node": 3, "values": np.concatenate([first[:2], first[2:]])})
    assert (bought(env, observation), info["cost"]) == ({"f2", "f3"}, 55.0)
    observation, *_, info = env.step({"node": 1, "values": mixed})  # the chosen node is made again
    assert (bought(env, observation), info["cost"]) == ({"f1"}, 10.0)


def test_parameters_that_differ_make_another_part():
    env = started(budget=None)
    env.step({"node": 0, "values": np.array([0.1, 0.7, 0.4, 0.9])})
    observation, *_ = env.step({"node": 1, "values": np.array([0.1, 0.7 + 1e-6, 0.4, 0.9])})
    assert bought(env, observation) == {"f0", "f1"}
    observation, *_ = env.step({"node": 1, "values": np.array([0.1, 0.7, 0.0, 0.0])})  # of which neither enters f1
    assert bought(env, observation) == {"f1"}


def test_bought_parts_have_any_value_in_their_range():
    env = started(upstream=False, budget=None)
    assert env.dynamics.codec.choices == (*PRICES, "all")
    values = np.array([0.5, 0.5, 0.5, 0.5, 0.2, 0.3, 0.9])
    observation, reward, *_, info = env.step({"node": 3, "values": values})
    assert (bought(env, observation), info["cost"]) == ({"f3"}, 45.0)
    parts = {"f1": (True, -2.0 + 4.0 * 0.3), "f2": (True, -2.0 + 4.0 * 0.9)}
    assert reward == pytest.approx(env.scm.propagate((), Intervention((0.0,) * 4, parts))["f3"])
    *_, info = env.step({"node": 3, "values": values})
    assert info["cost"] == 45.0
    whole, reward, *_, info = env.step({"node": 4, "values": values})
    assert (bought(env, whole), info["cost"]) == (set(PRICES), 70.0)
    assert reward == env.scm.propagate((), Intervention((0.0,) * 4))["f3"]
    apart, together = (oracle_of(started("CBO/GPs1-v0", upstream=upstream)).optimum for upstream in (False, True))
    assert apart.value == pytest.approx(together.value)
    task = make_task("CBO/Manufacturing-v0(upstream=False)", seed=1)
    assert task.parts == {"f0": (-2.0, 2.0), "f1": (-2.0, 2.0), "f2": (-2.0, 2.0)}


def test_what_the_budget_does_not_pay_for_is_not_bought():
    env = started(budget=76.0)
    action = {"node": 3, "values": np.full(4, 0.3)}
    assert env.step(action)[4]["cost"] == 70.0
    observation, reward, *_, info = env.step({"node": 1, "values": np.full(4, 0.6)})
    assert (bought(env, observation), info["cost"], reward) == (set(), 0.0, -12.0)
    assert info["intervention"]["node"] == -1
    observation, *_, info = env.step({"node": 0, "values": np.full(4, 0.6)})
    assert (bought(env, observation), info["cost"], observation["spent"][0]) == ({"f0"}, 5.0, 75.0)


def test_rounds_without_the_reward_are_worth_an_unfinished_product():
    """A run is scored by what was paid for, and a recommendation by what all nodes together would give."""
    run = evaluate("Random", "CBO/GPs1-v0(budget=25)", 100)
    table = run.table
    assert table["cost"].sum() <= 25.0
    finished = table["cost"].to_numpy() >= 9.0
    assert 0 < finished.sum() <= 2
    assert (table["expected_reward"].to_numpy()[~finished] == -4.0).all()
    np.testing.assert_allclose(table["expected_reward"].to_numpy()[finished], table["reward"].to_numpy()[finished])
    assert (table["simple_regret"].to_numpy() < run.optimum + 4.0).all()  # no recommendation is unfinished


@pytest.mark.parametrize("env_id", IDS)
def test_no_product_is_worth_less_than_an_unfinished_one(env_id):
    env = started(env_id)
    points = np.random.default_rng(1).random((2_000, env.scm.action_dim))
    rewards = oracle_of(env).mean_of(env.dynamics.decode_batch(env.dynamics.whole_actions(points))).value
    assert env.dynamics.unfinished < rewards.min()


def test_initial_data_are_full_evaluations():
    task = make_task("CBO/GPs2-v0", seed=100)
    assert len(task.initial_data) == 2 * 3 + 1
    for past in task.initial_data:
        assert past.observation["bought"].all()
        assert past.reward == past.observation["nodes"][-1]
    assert (task.budget, task.unfinished, task.parts) == (500.0, -4.0, {})
    assert task.costs.variables == {"f0": 1.0, "f1": 1.0, "f2": 1.0, "f3": 47.0}


def test_records_name_the_node_and_the_inputs_that_matter():
    env = started()
    record = {"node": "f1", "x0": 0.25, "x1": -0.5}
    action = env.dynamics.codec.from_record(record)
    assert env.dynamics.codec.to_record(action) == record
    assert env.dynamics.codec.to_string(record) == "f1 at x0 = 0.25, x1 = -0.5"
    for wrong, message in [
        ({"node": "f4", "x0": 0.0}, "node must be one of"),
        ({"node": "f1", "x0": 0.0}, r"give one value for each of \['x0', 'x1'\]"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            env.dynamics.codec.from_record(wrong)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"budget": 0.0}, "budget"),
        ({"upstream": 1}, "upstream"),
        ({"graph": "hidden"}, "shows agents the true graph"),
        ({"costs": {"f0": 1.0}}, "without a fixed price"),
        ({"costs": {"x0": 1.0}}, "cannot be priced"),
    ],
)
def test_wrong_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        CausalBanditEnv(manufacturing(), mode="partial", **parameters)


def test_the_optimum_of_the_cascade_is_that_of_a_search_stage_by_stage():
    """Of each stage, all products that any products before it can have, on a fine grid."""

    def stage(first, second):
        return 10.0 - 0.052 * (first**2 + second**2) + 0.096 * first * second

    grid = np.linspace(-10.0, 10.0, 401)
    products = stage(grid[:, None], grid)
    for _ in range(2):
        found = np.linspace(products.min(), products.max(), 401)
        products = stage(found[:, None], grid)
    optimum = oracle_of(started("CBO/CascadeMatyas-v0")).optimum
    assert optimum.value == pytest.approx(products.max(), abs=1e-3)
    played = started("CBO/CascadeMatyas-v0", budget=None).step(optimum.action)
    assert played[1] == pytest.approx(optimum.value)
