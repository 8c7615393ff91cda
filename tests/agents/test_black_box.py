"""GP-UCB and EICF: that their acquisition functions are what they say, and are maximised."""

import numpy as np
import pytest
import torch
from scipy.stats import norm

from cbo_gym import agents
from tests.support.loop import start_agent


@pytest.mark.parametrize("env_id", ["CBO/Alpine2-Noisy-v0", "CBO/ToyGraph-v0"])
def test_monte_carlo_improvement_is_the_closed_form(env_id: str) -> None:
    agent = start_agent(agents.EICF(samples=4096), env_id)
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
    agent = start_agent(agents.EICF(), "CBO/Dropwave-Noisy-v0")
    rng = np.random.default_rng(0)
    action = np.array([0.3, 0.3])
    for reward in 0.1 + 0.1 * rng.standard_normal(30):
        agent.update(action, {"nodes": np.array([1.0, reward])}, reward, {})
    estimates = agent.estimated_rewards()[-30:]
    rewards = np.array([past.reward for past in agent.history[-30:]])
    assert np.ptp(estimates) < 1e-6
    assert estimates.max() < rewards.max() - 0.1


@pytest.mark.parametrize(("known", "modelled"), [(True, ["X0", "X1"]), (False, ["Y"])])
def test_a_known_composition_turns_estimates_of_its_nodes_into_those_of_rewards(known, modelled) -> None:
    agent = start_agent(agents.EICF(), "CBO/Ackley-v0", known_composition=known)
    assert [surrogate.name for surrogate in agent.surrogates] == modelled
    rewards = [past.reward for past in agent.task.initial_data]
    np.testing.assert_allclose(agent.estimated_rewards(), rewards, atol=1e-2)


@pytest.mark.parametrize("beta", [0.0, 5.0])
def test_the_bound_is_maximised_and_estimates_are_posterior_means(beta: float) -> None:
    agent = start_agent(agents.GPUCB(beta=beta), "CBO/Alpine2-v0")
    past = agent.task.initial_data
    rewards = [each.reward for each in past]
    np.testing.assert_allclose(agent.estimated_rewards(), rewards, atol=1e-3)
    np.testing.assert_array_equal(agent.recommend(), past[int(np.argmax(rewards))].action)
    action = torch.as_tensor(agent.act({}))
    others = torch.rand(5000, 1, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        bound = agent.upper_bound(action.reshape(1, 1, 6))
        assert bound >= agent.upper_bound(others).max()
