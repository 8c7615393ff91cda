"""The agents of the subset mode: their choices against slow formulas, and what they learn."""

import numpy as np
import pytest

from cbo_gym import UnsupportedModeError, agents
from cbo_gym.envs import oracle_of
from cbo_gym.errors import ArgumentError
from tests.support.loop import make, play

SMALL, HALVED = "CBO/LinearSEMHierarchical5-v0", "CBO/LinearSEMHalved-v0"
ROUNDS = 40


def _means(task, agent, vectors):
    """Expected values by node of a system with one vector a node of the agent's model."""
    values = {}
    for name, vector in zip(agent.model.names, vectors, strict=True):
        own = [values[cause] for cause in task.diagram.parents(name)]
        values[name] = vector[0] + np.dot(vector[1 : 1 + len(own)], own)
    return values


def _subsets(count):
    return np.arange(2**count)[:, None] >> np.arange(count) & 1


@pytest.fixture(scope="module", params=[agents.LinSEMUCB, agents.LinSEMTS])
def played(request):
    env, task = make(SMALL, 100, ROUNDS)
    agent = request.param()
    actions, _ = play(agent, env, task, 100)
    return task, agent, np.array(actions)


def test_the_model_is_ridge_regression(played):
    task, agent, actions = played
    nodes = np.array([past.observation["nodes"] for past in agent.history])
    for row, name in enumerate(agent.model.names):
        causes = [task.nodes.index(cause) for cause in task.diagram.parents(name)]
        (coordinate,) = task.action_nodes[name]
        for option in (0, 1):
            rounds = actions[:, coordinate] == option
            x = np.column_stack([np.ones(rounds.sum()), nodes[rounds][:, causes]])
            gram = np.eye(x.shape[1]) + x.T @ x
            size = x.shape[1]
            found = agent.model.estimates[row, option, :size]
            expected = np.linalg.solve(gram, x.T @ nodes[rounds, task.nodes.index(name)])
            np.testing.assert_allclose(found, expected, atol=1e-9)
            np.testing.assert_allclose(agent.model.inverses[row, option, :size, :size], np.linalg.inv(gram), atol=1e-9)
            assert agent.model.log_determinants[row, option] == pytest.approx(np.linalg.slogdet(gram)[1])


def test_the_recommendation_is_the_best_subset_of_the_estimates(played):
    task, agent, _ = played
    scores = [agent.expected_nodes(subset)[task.reward] for subset in _subsets(5)]
    np.testing.assert_array_equal(agent.recommend(), _subsets(5)[np.argmax(scores)])
    rows = agent.model.options(agent.recommend())
    means = _means(task, agent, agent.model.estimates[np.arange(5), rows])
    assert agent.expected_nodes(agent.recommend()) == pytest.approx(means)


def test_optimism_leaves_no_system_of_the_ellipsoids_above_it():
    env, task = make(SMALL, 101, ROUNDS)
    agent = agents.LinSEMUCB(scale=0.3)
    play(agent, env, task, 101)
    model, rng = agent.model, np.random.default_rng(0)
    widths = 0.3 * (1 + np.sqrt(2 * np.log(2 * 5 * ROUNDS) + model.log_determinants))
    best = model.network.best(model.estimates, np.square(widths)[:, :, None, None] * model.inverses)
    np.testing.assert_array_equal(agent.act({}), model.subset(best.options))
    for _ in range(500):
        rows = rng.integers(2, size=5)
        vectors = []
        for i, row in enumerate(rows):
            step = rng.normal(size=model.estimates.shape[-1])
            step *= widths[i, row] / np.linalg.norm(step)
            vectors.append(model.estimates[i, row] + np.linalg.cholesky(model.inverses[i, row]) @ step)
        assert _means(task, agent, vectors)[task.reward] <= best.value


def _regret(agent, env_id, seed, rounds, **keywords):
    env, task = make(env_id, seed, rounds, **keywords)
    actions, _ = play(agent, env, task, seed)
    oracle = oracle_of(env)
    values = oracle.expected_rewards(list(np.array(actions, dtype=np.int8))).value
    return float((oracle.find_optimum().value - values).sum())


def test_those_that_know_the_graph_earn_more_than_those_that_do_not():
    regret = {name: np.mean([_regret(getattr(agents, name)(), SMALL, seed, 300, instance_seed=200 + seed)
                             for seed in (100, 101, 102)])
              for name in ("LinSEMTS", "LinSEMUCB", "SubsetUCB", "Random")}  # fmt: skip
    assert regret["LinSEMTS"] < regret["LinSEMUCB"] < regret["SubsetUCB"] < regret["Random"]


def test_ga_lcb_finds_the_graph_and_then_the_best_subset():
    env, task = make(HALVED, 100, 4000, graph="hidden")
    agent = agents.GALCB(rounds=200)
    actions, _ = play(agent, env, task, 100)
    assert task.graph.diagram is None
    true = env.unwrapped.dynamics.problem.scm.diagram
    assert {name: set(own) for name, own in agent.causes.items()} == {n: set(true.parents(n)) for n in true.nodes}
    np.testing.assert_array_equal(agent.active, [[0, 0, 0, 1]])
    np.testing.assert_array_equal(actions[-1], [0, 0, 0, 1])
    np.testing.assert_array_equal(agent.recommend(), [0, 0, 0, 1])


def test_those_that_need_the_graph_or_fewer_nodes_say_so():
    _, hidden = make(HALVED, 100, 5, graph="hidden")
    for build in (agents.LinSEMUCB, agents.LinSEMTS):
        with pytest.raises(UnsupportedModeError, match="diagram"):
            build().reset(hidden, 0)
    _, large = make("CBO/LinearSEMHierarchical17-v0", 100, 5)
    for build in (agents.GALCB, agents.SubsetUCB):
        with pytest.raises(ArgumentError, match="fewer nodes"):
            build().reset(large, 0)
    _, wide = make("CBO/Custom-Subset-v0", 0, 5, problem="cbo_gym.problems.systems.function_networks:rosenbrock")
    with pytest.raises(UnsupportedModeError, match="one parameter"):
        agents.LinSEMTS().reset(wide, 0)


def test_subset_ucb_plays_the_greatest_bound():
    env, task = make(SMALL, 102, 100)
    agent = agents.SubsetUCB()
    actions, rewards = play(agent, env, task, 102)
    scores = []
    for subset in _subsets(5):
        own = np.array(rewards)[(np.array(actions) == subset).all(axis=1)]
        plays = max(len(own), 1)
        scores.append(own.sum() / plays + np.sqrt(2 * np.log(100**2) / plays))
    np.testing.assert_array_equal(agent.act({}), _subsets(5)[np.argmax(scores)])
