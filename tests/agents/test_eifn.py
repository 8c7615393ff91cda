import numpy as np
import pytest
import torch
from botorch.acquisition import qLogExpectedImprovement
from botorch.sampling import SobolQMCNormalSampler

from cbo_gym import agents
from cbo_gym.agents.networks.eifn import EIFN, NetworkModel
from cbo_gym.errors import ArgumentError
from tests.agents.helpers import AGENT_SEED, make, play


def test_bad_parameters():
    with pytest.raises(ArgumentError, match="samples must be"):
        EIFN(samples=0)


def test_samples_of_the_reward_are_passes_through_the_graph():
    agent = EIFN()
    agent.reset(make("CBO/Dropwave-v0", 0, 5)[1], AGENT_SEED)
    action = torch.tensor([[[0.3, 0.6]]], dtype=torch.float64)
    base = torch.randn(7, 1, 1, 2, dtype=torch.float64)
    posterior = NetworkModel(agent.network).posterior(action)
    samples = posterior.rsample_from_base_samples(torch.Size([7]), base)
    assert samples.shape == (7, 1, 1, 1)
    radius, spread = agent.network.surrogates["X0"].posterior(action[:, 0])
    mean, std = agent.network.surrogates["Y"].posterior((radius + spread * base[:, 0, 0, 0])[:, None])
    torch.testing.assert_close(samples[:, 0, 0, 0], mean + std * base[:, 0, 0, 1])


def test_expected_improvement_against_plain_monte_carlo():
    agent = EIFN()
    agent.reset(make("CBO/Dropwave-v0", 1, 5)[1], AGENT_SEED)
    model = NetworkModel(agent.network)
    points = torch.rand(6, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    sampler = SobolQMCNormalSampler(torch.Size([2048]), seed=0)
    with torch.no_grad():
        draws = model.posterior(points).rsample(torch.Size([100_000]))[..., 0, 0]
        best = float(draws.mean())
        found = qLogExpectedImprovement(model, best, sampler, fat=False)(points).exp()
    gains = (draws - best).clamp_min(0.0)
    error = gains.std(0) / np.sqrt(len(gains))
    assert ((found - gains.mean(0)).abs() < 5 * error + 2e-3).all()


def test_joint_points_are_refused():
    agent = EIFN()
    agent.reset(make("CBO/Dropwave-v0", 0, 5)[1], AGENT_SEED)
    with pytest.raises(ArgumentError, match="b x 1 x d"):
        NetworkModel(agent.network).posterior(torch.rand(2, 3, 2, dtype=torch.float64))


def test_eifn_beats_random_on_ackley_in_every_run():
    for seed in range(2):
        env, task = make("CBO/Ackley-v0", seed, 15)
        learned = play(agents.EIFN(), env, task, seed)[1].max()
        random = play(agents.Random(), env, task, seed)[1].max()
        assert learned > random
