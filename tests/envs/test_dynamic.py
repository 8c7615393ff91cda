"""Dynamic mode: slices, trials, what is implemented, and what agents know."""

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym.envs import CausalBanditEnv, CausalBanditVectorEnv
from cbo_gym.envs.registry import InitialData
from cbo_gym.envs.tasks import make_task
from cbo_gym.errors import ArgumentError
from tests.support.loop import reset

STAT = "CBO/DCBOStat-v0"
Z = 2  # the place of {Z} among the targets of Stat


def do_z(env, value):
    """The action that sets Z of Stat."""
    low, high = env.dynamics.manipulable["Z"]
    return {"target": Z, "values": np.array([0.5, (value - low) / (high - low)])}


def small(trials=2, **parameters):
    return CausalBanditEnv("cbo_gym.problems.systems.dynamic:stat", mode="dynamic", trials=trials, **parameters)


def test_the_last_round_of_a_slice_is_the_one_that_is_implemented() -> None:
    env = reset(small(trials=3))
    rewards = [env.step(do_z(env, z))[1] for z in (1.0, 2.0, -1.0, 0.5)]

    def own(z):
        return np.exp(-z / 20.0) - np.cos(z)

    assert rewards[:3] == pytest.approx([own(1.0), own(2.0), own(-1.0)])
    assert rewards[3] == pytest.approx(own(0.5) + own(-1.0))
    assert env.values["Z_0"] == pytest.approx(-1.0)
    assert env.intervened == {"Z_0", "Z_1"}


def test_trials_of_a_slice_leave_no_trace_but_the_last() -> None:
    one, other = small(trial_noise=1.0), small(trial_noise=1.0)
    for env in (one, other):
        env.reset(seed=3)
    one.step(do_z(one, -2.0))
    other.step(do_z(other, 2.5))
    for env in (one, other):
        env.step(do_z(env, 1.0))
    ours, theirs = one.step(do_z(one, 0.0)), other.step(do_z(other, 0.0))
    np.testing.assert_array_equal(ours[0]["nodes"], theirs[0]["nodes"])
    assert ours[1] == theirs[1]


def test_observations_tell_the_slice_and_the_trial_of_the_round_that_comes() -> None:
    env = small(trials=2)
    seen = [env.reset(seed=0)[0]]
    seen += [env.step(do_z(env, 0.0))[0] for _ in range(8)]
    assert [int(one["slice"][0]) for one in seen] == [0, 0, 1, 1, 2, 2, 2, 2, 2]  # the last slice goes on
    assert [int(one["trial"][0]) for one in seen] == [0, 1, 0, 1, 0, 1, 2, 3, 4]
    assert all(one in env.observation_space for one in seen)


def test_after_the_last_slice_nothing_is_implemented_any_more() -> None:
    env = reset(small(trials=1))
    for z in (1.0, 1.0, 2.0):
        env.step(do_z(env, z))
    first = env.step(do_z(env, 0.0))[1]
    assert env.step(do_z(env, -1.5))[4]["intervention"] == {"Z": pytest.approx(-1.5)}
    env.step(do_z(env, 3.0))
    assert env.step(do_z(env, 0.0))[1] == first
    single = reset(small(trials=1, slices=1))
    assert single.scm.nodes == ("X_0", "Z_0", "Y_0")
    assert single.step(do_z(single, -3.0))[1] == pytest.approx(np.exp(3.0 / 20.0) - np.cos(3.0))


def test_the_vector_environment_is_the_scalar_one_in_every_slice() -> None:
    made = {**gym.spec(STAT).kwargs, "trials": 2, "trial_noise": 1.0}
    together, alone = CausalBanditVectorEnv(3, **made), [CausalBanditEnv(**made) for _ in range(3)]
    together.reset(seed=7)
    together.action_space.seed(1)
    for index, env in enumerate(alone):
        env.reset(seed=7 + index)
    for _ in range(2 * together.dynamics.slices.count + 2):
        actions = together.action_space.sample()
        seen, rewards, *_, info = together.step(actions)
        steps = [env.step({key: part[i] for key, part in actions.items()}) for i, env in enumerate(alone)]
        for key in seen:
            np.testing.assert_array_equal(seen[key], [step[0][key] for step in steps])
        assert rewards.tolist() == [step[1] for step in steps]
        for i, step in enumerate(steps):
            names = {name[1:] for name, value in info["intervention"].items() if name[0] == "_" and value[i]}
            assert names == set(step[4]["intervention"])


def test_a_counterfactual_is_of_the_same_past() -> None:
    env, other = small(trials=1, trial_noise=1.0), small(trials=1, trial_noise=1.0)
    for each in (env, other):
        each.reset(seed=2)
        each.step(do_z(each, 1.0))
    imagined = other.step(do_z(other, -2.0))
    env.step(do_z(env, 2.0))
    asked = env.counterfactual(do_z(env, -2.0))
    assert asked[1] == imagined[1]
    np.testing.assert_array_equal(asked[0]["nodes"], imagined[0]["nodes"])
    third = env.step(do_z(env, 0.0))[1]
    assert env.values["Z_1"] == pytest.approx(2.0)  # what was asked was not implemented
    assert np.isfinite(third)


def test_the_task_holds_time_series_of_the_slices_that_were_measured() -> None:
    task = make_task(gym.make("CBO/DCBOMiss-v0"), seed=0)
    assert set(task.observational) == {f"{name}_{t}" for t in range(3) for name in "XZY"}
    assert {len(column) for column in task.observational.values()} == {10}
    assert (task.slices, task.trials, task.horizon, task.nodes) == (6, 10, 60, ("X", "Z", "Y"))
    assert task.initial_data == ()
    assert set(task.unrolled.parents("Y_1")) == {"Y_0", "Z_1"}
    assert task.diagram.directed == {("X", "Z"), ("Z", "Y")}
    again, other = (make_task(gym.make("CBO/DCBOMiss-v0"), seed=seed) for seed in (0, 1))
    np.testing.assert_array_equal(again.observational["Y_2"], task.observational["Y_2"])
    assert not np.array_equal(other.observational["Y_2"], task.observational["Y_2"])


def test_a_trial_without_noise_says_so_and_the_series_have_theirs() -> None:
    task = make_task(gym.make(STAT), seed=0, initial_data=InitialData(observational=4000, random=0))
    assert {type(noise).__name__ for noise in task.noise.values()} == {"Zero"}
    residuals = task.observational["Z_1"] - np.exp(-task.observational["X_1"]) - task.observational["Z_0"]
    assert residuals.mean() == pytest.approx(0.0, abs=5 / 4000**0.5)
    assert residuals.std() == pytest.approx(1.0, abs=0.06)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"slices": 0}, "slices must be a whole number from 1 to 100; given 0"),
        ({"trials": 0}, "trials must be a whole number from 1 to 10000; given 0"),
        ({"trial_noise": -1.0}, "trial_noise must be a finite number of at least 0; given -1.0"),
        ({"trial_noise": float("nan")}, "trial_noise must be a finite number of at least 0; given nan"),
        ({"graph": "hidden"}, "dynamic mode shows agents the true graph"),
        ({"trail": 3}, "did you mean 'trials'"),
    ],
)
def test_bad_input_is_refused(parameters, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        gym.make(STAT, **parameters)
