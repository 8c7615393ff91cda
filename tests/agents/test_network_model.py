"""GPNetworkModel: a GP network behind BoTorch's interface of models."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from botorch.acquisition import (
    PosteriorMean,
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
    qUpperConfidenceBound,
)
from botorch.sampling import SobolQMCNormalSampler

from cbo_gym.agents import GPNetworkModel
from cbo_gym.agents.networks.gp_network import GPNetwork
from cbo_gym.errors import ArgumentError
from tests.support.loop import make, reset

SAMPLES = 4096


def model_of(env_id: str, rounds: int = 0, outputs=None, **keywords) -> GPNetworkModel:
    """With the initial data, and some random rounds more."""
    env, task = make(env_id, 0, 5, **keywords)
    model = GPNetworkModel.of_task(task, outputs)
    reset(env, 1, 1)
    for _ in range(rounds):
        action = env.action_space.sample()
        model.network.add(action, env.step(action)[0])
    return model


def random_sets(model: GPNetworkModel, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.rand(*shape, model.network.features.input_dim, dtype=torch.float64, generator=generator)


def plain_draws(network: GPNetwork, inputs: torch.Tensor, count: int = 20_000) -> torch.Tensor:
    """The reward at single actions, node by node with NumPy's numbers: ``b x d`` to ``count x b``."""
    rng, values = np.random.default_rng(0), {}
    for node in network.nodes:
        columns = [values[parent] for parent in network.parents[node]]
        columns += [inputs[:, index].expand(count, -1) for index in network.actions[node]]
        mean, std = network.surrogates[node].posterior(torch.stack(columns, -1))
        values[node] = mean + std * torch.from_numpy(rng.standard_normal((count, len(inputs))))
        if node in network.noisy:
            drawn = network.task.noise[node].sample(rng, (count, len(inputs)))
            values[node] = values[node] + torch.from_numpy(drawn)
    return values[network.nodes[-1]]


def test_samples_of_the_reward_are_passes_through_the_graph():
    model = model_of("CBO/Dropwave-v0")
    action = torch.tensor([[[0.3, 0.6]]], dtype=torch.float64)
    base = torch.randn(7, 1, 1, 2, dtype=torch.float64)
    samples = model.posterior(action).rsample_from_base_samples(torch.Size([7]), base)
    assert samples.shape == (7, 1, 1, 1)
    radius, spread = model.network.surrogates["X0"].posterior(action[:, 0])
    mean, std = model.network.surrogates["Y"].posterior((radius + spread * base[:, 0, 0, 0])[:, None])
    torch.testing.assert_close(samples[:, 0, 0, 0], mean + std * base[:, 0, 0, 1])


def test_mean_and_variance_against_plain_monte_carlo():
    model = model_of("CBO/Alpine2-v0", noise_std=1.0)
    points = random_sets(model, 4)
    with torch.no_grad():
        draws = plain_draws(model.network, points)
        posterior = model.posterior(points.unsqueeze(-2), observation_noise=True)
        samples = SobolQMCNormalSampler(torch.Size([SAMPLES]), seed=1)(posterior)[..., 0, 0]
    error = draws.std(0) * (1.0 / len(draws) + 1.0 / SAMPLES) ** 0.5
    assert ((samples.mean(0) - draws.mean(0)).abs() < 5.0 * error).all()
    torch.testing.assert_close(samples.std(0), draws.std(0), rtol=0.1, atol=0.0)
    torch.testing.assert_close(posterior.mean[:, 0, 0], samples.mean(0), rtol=0.0, atol=0.2 * float(samples.std()))
    torch.testing.assert_close(posterior.variance[:, 0, 0].sqrt(), samples.std(0), rtol=0.35, atol=0.0)


def test_points_of_a_set_are_drawn_jointly():
    """Equal points have equal values, near ones similar ones; a GP without inner nodes has its own covariance."""
    model = model_of("CBO/Dropwave-v0", outputs=["X0", "Y"])
    near = torch.tensor([[[0.3, 0.6], [0.3, 0.6], [0.31, 0.6], [0.9, 0.1]]], dtype=torch.float64)
    with torch.no_grad():
        samples = SobolQMCNormalSampler(torch.Size([SAMPLES]), seed=0)(model.posterior(near))[:, 0]
        gp = model.network.surrogates["X0"]
        every = torch.cat([gp.inputs, near[0]])
        prior = gp.kernel.covariance(gp.kernel_theta, every)
        known, cross = prior[:5, :5] + gp.noise * torch.eye(5), prior[:5, 5:]
        scale = gp.prior_std(near[0])[0] / prior[5, 5].sqrt()
        expected = scale.square() * (prior[5:, 5:] - cross.T @ torch.linalg.solve(known, cross))
    deviations = expected.diag().sqrt()
    error = (deviations[:, None] * deviations) * (2.0 / SAMPLES) ** 0.5  # at most, of a sample covariance
    assert ((samples[..., 0].T.cov() - expected).abs() < 5.0 * error + 1e-6).all()
    assert (samples[:, 0] - samples[:, 1]).abs().max() < 1e-2 * samples.std()
    correlation = samples[..., 1].T.corrcoef()
    assert correlation[0, 2] > 0.9 > correlation[0, 3].abs()


@pytest.mark.parametrize(("env_id", "size"), [("CBO/Alpine2-v0", 1), ("CBO/ToyGraph-v0", 2)])
def test_gradients_against_differences(env_id, size):
    model = model_of(env_id)
    sets, values = random_sets(model, 2, size), model.network.features.input_dim
    if env_id == "CBO/ToyGraph-v0":  # the values of X0, set in both points; memberships have no gradient
        sets[..., 2:], values = torch.tensor([1.0, 0.0]), 2
    best = float(model.posterior(model.network.inputs.unsqueeze(-2)).mean.max())
    acquisition = qLogExpectedImprovement(model, best, SobolQMCNormalSampler(torch.Size([32]), seed=0))
    free = sets.clone().requires_grad_(True)
    acquisition(free).sum().backward()
    step = 1e-5
    with torch.no_grad():
        for index in np.ndindex(2, size, values):
            shift = torch.zeros_like(sets)
            shift[index] = step
            slope = (acquisition(sets + shift) - acquisition(sets - shift)).sum() / (2 * step)
            assert float(free.grad[index]) == pytest.approx(float(slope), rel=1e-3, abs=1e-5)


def test_shapes_are_those_that_botorch_and_its_acquisition_functions_take():
    model = model_of("CBO/Alpine2-v0", outputs=["X0", "Y"])
    for batch in ((), (2, 3)):
        for size in (1, 2):
            posterior = model.posterior(random_sets(model, *batch, size))
            assert posterior.mean.shape == posterior.variance.shape == (*batch, size, 2)
            assert posterior.rsample(torch.Size([2, 5])).shape == (2, 5, *batch, size, 2)
    points, reward = random_sets(model, 3, 2), model.subset_output([1])
    assert reward.outputs == ("Y",)
    assert reward.posterior(points).mean.shape == (3, 2, 1)
    assert model.posterior(points, output_indices=[0]).mean.shape == (3, 2, 1)
    assert model.posterior(points.float()).mean.dtype == torch.float64
    for acquisition in (
        qLogExpectedImprovement(reward, best_f=0.0),
        qUpperConfidenceBound(reward, beta=2.0),
        qLogNoisyExpectedImprovement(reward, model.network.inputs, cache_root=False),
        PosteriorMean(reward),
    ):
        values = acquisition(points[:, :1] if isinstance(acquisition, PosteriorMean) else points)
        assert values.shape == (3,)
        assert values.isfinite().all()


@pytest.mark.parametrize("env_id", ["CBO/Alpine2-v0", "CBO/ToyGraph-v0"])
def test_conditioning_is_learning_in_another_model(env_id):
    model, learner = model_of(env_id), model_of(env_id)
    env = reset(gym.make(env_id), 4, 4)
    sets = random_sets(model, 4, 1)
    before = model.posterior(sets).mean
    torch.testing.assert_close(learner.posterior(sets).mean, before)  # both fits go on from the same one
    points, values = [], []
    for _ in range(3):
        action = env.action_space.sample()
        observation = env.step(action)[0]
        learner.network.add(action, observation)
        points.append(learner.network.inputs[-1])
        values.append(observation["nodes"])
    knowing = model.condition_on_observations(torch.stack(points), torch.tensor(np.array(values)))
    torch.testing.assert_close(knowing.posterior(sets).mean, learner.posterior(sets).mean)
    torch.testing.assert_close(model.posterior(sets).mean, before, rtol=0.0, atol=0.0)


def test_bad_input():
    task = make("CBO/Dropwave-v0", 0, 5)[1]
    model = GPNetworkModel.of_task(task)
    with pytest.raises(ArgumentError, match=r"outputs must be among \['X0', 'Y'\], at least one; given \['Z'\]"):
        GPNetworkModel.of_task(task, ["Z"])
    with pytest.raises(ArgumentError, match=r"batch_shape x q x 2; given \(3, 1, 3\)"):
        model.posterior(torch.zeros(3, 1, 3))
    with pytest.raises(ArgumentError, match=r"values n x 2 of \['X0', 'Y'\]; given \(3, 2\) and \(3, 1\)"):
        model.condition_on_observations(torch.zeros(3, 2), torch.zeros(3, 1))
    with pytest.raises(ArgumentError, match="models soft and hard tasks; CBO/GPBandit1-v0 is aggregated"):
        GPNetworkModel.of_task(make("CBO/GPBandit1-v0", 0, 5)[1])
    with pytest.raises(ArgumentError, match="no target set has the membership"):
        model_of("CBO/ToyGraph-v0").condition_on_observations(torch.ones(1, 4), torch.zeros(1, 3))
