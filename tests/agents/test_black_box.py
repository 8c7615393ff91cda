"""GP-UCB and EICF: that their acquisition functions are what they say, and are maximised."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

from cbo_gym import agents
from cbo_gym.errors import ArgumentError
from tests.support.loop import AGENT_SEED, make


@pytest.mark.parametrize("env_id", ["CBO/Dropwave-v0", "CBO/Alpine2-Noisy-v0", "CBO/ToyGraph-v0"])
def test_monte_carlo_improvement_is_the_closed_form(env_id: str) -> None:
    _, task = make(env_id, 0, 10)
    agent = agents.EICF(samples=4096)
    agent.reset(task, seed=AGENT_SEED)
    inputs = agent.features.inputs(agent.features.draw(200, torch.Generator().manual_seed(0)))
    incumbent = float(agent.estimated_rewards().max())
    mean, std = (moment.numpy() for moment in agent.surrogates[0].posterior(inputs))
    z = (mean - incumbent) / std
    expected = std * (norm.pdf(z) + z * norm.cdf(z))
    improvement = agent.improvement_over(incumbent)(inputs.unsqueeze(-2)).exp().numpy()
    sizable = expected > 0.02 * std
    assert sizable.any()
    np.testing.assert_allclose(improvement[sizable], expected[sizable], rtol=0.03)


def test_incumbent_ignores_lucky_noise() -> None:
    _, task = make("CBO/Dropwave-Noisy-v0", 0, 10)
    agent = agents.EICF()
    agent.reset(task, seed=AGENT_SEED)
    rng = np.random.default_rng(0)
    action = np.array([0.3, 0.3])
    for reward in 0.1 + 0.1 * rng.standard_normal(30):
        agent.update(action, {"nodes": np.array([1.0, reward])}, reward, {})
    estimates = agent.estimated_rewards()[-30:]
    rewards = np.array([past.reward for past in agent.history[-30:]])
    assert np.ptp(estimates) < 1e-6
    assert estimates.max() < rewards.max() - 0.1


def test_only_what_is_needed_is_modelled() -> None:
    for known, expected in ((True, ["X0", "X1"]), (False, ["Y"])):
        _, task = make("CBO/Ackley-v0", 0, 10, known_composition=known)
        agent = agents.EICF()
        agent.reset(task, seed=AGENT_SEED)
        assert [surrogate.name for surrogate in agent.surrogates] == expected


def test_composition_turns_node_estimates_into_reward_estimates() -> None:
    _, task = make("CBO/Ackley-v0", 0, 10, known_composition=True)
    agent = agents.EICF()
    agent.reset(task, seed=AGENT_SEED)
    rewards = [past.reward for past in task.initial_data]
    np.testing.assert_allclose(agent.estimated_rewards(), rewards, atol=1e-2)


def test_joint_posteriors_are_refused() -> None:
    _, task = make("CBO/Ackley-v0", 0, 10)
    agent = agents.EICF()
    agent.reset(task, seed=AGENT_SEED)
    with pytest.raises(ArgumentError, match="b x 1 x d"):
        agent.model.posterior(torch.zeros(4, 2, 6, dtype=torch.float64))


@pytest.mark.parametrize("beta", [0.0, 0.5, 5.0])
def test_the_bound_is_maximised(beta: float) -> None:
    _, task = make("CBO/Rosenbrock-v0", 0, 10)
    agent = agents.GPUCB(beta=beta)
    agent.reset(task, seed=AGENT_SEED)
    action = torch.as_tensor(agent.act({}))
    others = torch.rand(5000, 1, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        bound = agent.upper_bound(action.reshape(1, 1, 5))
        assert bound >= agent.upper_bound(others).max()


def test_estimates_are_posterior_means() -> None:
    _, task = make("CBO/Alpine2-v0", 0, 10)
    agent = agents.GPUCB()
    agent.reset(task, seed=AGENT_SEED)
    rewards = [past.reward for past in task.initial_data]
    np.testing.assert_allclose(agent.estimated_rewards(), rewards, atol=1e-3)
    np.testing.assert_array_equal(agent.recommend(), task.initial_data[int(np.argmax(rewards))].action)
