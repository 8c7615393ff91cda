"""Functions drawn from posteriors, what a network knows, and when an agent leaves its own choice for another."""

from functools import partial

import numpy as np
import pytest
import torch

from cbo_gym.agents.common.search import best_first
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.networks.exploration import RATE, Exploration
from cbo_gym.agents.networks.gp_network import GPNetwork
from cbo_gym.agents.networks.kernels import additive_kernel, mechanism_kernel
from cbo_gym.agents.networks.mcbo import MCBO
from cbo_gym.agents.networks.novelty import (
    distance_to_data,
    plausible_beyond,
    relative_posterior_std,
    reward_inputs,
)
from tests.support.loop import make, reset, start_agent


@pytest.mark.parametrize(("covariance", "noise"), [(partial(mechanism_kernel, parents=1), 0.3), (additive_kernel, 0.0)])
def test_drawn_functions_have_the_posteriors_moments(covariance, noise) -> None:
    rng = np.random.default_rng(0)
    gp = GaussianProcess("X", 2, covariance=covariance, noise_std=noise)
    inputs = rng.random((8, 2))
    gp.add(inputs, np.sin(6.0 * inputs).sum(-1) + noise * rng.standard_normal(8))
    points = torch.from_numpy(rng.random((6, 2)))
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack([gp.draw(generator)(points) for _ in range(300)])
    mean, std = gp.posterior(points)
    errors = (draws.mean(0) - mean) / (std / len(draws) ** 0.5)
    assert errors.abs().max() < 4.5  # standard errors
    torch.testing.assert_close(draws.std(0), std, rtol=0.2, atol=1e-3)


def test_a_drawn_network_agrees_with_what_was_seen_and_only_with_that() -> None:
    network = start_agent(MCBO(), "CBO/Dropwave-v0").network
    seen = network.surrogates["Y"].outputs
    generator = torch.Generator().manual_seed(0)
    drawn = [network.draw_rewards(generator) for _ in range(2)]
    for rewards in drawn:
        torch.testing.assert_close(rewards(network.inputs, {}), seen, rtol=0.0, atol=0.02)
    elsewhere = torch.rand(50, 2, dtype=torch.float64, generator=generator)
    assert (drawn[0](elsewhere, {}) - drawn[1](elsewhere, {})).abs().max() > 0.1 * seen.std()


def test_a_played_action_is_known_without_noise_and_not_yet_with_noise() -> None:
    plain, noisy = (start_agent(MCBO(), f"CBO/{name}-v0").network for name in ("Alpine2", "Alpine2-Noisy"))
    assert relative_posterior_std(plain, plain.inputs).max() < 1.0
    assert relative_posterior_std(noisy, noisy.inputs).min() > 1.0
    fresh = torch.rand(20, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert relative_posterior_std(plain, fresh).min() > 1.0


def test_nodes_that_are_set_need_not_be_known() -> None:
    task = make("CBO/ToyGraph-v0", 0, 1)[1]
    network = GPNetwork(task)
    env = reset(make("CBO/ToyGraph-v0", 0, 100)[0])
    action = {"target": np.int64(task.targets.index(frozenset({"X1"}))), "values": np.array([0.5, 0.3])}
    for _ in range(60):
        network.add(action, env.step(action)[0])
    assert not len(network.surrogates["X1"])
    assert relative_posterior_std(network, network.inputs[:1]) < 1.0


def test_distances_are_those_to_the_nearest_inputs_of_the_reward() -> None:
    network = start_agent(MCBO(), "CBO/Dropwave-v0").network
    reward, radius = network.surrogates["Y"], network.surrogates["X0"]
    actions = torch.rand(40, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    best = 0.2
    distances = distance_to_data(network, actions, best)
    inputs = radius.mean(actions)
    span = reward.inputs.max() - reward.inputs.min()
    nearest = (inputs[:, None] - reward.inputs[:, 0]).abs().amin(-1) / span
    mean, std = reward.posterior(inputs[:, None])
    searched = (std > 0.5 * reward.prior_std(inputs[:, None])) & (mean + 3.0 * std > best)
    assert 0 < searched.sum() < len(actions)
    torch.testing.assert_close(distances, torch.where(searched, nearest, -1.0))
    assert (distance_to_data(network, actions, best=100.0) == -1.0).all()


def test_the_edge_is_the_extreme_of_a_parent_beyond_which_more_is_plausible() -> None:
    agent = start_agent(MCBO(), "CBO/Dropwave-v0")
    network = agent.network
    reward, radius = network.surrogates["Y"], network.surrogates["X0"]
    actions = torch.rand(40, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(reward_inputs(network, actions)[:, 0], radius.mean(actions))
    span = reward.inputs.max() - reward.inputs.min()
    mean, std = reward.posterior(radius.mean(actions[:1]) - torch.linspace(0.0, 0.05, 17)[1:, None] * span)
    beyond = plausible_beyond(network, 0, -1.0, actions[:1])
    torch.testing.assert_close(beyond, (mean + 3.0 * std).max())
    exploration, played = Exploration(network, seed=0), [round_.action for round_ in agent.history]
    grid = torch.cartesian_prod(*2 * [torch.linspace(0.0, 1.0, 101, dtype=torch.float64)])
    for extreme in (torch.amax, torch.amin):  # the greatest radius comes first
        found = exploration.next_extreme(played, -1.0, seed=0)
        reached = radius.mean(torch.as_tensor(found)[None])[0]
        assert (reached - extreme(radius.mean(grid), 0)).abs() < 0.01 * span
    assert exploration.next_extreme(played, 100.0, seed=0) is None
    hard = start_agent(MCBO(), "CBO/ToyGraph-v0")  # hard mode sets the parents themselves
    assert hard.exploration.next_extreme([past.action for past in hard.history], -100.0, seed=0) is None


def test_what_teaches_is_played_and_what_is_known_gives_way_within_the_budget() -> None:
    agent = start_agent(MCBO(), "CBO/Dropwave-v0")
    estimates = agent.estimated_rewards()
    played, best = best_first(agent.history, estimates), float(estimates.max())
    exploration = Exploration(agent.network, seed=0)
    unknown, known = np.array([0.5, 0.5]), played[0]
    assert exploration.replacement(unknown, played, best, seed=0) is unknown
    others = [exploration.replacement(known, played, best, seed=seed) for seed in range(8)]
    assert exploration.exploring_rounds == np.ceil(RATE * len(played) ** 0.5)
    far = [np.abs(other - known).max() > 0.01 for other in others]
    assert all(far[: exploration.exploring_rounds])
    assert not any(far[exploration.exploring_rounds :])
    assert not any(np.array_equal(other, known) for other in others)


def test_at_the_edge_of_the_box_an_action_beside_it_lies_inside() -> None:
    exploration = Exploration(start_agent(MCBO(), "CBO/Dropwave-v0").network, seed=0)
    for corner in (0.0, 1.0):
        beside = exploration.nudge(np.array([corner, 0.5]))
        assert 0.0 < beside[0] < 1.0
        assert abs(beside[0] - corner) < 0.01
