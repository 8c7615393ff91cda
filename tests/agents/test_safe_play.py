"""Safe play: that the actions are certified ones and the best of these, and that a start is asked for."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch
from scipy.stats import t as student

from cbo_gym import custom_problem, evaluate, make_task
from cbo_gym.agents import MCBO, ConstrainedEI
from cbo_gym.agents.calibration.forecast import Calibration
from cbo_gym.agents.calibration.safe_play import MAX_RELATIVE_STD
from cbo_gym.errors import ArgumentError, UnsupportedModeError
from tests.support.loop import begin_agent

DELTA, HORIZON = 0.05, 20
START = {"dose": 0.1}


def clinic():
    """The toxicity of a dose may not exceed 1, which it does at 0.62; the effect grows with the dose."""
    problem = custom_problem(
        {
            "toxicity": lambda dose, u: dose * (1.0 + dose) + u,
            "effect": lambda toxicity, dose, u: dose + 0.1 * toxicity + u,
        },
        reward="effect",
        noise={"toxicity": 0.05, "effect": 0.05},
        actions={"dose": (0.0, 1.0)},
    )
    return gym.make("CBO/Custom-v0", problem=problem, constraints=["toxicity <= 1"])


def played(agent, doses):
    agent = begin_agent(agent, replace(make_task(clinic(), seed=100, horizon=HORIZON), initial_data=()))
    rng = np.random.default_rng(100)
    for dose in doses:
        toxicity = dose * (1 + dose) + 0.05 * rng.standard_normal()
        nodes = np.array([toxicity, dose + 0.1 * toxicity + 0.05 * rng.standard_normal()])
        agent.update(np.array([dose]), {"nodes": nodes}, nodes[1], {})
    return agent


@pytest.mark.parametrize("rounds", [8, 9])
def test_the_action_is_the_best_certified_one_by_brute_force(rounds):
    agent = played(ConstrainedEI(safety=DELTA, safe_start=START), np.linspace(0.05, 0.4, rounds))
    action = float(agent.act({})[0])
    gp, grid = agent.surrogates[1], torch.linspace(0.0, 1.0, 2001, dtype=torch.float64)[:, None]
    with torch.no_grad():
        mean, std = gp.posterior(grid)
        share = std / gp.prior_std(grid)
        score = agent.improvement(agent.estimated_rewards())(grid.unsqueeze(-2))
    calibration = Calibration.of(gp)
    width = calibration.scale * student.ppf(1 - DELTA / HORIZON, calibration.freedom)
    certified = (mean + width * std <= 1.0) & (share <= MAX_RELATIVE_STD)
    possible = mean - width * std <= 1.0
    assert 0.1 < certified.double().mean() < possible.double().mean()
    exploits = rounds % 2 == 0
    best = float(grid[score.where(certified if exploits else possible, -torch.inf).argmax()])
    if not exploits:
        # The certified dose nearest to the best possible one.
        best = min(grid[certified].flatten().tolist(), key=lambda dose: abs(dose - best))
    assert action == pytest.approx(best, abs=2e-3)


def test_without_certified_actions_the_start_is_played():
    for agent in (ConstrainedEI(safety=DELTA, safe_start=START), MCBO(safety=DELTA, safe_start=START)):
        agent = played(agent, [])
        assert agent.act({}) == pytest.approx([0.1])
        agent = played(agent, [0.9, 0.95])
        assert agent.act({}) == pytest.approx([0.1])


def test_data_may_certify_a_start_and_else_one_is_asked_for():
    agent = played(ConstrainedEI(safety=DELTA), np.linspace(0.05, 0.4, 8))
    assert agent.act({})[0] < 0.62
    for doses in ([], [0.9, 0.95]):
        with pytest.raises(ArgumentError, match=r"meets toxicity <= 1.*safe_start=\{'dose': 0.0\}"):
            played(MCBO(safety=DELTA), doses).act({})


def test_wrong_arguments_are_refused():
    with pytest.raises(ArgumentError, match=r"between 0 and 1; given 1\.0"):
        MCBO(safety=1.0)
    with pytest.raises(ArgumentError, match=r"give safety=0\.05 too"):
        ConstrainedEI(safe_start=START)
    with pytest.raises(ArgumentError, match="did you mean 'dose'"):
        played(MCBO(safety=DELTA, safe_start={"dosse": 0.1}), [])
    with pytest.raises(ArgumentError, match="from 0 to 1; given 7"):
        played(MCBO(safety=DELTA, safe_start={"dose": 7}), [])
    protein = make_task(gym.make("CBO/CCBOProtein-v0"), seed=100)
    with pytest.raises(ArgumentError, match="none of the targets sets Akt"):
        begin_agent(MCBO(safety=DELTA, safe_start={"Akt": 1000.0}), protein)
    with pytest.raises(UnsupportedModeError, match="has none"):
        begin_agent(MCBO(safety=DELTA), make_task(gym.make("CBO/Dropwave-v0"), seed=100))


def test_a_variable_that_is_set_has_its_value_for_certain():
    agent = begin_agent(ConstrainedEI(safety=DELTA), make_task(gym.make("CBO/CCBOProtein-v0"), seed=100))
    task = agent.task
    codec = task.codec
    action = codec.from_record({name: 600.0 if name == "PKA" else 60.0 for name in max(task.targets, key=len)})
    mean, std = agent.constrained_posterior(agent.features.of_actions([action]))
    np.testing.assert_allclose(mean[0], [600.0, 60.0])
    assert not std.any()


def test_an_evaluated_run_keeps_the_constraint():
    run = evaluate(ConstrainedEI(samples=32, safety=DELTA, safe_start=START), clinic(), 100, horizon=8)
    assert run.table["feasible"].all()
    assert run.table["best_so_far_regret"][-1] < run.table["best_so_far_regret"][0]
