"""Contextual mode: contexts are natural values, known before acting, and depend on the seed and the round alone."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym.envs.registry import entries
from cbo_gym.envs.wrappers import OracleInfo
from cbo_gym.problems import Contexts
from tests.support.invalid_actions import check_refused, check_vector_refused
from tests.support.loop import reset

IDS = [entry.id for entry in entries() if entry.mode == "contextual"]
every_env = pytest.mark.parametrize("env_id", IDS)


def bare(env_id: str, seed: int = 0, **kwargs: Any) -> Any:
    return reset(gym.make(env_id, **kwargs).unwrapped, seed, 0)


def contexts_of(env: Any, actions: list[Any], seed: int) -> np.ndarray:
    observation, _ = env.reset(seed=seed)
    return np.array([observation["context"], *(env.step(action)[0]["context"] for action in actions)])


@every_env
def test_contexts_do_not_depend_on_what_is_played(env_id: str, block: int) -> None:
    env = bare(env_id)
    one, two = ([env.action_space.sample() for _ in range(block + 4)] for _ in range(2))
    contexts = contexts_of(env, one, seed=3)
    np.testing.assert_array_equal(contexts, contexts_of(env, two, seed=3))
    assert len(np.unique(contexts[:, 0])) == len(one) + 1
    assert (contexts != contexts_of(env, one, seed=4)).any()


@every_env
def test_a_context_is_what_its_round_shows_if_nothing_upstream_is_set(env_id: str) -> None:
    env = bare(env_id)
    observe = env.dynamics.variable_sets().index(frozenset())
    indices = [env.scm.nodes.index(name) for name in env.problem.data(Contexts).names]
    seen = env.reset(seed=1)[0]["context"]
    for _ in range(5):
        action = {"scope": observe, "values": np.zeros(len(env.problem.manipulable))}
        observation = env.step(action)[0]
        np.testing.assert_array_equal(observation["nodes"][indices], seen)
        seen = observation["context"]


def test_an_intervention_keeps_the_noise_of_the_context_and_changes_what_is_downstream() -> None:
    """On CoCaLarge the bystanders reach C5 and C6: the natural values were seen, others come out."""
    env = bare("CBO/CoCaLarge-v0")
    everything = next(i for i, chosen in enumerate(env.dynamics.variable_sets()) if len(chosen) == 29)
    names = list(env.problem.data(Contexts).names)
    seen = dict(zip(names, env.reset(seed=5)[0]["context"], strict=True))
    nodes = dict(zip(env.scm.nodes, env.step({"scope": everything, "values": np.ones(29)})[0]["nodes"], strict=True))
    for name in names:
        if name not in ("C5", "C6"):
            assert nodes[name] == seen[name]
    shift = nodes["C5"] - seen["C5"]
    assert shift != 0.0
    assert nodes["C6"] - seen["C6"] == pytest.approx(shift)
    assert nodes["X1"] == nodes["Xt5"] == 2.0


def test_info_with_the_oracle_is_of_the_context() -> None:
    env = OracleInfo(gym.make("CBO/CoCaFig1-v0"))
    observation, _ = env.reset(seed=0)
    for _ in range(3):
        context = float(observation["context"][0])
        observation, *_, best = env.step({"scope": 0, "values": [(1.0 - context) / 2.0, 0.5]})  # X1 = -C
        assert best["expected_reward"] == pytest.approx(1 / 3 + context, abs=2e-3)
        assert best["instant_regret"] == pytest.approx(-context, abs=2e-3)


INVALID = [
    pytest.param(
        {"target": 0, "values": [0.5] * 2},
        "the keys 'scope' and 'values' alone, as action_space.sample",
        id="a hard action",
    ),
    pytest.param({"scope": 4, "values": [0.5] * 2}, "scope must be a whole number from 0 to 3; given 4", id="unknown"),
    pytest.param({"scope": 0, "values": [0.5] * 3}, r"shape \(2,\), .*'X1', 'X2'.*given shape \(3,\)", id="shape"),
    pytest.param({"scope": 0, "values": [0.5, 1.5]}, "value of X2 must lie in .* given 1.5", id="outside"),
]


@pytest.mark.parametrize(("action", "message"), INVALID)
def test_invalid_actions_change_nothing(action: Any, message: str) -> None:
    check_refused("CBO/CoCaFig1-v0", action, message)


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ({"scope": [0, 4, 2], "values": np.full((3, 2), 0.5)}, "action 1 .*scope 4"),
        ({"scope": [0, 1, 2], "values": np.full((3, 3), 0.5)}, r"\(n, 2\); given .*\(3, 3\)"),
        ({"scope": [0, 1], "values": np.full((2, 2), 0.5)}, "each of 3 environments; given 2"),
        ({"target": [0, 1, 2], "values": np.full((3, 2), 0.5)}, "a dict with the keys 'scope'"),
    ],
)
def test_invalid_vector_actions_change_nothing(actions: Any, message: str) -> None:
    check_vector_refused("CBO/CoCaFig1-v0", actions, message)
