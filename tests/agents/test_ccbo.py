"""Agents that heed constraints: cCBO, constrained EI, and MCBO."""

import gymnasium as gym
import numpy as np
import pytest
import torch

from cbo_gym import evaluate, make_task
from cbo_gym.agents import CCBO, MCBO, ConstrainedEI
from cbo_gym.agents.common.feasibility import violations
from cbo_gym.agents.intervention_sets.ccbo import log_constrained_improvement
from cbo_gym.agents.intervention_sets.multi_task import MultiTaskGPs
from cbo_gym.envs import oracle_of
from cbo_gym.errors import HiddenGraphError
from cbo_gym.task import Constraint
from tests.support.loop import begin_agent, make, play

ENV = "CBO/CCBOSynthetic1-v0"


def tensor(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


@pytest.mark.parametrize("side", ["<=", ">="])
@pytest.mark.parametrize("best", [0.3, -np.inf])
def test_constrained_improvement_by_simulation(side, best):
    """Two constrained nodes and a reward that depends on both, against a million joint draws."""
    covariance = tensor([1.0, 0.5, 0.6], [0.5, 2.0, -0.4], [0.6, -0.4, 1.5])
    mean, root = tensor([0.2, -0.5, 0.1]), torch.linalg.cholesky(covariance)[None]
    limits = [Constraint("A", side, 0.4), Constraint("B", "<=", 0.0)]
    draws = torch.quasirandom.SobolEngine(2, scramble=True, seed=0).draw(4096, dtype=torch.float64)
    found = log_constrained_improvement(mean, root, limits, best, draws.clamp(1e-9, 1 - 1e-9)).exp().item()
    drawn = np.random.default_rng(0).multivariate_normal(mean[0].numpy(), covariance.numpy(), 10**6)
    feasible = (limits[0].excess(drawn[:, 0]) <= 0) & (drawn[:, 1] <= 0.0)
    gained = feasible * (1.0 if best == -np.inf else np.maximum(drawn[:, 2] - best, 0.0))
    assert found == pytest.approx(gained.mean(), abs=5 * gained.std() / 1000)


def test_the_multi_task_model_learns_one_outcome_from_another():
    """g = -f: where f was seen the correlation is found, and the joint draws say so."""

    def flat(values):
        return torch.zeros(len(values), dtype=torch.float64), torch.zeros(len(values), dtype=torch.float64)

    model = MultiTaskGPs(["f", "g"], 1, [flat, flat])
    for x in np.linspace(0, 1, 12):
        model.observe(tensor(x), [np.sin(6 * x), -np.sin(6 * x)], [0.0, 0.0])
    model.adjust([1.0, 1.0])
    mean, root = model.predict(tensor([0.25], [0.6]))
    np.testing.assert_allclose(mean[:, 0], np.sin([1.5, 3.6]), atol=0.15)
    assert ((root @ root.transpose(-1, -2))[:, 0, 1] < 0.0).all()


def test_violations_by_hand():
    limits = [Constraint("A", "<=", 1.0), Constraint("B", ">=", 0.0)]
    mean, std = tensor([0.5, 1.0], [0.9, 1.0], [2.0, -3.0]), torch.full((3, 2), 0.25, dtype=torch.float64)
    np.testing.assert_allclose(violations(limits, mean, std), [0.0, 0.15, 1.25 + 3.25])
    np.testing.assert_allclose(violations(limits, mean, std, caution=0.0), [0.0, 0.0, 1.0 + 3.0])
    np.testing.assert_allclose(violations([], mean[:, :0], std[:, :0]), [0.0, 0.0, 0.0])


@pytest.mark.parametrize("multi_task", [False, True])
def test_ccbo_plays_feasible_actions_and_improves(multi_task):
    run = evaluate(CCBO(multi_task=multi_task, causal_prior=False), ENV, 0, horizon=8, recommend="end")
    blind = evaluate("Random", ENV, 0, horizon=8, recommend="end")
    assert run.table["feasible"].mean() > blind.table["feasible"].mean()
    assert run.table["best_so_far_regret"][-1] < 0.3 * (run.optimum - run.random_value)


def test_ccbo_explores_constrained_minimal_sets_and_reads_observations():
    for options, is_explored in (({}, True), ({"constraints": []}, False)):
        agent = begin_agent(CCBO(causal_prior=False), make_task(gym.make("CBO/CCBOProtein-v0", **options), 0))
        assert (frozenset({"PKC", "PKA", "Mek"}) in agent.explored) == is_explored
    with pytest.raises(HiddenGraphError):
        CCBO().reset(make_task(gym.make(ENV, graph="hidden"), seed=0), seed=0)


def test_ccbo_never_sets_what_is_limited_beyond_its_limit():
    env, task = make("CBO/ToyGraph-v0", 1, 4, constraints=["X1 <= -4"])
    actions, _ = play(CCBO(causal_prior=False), env, task, 1)
    low, high = task.manipulable["X1"]
    by_x1 = [low + (high - low) * action["values"][1] for action in actions if action["target"] == 2]
    assert len(by_x1) > 0
    assert max(by_x1) <= -4.0


@pytest.mark.parametrize(
    ("env_id", "more"), [(ENV, {}), ("CBO/Dropwave-v0", {"constraints": ["X0 <= 0.5"]}), ("CBO/Dropwave-v0", {})]
)
def test_constrained_ei_without_a_graph(env_id, more):
    env, task = make(env_id, 0, 1, **more)
    play(agent := ConstrainedEI(samples=32), env, task, 0)
    assert agent.estimated_violations().shape == (len(agent.history),)
    assert agent.estimated_violations().any() == bool(task.constraints)
    assert task.action_space.contains(agent.recommend())


@pytest.mark.slow
def test_mcbo_is_pessimistic_about_constraints():
    env, task = make(ENV, 0, 1)
    agent = MCBO(restarts=2, samples=8)
    actions, _ = play(agent, env, task, 0)
    assert oracle_of(env).meets_constraints([*actions, agent.recommend()]).all()
