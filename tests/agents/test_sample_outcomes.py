"""Draws of outcomes from agents' posteriors, and predictions of each value from the others."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from cbo_gym.agents.gp.model import GaussianProcess
from tests.support.studies import SYSTEMS, trained

slow = pytest.mark.slow
MODELLED = [
    ("GP-UCB", "soft"),
    ("CBO", "hard"),
    pytest.param("MCBO", "soft", marks=slow),
    ("EIFN", "hard"),
    pytest.param("MCBO", "hard", marks=slow),
    pytest.param("GP-UCB", "contextual", marks=slow),
    pytest.param("ConstrainedEI", "hard", marks=slow),
    pytest.param("cCBO", "hard", marks=slow),
    pytest.param("CEO", "hard", marks=slow),
    pytest.param("Auto", "soft", marks=slow),
]
SILENT = [
    ("Random", "hard"),
    ("Optuna", "soft"),
    ("StoOO", "aggregated"),
    ("EXCBO", "soft"),
    ("CellGP-UCB", "aggregated"),
]


@pytest.mark.parametrize("noise_std", [None, 0.1])
def test_left_out_predictions_are_those_of_a_gp_without_the_value(noise_std):
    rng = np.random.default_rng(100)
    inputs, gp = rng.random((9, 2)), GaussianProcess("y", 2, noise_std=noise_std)
    errors = np.where(np.arange(9) < 3, 0.05, 0.0)
    gp.add(inputs, np.sin(3.0 * inputs[:, 0]) + 0.1 * rng.standard_normal(9), errors)
    residuals, std = gp.leave_one_out()
    for index in range(9):
        others = torch.arange(9) != index
        without = deepcopy(gp)
        without.replace(gp.inputs[others], gp.outputs[others], gp.errors[others])
        mean, own = without.posterior(gp.inputs[[index]])
        np.testing.assert_allclose(float(gp.outputs[index] - mean), float(residuals[index]), rtol=1e-6)
        spread = np.sqrt(float(own) ** 2 + float(gp.noise_scale) ** 2 + errors[index] ** 2)
        np.testing.assert_allclose(spread, float(std[index]), rtol=1e-6)


@pytest.mark.parametrize(("agent", "mode"), MODELLED)
def test_draws_are_joint_and_change_nothing(agent, mode):
    learner, observation, _ = trained(agent, SYSTEMS[mode], mode)
    undisturbed = deepcopy(learner)
    # The same action twice has the same expectation in each draw, and outcomes of its own.
    actions = [learner.history[0].action, learner.history[-1].action, learner.history[0].action]
    expected = learner.sample_outcomes(actions, 400, noise=False)
    outcomes = learner.sample_outcomes(actions, 400)
    reward = expected[learner.task.reward]
    assert reward.shape == outcomes[learner.task.reward].shape == (400, 3)
    assert (reward[:, 0] - reward[:, 2]).std() < 0.02 * reward.std()
    assert np.abs(outcomes[learner.task.reward][:, 0] - outcomes[learner.task.reward][:, 2]).max() > 0.0
    assert set(outcomes) <= set(learner.task.nodes)
    np.testing.assert_array_equal(
        learner.sample_outcomes(actions, 400)[learner.task.reward], outcomes[learner.task.reward]
    )
    for left_out in learner.leave_one_out().values():
        assert len(left_out.values) == len(left_out.predictions) == len(left_out.half_widths)
    assert str(learner.act(observation)) == str(undisturbed.act(observation))


@pytest.mark.parametrize(("agent", "mode"), SILENT)
def test_agents_without_a_joint_posterior_say_so(agent, mode):
    learner, _, _ = trained(agent, SYSTEMS[mode], mode, rounds=2)
    assert learner.sample_outcomes([past.action for past in learner.history], 10) is None
    assert learner.leave_one_out() == {}


def test_arms_have_beta_posteriors_of_their_means():
    learner, _, _ = trained("TS", SYSTEMS["discrete"], "discrete", rounds=12)
    mean, std = learner.reward_posterior(range(len(learner.task.arms)))
    draws = learner.sample_outcomes(range(len(learner.task.arms)), 4000, noise=False)[learner.task.reward]
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.03)
    np.testing.assert_allclose(draws.std(axis=0), std, atol=0.03)
    assert learner.sample_outcomes([0], 10) is None
