"""CoCaBO, CoBO and CaBO: their arms, their contract, and that they learn."""

import math
import warnings
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.stats import qmc

from cbo_gym import Mode, agents, make_task
from cbo_gym.agents.scopes.arm_index import HighestBounds
from cbo_gym.agents.scopes.scope_arm import ScopeArm
from cbo_gym.errors import ArgumentError
from cbo_gym.scm.diagram import CausalDiagram
from cbo_gym.task import GraphKnowledge
from tests.support.loop import begin_agent, make, play


def arms_of(agent: Any, env_id: str, **kwargs: Any) -> list[tuple[frozenset[str], frozenset[str]]]:
    task = make_task(gym.make(env_id, **kwargs), seed=0)
    agent.reset(task, 0)
    return [
        (frozenset(variable for variable, _ in task.scopes[scope]), contexts)
        for scope, contexts in agent.choose_scopes()
    ]


def named(variables: str, contexts: str) -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(variables.split()), frozenset(contexts.split())


@pytest.mark.parametrize(
    ("env_id", "expected"),
    [
        ("CBO/PSAContextual1-v0", [named("Aspirin Statin", "Age BMI")]),
        ("CBO/PSAContextual2-v0", [named("Aspirin Statin", "Age BMI")]),
        ("CBO/CoCaFig1-v0", [named("X1", "C"), named("X2", "C")]),
        ("CBO/CoCaAligned-v0", [named("X1", "C"), named("X2", "C")]),
        ("CBO/Alpine2-Contextual-v0", [named("A1 A2 A3 A4 A5", "A0")]),
    ],
)
def test_arms_are_the_possibly_optimal_scopes(env_id: str, expected: list) -> None:
    assert arms_of(agents.CoCaBO(), env_id) == expected


def test_arms_see_no_context_that_does_not_matter_and_cobo_sets_everything_by_everything() -> None:
    few = ({"X2": ("C1", "Ct1")},)
    assert arms_of(agents.CoCaBO(), "CBO/CoCaLarge-v0", scopes=few) == [named("X2", "C1")]
    assert arms_of(agents.CoBO(), "CBO/CoCaFig1-v0") == [named("X1 X2", "C")]
    with pytest.raises(ArgumentError, match="no scope that sets all"):
        arms_of(agents.CoBO(), "CBO/CoCaLarge-v0", scopes=few)


def test_cabo_plays_pomis_and_observes() -> None:
    env, task = make("CBO/CoCaFig1-v0", 0, 12)
    agent = begin_agent(agents.CaBO(), task)
    inner = agent.cbo.task
    assert inner.mode is Mode.HARD
    assert set(inner.targets) == {frozenset(), frozenset({"X1"}), frozenset({"X2"})}
    scopes = [frozenset(variable for variable, _ in scope) for scope in task.scopes]
    played = [scopes[action["scope"]] for action in play(agent, env, task, 0)[0]]
    assert played == [inner.targets[past.action["target"]] for past in agent.cbo.history]
    assert len(set(played)) > 1
    assert played.count(frozenset()) >= 3  # two variables: less has no hull
    with pytest.raises(ArgumentError, match="must offer an empty scope"):
        agent.reset(replace(task, scopes=task.scopes[:2]), 0)
    assert env.action_space.contains(agent.act({"context": np.zeros(1)}))


def contexts_of(agent: Any, env: Any) -> np.ndarray:
    """Those in which the rounds of seed 0 were played."""
    first, _ = env.reset(seed=0)
    seen = [first, *[past.observation for past in agent.history[:-1]]]
    return np.stack([observation["context"] for observation in seen])


def test_the_score_of_an_arm_by_hand() -> None:
    """The average over all contexts of the highest bound there, and rho_i(n) / sqrt(n)."""
    env, task = make("CBO/CoCaFig1-v0", 0, 20)
    agent = agents.CoCaBO(beta=0.3, rho=0.4, backend="botorch")
    play(agent, env, task, 0)
    contexts = contexts_of(agent, env)
    assert sorted(round_ for arm in agent.arms for round_ in arm.rounds) == list(range(20))
    growth = math.log(2 * 1 * 21 / 0.1)
    width = math.sqrt(0.3 * growth)
    grid = torch.linspace(0.0, 1.0, 1001, dtype=torch.float64)
    for arm in agent.arms:
        points = torch.stack([torch.stack([grid, torch.full_like(grid, float(c))], -1) for (c,) in contexts])
        highest = arm.gp.bound(points, width).amax(-1)
        np.testing.assert_allclose(arm.highest_bounds(contexts, width), highest.numpy(), atol=2e-3)
        bonus = 0.4 * float(arm.gp.noise_scale) * growth / math.sqrt(len(arm.rounds))
        assert agent.score(arm, contexts) == pytest.approx(float(highest.mean()) + bonus, abs=2e-3)


@pytest.mark.parametrize(("index", "times"), [("posterior", 2.0), ("published", 1.0)])
def test_bounds_inside_an_arm_are_wider_than_those_that_compare_arms(index: str, times: float) -> None:
    env, task = make("CBO/CoCaFig1-v0", 0, 12)
    agent = agents.CoCaBO(beta=0.3, index=index)
    play(agent, env, task, 0)
    context = np.array([0.4])
    action = agent.act({"context": context})
    arm = next(arm for arm in agent.arms if arm.scope == action["scope"])
    plays = 13 if index == "posterior" else 1 + len(arm.rounds)
    width = times * math.sqrt(0.3 * math.log(2 * 1 * plays / 0.1))
    grid = torch.linspace(0.0, 1.0, 1001, dtype=torch.float64)
    bounds = arm.gp.bound(torch.stack([grid, torch.full_like(grid, 0.4)], -1), width)
    assert arm.bound_of(action, context, width) == pytest.approx(float(bounds.max()), abs=1e-4)


def test_bad_first_plays_do_not_keep_an_arm_down() -> None:
    """What an arm may earn counts, not what it earned: rewards that peak away from all but one of its plays."""
    arm = ScopeArm(make("CBO/CoCaFig1-v0", 0, 1)[1], 0, ("C",), "plain", 0, "cpu")
    contexts = np.linspace(-1.0, 1.0, 12)[:, None]
    for round_, (context, value) in enumerate(zip(contexts, np.tile([0.0, 0.1, 0.2, 0.9], 3), strict=True)):
        action = {"scope": np.int64(0), "values": np.full(2, value)}
        arm.observe(action, context, float(value > 0.5), round_)
    assert arm.highest_bounds(contexts, 0.0).mean() > 0.7


def test_the_published_index_is_the_running_average_of_the_bounds_of_then() -> None:
    env, task = make("CBO/CoCaFig1-v0", 0, 12)
    agent = begin_agent(agents.CoCaBO(index="published"), task)
    observation, _ = env.reset(seed=0)
    bounds: dict[int, list[float]] = {0: [], 1: []}
    for round_ in range(12):
        action = agent.act(observation)
        arm = agent.arms[int(action["scope"])]
        width = math.sqrt(agent.beta * math.log(2 * (1 + len(arm.rounds)) / 0.1))
        if round_ >= 2:
            best = max((0, 1), key=lambda index: agent.score(agent.arms[index], np.zeros((1, 1))))
            assert action["scope"] == best
        bounds[int(action["scope"])].append(arm.bound_of(action, observation["context"], width))
        following, reward, _, _, info = env.step(action)
        agent.update(action, following, reward, info)
        observation = following
    assert [bounds[index][0] for index in (0, 1)] == pytest.approx([math.sqrt(agent.beta * math.log(20.0))] * 2)
    for index, arm in enumerate(agent.arms):
        bonus = agent.rho * float(arm.gp.noise_scale) * math.log(2 * (1 + len(arm.rounds)) / 0.1)
        expected = np.mean(bounds[index]) + bonus / math.sqrt(len(arm.rounds))
        assert agent.score(arm, np.zeros((1, 1))) == pytest.approx(expected)


def test_first_plays_take_a_quarter_of_the_rounds_within_bounds() -> None:
    index = HighestBounds()
    assert [index.first_plays(2, horizon) for horizon in (16, 64, 100, 128, 700)] == [8, 8, 12, 16, 16]


def test_first_plays_fill_the_box_and_then_go_where_the_model_promises() -> None:
    env, task = make("CBO/CoCaFig1-v0", 0, 16)
    one, two = agents.CoCaBO(beta=0.0), agents.CoCaBO(beta=9.0)
    actions, others = play(one, env, task, 0)[0], play(two, env, task, 0)[0]
    scopes = [int(action["scope"]) for action in actions]
    assert [scopes.count(scope) for scope in (0, 1)] == [8, 8]
    for scope in (0, 1):
        mine, theirs = (
            [action["values"][scope] for action in all_ if action["scope"] == scope] for all_ in (actions, others)
        )
        np.testing.assert_array_equal(mine[:5], theirs[:5])
        assert len({int(8 * value) for value in mine[:5]}) == 5
        assert mine[5:] != theirs[5:]


def test_noise_is_not_taken_for_ripples_in_the_contexts() -> None:
    """A slope of 1 under noise of deviation 1; with BoTorch's prior of the noise one in a hundred is called noise."""
    arm = ScopeArm(make("CBO/PSAContextual1-v0", 0, 1)[1], 0, ("Age", "BMI"), "plain", 0, "cpu")
    rng = np.random.default_rng(0)
    points = rng.random((200, 4))
    arm.gp.add(points, rng.standard_normal(200) - points[:, 0])
    arm.gp.update()
    assert float(arm.gp.noise) > 0.7


def test_only_redundant_scopes_and_the_empty_one_are_an_error() -> None:
    task = make("CBO/CoCaFig1-v0", 0, 1)[1]
    both = [scope for scope in task.scopes if len(scope) == 2]
    assert both
    task = replace(task, scopes=(*both, frozenset()))
    with pytest.raises(ArgumentError, match=r"\['X1', 'X2'\].* are redundant .*not: .*\['X1'\] by \['C'\]"):
        agents.CoCaBO().reset(task, 0)


def test_contexts_that_another_action_changes_are_warned_of() -> None:
    task = make("CBO/CoCaFig1-v0", 0, 1)[1]
    diagram = CausalDiagram(["X1", "C", "X2", "Y"], [("X1", "C"), ("C", "X2"), ("X2", "Y"), ("X1", "Y"), ("C", "Y")])
    agent = agents.CoBO()
    with pytest.warns(UserWarning, match=r"setting \['X1', 'X2'\] changes \['C'\]"):
        agent.reset(replace(task, graph=GraphKnowledge(diagram.nodes, diagram)), 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent.reset(task, 0)


@pytest.mark.parametrize("backend", ["plain", "warped", "botorch"])
def test_an_arm_learns_what_is_best_in_a_context(backend: Any) -> None:
    arm = ScopeArm(make("CBO/CoCaFig1-v0", 0, 1)[1], 0, ("C",), backend, 0, "cpu")
    values, contexts = qmc.Sobol(2, seed=0).random(32).T
    x, c = 2 * values - 1, 2 * contexts - 1
    arm.gp.add(np.stack([values, c], -1), np.cos(2 * (x + c)) + c)
    arm.gp.update()
    for c in (-0.6, 0.1, 0.7):
        chosen = 2 * arm.act(np.array([c]), 0.0, seed=0)["values"][0] - 1
        assert chosen == pytest.approx(-c, abs=0.12)
    best = minimize_scalar(lambda x: -np.cos(2 * (x + 0.3)), bounds=(-1, 1), method="bounded").x
    assert 2 * arm.recommend(np.array([0.3]))["values"][0] - 1 == pytest.approx(best, abs=0.4)
