"""Environments as objectives of Optuna and as test functions of BoTorch."""

import gymnasium as gym
import numpy as np
import optuna
import pytest
import torch
from botorch.test_functions import SyntheticTestFunction

import cbo_gym
from cbo_gym.envs import oracle_of
from cbo_gym.envs.registry import entries
from cbo_gym.errors import ArgumentError, ArgumentTypeError

ASIDE = ("contextual", "dynamic", "adversarial", "partial")  # whose rewards are no function of the action alone
OF_MODE = {entry.mode: entry.id for entry in reversed(entries()) if entry.mode not in ASIDE}
every_mode = pytest.mark.parametrize("env_id", OF_MODE.values(), ids=OF_MODE.keys())
CONTEXTUAL = "CBO/CoCaFig1-v0"


@every_mode
def test_a_study_plays_the_environment_in_the_system_s_words(env_id) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    objective = cbo_gym.optuna_objective(env_id, seed=5)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    with pytest.raises(ArgumentError, match="nothing to recommend"):
        objective.recommend(study)
    study.optimize(objective, n_trials=8)
    env = gym.make(env_id)
    env.reset(seed=5)
    codec = env.unwrapped.dynamics.codec
    domains = dict(zip(codec.domains.names, codec.domains.intervals, strict=True))
    for trial in study.trials:
        assert trial.value == env.step(codec.to_action(np.array(trial.user_attrs["point"])))[1]
        assert trial.user_attrs["action"]
        for name, value in trial.params.items():
            if isinstance(value, float):
                low, high = domains[name.partition(",")[0]]
                assert low <= value <= high
    recommended = codec.to_point(objective.recommend(study)).tolist()
    assert recommended in [
        codec.to_point(codec.to_action(np.array(trial.user_attrs["point"]))).tolist() for trial in study.trials
    ]


def test_a_target_set_is_a_word_and_its_variables_have_native_units() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    objective = cbo_gym.optuna_objective("CBO/ToyGraph-v0")
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=1))
    study.enqueue_trial({"set": "{X1}", "X1": 3.5})
    study.optimize(objective, n_trials=1)
    assert study.trials[0].params == {"set": "{X1}", "X1": 3.5}
    assert study.trials[0].user_attrs["action"] == "do(X1 = 3.5)"


@pytest.mark.slow
def test_on_a_noisy_system_the_model_s_trial_is_better_than_the_luckiest() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    gaps = []
    for seed in range(100, 110):
        objective = cbo_gym.optuna_objective("CBO/PSAGraph-v0", seed=seed)
        study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
        study.optimize(objective, n_trials=60)
        oracle = oracle_of(objective.env)
        lucky = objective.env.dynamics.codec.to_action(np.array(study.best_trial.user_attrs["point"]))
        model, luck = oracle.expected_rewards([objective.recommend(study), lucky]).value
        gaps.append((model - luck) / (oracle.optimum.value - oracle.optimum.random_value))
    assert np.mean(gaps) > 0.1  # 0.28 with a 95 % interval of 0.19


@every_mode
def test_a_test_function_gives_rounds_and_expected_rewards(env_id) -> None:
    function = cbo_gym.botorch_function(env_id)
    assert isinstance(function, SyntheticTestFunction)
    assert not function.is_minimization_problem
    points = torch.rand(3, 1, function.dim, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    env = gym.make(env_id)
    codec, oracle = env.unwrapped.dynamics.codec, oracle_of(env)
    actions = [codec.to_action(point) for point in points[:, 0].numpy()]
    expected = oracle.expected_rewards(actions).value
    optimum = oracle.optimum
    close = 1e-9 + 5.0 * 0.002 * (optimum.value - optimum.random_value)  # the oracle's own tolerance
    np.testing.assert_allclose(function(points, noise=False)[:, 0], expected, rtol=0.0, atol=close)
    np.testing.assert_allclose(function.evaluate_true(points)[:, 0], expected, rtol=0.0, atol=close)
    rounds = torch.stack([function(points)[:, 0] for _ in range(200)])
    spread = rounds.std(0) / len(rounds) ** 0.5
    assert ((rounds.mean(0) - torch.tensor(expected)).abs() < 5.0 * spread + close).all()
    assert function.bounds.tolist() == [[0.0] * function.dim, [1.0] * function.dim]
    assert function.optimal_value == optimum.value
    assert float(function.evaluate_true(function.optimizers)) == pytest.approx(function.optimal_value, abs=close)


def test_negated_functions_are_to_be_minimised_and_points_lie_in_the_box() -> None:
    function, negated = (cbo_gym.botorch_function("CBO/Dropwave-v0", negate=negate) for negate in (False, True))
    points = torch.rand(3, 2, dtype=torch.float64)
    assert negated.is_minimization_problem
    assert negated.optimal_value == -function.optimal_value
    for noise in (False, True):
        torch.testing.assert_close(negated(points, noise=noise), -function(points, noise=noise))
    assert function(points.float()).dtype == torch.float32
    assert function(points[:0]).shape == (0,)
    for wrong in (torch.zeros(2, 3), torch.full((1, 2), 1.5), torch.full((1, 2), torch.nan)):
        with pytest.raises(ArgumentError, match=r"shape batch_shape x 2 and lie in \[0, 1\]"):
            function(wrong)
    drawn = [cbo_gym.botorch_function("CBO/Dropwave-Noisy-v0", seed)(points) for seed in (1, 1, 2)]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2]), "noise follows from the seed alone"


@pytest.mark.parametrize("make", [cbo_gym.optuna_objective, cbo_gym.botorch_function])
def test_bad_input(make) -> None:
    with pytest.raises(ArgumentError, match="best action in CoCaFig1 depends on the context"):
        make(CONTEXTUAL)
    with pytest.raises(ArgumentError, match="did you mean 'CBO/Alpine2-v0'"):
        make("CBO/Alpin2-v0")
    with pytest.raises(ArgumentError, match="seed must be a whole number from 0 to"):
        make("CBO/Dropwave-v0", seed=-1)
    with pytest.raises(ArgumentTypeError, match="or an environment of cbo_gym"):
        make(None)
