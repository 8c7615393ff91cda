"""Agents that learn the graph: CEO, CBO-U, LearnedGraph."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from cbo_gym import make_task
from cbo_gym.agents import CBOU, CEO, HCBO, LearnedGraph
from cbo_gym.agents.baselines.learned_graph import EdgeKnowledge, direct_edges, learn_edges
from cbo_gym.agents.intervention_sets.ceo import greatest_rewards, information_on_greatest
from cbo_gym.agents.intervention_sets.evidence import explain, explain_linearly, linear_log_evidence
from cbo_gym.agents.intervention_sets.hcbo import coverage_of, relative_weights
from cbo_gym.errors import ArgumentError, HiddenGraphError
from cbo_gym.scm import CausalDiagram
from tests.support.loop import begin_agent

ER10, TOY, PSA = "CBO/ErdosRenyi10-v0", "CBO/ToyGraph-v0", "CBO/PSAGraph-v0"


def started(agent, env_id, seed=0, **graph):
    task = make_task(gym.make(env_id, **graph), seed)
    return begin_agent(agent, task, seed), task


def true_parents(env_id, **keywords):
    env = gym.make(env_id, **keywords).unwrapped
    return set(env.scm.diagram.parents(env.scm.reward))


def test_cbo_u_learns_the_parents_of_linear_systems():
    hits = 0
    for instance in (11, 12):  # others than those on which the defaults were chosen
        agent, _ = started(CBOU(), ER10, instance, graph="hidden", instance_seed=instance)
        likeliest = max(agent.posterior.weights.items(), key=lambda pair: pair[1])[0]
        wrong = likeliest ^ true_parents(ER10, instance_seed=instance)
        hits += 10 - len(wrong)
        assert sum(agent.posterior.weights.values()) == pytest.approx(1.0)
    assert hits >= 16  # of 20 variables


def test_nonlinear_parents_are_learned_by_gaussian_processes_and_likely_ones_alone_are_explored():
    agent, task = started(CBOU(nonlinear=True), TOY, 2, graph="hidden")
    assert frozenset({"X1"}) in agent.posterior.weights
    assert task.action_space.contains(agent.act({}))
    agent, task = started(CBOU(), "CBO/ErdosRenyi20-v0", graph="hidden")
    agent.act({})
    assert agent.explored == {target for target in task.targets if target <= agent.posterior.parents()}
    assert len(agent.explored) < len(task.targets)
    assert agent.epsilon == 0.0


def test_linear_evidence_is_that_of_the_normal_model():
    """log |I + X X'|^(-1/2) (y' (I + X X')^-1 y)^(-(n-1)/2), written out."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(20, 4))
    effect = inputs[:, 1] - inputs[:, 3] + 0.3 * rng.normal(size=20)
    effect -= effect.mean()
    sets = [(0, 1), (1, 3), (2, 3)]
    found = linear_log_evidence(inputs.T @ inputs, inputs.T @ effect, float(effect @ effect), 20, sets)
    for columns, value in zip(sets, found, strict=True):
        covariance = np.eye(20) + inputs[:, columns] @ inputs[:, columns].T
        quadratic = effect @ np.linalg.solve(covariance, effect)
        assert value == pytest.approx(-0.5 * np.linalg.slogdet(covariance)[1] - 9.5 * np.log(quadratic))
    assert np.argmax(found) == 1


@pytest.mark.parametrize("method", [explain, explain_linearly])
def test_explanations_predict(method):
    rng = np.random.default_rng(1)
    causes = rng.uniform(-1.0, 1.0, (80, 2))
    effect = 2.0 * causes[:, 0] - causes[:, 1] + 0.1 * rng.normal(size=80)
    found = method(causes, effect)
    mean, variance, noise = found.predict(np.array([[0.5, 0.5], [0.0, -0.5]]))
    np.testing.assert_allclose(mean, [0.5, 0.5], atol=0.1)
    np.testing.assert_allclose(found.mean(np.array([[0.5, 0.5]])), mean[:1])
    assert (variance < 0.01).all()
    assert 0.05 < np.sqrt(noise) < 0.2
    lone, spread, _ = method(np.empty((80, 0)), effect).predict(np.empty((3, 0)))
    np.testing.assert_allclose(lone, effect.mean())
    np.testing.assert_allclose(spread, effect.var(ddof=1) / 80, rtol=1e-6)


def test_ceo_finds_the_true_graph_among_candidates():
    """Y <- X1 against Y <- X0 alone: X0 does not explain the cosine of X1."""
    candidates = [[("X0", "X1"), ("X1", "Y")], [("X0", "X1"), ("X0", "Y")], [("X1", "X0"), ("X0", "Y")]]
    agent, task = started(CEO(), TOY, graph="partial", graph_candidates=candidates)
    assert agent.graphs.entropy < np.log(3)
    best = int(np.argmax(agent.graphs.probabilities))
    assert set(agent.graphs.diagrams[best].directed) == {("X0", "X1"), ("X1", "Y")}
    points = torch.tensor([[0.1], [0.9]], dtype=torch.float64)
    for target in task.targets:
        gain = agent.graphs.information(target, points if target else points[:1, :0])
        assert (gain <= agent.graphs.entropy + 1e-9).all()
    assert task.action_space.contains(agent.act({}))


def test_ceo_lists_all_graphs_of_a_few_variables_and_of_no_more():
    agent, task = started(CEO(), TOY, graph="hidden")
    assert len(agent.graphs.diagrams) == 12  # three ways for X0 and X1, four sets of parents of Y
    assert agent.graphs.probabilities.sum() == pytest.approx(1.0)
    assert task.action_space.contains(agent.act({}))
    with pytest.raises(HiddenGraphError, match=r"more than 4 variables.* gives only the names of 6"):
        started(CEO(), PSA, graph="hidden")


def test_the_greatest_of_normal_variables_and_the_information_on_it():
    mean = torch.tensor([0.0, 1.0, 1.5], dtype=torch.float64)
    std = torch.tensor([1.0, 0.5, 0.01], dtype=torch.float64)
    greatest = greatest_rewards(mean, std)
    draws = np.random.default_rng(0).normal(mean.numpy(), std.numpy(), (20_000, 3)).max(axis=1)
    np.testing.assert_allclose(greatest, np.quantile(draws, (np.arange(8) + 0.5) / 8), atol=0.03)
    assert (information_on_greatest(mean - 100.0, std, 0.3, greatest) < 1e-6).all()
    mean, std = torch.tensor([1.8, 0.4], dtype=torch.float64), torch.tensor([0.02, 0.8], dtype=torch.float64)
    best, unknown = information_on_greatest(mean, std, 0.2, greatest_rewards(mean, std))
    assert unknown > best, "with noisy rewards an unknown variable is more informative than a known best one"


@pytest.mark.parametrize("noise", [0.0, 0.2, 2.0])
def test_information_is_the_loss_of_variance_by_truncation(noise):
    mean, std, greatest = 0.5, 0.8, 1.1
    draws = np.random.default_rng(1).normal(mean, std, 400_000)
    left = draws[draws <= greatest].var() + noise**2
    found = information_on_greatest(*torch.tensor([[mean], [std]]), noise, torch.tensor([greatest]))
    assert float(found) == pytest.approx(0.5 * np.log((std**2 + noise**2) / left), abs=3e-3)


def test_learned_graph_observes_learns_and_hands_over():
    agent, task = started(LearnedGraph(observations=12), TOY, 1, graph="hidden")
    env = gym.make(TOY, graph="hidden")
    env.reset(seed=1)
    for number in range(4):
        action = agent.act({})
        assert (agent.diagram is None) == (number < 2)
        if number < 2:
            assert not task.targets[action["target"]]
        observation, reward, *_ = env.step(action)
        agent.update(action, observation, reward, {})
    assert set(agent.diagram.nodes) == set(task.nodes)
    assert agent.diagram.ancestors(["Y"]) & set(task.manipulable)
    assert not agent.diagram.children("Y")
    assert agent.estimated_rewards().shape == (len(agent.history),)


def test_a_learned_graph_keeps_what_is_known_of_its_edges():
    rows = np.random.default_rng(0).standard_normal((200, 4))
    rows[:, 1] += rows[:, 0]
    rows[:, 2] += rows[:, 1]
    rows[:, 3] += rows[:, 2]
    task = make_task("CBO/SurveyChain-v0", seed=1)

    def learn(**known):
        knowledge = EdgeKnowledge.of(task, *(known.get(name, ()) for name in ("required", "forbidden", "tiers")))
        arrows, lines = learn_edges(rows, task.nodes, knowledge, 0.05)
        return direct_edges(task.nodes, arrows, lines, task.reward, knowledge)

    first, second, third, reward = task.nodes
    assert {frozenset(edge) for edge in learn().directed} == {
        frozenset(pair) for pair in ((first, second), (second, third), (third, reward))
    }
    assert learn(tiers=[[third], [second], [first]]).directed == {(third, second), (second, first), (third, reward)}
    assert (first, third) in learn(required=[(first, third)]).directed
    both_ways = [(first, second), (second, first)]
    assert not set(both_ways) & learn(forbidden=both_ways).directed


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"required": [("X0", "x1")]}, r"name \['x1'\]; did you mean 'X1'.*; the variables are \['X0', 'X1', 'Y'\]"),
        ({"required": [("X0", "X1"), ("X1", "X0")]}, "acyclic"),
        ({"required": [("Y", "X0")]}, r"\[\('Y', 'X0'\)\] are required and forbidden"),
        ({"required": [("X1", "X0")], "tiers": [["X0"], ["X1"]]}, r"\[\('X1', 'X0'\)\] are required and forbidden"),
    ],
)
def test_contradictions_about_edges_are_refused(known, message):
    with pytest.raises(ArgumentError, match=message):
        started(LearnedGraph(**known), TOY, graph="hidden")


def test_lines_are_directed_without_new_colliders():
    diagram = direct_edges("ABCY", [("C", "Y")], [("A", "B"), ("B", "C")], "Y", EdgeKnowledge())
    assert diagram.nodes[-1] == "Y"
    assert {frozenset(edge) for edge in diagram.directed} == {frozenset(p) for p in ("AB", "BC", "CY")}
    assert not [name for name in "ABC" if len(diagram.parents(name)) > 1]
    collider = direct_edges("ABCY", [("A", "C"), ("B", "C")], [("C", "Y")], "Y", EdgeKnowledge())
    assert collider.directed == {("A", "C"), ("B", "C"), ("C", "Y")}


def test_hcbo_keeps_the_best_covering_set_of_each_size():
    diagram = CausalDiagram("ABCDY", [("A", "C"), ("B", "C"), ("C", "Y"), ("D", "Y")])
    weights = relative_weights({"A": 1.0, "B": 0.0, "C": 3.0, "D": 2.0})
    assert sum(weights.values()) == pytest.approx(1.0)
    assert coverage_of(diagram, "Y", frozenset("A"), weights) == pytest.approx(weights["A"] / 4)
    assert coverage_of(diagram, "Y", frozenset("CD"), weights) == pytest.approx((weights["C"] + weights["D"]) / 2)
    assert coverage_of(diagram, "Y", frozenset("AC"), weights) == coverage_of(diagram, "Y", frozenset("C"), weights)
    agent, task = started(HCBO(weighing=2, starts=2), PSA)
    action = agent.act({})
    assert task.action_space.contains(action)
    assert sorted(map(len, agent.explored)) == [1, 2]
    with pytest.raises(HiddenGraphError):
        started(HCBO(), PSA, graph="hidden")
