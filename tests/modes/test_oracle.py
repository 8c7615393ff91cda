import dataclasses

import gymnasium as gym
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize, minimize_scalar

from cbo_gym.envs import CausalBanditEnv, oracle_of
from cbo_gym.envs.registry import find_entry
from cbo_gym.envs.wrappers import FlattenAction
from cbo_gym.errors import ArgumentError, ArgumentTypeError
from cbo_gym.modes import make_dynamics, oracle_for
from cbo_gym.modes.contextual.oracle import ContextualOracle
from cbo_gym.modes.oracles import Estimate, Oracle
from cbo_gym.problems import Problem, SuperArms
from cbo_gym.problems.outcomes import Outcomes
from cbo_gym.problems.systems.function_networks import alpine2
from cbo_gym.scm import Linear, Normal, SeparableSEM, Uniform
from tests.support.environments import COVERING, FIRST_OF_MODE, ONE_REWARD

# Super arms by the hundred, which the tests below compare with brute force.
LONG = ("CBO/Alpine2-Masked-v0", "CBO/Alpine2-Noisy-Masked-v0", "CBO/SSEMPeriodic-v0", "CBO/TrainDelay-v0")


def slow_unless(usual, ids):
    return [pytest.param(env_id, marks=[] if env_id in usual else [pytest.mark.slow]) for env_id in ids]


def oracle_on(env_id, **parameters):
    return oracle_of(gym.make(env_id, **parameters))


# Policies, sequences and fronts have tests of their own in the other files of this folder.
@pytest.mark.parametrize(
    "env_id",
    slow_unless(
        set(COVERING).difference(LONG),
        [entry.id for entry in ONE_REWARD if entry.mode not in ("contextual", "dynamic")],
    ),
)
def test_recorded_optima_are_reached_and_not_beaten_by_random_actions(env_id):
    oracle = oracle_on(env_id)
    best = oracle.optimum
    assert best.value == find_entry(env_id).optimum.value
    reached = type(oracle)(oracle.dynamics, seed=77).expected_rewards([best.action], tolerance=0.0)
    error = np.hypot(best.standard_error, reached.standard_error[0])
    rounding = 1e-9 * (best.value - best.random_value)
    assert abs(reached.value[0] - best.value) <= 5 * error + rounding
    space = oracle.dynamics.action_space
    space.seed(1)
    actions = [space.sample() for _ in range(200)]
    counting = oracle.meets_constraints(actions)  # all of them, where there are no constraints
    random = Estimate(*(part[counting] for part in oracle.expected_rewards(actions)))
    assert (random.value <= best.value + 5 * (random.standard_error + best.standard_error) + rounding).all()
    spread = random.value.std(ddof=1) / np.sqrt(counting.sum())
    assert abs(random.value.mean() - best.random_value) < 5 * np.hypot(spread, best.random_standard_error)
    assert best.standard_error < 0.01 * (best.value - best.random_value)


@pytest.mark.parametrize(
    "env_id",
    slow_unless(
        ["CBO/Alpine2-v0", "CBO/BinaryTree-v0"],
        ["CBO/Alpine2-v0", "CBO/Rosenbrock-v0", "CBO/Ackley-v0", "CBO/BinaryTree-v0"],
    ),
)
def test_the_search_finds_what_theory_knows(env_id):
    oracle = oracle_on(env_id)
    unknown = dataclasses.replace(oracle.problem, optimal_action=None)
    found = Oracle(make_dynamics(unknown, "soft")).find_optimum()
    assert found.value == pytest.approx(oracle.optimum.value, rel=1e-5, abs=1e-4)


def test_dropwave_noisy_by_quadrature():
    def expected(radius):
        def integrand(u):
            x = radius + 0.1 * u
            return (1 + np.cos(12 * x)) / (2 + 0.5 * x * x) * np.exp(-u * u / 2) / np.sqrt(2 * np.pi)

        return quad(integrand, -8, 8, limit=200)[0]

    assert oracle_on("CBO/Dropwave-Noisy-v0").optimum.value == pytest.approx(expected(0.0), abs=1e-4)
    estimate = oracle_on("CBO/Dropwave-Noisy-v0").expected_rewards([np.array([0.5 + 0.5 / 10.24, 0.5])])
    assert abs(estimate.value[0] - expected(0.5)) < 5 * estimate.standard_error[0] + 1e-6


def test_toy_graph_by_calculus():
    best = minimize_scalar(lambda x: np.cos(x) - np.exp(-x / 20), bounds=(-4, -2), method="bounded")
    oracle = oracle_on("CBO/ToyGraph-v0")
    assert oracle.optimum.value == pytest.approx(-best.fun, abs=1e-4) == pytest.approx(2.17181, abs=1e-4)
    assert -5 + 25 * oracle.optimum.action["values"][1] == pytest.approx(best.x, abs=1e-2)


@pytest.mark.parametrize(
    "env_id",
    slow_unless(
        ["CBO/Dropwave-GMM-v0", "CBO/PooledTesting-v0"],
        [entry.id for entry in ONE_REWARD if entry.mode == "soft" and entry.optimum.standard_error],
    ),
)
def test_recorded_optima_are_not_beaten_by_a_climb_from_them(env_id):
    """By a simplex on noise of its own; the comparison is on noise that neither has met."""
    oracle = oracle_on(env_id)
    best, start = oracle.optimum, np.array(oracle.optimum.action)

    def means(which, *points):
        return which.expected_rewards([np.clip(point, 0.0, 1.0) for point in points], tolerance=np.inf).value

    climbed_on = Oracle(oracle.dynamics, seed=11)
    towards_the_middle = np.where(start > 0.5, -0.01, 0.01)
    found = minimize(
        lambda x: -means(climbed_on, x)[0],
        start,
        method="Nelder-Mead",
        bounds=[(0.0, 1.0)] * len(start),
        options={
            "initial_simplex": np.vstack([start, start + np.diag(towards_the_middle)]),
            "maxfev": 400,
            "fatol": 1e-12,
        },
    )
    others = (Oracle(oracle.dynamics, seed=seed) for seed in range(23, 39))
    here, there = np.transpose([means(other, start, found.x) for other in others])
    gain = (there - here).mean() - 3 * (there - here).std(ddof=1) / 4
    assert gain < max(best.standard_error, 1e-6 * (best.value - best.random_value))


def test_a_cardinality_limit_is_respected_and_costs_reward():
    limited = oracle_on("CBO/Alpine2-v0", max_interventions=2)
    best = limited.optimum
    assert best.action in limited.dynamics.action_space
    # null is sqrt(5) sin(5); two of six factors can be set, the first one enters negated
    null, peak, trough = (np.sqrt(x) * np.sin(x) for x in (5.0, 7.917052684666207, 4.815842317845935))
    candidates = [-peak * trough * null**4, -trough * trough * null**4, -peak * peak * null**4, -(null**6)]
    assert best.value == pytest.approx(max(candidates), rel=1e-6)


def brute_force(problem, arms, signals):
    """Mean rewards of super arms by substitution, arm by arm; the errors of observation average out."""
    components = problem.scm.arguments["components"]
    means = []
    for arm in arms:
        y = [x * column for x, column in zip(arm, signals, strict=True)]
        for i in range(len(y)):
            for j in range(i):
                if (i, j) in components:
                    y[i] = y[i] + components[i, j](y[j])
        means.append(np.sum(y, axis=0).mean())
    return np.array(means)


def test_enumeration_of_super_arms_against_brute_force():
    env = gym.make("CBO/SSEMPeriodic-v0", instance_seed=3, super_arm_size=2).unwrapped
    arms = env.action_space.all()
    assert len(arms) == 56
    rng = np.random.default_rng(9)
    signals = [signal.sample(rng, 10_000) for signal in env.problem.scm.signals]
    means = brute_force(env.problem, arms, signals)
    best = oracle_of(env).find_optimum()
    assert best.action.tolist() == arms[np.argmax(means)].tolist()
    assert best.value == pytest.approx(means.max(), rel=0.01)
    assert best.random_value == pytest.approx(means.mean(), rel=0.01)
    assert best.standard_error < 0.01 * (best.value - best.random_value)


def test_the_first_pass_drops_no_action_that_may_be_best():
    """Close contests: six of seven arms with nearly equal signals, so that the best differ by a hundredth."""
    signals = [Uniform(0.0, 1.0 + 0.02 * i) for i in range(7)]
    sem = SeparableSEM(signals, {(1, 0): Linear(0.001)}, node_noise=Normal(0.0, 1.0))
    arms = SuperArms(size=6, exogenous=sem.exogenous)
    problem = Problem("Close", sem, "", "", action_domains=[(0.0, 1.0)] * 7, modes=[arms])
    best = Oracle(make_dynamics(problem, "masked")).find_optimum()
    assert best.action.tolist() == [0, 1, 1, 1, 1, 1, 1]
    assert best.value == pytest.approx(sum(1.0 + 0.02 * i for i in range(1, 7)) / 2, abs=5 * best.standard_error + 1e-9)


def test_actions_keep_their_places_whether_repeated_empty_or_none():
    oracle = oracle_on("CBO/SSEMPeriodic-v0")
    arms = np.zeros((5, 10), dtype=np.int8)
    arms[[0, 2], :2] = arms[[1, 4], 5] = 1
    together = oracle.expected_rewards(list(arms)).value
    np.testing.assert_allclose(together, [oracle.expected_rewards([arm]).value[0] for arm in arms], rtol=1e-12)
    oracle = oracle_on("CBO/ToyGraph-v0")
    assert oracle.expected_rewards([]).value.shape == (0,)
    assert oracle.expected_rewards([{"target": 0, "values": np.zeros(2)}] * 3).value.shape == (3,)


@pytest.mark.parametrize("env_id", FIRST_OF_MODE.values(), ids=FIRST_OF_MODE.keys())
def test_the_oracle_of_an_environment_knows_its_recorded_optimum(env_id, monkeypatch):
    entry = find_entry(env_id)
    scalar = gym.make(env_id, render_mode="ansi", max_episode_steps=3)
    vector = gym.make_vec(env_id, num_envs=2, vectorization_mode="vector_entry_point")
    monkeypatch.setattr(type(oracle_of(scalar)), "find_optimum", lambda self: pytest.fail("it was searched for"))
    for env in (scalar, scalar.unwrapped, FlattenAction(gym.make(env_id)), vector):
        oracle = oracle_of(env)
        assert isinstance(oracle, ContextualOracle) == (entry.mode == "contextual")
        assert oracle.dynamics is env.unwrapped.dynamics
        assert oracle.problem is oracle.dynamics.problem
        best = oracle.optimum
        assert (best.value, best.random_value) == (entry.optimum.value, entry.optimum.random_value)
        assert oracle.dynamics.codec.to_record(best.action) == (
            entry.optimum.action if entry.mode != "hard" else pytest.approx(entry.optimum.action)
        )
    assert type(oracle_for(oracle.dynamics)) is type(oracle)


def test_what_is_not_the_registered_environment_has_no_recorded_optimum():
    registered = oracle_on("CBO/Dropwave-v0").optimum
    found = oracle_of(CausalBanditEnv("cbo_gym.problems.systems.function_networks:dropwave", noise_std=0.1))
    assert found.optimum.value < 0.8 < registered.value
    # Hard mode sets the radius itself.
    hard = oracle_on("CBO/Dropwave-v0", mode="hard")
    assert set(hard.dynamics.codec.to_record(hard.optimum.action)) == {"X0"}


def test_other_objects_are_refused():
    for env in (gym.make("CartPole-v1"), gym.make_vec("CartPole-v1", num_envs=2)):
        with pytest.raises(ArgumentTypeError, match="an oracle needs an environment of cbo_gym; given"):
            oracle_of(env)
    with pytest.raises(ArgumentTypeError, match=r"an Oracle needs a Dynamics; given TimeLimit.*oracle_of"):
        Oracle(gym.make("CBO/Dropwave-v0"))


@pytest.mark.parametrize("node", ["X0", "Nope"])
def test_the_objective_is_the_reward_of_the_system(node):
    """Agents know that the last node is to be maximised."""
    with pytest.raises(ArgumentError, match=f"objective must be the system's reward 'Y'; given '{node}'"):
        dataclasses.replace(alpine2(), outcomes=Outcomes(node))
