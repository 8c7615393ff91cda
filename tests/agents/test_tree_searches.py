"""GPOO and its rivals against naive re-implementations, and what a tree search promises."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym import make_task
from cbo_gym.agent_registry.finding import create_agent
from cbo_gym.agents.cells.aggregated_gp import AverageKernel
from cbo_gym.agents.cells.cell_gp_ucb import CellGPUCB
from cbo_gym.agents.cells.cell_model import CellModel
from cbo_gym.agents.cells.gpoo import GPOO
from cbo_gym.agents.cells.gptree import GPTree
from cbo_gym.agents.cells.partition import PartitionTree
from cbo_gym.agents.cells.published_gpoo import PublishedGPOO
from cbo_gym.agents.cells.stooo import AVEStoOO, StoOO
from cbo_gym.envs.registry import InitialData
from tests.support.loop import begin_agent, reset

AGENTS = ["GPOO", "StoOO", "AVE-StoOO", "GPTree", "CellGP-UCB"]


def start(agent: Any, env_id: str, horizon: int, **keywords: Any) -> Any:
    """The environment, with the agent reset to its task."""
    env = reset(gym.make(env_id, max_episode_steps=horizon, **keywords))
    agent.reset(make_task(env, seed=0, horizon=horizon), seed=0)
    return env


def play_round(agent: Any, env: Any) -> tuple[np.ndarray, float]:
    action = agent.act({})
    observation, reward, _, _, info = env.step(action)
    agent.update(action, observation, reward, info)
    return action, reward


def test_nodes_of_the_partition_follow_their_parents_and_are_found_by_their_cells() -> None:
    tree = PartitionTree(2, 3)
    np.testing.assert_array_equal(tree.deepest_expanded(), [0])
    np.testing.assert_array_equal(tree.expand(0), [1, 2, 3])
    tree.expand(2)
    np.testing.assert_array_equal(tree.parent, [0, 0, 0, 0, 2, 2, 2])
    np.testing.assert_array_equal(tree.depth, [0, 1, 1, 1, 2, 2, 2])
    np.testing.assert_array_equal(tree.leaves, [1, 3, 4, 5, 6])
    np.testing.assert_array_equal(tree.deepest_expanded(), [2])
    volumes = (tree.cells[:, 1] - tree.cells[:, 0]).prod(axis=1)
    assert volumes[tree.leaves].sum() == pytest.approx(1.0)
    assert [tree.find(cell) for cell in tree.cells] == list(range(7))
    assert tree.find(np.array([[0.1, 0.1], [0.2, 0.2]])) is None


@pytest.mark.parametrize(("points", "arity"), [(1, 2), (3, 3)])
def test_gpoo_plays_what_algorithm_1_says(points: int, arity: int) -> None:
    agent = GPOO()
    env = start(agent, "CBO/GPBandit1-v0", 22, points=points, arity=arity)
    tree, gp = agent.tree, agent.model.gp
    for t in range(1, 23):
        leaves, beta = tree.leaves, 0.1 * np.log(np.pi**2 * t**2 / 0.6)
        mean, std = gp.posterior(tree.cells[leaves])
        bounds = mean + np.sqrt(beta) * std + 14.0 * 2.0 ** -tree.depth[leaves]
        action, _ = play_round(agent, env)
        node = tree.find(action)
        assert bounds[leaves.tolist().index(node)] >= bounds.max() - 1e-9  # of equals either may be played
        radius = np.sqrt(beta) * gp.posterior(action[None])[1][0]
        assert tree.is_leaf[node] != (14.0 * 2.0 ** -tree.depth[node] >= radius and tree.depth[node] <= 10)
        deepest = tree.cells[tree.deepest_expanded()]
        np.testing.assert_array_equal(agent.recommend(), deepest[np.argmax(gp.posterior(deepest)[0])])


def test_the_published_gpoo_splits_a_leaf_and_plays_the_next_best() -> None:
    agent = PublishedGPOO()
    env = start(agent, "CBO/GPBandit3-Published-v0", 30, arity=3)
    first = [play_round(agent, env)[0] for _ in range(3)]
    np.testing.assert_array_equal(first, agent.tree.cells[1:4])
    for t in range(3, 30):
        leaves = agent.tree.leaves
        mean, std = agent.model.gp.posterior(agent.tree.cells[leaves])
        radii = np.sqrt(0.1 * np.log(np.pi**2 * t**2 / 0.6) * (std**2 + 0.005))
        variation = 14.0 * 2.0 ** -agent.tree.depth[leaves]
        second, best = np.argsort(mean + radii + variation)[-2:]
        splits = variation[best] >= radii[best] and agent.tree.depth[leaves[best]] <= 10
        action, _ = play_round(agent, env)
        np.testing.assert_array_equal(action, agent.tree.cells[leaves[second if splits else best]])
        assert agent.tree.is_leaf[leaves[best]] != splits


@pytest.mark.parametrize(
    "agent",
    [StoOO(variation=2.0), AVEStoOO(variation=2.0), AVEStoOO(variation=2.0, rule="theory")],
    ids=["StoOO", "published", "theory"],
)
def test_stooo_by_hand(agent: StoOO | AVEStoOO) -> None:
    """A naive dictionary of rewards; the radii of Munos (2014), of the published program and of Eq. 12."""
    published = isinstance(agent, AVEStoOO) and agent.rule == "published"
    env = start(agent, "CBO/GPBandit1-v0", 60)
    seen: dict[bytes, list[float]] = {}

    def radius(cell: np.ndarray, t: int) -> float:
        count = len(seen.get(cell.tobytes(), []))
        if count == 0:
            return np.inf
        of_the_budget = np.log(60**2 / 0.1) / 2
        if published:
            return float(of_the_budget / count)
        inside = of_the_budget if type(agent) is StoOO else 2 * np.log(t**2 / 0.1)
        return float(np.sqrt(inside / count))

    for t in range(1, 61):
        tree = agent.tree
        leaves = tree.leaves
        bounds = [
            np.mean(seen.get(tree.cells[i].tobytes(), [0.0])) + radius(tree.cells[i], t) + 2.0 * 0.5 ** tree.depth[i]
            for i in leaves
        ]
        expected = tree.cells[leaves[int(np.argmax(bounds))]]
        action, reward = play_round(agent, env)
        np.testing.assert_array_equal(action, expected)
        seen.setdefault(action.tobytes(), []).append(reward)
        node = tree.find(action)
        assert node is not None
        enough = len(seen[action.tobytes()]) if published else 2.0 * 0.5 ** tree.depth[node]
        assert tree.is_leaf[node] == (radius(action, t) > enough)
        best = max(tree.deepest_expanded(), key=lambda i: np.mean(seen[tree.cells[i].tobytes()]))
        np.testing.assert_array_equal(agent.recommend(), tree.cells[best])
    assert agent.draws.sum() == 60


@pytest.mark.parametrize(("agent", "scale", "slope"), [(GPTree(), 0.25, 0.1), (GPTree(1.0, 1.0), 1.0, 1.0)])
def test_gptree_plays_a_leaf_that_is_narrow_enough_and_has_the_highest_index(
    agent: GPTree, scale: float, slope: float
) -> None:
    env = start(agent, "CBO/GPBandit1-v0", 80)
    width = scale * np.sqrt(np.log(80) + 2.0)

    def v(h: Any) -> Any:
        g = slope * 2.0 ** -np.asarray(h, dtype=float)
        inner = 4 + 1 + 2 * np.log(80**2 * np.pi**2 / 6) + np.asarray(h) * np.log(2) + 4 * np.log(1 / g)
        return 4 * g * (np.sqrt(inner) + 1)

    for _ in range(20):
        node = agent.tree.find(agent.act({}))
        tree = agent.tree
        mean, std = agent.model.gp.posterior(tree.cells)
        upper = mean + width * std
        index = np.minimum(upper, upper[tree.parent] + v(np.maximum(tree.depth - 1, 0))) + v(tree.depth)
        assert node is not None
        assert index[node] == pytest.approx(index[tree.leaves].max(), rel=1e-12)
        assert width * std[node] > v(tree.depth[node])
        play_round(agent, env)


def test_cell_gp_ucb_plays_the_highest_bound_of_all_cells() -> None:
    agent = CellGPUCB(max_cells=31)
    env = start(agent, "CBO/GPBandit1-v0", 20)
    for t in range(1, 21):
        cells = agent.model.gp.tracked
        assert len(cells) == 31
        mean, std = agent.model.gp.posterior(cells)
        bounds = mean + np.sqrt(0.1 * np.log(np.pi**2 * t**2 / 0.6)) * std
        action, _ = play_round(agent, env)
        index = int(np.flatnonzero((cells == action).all(axis=(1, 2)))[0])
        assert bounds[index] == pytest.approx(bounds.max(), rel=1e-9)


@pytest.mark.parametrize("agent", AGENTS)
def test_initial_data_on_other_cells(agent: str) -> None:
    env = gym.make("CBO/GPBandit1-v0")
    made = begin_agent(create_agent(agent), make_task(env, 0, initial_data=InitialData(observational=1, random=4)))
    assert made.act({}) in env.action_space
    assert made.recommend() in env.action_space


def test_fitting_finds_the_generating_kernel() -> None:
    """Rewards drawn from the model itself, on a lengthscale of the grid."""
    rng = np.random.default_rng(0)
    task = make_task(gym.make("CBO/Dropwave-Aggregated-v0", noise_std=0.1, points=4), seed=0)
    lengthscale = 0.02 * np.sqrt(2.0) * 10.0
    cells = np.sort(rng.random((150, 2, 2)), axis=1)
    covariance = AverageKernel(lengthscale, 4.0, 4).covariance(cells, cells) + 0.04 * np.eye(150)
    rewards = 50.0 + np.linalg.cholesky(covariance) @ rng.normal(size=150)
    model = CellModel(task)
    assert model.fitted, "the task has no kernel"
    assert CellModel(make_task("CBO/GPBandit1-v0"), fit=True).fitted
    for cell, reward in zip(cells, rewards, strict=True):
        model.add(cell, float(reward))
    assert lengthscale / 1.7 < model.hyperparameters.lengthscale < lengthscale * 1.7
    assert model.scale * model.hyperparameters.noise_std == pytest.approx(0.2, rel=0.5)
    mean, _ = model.gp.posterior(cells)
    assert np.corrcoef(model.location + model.scale * mean, rewards)[0, 1] > 0.98
