"""The agents for several objectives: the contract, which sets they play, and what they refuse."""

from collections import Counter
from copy import deepcopy
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch
from botorch.acquisition.multi_objective import logei

from cbo_gym import UnsupportedModeError, agents, evaluate, make_task
from cbo_gym._util.fronts import non_dominated
from cbo_gym.agent import AGENTS_WITH_OBJECTIVES, AGENTS_WITH_OBJECTIVES_AND_LIMITS
from cbo_gym.agent_registry.finding import agent_of, find_agent
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.agents.common.features import features_of
from cbo_gym.agents.several_objectives.base import cost_of, reference_of, sets_worth_setting
from tests.support.loop import begin_agent, reset

pytestmark = pytest.mark.usefixtures("coarse_search")

PAID, SOFT, PUBLISHED = "CBO/PSAGraph-Cost-v0", "CBO/Alpine2-Cost-v0", "CBO/MOCBO1-v0"
ALONE = ["CausalParetoSelect", "qNEHVI", "qNEHVI-Sets", "qNEHVI-Network"]


def test_tasks_of_the_other_kind_are_refused() -> None:
    for name in ALONE:
        with pytest.raises(
            UnsupportedModeError, match=r"needs a task with several objectives; CBO/ToyGraph-v0 has one.*Auto"
        ):
            evaluate(name, "CBO/ToyGraph-v0", 0, horizon=1)
    for name in ("GP-UCB", "MCBO", "Optuna"):
        expected = r"one reward; .* minimize Y1, minimize Y2; choose Auto, CausalParetoSelect, qNEHVI, "
        with pytest.raises(UnsupportedModeError, match=expected):
            evaluate(name, PUBLISHED, 0, horizon=1)


def test_the_agents_that_errors_name_are_those_that_take_it() -> None:
    played = {name for name in zoo() if find_agent(name).several_objectives}
    assert set(AGENTS_WITH_OBJECTIVES) == played
    limited = {name for name in played if find_agent(name).takes_limits and find_agent(name).takes_mixed_domains}
    assert set(AGENTS_WITH_OBJECTIVES_AND_LIMITS) == limited


@pytest.mark.parametrize(("name", "env_id"), [("CausalParetoSelect", PAID), ("qNEHVI-Network", PAID), ("qNEHVI", SOFT)])
def test_the_posterior_has_each_objective_and_pending_actions_have_its_outcome(name: str, env_id: str) -> None:
    task = make_task(env_id, 100, horizon=3)
    agent = begin_agent(agent_of(name), task, 1)
    explored = [past.action for past in agent.history if agent.reward_posterior([past.action]) is not None]
    mean, std = agent.reward_posterior(explored)
    assert mean.shape == std.shape == (len(explored), 2)
    assert (std[:, 0] > 0).all()
    assert (std[:, 1] == 0).all(), "the cost is known"
    observation, reward = agent.fantasize(explored[0])
    assert observation["nodes"][-1] == reward[0] == pytest.approx(mean[0, 0])
    assert reward[1] == pytest.approx(mean[0, 1])
    observation, reward = agent.fantasize(explored[0], {task.reward: 3.5})
    assert (observation["nodes"][-1], reward[0]) == (3.5, 3.5)


@pytest.mark.parametrize(
    ("name", "env_id"),
    [("CausalParetoSelect", PUBLISHED), ("CausalParetoSelect", SOFT), ("qNEHVI-Network", PUBLISHED), ("qNEHVI", SOFT)],
)
def test_outcomes_of_all_objectives_are_drawn_jointly_and_predicted_from_the_others(name: str, env_id: str) -> None:
    task = make_task(env_id, 100, horizon=3)
    agent = begin_agent(agent_of(name), task, 1)
    undisturbed = deepcopy(agent)
    # The same action twice has the same expectation in each draw, and outcomes of its own.
    first, second = [past.action for past in agent.history if agent.reward_posterior([past.action]) is not None][:2]
    actions = [first, second, first]
    mean, std = agent.reward_posterior(actions)
    expected, outcomes = (agent.sample_outcomes(actions, 400, noise=noise) for noise in (False, True))
    left_out = agent.leave_one_out()
    for column, objective in enumerate(task.objectives):
        if objective.name not in agent.observed:
            continue
        own = expected[objective.name]
        assert own.shape == outcomes[objective.name].shape == (400, 3)
        assert (own[:, 0] - own[:, 2]).std() < 0.02 * own.std()
        error = 4.0 * std[:, column] + 1e-6 * np.abs(mean[:, column])
        assert (np.abs(objective.sign * own.mean(axis=0) - mean[:, column]) <= error).all()
        assert len(left_out[objective.name].values) > 1
    assert str(agent.act({})) == str(undisturbed.act({}))


def test_without_a_round_an_expected_outcome_has_every_objective() -> None:
    agent = begin_agent(agents.QNEHVI(), replace(make_task(PUBLISHED, 0), initial_data=()), 1)
    observation, reward = agent.fantasize(agent.act({}), {"Y1": 2.0})
    assert reward.tolist() == [-2.0, 0.0]
    assert len(agent.act_batch(observation, 2)) == 2


def test_recommended_actions_are_not_dominated_by_estimates() -> None:
    agent = begin_agent(agents.QNEHVI(), make_task(PUBLISHED, 0, horizon=3), 1)
    estimates = agent.estimated_rewards()
    assert estimates.shape == (len(agent.history), 2)
    assert len(agent.recommend()) == non_dominated(estimates).sum()


def test_the_ends_of_the_front_count_before_they_are_played() -> None:
    features = features_of(make_task(SOFT))
    played = np.array([[0.5, -0.5], [0.6, -0.6]])
    reference = reference_of(played, lambda inputs: torch.stack([inputs[:, 0], -inputs[:, 0]], -1).numpy(), features, 1)
    assert (reference < [0.1, -0.9]).all()  # all trade-offs from (0, 0) to (1, -1) are on the front that is expected
    known = reference_of(played, lambda inputs: np.full((len(inputs), 2), -5.0), features, 1)
    np.testing.assert_allclose(known, [0.49, -0.61])  # what is dominated moves nothing


def test_no_kernel_is_compiled_for_the_processor_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[object] = []
    monkeypatch.setattr("torch.utils.cpp_extension.load", lambda **source: compiled.append(source))
    evaluate("qNEHVI", PUBLISHED, 100, horizon=1, recommend="end")
    assert not compiled
    assert logei._C is None  # nor was one before


def test_each_plays_its_sets() -> None:
    expected = {
        "qNEHVI": [{"X1", "X2", "X3", "X4"}],
        "qNEHVI-Sets": [{"X1", "X2"}],
        "CausalParetoSelect": [{"X1", "X2"}],
    }
    targets = make_task(PUBLISHED).targets
    for name, sets in expected.items():
        run = evaluate(name, PUBLISHED, 100, horizon=1, recommend="end")
        assert {targets[index] for index in run.table["choice"]} <= set(map(frozenset, sets))
    paid = make_task(PAID)
    assert sets_worth_setting(paid) == list(paid.targets)  # to set more is never free


def test_causal_pareto_select_begins_with_each_set_and_then_plays_batches_of_one() -> None:
    run = evaluate(agents.CausalParetoSelect(batch=3), "CBO/MOCBO3-v0", 100, horizon=12, recommend="end")
    choices = run.table["choice"].to_list()
    assert sorted(Counter(choices[:6]).values()) == [3, 3], "two of five are among the initial data"
    for first in (6, 9):
        assert len(set(choices[first : first + 3])) == 1


@pytest.mark.parametrize("env_id", [PAID, SOFT])
def test_the_cost_that_agents_compute_is_the_cost_that_is_paid(env_id: str) -> None:
    env = gym.make(env_id)
    task, features = make_task(env, 0), features_of(make_task(env, 0))
    reset(env, 0, 0)
    for _ in range(5):
        action = env.action_space.sample()
        inputs = features.inputs(features.encode(action))
        *_, info = env.step(action)
        assert float(cost_of(task, inputs)) == pytest.approx(info["cost"], rel=1e-12)
    stacked = torch.stack([inputs, inputs])
    np.testing.assert_allclose(cost_of(task, stacked).numpy(), info["cost"])
