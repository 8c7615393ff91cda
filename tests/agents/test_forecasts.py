"""Forecasts of agents: posteriors of expected rewards, draws of outcomes, predictions of each value from the others."""

from copy import deepcopy
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch

from cbo_gym import make_task
from cbo_gym.agent_registry.finding import agent_of
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.envs.registration import custom_id
from cbo_gym.task import Mode, Round
from tests.support.loop import begin_agent
from tests.support.studies import SYSTEMS, hide_facts, train_agent

pytestmark = pytest.mark.usefixtures("coarse_search")

slow = pytest.mark.slow
#: agents whose estimates of the actions played are the means of the posterior; those without draws of outcomes
EXACT = ("GP-UCB", "CBO", "EICF", "ConstrainedEI", "CEO", "cCBO", "CellGP-UCB", "TS")
WITHOUT_DRAWS = ("CoCaBO", "EXCBO", "GPOO", "CellGP-UCB")
USUAL = [
    ("GP-UCB", "contextual"),
    ("CBO", "hard"),
    ("EIFN", "hard"),
    ("CoCaBO", "contextual"),
    ("CellGP-UCB", "aggregated"),
]
MORE = [
    *((agent, "soft") for agent in ("GP-UCB", "EICF", "MCBO", "Auto")),
    *((agent, "hard") for agent in ("ConstrainedEI", "CEO", "cCBO", "MCBO", "EXCBO")),
    ("GPOO", "aggregated"),
]


@pytest.mark.parametrize(("agent", "mode"), [*USUAL, *(pytest.param(*pair, marks=slow) for pair in MORE)])
def test_forecasts_are_joint_agree_with_the_estimates_and_change_nothing(agent, mode):
    learner, observation, env = train_agent(agent, SYSTEMS[mode], mode)
    undisturbed = deepcopy(learner)
    mean, std = learner.reward_posterior([past.action for past in learner.history])
    assert mean.shape == std.shape == (len(learner.history),)
    assert np.isfinite(mean).all()
    assert (std > 0.0).all()
    if agent in EXACT and mode != "contextual":
        np.testing.assert_allclose(mean, learner.estimated_rewards(), rtol=1e-9, atol=1e-9)
    # The same action twice has the same expectation in each draw, and outcomes of its own.
    actions = [learner.history[0].action, learner.history[-1].action, learner.history[0].action]
    expected, *outcomes = (learner.sample_outcomes(actions, 400, noise=noise) for noise in (False, True, True))
    assert (expected is None) == (agent in WITHOUT_DRAWS)
    if expected is not None:
        rewards, (one, same) = expected[learner.task.reward], (draws[learner.task.reward] for draws in outcomes)
        assert rewards.shape == one.shape == (400, 3)
        assert (rewards[:, 0] - rewards[:, 2]).std() < 0.02 * rewards.std()
        assert np.abs(one[:, 0] - one[:, 2]).max() > 0.0
        assert set(outcomes[0]) <= set(learner.task.nodes)
        np.testing.assert_array_equal(one, same)
    for left_out in learner.leave_one_out().values():
        assert len(left_out.values) == len(left_out.predictions) == len(left_out.half_widths)
    env.action_space.seed(0)
    # CoCaBO has no model of a scope that it never plays.
    assert agent == "CoCaBO" or np.isfinite(learner.reward_posterior([env.action_space.sample()] * 3)).all()
    assert str(learner.act(observation)) == str(undisturbed.act(observation))


@pytest.mark.parametrize(("agent", "mode"), [("Random", "hard"), ("Optuna", "soft"), ("StoOO", "aggregated")])
def test_an_agent_without_a_model_says_so(agent, mode):
    learner, _, _ = train_agent(agent, SYSTEMS[mode], mode, rounds=2)
    actions = [past.action for past in learner.history]
    assert learner.reward_posterior(actions) is learner.sample_outcomes(actions, 10) is None
    assert learner.leave_one_out() == {}


def test_a_networks_interval_is_that_of_networks_drawn_from_it():
    learner, _, env = train_agent("MCBO", "CBO/Dropwave-v0", "soft", rounds=12)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(12)]
    mean, std = learner.reward_posterior(actions)
    network = learner.network
    inputs, generator = network.features.of_actions(actions), torch.Generator().manual_seed(1)
    noise = network.draw_noise(32, seed=1)
    with torch.no_grad():
        draws = np.array([network.draw_rewards(generator)(inputs, noise).numpy() for _ in range(200)])
    assert np.abs(mean - draws.mean(0)).max() < 0.5 * draws.std(0).max()
    # functions that err alike everywhere average out less: the interval is rather too wide
    assert 0.8 < np.sqrt(np.square(std).mean() / draws.var(0).mean()) < 1.6


@pytest.mark.parametrize("agent", ["GP-UCB", "CoBO", "CaBO"])
def test_imported_rounds_are_learned_in_their_own_contexts(agent):
    env = gym.make(custom_id(Mode.CONTEXTUAL), problem=hide_facts(SYSTEMS["contextual"]), max_episode_steps=40)
    task = make_task(env, 100)
    rng = np.random.default_rng(100)
    scope = next(index for index, scope in enumerate(task.scopes) if len(scope) == 2)
    rounds = []
    for _ in range(30):
        context, values = rng.uniform(-1.0, 1.0, len(task.contexts)), rng.random(2)
        reward = float(np.sign(context[0]) * values.sum())  # what is good in one context is bad in another
        nodes = np.append(np.zeros(len(task.nodes) - 1), reward)
        action = {"scope": np.int64(scope), "values": values}
        rounds.append(Round(action, {"nodes": nodes, "context": context}, reward))
    learner = begin_agent(agent_of(agent), replace(task, initial_data=tuple(rounds)), 100)
    seen = {"nodes": np.zeros(len(task.nodes))}
    difference = {}
    for sign in (-1.0, 1.0):
        learner.act(seen | {"context": np.full(len(task.contexts), 0.8 * sign)})
        ends = [{"scope": np.int64(scope), "values": np.full(2, value)} for value in (0.1, 0.9)]
        believed = learner.reward_posterior(ends)
        difference[sign] = None if believed is None else float(np.diff(believed[0])[0])
    if agent in ("GP-UCB", "CoBO"):
        assert difference[-1.0] < -0.3
        assert difference[1.0] > 0.3
    assert len(learner.history) == len(rounds)


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


def test_arms_have_beta_posteriors_of_their_means():
    learner, _, _ = train_agent("TS", SYSTEMS["discrete"], "discrete", rounds=12)
    mean, std = learner.reward_posterior(range(len(learner.task.arms)))
    draws = learner.sample_outcomes(range(len(learner.task.arms)), 4000, noise=False)[learner.task.reward]
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.03)
    np.testing.assert_allclose(draws.std(axis=0), std, atol=0.03)
    assert learner.sample_outcomes([0], 10) is None
