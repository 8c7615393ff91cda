"""CoCaBO, CoBO and CaBO: their arms, their contract, and that they learn."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from cbo_gym import Agent, Mode, UnsupportedModeError, agents, make_task
from cbo_gym.agents.scopes.scope_arm import ScopeArm
from cbo_gym.errors import ArgumentError
from tests.agents.helpers import AGENT_SEED, flat, make, play

AGENTS = {
    "CoCaBO": agents.CoCaBO,
    "CoCaBO-warped": lambda: agents.CoCaBO(backend="warped"),
    "CoCaBO-blind": lambda: agents.CoCaBO(use_contexts=False),
    "CoBO": agents.CoBO,
    "CaBO": agents.CaBO,
    "GP-UCB": agents.GPUCB,
    "Random": agents.Random,
}
every_agent = pytest.mark.parametrize("build", AGENTS.values(), ids=AGENTS.keys())
ROUNDS = 10


@pytest.mark.parametrize("env_id", ["CBO/CoCaFig1-v0", "CBO/PSAContextual2-v0"])
@every_agent
def test_agent_keeps_its_contract(build: Any, env_id: str) -> None:
    env, task = make(env_id, 0, ROUNDS)
    torch_state = torch.get_rng_state()
    agent: Agent = build()
    actions, _ = play(agent, env, task, 0)
    assert all(env.action_space.contains(action) for action in actions)
    assert any(np.array_equal(flat(agent.recommend()), flat(action)) for action in actions)
    estimates = agent.estimated_rewards()
    assert estimates.shape == (ROUNDS,)
    assert np.isfinite(estimates).all()
    assert torch.equal(torch.get_rng_state(), torch_state)
    play(agent, *make("CBO/PSAContextual1-v0", 1, 2), 1)
    again, _ = play(agent, env, task, 0)  # a used agent starts afresh
    for one, other in zip(again, actions, strict=True):
        np.testing.assert_array_equal(flat(one), flat(other))


@pytest.mark.parametrize("build", [agents.CoCaBO, agents.CoBO, agents.CaBO])
def test_other_modes_are_refused(build: Any) -> None:
    _, task = make("CBO/ToyGraph-v0", 0, 1)
    with pytest.raises(UnsupportedModeError, match="plays contextual"):
        build().reset(task, 0)


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


@pytest.mark.slow
def test_arms_of_coca_large_are_those_of_the_paper() -> None:
    assert arms_of(agents.CoCaBO(), "CBO/CoCaLarge-v0") == [named("X1", "C1 C6"), named("X2", "C1")]


def test_an_arm_sees_no_context_that_does_not_matter() -> None:
    scopes = ({"X2": ("C1", "Ct1")},)
    assert arms_of(agents.CoCaBO(), "CBO/CoCaLarge-v0", scopes=scopes) == [named("X2", "C1")]


def test_cobo_sets_everything_by_everything() -> None:
    assert arms_of(agents.CoBO(), "CBO/CoCaFig1-v0") == [named("X1 X2", "C")]
    with pytest.raises(ArgumentError, match="no scope that sets all"):
        arms_of(agents.CoBO(), "CBO/CoCaLarge-v0", scopes=({"X2": ("C1",)},))


def test_cabo_plays_pomis_and_observes() -> None:
    env, task = make("CBO/CoCaFig1-v0", 0, 20)
    agent = agents.CaBO()
    agent.reset(task, 0)
    inner = agent.cbo.task
    assert inner.mode is Mode.HARD
    assert set(inner.targets) == {frozenset(), frozenset({"X1"}), frozenset({"X2"})}
    scopes = [frozenset(variable for variable, _ in scope) for scope in task.scopes]
    played = [scopes[action["scope"]] for action in play(agent, env, task, 0)[0]]
    assert played == [inner.targets[past.action["target"]] for past in agent.cbo.history]
    assert set(played) == set(inner.targets)
    with pytest.raises(ArgumentError, match="must offer an empty scope"):
        agent.reset(replace(task, scopes=task.scopes[:2]), 0)
    assert env.action_space.contains(agent.act({"context": np.zeros(1)}))


def test_the_index_of_an_arm_by_hand() -> None:
    """The average bound, levelled to all contexts, and rho_i(n) / sqrt(n); levelled to its own it is the average."""
    env, task = make("CBO/CoCaFig1-v0", 0, 20)
    agent = agents.CoCaBO(beta=0.3, rho=0.4)
    play(agent, env, task, 0)
    first, _ = env.reset(seed=0)
    seen = [first, *[past.observation for past in agent.history[:-1]]]
    contexts = np.stack([observation["context"] for observation in seen])
    assert sorted(round_ for arm in agent.arms for round_ in arm.rounds) == list(range(20))
    spread = np.std([past.reward for past in agent.history])
    for arm in agent.arms:
        n = len(arm.rounds)
        growth = math.log(2 * 1 * (1 + n) / 0.1)
        width, bonus = math.sqrt(0.3 * growth), 0.4 * spread * growth / math.sqrt(n)
        mean, std = arm.gp.posterior(arm.gp.inputs)
        assert arm.average_bound(contexts[arm.rounds], width) == pytest.approx(float((mean + width * std).mean()))
        assert agent.index(arm) == pytest.approx(arm.average_bound(contexts, width) + bonus)


def test_every_arm_is_first_played_eight_times_at_random() -> None:
    env, task = make("CBO/CoCaFig1-v0", 0, 16)
    one, two = agents.CoCaBO(beta=0.0), agents.CoCaBO(beta=9.0)
    actions, _ = play(one, env, task, 0)
    assert [int(action["scope"]) for action in actions] == [0] * 8 + [1] * 8
    for left, right in zip(actions, play(two, env, task, 0)[0], strict=True):
        np.testing.assert_array_equal(left["values"], right["values"])


def trained_arm(rewards: Any, context_count: int = 25, backend: Any = "plain") -> ScopeArm:
    """An arm of X1 given C that played its own choices, ``rewards`` being a function of native x and c."""
    _, task = make("CBO/CoCaFig1-v0", 0, 1)
    arm = ScopeArm(task, 0, ("C",), backend, "cpu")
    rng = np.random.default_rng(0)
    for round_ in range(context_count):
        context = rng.uniform(-1, 1, 1)
        action = arm.act(context, 1.0, seed=round_)
        arm.observe(action, context, rewards(2 * action["values"][0] - 1, context[0]), round_)
    return arm


def test_levelling_takes_the_luck_of_the_context_out_of_an_average() -> None:
    arm = trained_arm(lambda x, c: 3.0 * c - (x - 0.5) ** 2)
    met = arm.gp.inputs[:, 1:].numpy()
    bounds = arm.gp.bound(arm.gp.inputs, 1.0).numpy()
    assert arm.average_bound(met, 1.0) == pytest.approx(bounds.mean())
    shift = arm.average_bound(met + 0.4, 1.0) - arm.average_bound(met, 1.0)
    assert shift == pytest.approx(3.0 * 0.4, rel=0.2)


@pytest.mark.parametrize("backend", ["plain", "warped"])
def test_an_arm_learns_what_is_best_in_a_context(backend: Any) -> None:
    arm = trained_arm(lambda x, c: np.cos(2 * (x + c)) + c, context_count=30, backend=backend)
    for c in (-0.6, 0.1, 0.7):
        chosen = 2 * arm.act(np.array([c]), 0.0, seed=0)["values"][0] - 1
        assert chosen == pytest.approx(-c, abs=0.12)
    best = minimize_scalar(lambda x: -np.cos(2 * (x + 0.3)), bounds=(-1, 1), method="bounded").x
    assert 2 * arm.recommend(np.array([0.3]))["values"][0] - 1 == pytest.approx(best, abs=0.4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"beta": -0.1}, "beta must be a finite number of at least 0; given -0.1"),
        ({"rho": math.nan}, "rho must be a finite number of at least 0; given nan"),
        ({"backend": "hebo"}, r"backend must be one of \['warped', 'plain'\]; given 'hebo'"),
        ({"backend": "wrapped"}, r"given 'wrapped'; did you mean 'warped'\?"),
    ],
)
def test_arguments_are_validated(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        agents.CoCaBO(**arguments)


@pytest.mark.parametrize("rewards", [[0.3] * 6, [1e6, -1e6, 2e6, 0.0, 1e6, 3e6], [1.0] * 5 + [1e6]])
@pytest.mark.parametrize("backend", ["plain", "warped"])
def test_awkward_rewards_do_not_end_a_run(backend: Any, rewards: list[float]) -> None:
    _, task = make("CBO/CoCaFig1-v0", 0, 1)
    agent = agents.CoCaBO(backend=backend)
    agent.reset(task, AGENT_SEED)
    observation = {"nodes": np.zeros(4), "context": np.zeros(1)}
    for reward in rewards:
        action = agent.act(observation)
        assert task.action_space.contains(action)
        agent.update(action, observation, reward, {})
    assert np.isfinite(agent.estimated_rewards()).all()


def test_nothing_to_recommend_at_first() -> None:
    _, task = make("CBO/CoCaFig1-v0", 0, 1)
    agent = agents.CoCaBO()
    agent.reset(task, 0)
    with pytest.raises(ArgumentError, match="nothing has been played"):
        agent.recommend()


def test_gp_ucb_uses_the_context() -> None:
    """Taught that X2 = C is best, it follows the context."""
    _, task = make("CBO/CoCaAligned-v0", 0, 1)
    agent = agents.GPUCB(beta=0.1)
    agent.reset(task, 0)
    rng = np.random.default_rng(0)
    contexts = rng.uniform(-1, 1, (41, 1))
    agent.act({"context": contexts[0]})
    for (context,), following in pairwise(contexts):
        action = {"scope": 1, "values": rng.random(2)}
        reward = float(np.cos(context - (4 * action["values"][1] - 2)))
        agent.update(action, {"nodes": np.zeros(4), "context": following}, reward, {})
    for context in (-0.6, 0.6):
        action = agent.act({"context": np.array([context])})
        assert np.cos(context - (4 * action["values"][1] - 2)) > 0.95
