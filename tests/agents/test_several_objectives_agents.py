"""The agents for several objectives: the contract, which sets they play, and what they refuse."""

from collections import Counter

import gymnasium as gym
import numpy as np
import pytest
import torch
from botorch.acquisition.multi_objective import logei

from cbo_gym import UnsupportedModeError, agents, evaluate, make_task
from cbo_gym._util.fronts import non_dominated
from cbo_gym.agents.common.features import features_of
from cbo_gym.agents.common.prices import cost_of
from cbo_gym.agents.several_objectives.base import reference_of, sets_worth_setting
from tests.support.loop import begun, reset

PAID, SOFT, PUBLISHED = "CBO/PSAGraph-Cost-v0", "CBO/Alpine2-Cost-v0", "CBO/MOCBO1-v0"
ALONE = ["CausalParetoSelect", "qNEHVI", "qNEHVI-Sets", "qNEHVI-Network"]


def test_tasks_of_the_other_kind_are_refused() -> None:
    for name in ALONE:
        with pytest.raises(UnsupportedModeError, match="needs a task with several objectives; CBO/ToyGraph-v0 has one"):
            evaluate(name, "CBO/ToyGraph-v0", 0, horizon=1)
    with pytest.raises(UnsupportedModeError, match="name an agent that plays them, such as qNEHVI-Network"):
        evaluate("Auto", PUBLISHED, 0, horizon=1)
    for name in ("GP-UCB", "MCBO", "Optuna"):
        with pytest.raises(UnsupportedModeError, match=r"maximises one reward; .* minimize Y1, minimize Y2"):
            evaluate(name, PUBLISHED, 0, horizon=1)


def test_recommended_actions_are_not_dominated_by_estimates() -> None:
    env = gym.make(PUBLISHED)
    agent = begun(agents.QNEHVI(), make_task(env, 0, horizon=3), 1)
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


@pytest.mark.slow
@pytest.mark.parametrize("agent", ALONE)
def test_they_beat_random_play(agent: str) -> None:
    regrets = {
        name: np.mean([evaluate(name, PUBLISHED, seed, horizon=20, recommend="end").table["simple_regret"][-1]
                       for seed in range(100, 104)])
        for name in (agent, "Random")
    }  # fmt: skip
    assert regrets[agent] < regrets["Random"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [100, 102, 103])
def test_the_network_stops_at_no_part_of_the_front(seed: int) -> None:
    """With a reference point below the actions played alone it stayed at .60, .61 and .38."""
    run = evaluate("qNEHVI-Network", "CBO/MOCBO2-v0", seed, horizon=30, recommend="end")
    assert run.table["best_so_far_regret"][-1] < 0.1 * (run.optimum - run.random_value)
