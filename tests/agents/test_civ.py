"""CIV: its posterior and its acquisition function by simulation, and that it finds the target."""

from copy import deepcopy

import numpy as np
import pytest

from cbo_gym import evaluate
from cbo_gym.agents import CIV
from cbo_gym.agents.networks.civ import LinearPosterior
from cbo_gym.errors import ArgumentError, UnsupportedModeError
from tests.support.loop import start_agent

ENV = "CBO/ShiftTarget5-v0"


def shifts(agent, count=1):
    """Random shifts, and their unit actions."""
    native = np.random.default_rng(100).uniform(-0.4, 0.4, (count, 5))
    return native, (native + 1.0) / 2.0


def taught(rounds=6):
    agent, rng = start_agent(CIV(), ENV), np.random.default_rng(101)
    for action in shifts(agent, rounds)[1]:
        values = rng.standard_normal(5)
        agent.update(action, {"nodes": np.append(values, 0.0)}, 0.0, {})
    return agent


def test_the_posterior_is_that_of_ridge_regression():
    rng = np.random.default_rng(100)
    posterior = LinearPosterior([[], [0], [0, 1]], np.array([1.0, 0.5, 0.2]))
    inputs, values = rng.standard_normal((9, 3)), rng.standard_normal((9, 3))
    for shift, row in zip(inputs, values, strict=True):
        posterior.learn(shift, row)
    design = values[:, :2]
    spread = np.linalg.inv(np.eye(2) + design.T @ design)
    np.testing.assert_allclose(posterior.spread[2, :2, :2], spread)
    np.testing.assert_allclose(posterior.mean[2, :2], spread @ design.T @ (values[:, 2] - inputs[:, 2]))
    assert not posterior.mean[0].any()
    assert not posterior.spread[0].any()


def test_the_loss_is_the_variance_that_a_round_leaves_integrated_over_directions():
    """The round is the expected one; the variance of |a - a*|^2 is from draws of the rows of B."""
    agent = taught()
    shift = np.array([0.3, -0.2, 0.1, 0.4, -0.5])
    after = deepcopy(agent.posterior)
    after.learn(shift, agent.posterior.means(shift))
    np.testing.assert_allclose(after.mean, agent.posterior.mean, atol=1e-12)
    rng, target = np.random.default_rng(102), agent.target
    stds = np.sqrt(after.variances * np.einsum("j,ijk,k->i", target, after.spread, target))
    optima = agent.posterior_optimum() + stds * rng.standard_normal((20_000, 5))
    directions = rng.standard_normal((30, 5))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    # In pairs of opposite ones, and with every node in every place, moments are those of the sphere.
    directions = np.concatenate([sign * np.roll(directions, k, axis=1) for sign in (-1, 1) for k in range(5)])
    variance = np.mean([np.square(one - optima).sum(-1).var() for one in directions])
    # The noise variance that the paper adds to the integrand.
    variance += 4.0 * np.sum(after.variances * np.square(stds))
    assert 2.0 * agent.integrated_variance()(shift) == pytest.approx(variance, rel=0.05)


def test_the_target_is_read_from_the_known_reward_and_found():
    agent = start_agent(CIV(), ENV)
    nodes = dict(zip(agent.task.nodes, agent.target, strict=False))
    assert agent.task.composition(nodes) == pytest.approx(5.0)
    run = evaluate(CIV(), ENV, 100, horizon=15, recommend="end")
    blind = evaluate("Random", ENV, 100, horizon=15, recommend="end")
    assert run.table["simple_regret"][-1] < 0.1 * blind.table["simple_regret"][-1]
    assert run.table["average_regret"][-1] < blind.table["average_regret"][-1]


@pytest.mark.parametrize("acquisition", ["civ", "greedy", "random"])
def test_shifts_have_at_most_the_length_and_are_reproducible(acquisition):
    agent, other = (start_agent(CIV(acquisition, length=0.5), ENV) for _ in range(2))
    for _ in range(2):
        action = agent.act({})
        np.testing.assert_array_equal(action, other.act({}))
        assert np.linalg.norm(2.0 * action - 1.0) <= 0.5 + 1e-9
        for each in (agent, other):
            each.update(action, {"nodes": np.ones(6)}, 1.0, {})


def test_other_tasks_and_arguments_are_refused():
    with pytest.raises(ArgumentError, match="acquisition must be one of"):
        CIV("ei")
    with pytest.raises(ArgumentError, match="length must be a finite number above 0"):
        CIV(length=0.0)
    with pytest.raises(UnsupportedModeError, match="one shift of each node"):
        start_agent(CIV(), "CBO/Dropwave-v0")
