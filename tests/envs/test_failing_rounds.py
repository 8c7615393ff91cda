"""Mechanisms that fail: the error names the variable, and the experiment goes on as if the round had not been tried."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym import custom_problem, make_task
from cbo_gym.envs import oracle_of
from cbo_gym.envs.registry import InitialData
from cbo_gym.errors import OperationError
from cbo_gym.problems import Problem
from cbo_gym.problems.custom.expression import Equation
from cbo_gym.scm import StructuralCausalModel, Variable
from tests.support.loop import reset

pytestmark = pytest.mark.filterwarnings("error")
FAILING = {  # at x = 0, while x = 1 is well
    "division": (lambda x: 1.0 / x, "1 / x"),
    "logarithm": (lambda x: np.log(x - 0.5), "log(x - 0.5)"),
    "root": (lambda x: (x - 0.5) ** 0.5, "(x - 0.5)**0.5"),
    "overflow": (lambda x: np.exp(1000.0 * (1.0 - x)), "exp(1000 * (1 - x))"),
    "overflow of numbers": (lambda x: 10.0 ** (1000.0 * (1.0 - x)), "10**(1000 * (1 - x))"),
}
GOOD, BAD = np.array([1.0]), np.array([0.0])
MIDDLE = "Middle must be a finite real number"


def failing_problem(mechanism):
    return custom_problem(
        {"Middle": mechanism, "Y": lambda Middle, u: np.where(Middle > 3.0, 0.0, Middle) + u},  # noqa: N803
        reward="Y",
        noise={"Y": 1.0},
        actions={"x": (0.0, 1.0)},
        manipulable={"Middle": (0.0, 1.0)},
    )


@pytest.fixture(params=[pair[way] for pair in FAILING.values() for way in (0, 1)])
def problem(request):
    return failing_problem(Equation(request.param) if isinstance(request.param, str) else request.param)


def test_a_failed_step_changes_nothing(problem):
    tried, spared = (reset(gym.make("CBO/Custom-v0", problem=problem)) for _ in range(2))
    for env in (tried, spared):
        env.step(GOOD)
    with pytest.raises(OperationError, match=MIDDLE):
        tried.step(BAD)
    assert tried.unwrapped.round == 1
    assert tried.unwrapped.total_reward == spared.unwrapped.total_reward
    assert tried.step(GOOD)[1] == spared.step(GOOD)[1]
    make = partial(gym.make_vec, "CBO/Custom-v0", 3, problem=problem, vectorization_mode="vector_entry_point")
    tried, spared, everywhere = reset(make()), reset(make()), np.tile(GOOD, (3, 1))
    for env in (tried, spared):
        env.step(everywhere)
    with pytest.raises(OperationError, match=MIDDLE):
        tried.step(np.stack([GOOD, BAD, GOOD]))
    for one, other in zip(tried.step(everywhere)[1:], spared.step(everywhere)[1:], strict=True):
        np.testing.assert_equal(one, other)


def test_the_oracle_the_initial_data_and_other_modes_name_the_variable_too(problem):
    env = gym.make("CBO/Custom-v0", problem=problem)
    aggregated = reset(gym.make("CBO/Custom-Aggregated-v0", problem=problem, points=1))
    masked = reset(gym.make("CBO/Custom-Masked-v0", problem=problem))
    for call in (
        lambda: oracle_of(env).optimum,
        lambda: make_task(env, 0, initial_data=InitialData(observational=1, random=0)),
        lambda: aggregated.step(np.array([[0.0], [1e-300]])),
        lambda: masked.step(np.array([0])),
    ):
        with pytest.raises(OperationError, match=MIDDLE):
            call()


def test_what_would_have_failed_does_not_count_where_it_is_set(problem):
    """Soft parameters stay at the null action, x = 0."""
    env = reset(gym.make("CBO/Custom-Hard-v0", problem=problem))
    assert env.step({"target": 1, "values": np.array([0.5])})[0]["nodes"][0] == 0.5
    envs = reset(gym.make_vec("CBO/Custom-Hard-v0", 2, problem=problem, vectorization_mode="vector_entry_point"))
    nodes = envs.step({"target": np.array([1, 1]), "values": np.array([[0.5], [0.25]])})[0]["nodes"]
    np.testing.assert_array_equal(nodes[:, 0], [0.5, 0.25])
    with pytest.raises(OperationError, match=MIDDLE):
        envs.step({"target": np.array([1, 0]), "values": np.array([[0.5], [0.25]])})


def test_the_noise_goes_on_where_it_was_also_between_its_blocks(block):
    problem = failing_problem(FAILING["division"][0])
    tried, spared = (gym.make("CBO/Custom-v0", problem=problem) for _ in range(2))
    for env in (tried, spared):
        env.reset(seed=0)
    for _ in range(block + 2):
        for _ in range(2):
            with pytest.raises(OperationError):
                tried.step(BAD)
        assert tried.step(GOOD)[1] == spared.step(GOOD)[1]


def test_the_context_of_the_next_round_is_computed_before_anything_changes():
    problem = custom_problem(
        {
            "C": lambda u: u,
            "Root": lambda C: np.sqrt(C),  # noqa: N803
            "X": lambda u: u,
            "Y": lambda X, Root: X - Root,  # noqa: N803
        },
        reward="Y",
        noise={"C": 1.0, "X": 1.0},
        manipulable={"X": (0.0, 1.0)},
        contexts=["C"],
    )
    env = gym.make("CBO/Custom-Contextual-v0", problem=problem)
    # The contexts of the first three rounds are positive, and that of the fourth is not.
    env.reset(seed=1)
    action = {"scope": 0, "values": np.zeros(1)}
    rewards = [env.step(action)[1] for _ in range(2)]
    with pytest.raises(OperationError, match="Root must be a finite real number"):
        env.step(action)
    assert env.unwrapped.round == len(rewards)
    assert env.unwrapped.total_reward == sum(rewards)


def test_the_error_names_the_values_of_the_causes():
    problem = custom_problem(
        {"X": lambda u: 0.0 * u - 2.0, "Y": lambda X: np.log(X)},  # noqa: N803
        reward="Y",
        noise={"X": 1.0},
        manipulable={"X": (1.0, 2.0)},
    )
    env = reset(gym.make("CBO/Custom-Hard-v0", problem=problem))
    with pytest.raises(OperationError, match=r"Y must be .* gives nan at X = -2"):
        env.step({"target": 0, "values": np.zeros(1)})


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        (lambda x: 1j, "Middle must be"),
        (
            lambda x: 1.0 if x > 0.1 else missing,  # noqa: F821
            "the mechanism of Middle fails with NameError: name 'missing'",
        ),
    ],
)
def test_a_mechanism_that_gives_no_real_number_or_fails_is_named(mechanism, message):
    env = reset(gym.make("CBO/Custom-v0", problem=failing_problem(mechanism)))
    with pytest.raises(OperationError, match=message):
        env.step(BAD)
    assert env.unwrapped.round == 0


def test_a_reward_that_is_no_number_raises_in_every_model():
    """A Problem put together by hand has no guard of its own."""
    reward = Variable("Y", lambda x, u: np.log(x - 0.5), actions=(0,))
    problem = Problem("Plain", StructuralCausalModel([reward], "Y"), "a test", "none", action_domains=[(0.0, 1.0)])
    env = gym.make("CBO/Custom-v0", problem=problem)
    envs = gym.make_vec("CBO/Custom-v0", 2, problem=problem, vectorization_mode="vector_entry_point")
    for made, bad in ((env, BAD), (envs, np.stack([GOOD, BAD]))):
        made.reset(seed=0)
        with np.errstate(all="ignore"), pytest.raises(OperationError, match="Y must be a finite real number"):
            made.step(bad)
    assert env.unwrapped.round == 0
    assert np.isfinite(env.step(GOOD)[1])


def test_a_context_that_fails_between_blocks_of_noise_leaves_the_round_to_be_played_in_vector_environments(
    block, monkeypatch
):
    tried, spared = (gym.make_vec("CBO/CoCaFig1-v0", 2, vectorization_mode="vector_entry_point") for _ in range(2))
    actions = {"scope": np.zeros(2, dtype=int), "values": np.full((2, 2), 0.5)}
    for env in (tried, spared):
        env.reset(seed=0)

    def fails(noise):
        raise OperationError("no context")

    for _ in range(block + 2):
        with monkeypatch.context() as patch:
            patch.setattr(tried.unwrapped.dynamics, "before", fails)
            with pytest.raises(OperationError, match="no context"):
                tried.step(actions)
        np.testing.assert_array_equal(tried.step(actions)[1], spared.step(actions)[1])
