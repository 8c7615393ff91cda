"""Agents with steps, integers, categories and logarithmic scales."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from cbo_gym import make_task
from cbo_gym.actions import Categorical, Domains, Integer
from cbo_gym.agent import AGENTS_WITH_LIMITS, agents_with_limits
from cbo_gym.agent_registry.finding import create_agent, modes_of
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.agents.common.features import BoxFeatures
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.networks.kernels import mechanism_kernel
from cbo_gym.errors import HiddenGraphError, UnsupportedModeError

ENVS = {"soft": "CBO/Fermenter-v0", "hard": "CBO/PSAGraph-Mixed-v0"}
TASKS = {mode: make_task(env_id, seed=100) for mode, env_id in ENVS.items()}
USUAL = [("GP-UCB", "soft", False), ("CBO", "hard", True), ("Random", "hard", False)]
CASES = [
    pytest.param(name, mode, data, marks=[] if (name, mode, data) in USUAL else [pytest.mark.slow])
    for name in AGENTS_WITH_LIMITS
    for mode in ENVS
    if mode in modes_of(create_agent(name))
    for data in (True, False)
]


@pytest.mark.parametrize(("name", "mode", "data"), CASES)
@pytest.mark.usefixtures("coarse_search")
def test_agents_that_take_kinds_play_at_levels(name: str, mode: str, data: bool) -> None:
    env, agent = gym.make(ENVS[mode]).unwrapped, create_agent(name)
    sizes = None if data else {"observational": 0, "random": 0}
    agent.reset(make_task(ENVS[mode], seed=100, initial_data=sizes), seed=100)
    observation, _ = env.reset(seed=100)
    action = agent.act(observation)
    assert env.action_space.contains(action)
    observation, reward, *_, info = env.step(action)
    agent.update(action, observation, reward, info)
    assert env.action_space.contains(agent.recommend())
    assert all(map(env.action_space.contains, agent.act_batch(observation, 2)))


@pytest.mark.parametrize("name", [name for name in zoo() if name not in AGENTS_WITH_LIMITS])
def test_all_other_agents_refuse_and_name_these(name: str) -> None:
    agent = create_agent(name)
    for mode in modes_of(agent) & ENVS.keys():
        task = TASKS[mode]
        suggested = agents_with_limits(task)
        assert all(mode in modes_of(create_agent(one)) for one in suggested.replace(" or ", ", ").split(", "))
        with pytest.raises(UnsupportedModeError, match=f"takes only numbers.*{suggested}|objectives") as refused:
            agent.reset(task, seed=100)
        assert not isinstance(refused.value, HiddenGraphError)


def test_a_category_has_no_order_for_a_gp() -> None:
    """Predictions do not change if categories change places, and a value of one says little about its neighbour."""
    rng = np.random.default_rng(100)
    values, labels = rng.random(30), rng.integers(4, size=30)
    rewards = np.array([0.0, 3.0, -3.0, 1.0])[labels] + values
    order = np.array([2, 0, 3, 1])
    means = []
    for places in (np.arange(4), order):
        gp = GaussianProcess("Y", 3, covariance=lambda dim: mechanism_kernel(dim, 1), categories={2: 4}, noise_std=0.01)
        gp.add(np.stack([values, values**2, places[labels] / 3], -1), rewards)
        points = torch.tensor([[0.4, 0.16, places[label] / 3] for label in range(4)], requires_grad=True)
        mean = gp.mean(points.double())
        means.append(mean.detach().numpy())
        mean.sum().backward()
        assert (points.grad != 0.0).all(0).tolist() == [True, True, False]
    np.testing.assert_allclose(means[0], means[1], rtol=1e-4)
    np.testing.assert_allclose(means[0], np.array([0.4, 3.4, -2.6, 1.4]), atol=0.1)


def test_a_search_moves_through_levels_and_an_ascent_does_not() -> None:
    features = BoxFeatures(Domains([(0.0, 1.0), Integer(0, 9), Categorical(list("ABCDE"))]))
    generator = torch.Generator().manual_seed(100)
    drawn = features.draw(1000, generator)
    assert torch.equal(features.inputs(drawn), drawn)
    counts = (4 * drawn[:, 2]).round().int().bincount()
    assert counts.tolist() == pytest.approx([200] * 5, abs=20)
    near = features.inputs(features.perturb(drawn, generator))
    moved = ((near - drawn)[::2].abs() > 1e-9).double().mean(0)
    assert moved.tolist() == pytest.approx([1.0, 0.25, 0.2], abs=0.06)
    points = drawn[:5].clone().requires_grad_(True)
    features.inputs(points).sum().backward()
    assert points.grad.tolist() == [[1.0, 0.0, 0.0]] * 5
