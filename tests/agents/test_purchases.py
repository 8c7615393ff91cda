"""Agents that buy nodes: their stock, the knowledge gradient against refitted models, and the budget."""

from copy import deepcopy

import numpy as np
import pytest
import torch

from cbo_gym import evaluate, make_task
from cbo_gym.agents import KGFN, PKGFN, TSFN, CascadeEI, FastPKGFN, FullEIFN
from cbo_gym.agents.common.quasi_random import normals
from cbo_gym.agents.gp.model import GaussianProcess
from cbo_gym.agents.purchases.cascade import Plans
from cbo_gym.agents.purchases.knowledge_gradient import full_knowledge_gradient, knowledge_gradient
from cbo_gym.agents.purchases.stock import Stock
from cbo_gym.errors import UnsupportedModeError

ASSEMBLY = "CBO/Manufacturing-v0"


def begun(agent, env_id, seed=100):
    agent.reset(make_task(env_id, seed), seed)
    return agent


def test_covariances_are_those_of_joint_posteriors():
    rng = np.random.default_rng(0)
    gp = GaussianProcess("f", 2, rescale=[1])
    gp.add(rng.random((12, 2)) * [1.0, 9.0], rng.standard_normal(12))
    points, others = (torch.from_numpy(rng.random((n, 2)) * [1.0, 9.0]) for n in (3, 2))
    _, root = gp.joint(torch.cat([points, others]))
    torch.testing.assert_close(gp.covariance(points, others), (root @ root.T)[:3, 3:], rtol=1e-5, atol=1e-7)


def test_the_stock_joins_lots_that_agree():
    """Manufacturing: f0(x0, x1) -> f1, f2(x2, x3), f3(f1, f2)."""
    stock, rng = Stock(make_task(ASSEMBLY, 100)), np.random.default_rng(0)
    made = np.eye(4, dtype=bool)
    stock.add(np.array([0.1, 0.2, 0.3, 0.4]), made[0] | made[1], np.array([1.0, 2.0, 0.0, 0.0]))
    stock.add(np.array([0.5, 0.6, 0.7, 0.8]), made[2], np.array([0.0, 0.0, 3.0, 0.0]))
    stock.add(np.array([0.5, 0.6, 0.9, 0.8]), made[2], np.array([0.0, 0.0, 4.0, 0.0]))
    both = stock.combinations([1, 2], 9, rng)
    assert both.tolist() == [[0.1, 0.2, 0.7, 0.8], [0.1, 0.2, 0.9, 0.8]]
    np.testing.assert_array_equal(stock.values_at(both[1]), [1.0, 2.0, 4.0, np.nan])
    assert len(stock.combinations([1, 2], 1, rng)) == 1
    assert not len(stock.combinations([3], 9, rng))
    np.testing.assert_array_equal(stock.values_at(np.full(4, 0.5)), np.full(4, np.nan))


def test_the_knowledge_gradient_is_that_of_models_with_the_fantasies_as_data():
    """The same draws and designs, on GPs that get each fantasy as one more datum, with fixed hyper-parameters."""
    agent = begun(FastPKGFN(), "CBO/GPs1-v0")
    designs = torch.linspace(0.0, 1.0, 9, dtype=torch.float64)[:, None]
    gp = agent.network.surrogates["f0"]
    inputs = torch.tensor([[0.13], [0.62]], dtype=torch.float64)
    gains = knowledge_gradient(agent, "f0", inputs, designs, 4, 16)
    with torch.no_grad():
        now = agent.expected_reward(designs, 16).max()
        means, stds = gp.posterior(inputs)
    quantiles = torch.special.ndtri((torch.arange(4, dtype=torch.float64) + 0.5) / 4)
    gp.schedule.due = lambda count: False
    for z, mean, std, gain in zip(inputs, means, stds, gains, strict=True):
        best = []
        for quantile in quantiles:
            agent.network.surrogates["f0"] = taught = deepcopy(gp)
            taught.add(z[None], (mean + std * quantile)[None])
            with torch.no_grad():
                best.append(agent.expected_reward(designs, 16).max())
        assert float(gain) == pytest.approx(max(float(torch.stack(best).mean() - now), 0.0), abs=1e-4)


def test_the_knowledge_gradient_of_full_evaluations_is_that_of_models_with_the_fantasies_as_data():
    """The same draws and designs, on GPs that get each fantasy of both nodes as one more datum."""
    agent = begun(KGFN(), "CBO/GPs1-v0")
    designs = torch.linspace(0.0, 1.0, 7, dtype=torch.float64)[:, None]
    gps = dict(agent.network.surrogates)
    (gain,) = full_knowledge_gradient(agent, designs, torch.tensor([[0.13]], dtype=torch.float64), 4, 16)
    with torch.no_grad():
        now = agent.expected_reward(designs, 16).max()
    drawn, best = normals(("f0", "f1"), 4, seed=2), []
    for gp in gps.values():
        gp.schedule.due = lambda count: False
    for index in range(4):
        taught, inputs = {}, torch.tensor([[0.13]], dtype=torch.float64)
        for node, gp in gps.items():
            with torch.no_grad():
                mean, std = gp.posterior(inputs)
            value = mean + std * drawn[node][index]
            taught[node] = deepcopy(gp)
            taught[node].add(inputs, value)
            inputs = value[None]
        agent.network.surrogates.update(taught)
        with torch.no_grad():
            best.append(agent.expected_reward(designs, 16).max())
    assert float(gain) == pytest.approx(max(float(torch.stack(best).mean() - now), 0.0), abs=1e-4)


@pytest.mark.parametrize(
    "agent", [TSFN(), *(pytest.param(a, marks=pytest.mark.slow) for a in (FastPKGFN(), PKGFN(samples=4), FullEIFN()))]
)
def test_agents_end_with_the_budget_and_recommend_all_nodes(agent):
    run = evaluate(agent, "CBO/GPs1-v0(budget=12)", 101, horizon=3, recommend="end")
    assert 0.0 < run.table["cost"].sum() <= 12.0
    assert run.table["recommended_reward"][-1] > -4.0


@pytest.mark.parametrize("upstream", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_node_is_bought_only_with_parents_that_can_be_had(upstream):
    """With the upstream condition each round makes one node: its parents are in stock."""
    agent, bought = FastPKGFN(samples=2), []

    def watch(played):
        bought.append(played.observation["bought"].sum())

    evaluate(agent, f"{ASSEMBLY}(upstream={upstream})", 100, horizon=1, recommend="end", callbacks=[watch])
    assert bought == [1.0]


def test_a_known_composition_is_not_bought():
    agent = begun(FastPKGFN(samples=4), "CBO/Pharmaceutical-v0")
    action = agent.act({})
    assert action["node"] in (0, 1)
    point = torch.from_numpy(agent.best())[None]
    nodes = {node: gp.mean(point) for node, gp in agent.network.surrogates.items() if node != "utility"}
    expected = (60.0 - nodes["time"]) / 60.0 * nodes["strength"] / 1.5
    with torch.no_grad():
        assert float(agent.expected_reward(point)) == pytest.approx(float(expected), abs=0.02)


def test_the_screening_by_few_draws_keeps_the_proposal():
    agent = begun(PKGFN(samples=4), "CBO/GPs1-v0")
    proposal = np.array([0.123])
    offers = agent.offers("f0", proposal, torch.from_numpy(np.vstack([agent.best(), [[0.9]]])))
    assert [proposal, agent.best()] == offers.points[-2:].tolist()


def test_reused_parts_train_their_children_alone():
    agent = begun(FullEIFN(), ASSEMBLY)
    before = {node: len(gp) for node, gp in agent.network.surrogates.items()}
    point = np.array([0.1, 0.2, 0.3, 0.4])
    for node, values in ((0, [1.5, 0.0, 0.0, -12.0]), (1, [0.0, 2.5, 0.0, -12.0])):
        flags = np.eye(4)[node]
        agent.update(
            agent.buy(f"f{node}", point), {"nodes": np.array(values), "bought": flags, "spent": np.ones(1)}, -12.0, {}
        )
    after = {node: len(gp) for node, gp in agent.network.surrogates.items()}
    assert after == before | {"f0": before["f0"] + 1, "f1": before["f1"] + 1}
    assert agent.network.surrogates["f1"].inputs[-1].tolist() == [1.5]


CASCADE = "CBO/CascadeMatyas-v0"


def test_the_improvement_of_a_cascade_is_that_of_many_independent_draws():
    """A new start and a product of the first stage, against plain Monte Carlo on the posteriors of the stages."""
    agent = begun(CascadeEI(samples=512), CASCADE)
    points = np.array([[0.3, 0.6, 0.4, 0.5], [0.3, 0.6, 0.4, 0.7]])
    known = np.array([[np.nan] * 3, [8.0, np.nan, np.nan]])
    found = agent.expected_improvement(Plans(points, np.zeros((2, 4), bool), known)).numpy()
    rng, gps = np.random.default_rng(100), agent.network.surrogates
    incumbent = max(past.reward for past in agent.history)

    def draw(node, *columns):
        with torch.no_grad():
            mean, std = gps[node].posterior(torch.from_numpy(np.stack(np.broadcast_arrays(*columns), -1)))
        return mean.numpy() + std.numpy() * rng.standard_normal(len(mean))

    for point, first, value in zip(points, known[:, 0], found, strict=True):
        count = np.ones(40_000)
        product = draw("f0", point[0] * count, point[1]) if np.isnan(first) else first * count
        rewards = draw("f2", draw("f1", product, point[2]), point[3])
        gains = np.clip(rewards - incumbent, 0.0, None)
        assert value == pytest.approx(gains.mean(), abs=0.05 * gains.mean() + 4.0 * gains.std() / 200.0)


def test_a_cascade_continues_the_product_with_the_best_improvement_per_price():
    """The first product is 10 at its best, and the best whole product follows from it."""
    agent = begun(CascadeEI(), CASCADE)
    for value, point in ((-9.0, [0.1, 0.9, 0.5, 0.5]), (10.0, [0.5, 0.5, 0.5, 0.5])):
        observation = {"nodes": np.array([value, 0.0, -10.0]), "bought": np.eye(3)[0], "spent": np.ones(1)}
        agent.update(agent.buy("f0", np.array(point)), observation, -10.0, {})
    first = agent.first_plans().known[:, 0]
    assert set(first[np.isfinite(first)]) == {-9.0, 10.0}
    assert np.isnan(first).any()
    action = agent.act({})
    assert (action["node"], *action["values"][:2]) == (1, 0.5, 0.5)
    assert agent.next_node(np.array([1.0, np.nan, np.nan])) == "f1"


def test_a_finished_product_is_not_taken_up_again():
    """The last stage of GPs1 has no parameters, so its products are finished once it has been bought."""
    agent = begun(CascadeEI(), "CBO/GPs1-v0")
    agent.stock.add(np.array([0.2]), np.array([True, True]), np.array([0.8, 1.3]))
    assert np.isnan(agent.first_plans().known).all()


def test_other_networks_are_no_cascades():
    with pytest.raises(UnsupportedModeError, match="CascadeEI plays chains"):
        begun(CascadeEI(), ASSEMBLY)
