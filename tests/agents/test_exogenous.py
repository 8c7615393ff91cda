import warnings

import numpy as np
import pytest
import torch

from cbo_gym import Task
from cbo_gym.agents.networks.exogenous import EncoderDecoder, ExogenousNetwork, fit_mixture
from tests.support.loop import make


class Node:
    """x = f_a(z, a) + f_b(z, a) f_c(u), with two modes of u and a spread that varies by a factor of ten and more."""

    def __init__(self, seed: int, count: int = 200) -> None:
        rng = np.random.default_rng(seed)
        self.inputs = np.column_stack([rng.normal(size=count), rng.random(count)])
        z, a = self.inputs.T
        self.scale = 0.3 + 0.5 * z**2 * (1.0 + a)
        u = rng.choice([-1.0, 1.0], count) + 0.2 * rng.normal(size=count)
        f_c = u + 0.3 * u**2
        self.exogenous = (f_c - f_c.mean()) / f_c.std()
        self.outputs = np.sin(2.0 * z) + 3.0 * a + self.scale * f_c

    def surrogate(self) -> EncoderDecoder:
        fitted = EncoderDecoder("X", parents=1, actions=1, components=2, seed=0)
        fitted.add(self.inputs, self.outputs)
        fitted.update()
        return fitted


@pytest.fixture(scope="module")
def node() -> tuple[Node, EncoderDecoder]:
    known = Node(0)
    return known, known.surrogate()


def test_the_exogenous_variable_its_two_modes_and_the_spread_are_recovered(node):
    known, fitted = node
    assert np.corrcoef(fitted.exogenous.numpy(), known.exogenous)[0, 1] > 0.9
    assert abs(float(fitted.exogenous.mean())) < 0.1
    assert float(fitted.exogenous.std()) == pytest.approx(1.0, abs=0.1)
    spread = fitted.encoder.spread(torch.from_numpy(known.inputs)).numpy()
    assert np.corrcoef(np.log(spread), np.log(known.scale))[0, 1] > 0.95
    modes = [known.exogenous[known.exogenous < 0].mean(), known.exogenous[known.exogenous > 0].mean()]
    np.testing.assert_allclose(sorted(fitted.distribution.means), modes, atol=0.2)
    np.testing.assert_allclose(fitted.distribution.weights, 0.5, atol=0.1)


def test_the_decoder_tells_the_node_from_inputs_and_exogenous_variable(node):
    known, fitted = node
    fresh = Node(100 + len(known.inputs))
    points = torch.from_numpy(np.column_stack([fresh.inputs, fresh.exogenous]))
    decoded, std = fitted.decoder.posterior(points)
    assert (std > 0).all()
    error = np.median(np.abs(decoded.numpy() - fresh.outputs))
    spread = np.median(np.abs(fitted.encoder.mean(points[:, :2]).numpy() - fresh.outputs))
    assert error < 0.4 * spread  # most of what the parents leave open is explained
    encoder, decoder = fitted.encoder, fitted.decoder
    _, std = encoder.posterior(encoder.inputs)
    torch.testing.assert_close(encoder.mean_error().diagonal(), std.square(), rtol=1e-6, atol=1e-8)
    _, decoded = decoder.posterior(decoder.inputs)
    assert float(decoded.median()) > 0.5 * float(std.median())  # near data, a decoder is no surer than its encoder


def test_points_and_draws_are_combined_and_follow_the_data():
    surrogate, generator = EncoderDecoder("X", parents=1, actions=1, components=2, seed=0), torch.Generator()
    draws = torch.randn(4, dtype=torch.float64, generator=generator.manual_seed(0))
    for count in (6, 1):
        surrogate.add(np.random.default_rng(count).random((count, 2)), np.arange(float(count)))
        for shared in (True, False):  # one point for all draws, or one each
            points = torch.rand(5, 1 if shared else 4, 2, dtype=torch.float64, generator=generator)
            full = torch.cat([points.expand(-1, 4, -1), draws[:, None].expand(5, -1, 1)], -1)
            decoder, with_draws = surrogate.decoder, surrogate.decoder_with_draws(draws)
            torch.testing.assert_close(with_draws.mean_and_std(points), decoder.posterior(full))
            torch.testing.assert_close(with_draws.mean(points), decoder.mean(full))


def test_the_bic_chooses_the_number_of_modes():
    rng = np.random.default_rng(0)
    for modes in (1, 2, 3):
        values = rng.choice(np.arange(modes) * 2.0, 300) + 0.2 * rng.normal(size=300)
        assert len(fit_mixture(values, "bic", seed=0).means) == modes


@pytest.mark.parametrize("values", [[0.0], [0.0] * 5, [0.0, 1.0], [1e-12, 0.0, 1.0]])
@pytest.mark.parametrize("components", [2, 4, "bic"])
def test_mixtures_of_few_values(values, components):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mixture = fit_mixture(np.array(values), components, seed=0)
    assert len(mixture.means) <= len(set(values))
    assert mixture.mean == pytest.approx(np.mean(values), abs=1e-6)


def trained(task: Task) -> ExogenousNetwork:
    network = ExogenousNetwork(task, components=2, seed=0)
    for past in task.initial_data:
        network.add(past.action, past.observation)
    return network


def test_the_reward_by_hand():
    """Dropwave: the radius moves by its deviation, the reward's decoder does the rest."""
    network = trained(make("CBO/Dropwave-Noisy-v0", 0, 1)[1])
    draws = network.draw(4, seed=1)
    torch.testing.assert_close(draws.exogenous["Y"][:4], draws.exogenous["Y"][4:])
    torch.testing.assert_close(draws.deviations["X0"][:4], -draws.deviations["X0"][4:])
    action = torch.tensor([[0.3, 0.6]], dtype=torch.float64)
    mean, std = network.reward_mean_and_std(action, draws)
    means, stds = [], []
    for draw in range(8):
        u = {node: values[draw].reshape(1, 1) for node, values in draws.exogenous.items()}
        centre, spread = network.surrogates["X0"].decoder.posterior(torch.cat([action, u["X0"]], -1))
        radius = centre + spread * draws.deviations["X0"][draw]
        reward = network.surrogates["Y"].decoder.posterior(torch.cat([radius[:, None], u["Y"]], -1))
        means.append(float(reward[0]))
        stds.append(float(reward[1]))
    means, stds = np.array(means), np.array(stds)
    upstream = 0.5 * (means[:4] - means[4:])
    assert float(mean) == pytest.approx(means.mean())
    signs = draws.deviations["X0"][:4].numpy()  # its mean square is 1
    effect = (signs * upstream).mean()
    assert float(std) == pytest.approx(np.sqrt(stds.mean() ** 2 + effect**2))


def test_deviations_of_the_nodes_are_orthogonal():
    """So that an effect is distinguished from the others'."""
    network = trained(make("CBO/Alpine2-Noisy-v0", 0, 1)[1])
    draws = network.draw(8, seed=0)
    halves = torch.stack([column[:8] for column in draws.deviations.values()])
    torch.testing.assert_close(halves @ halves.T / 8.0, torch.eye(5, dtype=torch.float64))
    few = network.draw(2, seed=0)  # more nodes than directions
    assert few.directions.shape == (2, 2)
    assert few.deviations.keys() == draws.deviations.keys()


def test_a_node_sees_the_centre_of_one_that_shares_its_latent_cause():
    """The published Dropwave: the reward is a function of the radius before its noise."""
    network = trained(make("CBO/Dropwave-NoisyPublished-v0", 0, 1)[1])
    network.estimates(network.inputs, network.draw(2, seed=0))
    radius, reward = network.exogenous["X0"].encoder, network.exogenous["Y"].encoder
    assert network.siblings == {"X0": (), "Y": ("X0",)}
    torch.testing.assert_close(reward.inputs[:, 0], radius.mean(radius.inputs))
    torch.testing.assert_close(reward.inputs[:, 1], radius.outputs)


def test_nodes_without_noise_and_latent_causes_have_no_exogenous_variable():
    """The radius of the published Dropwave has no noise of its own, but shares a latent cause with the reward."""
    assert trained(make("CBO/Dropwave-NoisyPublished-v0", 0, 1)[1]).exogenous.keys() == {"X0", "Y"}
    assert trained(make("CBO/Alpine2-v0", 0, 1)[1]).exogenous == {}
    assert len(trained(make("CBO/Alpine2-Noisy-v0", 0, 1)[1]).exogenous) == 6
