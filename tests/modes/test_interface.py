"""Dynamics: one class a mode, without state; batches mean what their actions mean one by one."""

import inspect
import pickle
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from cbo_gym.modes import classes_of, make_dynamics
from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.problems import build_problem
from cbo_gym.task import ContextualTask, Mode, Task
from tests.support.environments import FIRST_OF_MODE, KINDS

every_mode = pytest.mark.parametrize("env_id", FIRST_OF_MODE.values(), ids=FIRST_OF_MODE.keys())


def dynamics_of(env_id: str) -> Dynamics:
    return gym.make(env_id).unwrapped.dynamics  # type: ignore[attr-defined, no-any-return]


def sampled(dynamics: Dynamics, count: int) -> list[Any]:
    dynamics.action_space.seed(0)
    return [dynamics.action_space.sample() for _ in range(count)]


@pytest.mark.parametrize("mode", Mode)
def test_a_mode_is_a_folder_that_names_its_classes(mode: Mode) -> None:
    folder = classes_of(mode)
    assert folder is classes_of(mode.value) is import_module(f"cbo_gym.modes.{mode.value}")
    interface, dynamics = folder.INTERFACE, folder.DYNAMICS
    assert interface.__name__ == f"{mode.capitalize()}Interface"
    assert dynamics.__name__ == f"{mode.capitalize()}Dynamics"
    assert issubclass(dynamics, interface)
    assert not issubclass(interface, Dynamics)
    assert interface.mode is dynamics.mode is mode
    assert not inspect.isabstract(interface)
    assert not inspect.isabstract(dynamics)
    assert issubclass(interface.task_class, Task)
    assert interface.task_class.__name__ == f"{mode.capitalize()}Task"


@pytest.mark.parametrize("mode", ["warm", "", None, 3, "SOFT"])
def test_an_unknown_mode_is_refused(mode: Any) -> None:
    with pytest.raises(ValueError, match=f"mode must be one of soft, hard, .*; given {mode!r}"):
        classes_of(mode)


@pytest.mark.parametrize("env_id", KINDS)
def test_a_batch_is_described_as_its_actions(env_id: str) -> None:
    """``check_problem`` compares how they are played."""
    dynamics = dynamics_of(env_id)
    actions = sampled(dynamics, 5)
    empty = create_empty_array(dynamics.action_space, len(actions))
    described = dynamics.describe_batch(dynamics.decode_batch(concatenate(dynamics.action_space, actions, empty)))
    for i, action in enumerate(actions):
        alone = dynamics.describe(dynamics.decode(action))
        assert {name for name in described if not name.startswith("_") and described[f"_{name}"][i]} == set(alone)
        for name, value in alone.items():
            np.testing.assert_allclose(described[name][i], value, rtol=1e-15)


@every_mode
def test_it_keeps_no_state(env_id: str) -> None:
    """The same noise and action give the same round, whatever was asked before, in another process as well."""
    dynamics = dynamics_of(env_id)
    copied: Dynamics = pickle.loads(pickle.dumps(dynamics))
    actions = sampled(dynamics, 4)
    noise = tuple(float(column[0]) for column in dynamics.scm.draw_noise(np.random.default_rng(1), 1))

    def played(of: Dynamics, action: Any) -> list[float]:
        return [float(value) for value in of.play(noise, of.decode(action)).values()]

    first = [played(dynamics, action) for action in actions]
    dynamics.all_actions()
    dynamics.regions()
    dynamics.known_maximiser()
    dynamics.before(noise)
    assert [played(dynamics, action) for action in reversed(actions)] == first[::-1]
    assert [played(copied, action) for action in actions] == first


@every_mode
def test_the_first_observation_is_zero_but_for_what_is_seen_before_a_round(env_id: str) -> None:
    dynamics = dynamics_of(env_id)
    before = dynamics.before(dynamics.scm.draw_noise(np.random.default_rng(1), ()))
    assert bool(before) == dynamics.observes_before == issubclass(dynamics.task_class, ContextualTask)
    empty = dynamics.empty_observation()
    assert not any(value.any() for value in empty.values())
    assert {**empty, **before, **dynamics.observe_memory(dynamics.start())} in dynamics.observation_space


@pytest.mark.parametrize("env_id", KINDS)
def test_regions_or_a_list_make_up_the_action_space(env_id: str) -> None:
    dynamics = dynamics_of(env_id)
    every, regions = dynamics.all_actions(), dynamics.regions()
    assert (every is None) == bool(regions)
    if every is not None:
        assert all(action in dynamics.action_space for action in every[:: max(1, len(every) // 50)])
    for region in regions[:5]:
        batch = region.to_actions(np.random.default_rng(0).random((3, region.dim)))
        space = batch_space(dynamics.action_space, 3)
        assert all(action in dynamics.action_space for action in iterate(space, batch))


@pytest.mark.parametrize("env_id", KINDS)
def test_initial_actions_come_in_the_sizes_asked_for(env_id: str) -> None:
    dynamics = dynamics_of(env_id)
    if dynamics.observes_before or dynamics.mode == "dynamic":
        with pytest.raises(ValueError, match=r"mode has no initial (data|interventions); given .*random=3"):
            dynamics.initial_actions(np.random.default_rng(0), 2, 3)
        return
    count = 2 + 3 * (len(dynamics.problem.targets) - 1 if dynamics.mode == "hard" else 1)
    twice = [dynamics.initial_actions(np.random.default_rng(0), 2, 3) for _ in range(2)]
    assert str(twice[0]) == str(twice[1])
    actions = list(iterate(batch_space(dynamics.action_space, count), twice[0]))
    assert len(actions) == count
    assert all(action in dynamics.action_space for action in actions)
    nothing = [str(dynamics.describe(dynamics.decode(action))) for action in actions[:2]]
    assert nothing[0] == nothing[1]


def test_a_problem_plays_in_every_mode_that_it_has_parts_for() -> None:
    problem = build_problem("cbo_gym.problems.systems.function_networks:alpine2")
    assert [make_dynamics(problem, mode).mode for mode in ("soft", "hard", "aggregated", "masked")] == [
        Mode.SOFT, Mode.HARD, Mode.AGGREGATED, Mode.MASKED
    ]  # fmt: skip
    with pytest.raises(ValueError, match="Alpine2 has no contexts, so it has no contextual mode"):
        make_dynamics(problem, "contextual")
    env = gym.make("CBO/Alpine2-v0", mode="hard")
    assert env.unwrapped.mode is Mode.HARD  # type: ignore[attr-defined]


@every_mode
def test_without_sizes_initial_actions_come_in_the_usual_ones(env_id: str) -> None:
    dynamics = dynamics_of(env_id)
    usual = {"soft": (0, None), "adversarial": (0, None), "partial": (0, None), "hard": (10, 2), "dynamic": (10, 0)}
    assert dynamics.default_initial_data == usual.get(dynamics.mode, (0, 0))
    actions = dynamics.initial_actions(np.random.default_rng(0), 0, None)
    if dynamics.mode in ("soft", "aggregated", "masked"):
        assert len(actions) == 2 * dynamics.scm.action_dim + 1
    if dynamics.mode == "hard":
        assert len(actions["target"]) == 2 * (len(dynamics.problem.targets) - 1)
