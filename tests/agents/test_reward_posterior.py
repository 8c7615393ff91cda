"""What agents believe of actions that were never played: means and standard deviations of expected rewards."""

from copy import deepcopy
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch

from cbo_gym import make_task
from cbo_gym.agent_registry.finding import agent_of
from cbo_gym.envs.registration import custom_id
from cbo_gym.task import Mode, Round
from tests.support.loop import begun
from tests.support.studies import SYSTEMS, hidden, trained

pytestmark = pytest.mark.usefixtures("coarse_search")

slow = pytest.mark.slow
#: agents whose estimates of the actions played are the same means
EXACT = [
    ("GP-UCB", "contextual"),
    ("CBO", "hard"),
    ("CellGP-UCB", "aggregated"),
    ("TS", "discrete"),
    pytest.param("GP-UCB", "soft", marks=slow),
    pytest.param("EICF", "soft", marks=slow),
    pytest.param("ConstrainedEI", "hard", marks=slow),
    pytest.param("CEO", "hard", marks=slow),
    pytest.param("cCBO", "hard", marks=slow),
    pytest.param("Auto", "discrete", marks=slow),
]
CLOSE = [
    ("EIFN", "hard"),
    ("CoCaBO", "contextual"),
    pytest.param("MCBO", "soft", marks=slow),
    pytest.param("EXCBO", "hard", marks=slow),
    pytest.param("GPOO", "aggregated", marks=slow),
]
SILENT = [("Random", "hard"), ("Optuna", "soft"), ("StoOO", "aggregated")]


@pytest.mark.parametrize(("agent", "mode"), EXACT)
def test_beliefs_are_the_models_estimates_where_actions_were_trained(agent, mode):
    learner, _, _ = trained(agent, SYSTEMS[mode], mode)
    mean, _ = learner.reward_posterior([past.action for past in learner.history])
    np.testing.assert_allclose(mean, learner.estimated_rewards(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("agent", "mode"), [EXACT[1], *CLOSE])
def test_to_ask_for_beliefs_changes_nothing(agent, mode):
    learner, observation, env = trained(agent, SYSTEMS[mode], mode)
    actions = [past.action for past in learner.history]
    other = deepcopy(learner)
    mean, std = other.reward_posterior(actions)
    assert mean.shape == std.shape == (len(actions),)
    assert np.isfinite(mean).all()
    assert (std > 0.0).all()
    env.action_space.seed(0)
    if agent != "CoCaBO":  # which has no model of a scope that it never plays
        new = [env.action_space.sample() for _ in range(3)]
        assert np.isfinite(other.reward_posterior(new)).all()
    assert str(other.act(observation)) == str(learner.act(observation))


@pytest.mark.parametrize(("agent", "mode"), SILENT)
def test_an_agent_without_a_model_says_so(agent, mode):
    learner, _, env = trained(agent, SYSTEMS[mode], mode, rounds=2)
    assert learner.reward_posterior([env.action_space.sample()]) is None


@pytest.mark.parametrize(
    ("env_id", "mode"), [("CBO/Dropwave-v0", "soft"), pytest.param("CBO/ToyGraph-v0", "hard", marks=slow)]
)
def test_a_networks_interval_is_that_of_networks_drawn_from_it(env_id, mode):
    learner, _, env = trained("MCBO", env_id, mode, rounds=12)
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


@pytest.mark.parametrize("agent", ["GP-UCB", "CoCaBO", "CoBO", "CaBO"])
def test_imported_rounds_are_learned_in_their_own_contexts(agent):
    env = gym.make(custom_id(Mode.CONTEXTUAL), problem=hidden(SYSTEMS["contextual"]), max_episode_steps=40)
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
    learner = begun(agent_of(agent), replace(task, initial_data=tuple(rounds)), 100)
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
