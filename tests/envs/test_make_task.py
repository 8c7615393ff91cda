"""make_task: what an agent knows, and the initial data."""

import dataclasses
import math
import types
from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import cbo_gym
from cbo_gym import make_task
from cbo_gym.actions import TypedDomain
from cbo_gym.envs import CausalBanditEnv
from cbo_gym.envs.registry import InitialData, find_entry
from cbo_gym.problems import build_problem
from tests.support.environments import EVERY_ID, FIRST_OF_MODE, KINDS, kinds_of
from tests.support.loop import reset

HARD_IDS = kinds_of("hard")


def rounds_as_arrays(task: cbo_gym.Task) -> list[Any]:
    listed = []
    for action, observation, reward in task.initial_data:
        parts = list(action.values()) if isinstance(action, dict) else [action]
        listed += [*parts, observation["nodes"], reward]
    return listed


def equal(left: cbo_gym.Task, right: cbo_gym.Task) -> bool:
    ours, theirs = rounds_as_arrays(left), rounds_as_arrays(right)
    return len(ours) == len(theirs) and all(map(np.array_equal, ours, theirs))


@pytest.mark.parametrize("env_id", EVERY_ID)
def test_contents(env_id: str) -> None:
    entry = find_entry(env_id)
    assert entry is not None
    env = gym.make(entry.id)
    task, problem = make_task(env, seed=0), env.unwrapped.problem
    whole = env.unwrapped.dynamics.whole_graph()
    assert whole.nodes == problem.scm.nodes or entry.mode == "dynamic"
    assert task.env_id == entry.id
    assert task.mode == entry.mode
    assert task.horizon == entry.horizon
    assert task.nodes == whole.nodes
    assert task.reward == task.nodes[-1]
    assert task.diagram == whole.diagram
    assert task.action_space == env.action_space
    assert task.observation_space == env.observation_space
    if entry.mode in ("soft", "masked", "adversarial", "subset", "partial"):
        assert (task.composition is None) == (problem.composition is None)
    else:
        assert not hasattr(task, "composition")
    for action, observation, reward in task.initial_data:
        assert task.action_space.contains(action)
        assert task.observation_space.contains(observation)
        assert type(reward) is float
        assert reward == observation["nodes"][-1]
    if problem.noise_known and entry.mode != "contextual":
        assert set(task.noise) == set(task.nodes)
    else:
        assert task.noise is None


VANDALISED = FIRST_OF_MODE | {"Ackley": "CBO/Ackley-v0"}


def vandalise(thing: Any, seen: set[int]) -> None:
    """Spoil every array, dictionary, list, set and graph that can be reached by attributes and containers."""
    if id(thing) in seen or isinstance(thing, (str, bytes, int, float, type, types.FunctionType, types.ModuleType)):
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        if thing.flags.writeable:
            thing[...] = 1
        return
    inside = list(vars(thing).values()) if hasattr(thing, "__dict__") else []
    if isinstance(thing, Mapping):
        inside += [*thing.keys(), *thing.values()]
    elif isinstance(thing, (list, tuple, set, frozenset)):
        inside += list(thing)
    for part in inside:
        vandalise(part, seen)
    if isinstance(thing, (dict, list, set)):
        thing.clear()
    if hasattr(thing, "__dict__"):
        vars(thing).clear()


@pytest.mark.parametrize("env_id", VANDALISED.values(), ids=VANDALISED.keys())
def test_nothing_done_to_a_task_reaches_the_environment(env_id: str) -> None:
    sizes = None if any(name in env_id for name in ("CoCa", "PSAC", "DCBO")) else InitialData(observational=2, random=2)
    env, twin = gym.make(env_id), gym.make(env_id)
    handed, expected = make_task(env, 0, initial_data=sizes), make_task(twin, 0, initial_data=sizes)
    parts = [handed.action_space, handed.diagram, handed.codec, *handed.initial_data[:1]]
    graph = handed.diagram.graph
    vandalise(handed, set())
    assert [vars(part) for part in parts[:3]] == [{}] * 3  # it did reach them
    assert [part.observation for part in parts[3:]] == [{}] * len(parts[3:])
    assert vars(graph) == {}
    again = make_task(env, 0, initial_data=sizes)
    assert again.codec.domains == expected.codec.domains
    assert again.diagram.graph.edges == expected.diagram.graph.edges
    assert equal(again, expected)
    known = {field.name for field in dataclasses.fields(again)} - {"codec", "initial_data", "noise", "observational"}
    for name in known - {"components", "signal_family"}:
        assert getattr(again, name) == getattr(expected, name), name
    for name in ("noise", "observational"):
        assert str(getattr(again, name, None)) == str(getattr(expected, name, None))
    for made in (env, twin):
        reset(made, 1, 1)
    for _ in range(5):
        action = env.action_space.sample()
        assert str(action) == str(twin.action_space.sample())
        np.testing.assert_array_equal(env.step(action)[0]["nodes"], twin.step(action)[0]["nodes"])
        point = np.full(again.codec.dim, 0.7)
        assert str(again.codec.to_action(point)) == str(twin.unwrapped.dynamics.codec.to_action(point))


@pytest.mark.parametrize("env_id", HARD_IDS)
def test_hard_initial_data_are_observations_and_some_of_each_other_target(env_id: str) -> None:
    env = gym.make(env_id)
    sizes = find_entry(env_id).initial_data
    observed, each = sizes.observational, sizes.random
    usual = not any(other in env_id for other in ("Survey", "ErdosRenyi", "CCBO"))
    assert (observed, each) == (10, 2) if usual else each == 1
    task = make_task(env, seed=0)
    played = [task.targets[r.action["target"]] for r in task.initial_data]
    assert played[:observed] == [frozenset()] * observed
    for target in task.targets:
        assert played.count(target) == (each if target else observed)
    for action, observation, _ in task.initial_data:
        for value, (name, domain) in zip(action["values"], task.manipulable.items(), strict=True):
            if name in task.targets[action["target"]]:
                low, high = domain
                native = domain.to_native(value) if isinstance(domain, TypedDomain) else low + (high - low) * value
                assert observation["nodes"][task.nodes.index(name)] == pytest.approx(native, rel=1e-12)


@pytest.mark.parametrize("env_id", ["CBO/Alpine2-v0", "CBO/Ackley-v0", "CBO/BinaryTree-v0"])
def test_initial_rounds_are_what_the_environment_would_have_answered(env_id: str) -> None:
    env = reset(gym.make(env_id))
    for action, observation, reward in make_task(env, seed=1).initial_data:
        again = env.step(action)
        np.testing.assert_allclose(observation["nodes"], again[0]["nodes"], rtol=1e-12, atol=1e-12)
        assert reward == pytest.approx(again[1], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("env_id", KINDS)
def test_initial_data_depend_on_the_seed_alone(env_id: str) -> None:
    fresh, used = gym.make(env_id), gym.make(env_id)
    used.reset(seed=99)
    used.step(used.action_space.sample())
    task = make_task(fresh, seed=5)
    assert equal(task, make_task(used, seed=5))
    assert not task.initial_data or not equal(task, make_task(fresh, seed=6))


def test_making_a_task_does_not_touch_the_environment() -> None:
    left, right = (gym.make("CBO/CompleteGraph-v0") for _ in range(2))
    for env in (left, right):
        reset(env, 2, 0)
    for _ in range(3):
        make_task(left, seed=2)
        assert left.action_space.sample()["target"] == right.action_space.sample()["target"]
        action = {"target": 0, "values": [0.5] * 3}
        np.testing.assert_array_equal(left.step(action)[0]["nodes"], right.step(action)[0]["nodes"])


def test_initial_noise_is_independent_of_the_noise_of_the_rounds() -> None:
    """With one seed for both, the initial data do not give the noise of the coming rounds away."""
    nothing = {"target": 0, "values": [0.5, 0.5]}
    task_noise, round_noise = [], []
    env = gym.make("CBO/ToyGraph-v0")
    for seed in range(100):
        reset(env, seed)
        rounds = [env.step(nothing)[0]["nodes"][0] for _ in range(10)]
        initial = [r.observation["nodes"][0] for r in make_task(env, seed=seed).initial_data[:10]]
        assert not set(initial) & set(rounds)  # not even the same numbers in another order
        round_noise.append(rounds[:2])
        task_noise.append(initial[:2])
    both = np.corrcoef(np.hstack([task_noise, round_noise]).T)
    assert np.abs(both[:2, 2:]).max() < 4.5 / math.sqrt(100)


def test_sizes_can_be_given() -> None:
    soft = make_task(gym.make("CBO/Alpine2-v0"), 0, initial_data=InitialData(observational=4, random=3))
    assert len(soft.initial_data) == 7
    null = np.array(soft.null_action)
    assert [np.array_equal(r.action, null) for r in soft.initial_data] == [True] * 4 + [False] * 3
    hard = make_task(gym.make("CBO/ToyGraph-v0"), 0, initial_data=InitialData(observational=0, random=5))
    assert len(hard.initial_data) == 10


def test_an_unregistered_environment_needs_a_horizon_and_has_no_initial_data() -> None:
    env = CausalBanditEnv("cbo_gym.problems.systems.function_networks:alpine2")
    with pytest.raises(ValueError, match="give a horizon"):
        make_task(env, seed=0)
    task = make_task(env, seed=0, horizon=12)
    assert task.horizon == 12
    assert task.initial_data == ()
    assert task.env_id == "Alpine2"
    assert make_task(gym.make("CBO/Alpine2-v0"), 0, horizon=5).horizon == 5
    assert make_task(gym.make("CBO/Alpine2-v0", max_episode_steps=9), 0).horizon == 9


def test_noise_is_withheld_where_the_problem_says_so() -> None:
    problem = build_problem("cbo_gym.problems.systems.hard_graphs:toy_graph")
    secret = dataclasses.replace(problem, noise_known=False)
    assert make_task(CausalBanditEnv(secret, mode="hard"), 0, horizon=1).noise is None


@pytest.mark.parametrize(
    ("env_id", "given", "error", "message"),
    [
        ("CartPole-v1", {}, TypeError, "environment of cbo_gym; given CartPoleEnv"),
        ("CBO/Alpine2-v0", {"seed": -1}, ValueError, "seed must be a whole number from 0 to .*; given -1"),
        ("CBO/Alpine2-v0", {"horizon": 0}, ValueError, "horizon must be at least 1; given 0"),
        *(
            ("CBO/Alpine2-v0", {"seed": seed}, ValueError, "seed must be a whole number from 0 to")
            for seed in (1.5, None)
        ),
        *(("CBO/Alpine2-v0", {"horizon": horizon}, ValueError, "horizon must") for horizon in ("3", 2.5)),
    ],
)
def test_errors_say_what_is_wrong(env_id: str, given: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_task(gym.make(env_id), **given)
