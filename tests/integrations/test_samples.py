"""Data frames of observational and interventional samples."""

import sys

import gymnasium as gym
import numpy as np
import polars as pl
import pytest

import cbo_gym
from cbo_gym.envs import oracle_of
from cbo_gym.errors import ArgumentError, ArgumentTypeError, MissingExtraError
from tests.support.environments import COVERING, LAST_OF_MODE
from tests.support.loop import reset

every_mode = pytest.mark.parametrize("env_id", LAST_OF_MODE.values(), ids=LAST_OF_MODE.keys())


def errors_apart(values: pl.Series, expected: float) -> float:
    """How many standard errors a mean lies from what is expected."""
    return abs(values.mean() - expected) / (values.std() / len(values) ** 0.5)


def test_environments_give_data_of_their_observed_variables() -> None:
    for env_id in COVERING:
        env = gym.make(env_id, disable_env_checker=True)
        frame = cbo_gym.sample(env, 50)
        assert tuple(frame.columns) == env.unwrapped.scm.nodes
        assert len(frame) == 50
        assert np.isfinite(frame.to_numpy()).all()


@every_mode
def test_samples_repeat_and_hang_on_the_seed_alone(env_id) -> None:
    env = reset(gym.make(env_id), 3)
    state = env.unwrapped.np_random.bit_generator.state
    first = cbo_gym.sample(env, 100, seed=1)
    assert first.equals(cbo_gym.sample(env_id, 100, seed=1))
    assert not env.unwrapped.scm.noise_of_reward or not first.equals(cbo_gym.sample(env_id, 100, seed=2))
    assert env.unwrapped.np_random.bit_generator.state == state


@pytest.mark.parametrize(
    "env_id", [env_id for mode, env_id in LAST_OF_MODE.items() if mode not in ("contextual", "dynamic", "adversarial")]
)
def test_the_mean_reward_of_an_action_is_its_expected_reward(env_id) -> None:
    env = gym.make(env_id)
    env.action_space.seed(4)
    action = env.action_space.sample()
    rewards = cbo_gym.sample(env, 20_000, action=action)[:, -1]
    (expected,), (error,) = oracle_of(env).expected_rewards([action])
    assert abs(rewards.mean() - expected) < 5.0 * np.hypot(error, rewards.std() / 20_000**0.5) + 1e-9


def test_do_cuts_a_variable_from_its_causes_and_moves_its_effects() -> None:
    """ToyGraph: X0 and the noises are standard normal, X1 = exp(-X0) + noise, Y = exp(-X1 / 20) - cos(X1) + noise."""
    frame = cbo_gym.sample("CBO/ToyGraph-v0", 40_000, do={"X1": 2.0})
    assert (frame["X1"] == 2.0).all()
    assert errors_apart(frame["X0"], 0.0) < 5.0
    assert errors_apart(frame["Y"], np.exp(-0.1) - np.cos(2.0)) < 5.0
    assert frame["Y"].std() == pytest.approx(1.0, abs=0.02)
    natural = cbo_gym.sample("CBO/ToyGraph-v0", 40_000)
    assert errors_apart(natural["X1"], np.exp(0.5)) < 5.0
    np.testing.assert_array_equal(natural["X0"], frame["X0"])  # the noise of a seed is the same


def test_a_randomised_experiment_sets_one_value_a_sample() -> None:
    doses = np.random.default_rng(0).uniform(-5.0, 20.0, 40_000)
    frame = cbo_gym.sample("CBO/ToyGraph-v0", 40_000, do={"X1": doses})
    np.testing.assert_array_equal(frame["X1"], doses)
    assert errors_apart(frame["Y"] - np.exp(-0.05 * doses) + np.cos(doses), 0.0) < 5.0
    assert abs(np.corrcoef(doses, frame["X0"])[0, 1]) < 0.03


def test_what_an_action_sets_is_a_do() -> None:
    env = gym.make("CBO/ToyGraph-v0").unwrapped
    action = {"target": env.problem.targets.index(frozenset({"X0"})), "values": np.array([0.7, 0.1])}
    expected = cbo_gym.sample(env, 100, do={"X0": 2.0})
    np.testing.assert_allclose(cbo_gym.sample(env, 100, action=action).to_numpy(), expected.to_numpy(), rtol=1e-12)
    assert (cbo_gym.sample(env, 100, action=action, do={"X1": 3.0})["X1"] == 3.0).all()
    with pytest.raises(ArgumentError, match=r"the action sets \['X0'\] already"):
        cbo_gym.sample(env, 100, action=action, do={"X0": 1.0})


@every_mode
def test_any_observed_variable_is_set_in_any_modes_system(env_id) -> None:
    """Where variables are observed with an error, what is seen is the value with its error."""
    env = gym.make(env_id, disable_env_checker=True).unwrapped
    for name in env.scm.nodes[:-1]:
        exact = f"error of {name}" not in {variable.name for variable in env.scm.noisy}
        assert (cbo_gym.sample(env, 3, do={name: 0.25})[name] == 0.25).all() == exact


def test_soft_actions_and_parameters_of_the_environment() -> None:
    action = np.full(6, 0.5)
    frame = cbo_gym.sample("CBO/Alpine2-v0(noise_std=0.0)", 3, action=action)
    assert frame.n_unique() == 1
    env = reset(gym.make("CBO/Alpine2-v0", noise_std=0.0))
    np.testing.assert_array_equal(frame.row(0), env.step(action)[0]["nodes"])
    assert cbo_gym.sample("CBO/Alpine2-v0", 3, action=action, noise_std=1.0).n_unique() == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n must be at least 1; given 0"),
        ({"n": 1.5}, "n must be a whole number"),
        ({"seed": -1}, "seed must be a whole number from 0 to"),
        ({"env": "CBO/ToyGrap-v0"}, "did you mean 'CBO/ToyGraph-v0'"),
        ({"do": {"x1": 1.0}}, r"do cannot set 'x1'; did you mean 'X1'\?; it can set \['X0', 'X1'\]"),
        ({"do": {"Y": 1.0}}, "do cannot set 'Y', which is the reward"),
        ({"do": {"X1": np.inf}}, "do sets X1 to a finite number, or to 5 of them; given inf"),
        ({"do": {"X1": [1.0, 2.0]}}, r"or to 5 of them; given \[1.0, 2.0\]"),
        ({"do": {"X1": "high"}}, "given 'high'"),
        ({"noise": 3.0}, "noise"),
    ],
)
def test_bad_input(arguments, message) -> None:
    with pytest.raises(ArgumentError, match=message):
        cbo_gym.sample(**{"env": "CBO/ToyGraph-v0", "n": 5, **arguments})


def test_latent_variables_and_foreign_things_are_refused() -> None:
    env = gym.make("CBO/CoCaFig1-v0").unwrapped
    latent = next(variable.name for variable in env.scm.variables if not variable.observed)
    with pytest.raises(ArgumentError, match=f"do cannot set '{latent}'"):
        cbo_gym.sample(env, 5, do={latent: 1.0})
    with pytest.raises(ArgumentError, match="parameters need the id of an environment"):
        cbo_gym.sample(env, 5, noise_std=1.0)
    with pytest.raises(ArgumentTypeError, match="or an environment of cbo_gym; given 7"):
        cbo_gym.sample(7, 5)
    with pytest.raises(ArgumentTypeError, match=r"do must be a mapping, .*; given str"):
        cbo_gym.sample(env, 5, do="X1")
    with pytest.raises(gym.error.InvalidAction, match="must lie in"):
        cbo_gym.sample("CBO/Dropwave-v0", 5, action=np.array([0.5, 2.0]))


@pytest.mark.parametrize(
    ("name", "module", "library", "extra"),
    [
        ("sample", "samples", "polars", "evaluation"),
        ("botorch_function", "botorch_function", "botorch.test_functions", "agents"),
    ],
)
def test_a_missing_library_is_named_by_its_extra(monkeypatch, name, module, library, extra) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(vars(cbo_gym), name, raising=False)
    monkeypatch.delitem(sys.modules, f"cbo_gym.integrations.{module}", raising=False)
    with pytest.raises(MissingExtraError, match=rf"cbo_gym\.{name} needs .*\.\[{extra}\]"):
        getattr(cbo_gym, name)
