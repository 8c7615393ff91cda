"""Problems of one's own in contextual mode, from functions and from YAML."""

import pickle
from copy import deepcopy

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym import custom_problem, evaluate
from cbo_gym.envs import oracle_of
from cbo_gym.errors import ArgumentError
from cbo_gym.problems import Contexts
from cbo_gym.scm import Uniform
from cbo_gym.testing import check_problem
from tests.support.loop import reset

DOSING = """
name: Dosing
reward: health
variables:
  age: {equation: u, noise: {Uniform: [20, 80]}}
  frailty: {equation: "age / 100 + u", noise: 0.05}
  dose: {equation: "0.5 + u", noise: 0.1}
  health: {equation: "1 - (dose - frailty)**2 + u", noise: 0.02}
manipulable: {dose: [0, 1]}
contexts: [age]
scopes:
  - {dose: [age]}
  - {}
"""


def dosing(**changes):
    arguments = {
        "mechanisms": {
            "age": lambda u: u,
            "frailty": lambda age, u: age / 100 + u,
            "dose": lambda u: 0.5 + u,
            "health": lambda dose, frailty, u: 1 - (dose - frailty) ** 2 + u,
        },
        "reward": "health",
        "noise": {"age": Uniform(20.0, 80.0), "frailty": 0.05, "dose": 0.1, "health": 0.02},
        "manipulable": {"dose": (0.0, 1.0)},
        "contexts": ["age"],
        "scopes": [{"dose": ["age"]}, {}],
    }
    return custom_problem(**arguments | changes)


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "dosing.yaml"
    file.write_text(DOSING)
    return str(file)


def test_functions_and_equations_give_the_same_rounds(path):
    action = {"scope": 0, "values": np.array([0.4])}
    rounds = []
    for problem in (dosing(), path):
        env = gym.make("CBO/Custom-Contextual-v0", problem=problem)
        first, _ = env.reset(seed=1)
        observation, reward, *_ = env.step(action)
        rounds.append([*first["context"], *observation["nodes"], *observation["context"], reward])
    np.testing.assert_allclose(rounds[0], rounds[1])
    assert rounds[0][0] == rounds[0][1]  # what was seen is the age in the round that was played


def test_the_contract_is_kept(path):
    check_problem(path)
    check_problem(dosing())


def test_the_optimum_is_computed(path):
    optimum = oracle_of(gym.make("CBO/Custom-Contextual-v0", problem=path)).optimum
    # the dose age / 100 leaves the variance of the frailty
    assert optimum.value == pytest.approx(1 - 0.05**2, abs=5e-4)


def test_agents_play_it(path):
    run = evaluate("CaBO", f"CBO/Custom-Contextual-v0(problem={path!r})", seed=0, horizon=3)
    assert run.choices == ("{dose | age}", "{}")
    assert run.table["best_so_far_regret"].min() >= -0.01


@pytest.mark.parametrize("mode", ["Contextual-", "Hard-"])
def test_environments_of_equations_are_copied_and_pickled(path, mode):
    env = reset(gym.make(f"CBO/Custom-{mode}v0", problem=path).unwrapped, 0, 0)
    action = env.action_space.sample()
    env.step(action)
    others = deepcopy(env), pickle.loads(pickle.dumps(env))
    expected = env.step(action)[1]
    assert [other.step(action)[1] for other in others] == [expected] * 2


def test_without_scopes_all_targets_follow_the_contexts_that_they_do_not_affect():
    problem = custom_problem(
        {
            "C": lambda u: u,
            "X": lambda C, u: C + u,  # noqa: N803
            "D": lambda X, u: X + u,  # noqa: N803
            "Y": lambda X, D: X * D,  # noqa: N803
        },
        reward="Y",
        noise=dict.fromkeys("CXD", 1.0),
        manipulable={"X": (0.0, 1.0)},
        contexts=["C", "D"],
        noise_given=lambda contexts, uniforms: {"C": contexts["C"]},
    )
    assert problem.data(Contexts).scopes == [frozenset(), frozenset({("X", frozenset({"C"}))})]


def test_noise_inferred_from_contexts_reproduces_them():
    """C falls with a latent noise, D rises with its own in a way that depends on C; E is told already."""
    problem = custom_problem(
        {
            "hidden": lambda u: u,
            "C": lambda hidden: np.exp(-hidden),
            "D": lambda C, u: C + (1 + C) * u**3,  # noqa: N803
            "E": lambda C, D: C + D,  # noqa: N803
            "X": lambda u: u,
            "Y": lambda X, hidden, D: X * hidden + D,  # noqa: N803
        },
        reward="Y",
        noise={"hidden": 1.0, "D": Uniform(-1.0, 1.0), "X": 0.5},
        manipulable={"X": (0.0, 1.0)},
        contexts=["E", "D", "C"],
        latent=["hidden"],
    )
    scm = problem.scm
    drawn = dict(zip([v.name for v in scm.noisy], scm.draw_noise(np.random.default_rng(0), 500), strict=True))
    natural = scm.propagate(tuple(drawn.values()))
    exogenous = problem.data(Contexts).noise_given({name: natural[name] for name in problem.data(Contexts).names}, {})
    assert set(exogenous) == {"hidden", "D"}
    np.testing.assert_allclose(exogenous["hidden"], drawn["hidden"], atol=1e-9)
    again = scm.propagate(tuple(exogenous.get(name, drawn[name]) for name in drawn))
    for name in problem.data(Contexts).names:
        np.testing.assert_allclose(again[name], natural[name], atol=1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"contexts": "age"}, "contexts must be a list of names; given 'age'"),
        ({"contexts": ["weight"]}, r"contexts names \['weight'\]"),
        ({"contexts": ["age", "age"]}, "contexts must be different"),
        ({"contexts": ["dose"]}, r"\['dose'\] cannot be contexts"),
        ({"contexts": [], "scopes": [{}]}, "name the contexts"),
        ({"latent": ["age"]}, r"contexts are seen, so \['age'\] cannot be latent"),
        ({"contexts": ["frailty"]}, r"depends on the noise of \['age', 'frailty'\].*give noise_given"),
        ({"scopes": {"dose": ["age"]}}, "scopes must be a list of mappings"),
        ({"scopes": [["dose"]]}, "every scope must be a mapping"),
        ({"scopes": [{"dose": "age"}]}, "the contexts of dose must be a list of names"),
        ({"scopes": [{"frailty": ["age"]}]}, "a scope cannot set 'frailty'"),
        ({"scopes": [{"dose": ["frailty"]}]}, r"\['frailty'\] cannot be contexts of dose"),
        ({"scopes": []}, "at least one scope"),
        ({"noise_given": 1}, "noise_given must be a function"),
        (
            {
                "mechanisms": {"age": lambda u: u, "health": lambda age, a: age * a},
                "actions": {"a": (0.0, 1.0)},
                "noise": {"age": 1.0},
                "manipulable": {},
                "scopes": None,
            },
            "with contexts takes no actions",
        ),
    ],
)
def test_what_does_not_fit_is_named(changes, message):
    with pytest.raises(ArgumentError, match=message):
        dosing(**changes)


def test_a_context_that_does_not_tell_its_noise_is_refused():
    mechanisms = {"C": lambda u: u**2, "X": lambda u: u, "Y": lambda X, C: X * C}  # noqa: N803
    with pytest.raises(ArgumentError, match=r"C does not determine the noise of C.*give noise_given"):
        custom_problem(
            mechanisms, reward="Y", noise={"C": 1.0, "X": 1.0}, manipulable={"X": (0.0, 1.0)}, contexts=["C"]
        )
