"""Feasibility in expectation, and the best feasible action, checked by hand and against grids."""

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym import make_task
from cbo_gym.envs import oracle_of
from cbo_gym.envs.wrappers import OracleInfo
from cbo_gym.errors import ArgumentError
from cbo_gym.modes import make_dynamics, oracle_for
from cbo_gym.modes.oracles import ConstrainedOracle
from cbo_gym.problems import Problem
from cbo_gym.problems.outcomes import Outcomes
from cbo_gym.problems.systems.building import read_equations
from cbo_gym.scm import Normal, StructuralCausalModel
from cbo_gym.task import Constraint


def two_parameters(constraints=(), noise=0.5):
    """M = 2 a0 - 1 + noise and Y = a0 + a1 - 0.5 M, with a1 limited through W = a0 + a1."""
    equations = {"M": "2.0 * a - 1.0 + u", "W": "a + b + u", "Y": "a + 2.0 * b - M * M + u"}
    scm = StructuralCausalModel(read_equations(equations, Normal(0.0, noise), actions="ab"), reward="Y")
    outcomes = Outcomes("Y", tuple(constraints))
    return Problem("Two", scm, "", "", action_domains=[(0.0, 1.0)] * 2, outcomes=outcomes)


def test_the_best_feasible_action_by_hand_and_on_a_grid():
    """E[Y] = a0 + 2 a1 - (2 a0 - 1)^2 - 0.25; W <= 1 leaves a1 = 1 - a0, so 2 - a0 - (2 a0 - 1)^2, best at 3 / 8."""
    oracle = oracle_for(make_dynamics(two_parameters([Constraint("W", "<=", 1.0)]), "soft"))
    best = oracle.optimum
    assert best.action == pytest.approx([0.375, 0.625], abs=2e-3)
    assert best.value == pytest.approx(2 - 0.375 - 0.0625 - 0.25, abs=1e-3)
    a, b = (grid.ravel() for grid in np.meshgrid(*[np.linspace(0, 1, 101)] * 2))
    values = np.where(a + b <= 1.0, a + 2 * b - (2 * a - 1) ** 2 - 0.25, -np.inf)
    assert values.max() == pytest.approx(best.value, abs=1e-3)
    feasible = a + b <= 1.0
    of_grid = oracle.meets_constraints(list(np.stack([a, b], 1)[::97]))
    assert (of_grid == feasible[::97])[np.abs(a + b - 1.0)[::97] > 1e-3].all()


def test_what_is_missed_is_in_native_units_and_zero_where_met():
    limits = [Constraint("W", "<=", 1.0), Constraint("M", ">=", 0.0)]
    oracle = oracle_for(make_dynamics(two_parameters(limits), "soft"))
    missed = oracle.violations([np.array([0.25, 1.0]), np.array([0.75, 0.1]), np.array([1.0, 1.0])])
    np.testing.assert_allclose(missed, [[0.25, 0.5], [0.0, 0.0], [1.0, 0.0]], atol=1e-3)
    assert oracle.violations([]).shape == (0, 2)


def test_a_random_action_is_a_feasible_one():
    oracle = oracle_for(make_dynamics(two_parameters([Constraint("M", ">=", 0.5)]), "soft"))
    a = np.linspace(0.75, 1.0, 2001)
    assert oracle.optimum.random_value == pytest.approx(np.mean(a + 1 - (2 * a - 1) ** 2 - 0.25), abs=0.03)


def test_finitely_many_actions_are_gone_through():
    env = gym.make("CBO/XYZWBandit-v0", constraints=["Z >= 0.6"])
    oracle = oracle_of(env)
    arms = np.arange(env.action_space.n)
    values, feasible = oracle.expected_rewards(list(arms)).value, oracle.meets_constraints(list(arms))
    assert 0 < feasible.sum() < len(arms)
    assert oracle.optimum.value == values[feasible].max() < values.max()
    assert oracle.optimum.random_value == pytest.approx(values[feasible].mean())


def test_other_modes_have_constraints_too():
    for env_id, constraint in [
        ("CBO/Alpine2-Masked-v0", "X0 <= 4"),
        ("CBO/Dropwave-Aggregated-v0", "X0 >= 0.5"),
        ("CBO/BinaryTree-v0", "X0 <= 0.5"),
    ]:
        env = gym.make(env_id, constraints=[constraint])
        env.action_space.seed(0)
        missed = oracle_of(env).violations([env.action_space.sample() for _ in range(20)])
        assert missed.shape == (20, 1)
        assert (missed >= 0.0).all()


def test_info_says_whether_an_action_is_feasible():
    env = OracleInfo(gym.make("CBO/CCBOSynthetic1-v0"))
    env.reset(seed=0)
    *_, info = env.step({"target": 1, "values": np.array([0.2, 0.5])})  # do(X = -2), so that E[Z] = exp(2)
    assert not info["feasible"]
    assert info["violation"] == pytest.approx(np.exp(2) - 1, abs=1e-2)
    best = env.oracle.optimum
    assert info["instant_regret"] == pytest.approx(best.value - best.random_value)
    *_, info = env.step({"target": 2, "values": np.array([0.2, 0.0])})
    assert info["feasible"]
    assert info["violation"] == 0.0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["X7 <= 1"], r"'X7' is unknown; choose from \['X0', 'X1'\]"),
        (["Y <= 1"], "'Y' is the reward"),
        (["X0 = 1"], "cannot read the constraint 'X0 = 1'; .* for an equality, write a narrow interval"),
        (["X0 <= one"], "not a number: 'one'"),
        (["X0 <= nan"], "a finite threshold"),
        ({"X0": 1}, "must be a list of at most 100 strings"),
        ([3], "cannot read the constraint 3"),
        (["X1 >= 3", "X1 <= 1"], r"no action meets the constraints \['X1 >= 3', 'X1 <= 1'\]; .* X1 >= 3 by .* at do\("),
    ],
)
def test_bad_constraints_are_refused_when_the_environment_is_made(given, said):
    with pytest.raises(ArgumentError, match=said):
        gym.make("CBO/ToyGraph-v0", constraints=given)


def test_constraints_that_cannot_be_are_refused():
    with pytest.raises(ArgumentError, match="'X7' is unknown"):
        gym.make_vec("CBO/ToyGraph-v0", num_envs=2, constraints=["X7 <= 1"], vectorization_mode="vector_entry_point")
    with pytest.raises(ArgumentError, match="'U1' is latent"):
        gym.make("CBO/CompleteGraph-v0", constraints=["U1 <= 1"])
    with pytest.raises(ArgumentError, match="SurveyChainContextual cannot have any"):
        gym.make("CBO/SurveyChain-Contextual-v0", constraints=["W <= 1"])
    with pytest.raises(ArgumentError, match="agents do not know"):
        gym.make("CBO/CompleteGraph-v0", constraints=["C <= 9"], graph="wrong", graph_omitted=["C"])
    with pytest.raises(ArgumentError, match="smallest violation in a search is W >= 3 by 1"):
        gym.make("CBO/Custom-v0", problem=two_parameters(), constraints=["W >= 3"])


def test_a_keyword_replaces_a_problems_own_constraints():
    env = gym.make("CBO/CCBOSynthetic1-v0", constraints=["Z <= 2"])
    assert [str(constraint) for constraint in make_task(env, seed=0).constraints] == ["Z <= 2"]
    assert isinstance(oracle_of(env), ConstrainedOracle)
    env = gym.make("CBO/CCBOSynthetic1-v0", constraints=[])
    assert make_task(env, seed=0).constraints == ()
    assert not isinstance(oracle_of(env), ConstrainedOracle)
