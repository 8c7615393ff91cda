"""Errors that a user can mend: their kinds, and that misspelt names are answered with what may have been meant."""

import importlib
import sys

import gymnasium as gym
import numpy as np
import pytest

import cbo_gym.study  # noqa: F401  # imported whole before a test imports it in part
from cbo_gym import UnsupportedModeError
from cbo_gym.agent_registry.finding import create_agent, known_agents
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.envs.making import make_env
from cbo_gym.envs.registry import RegistryError, entries
from cbo_gym.errors import (
    ArgumentError,
    ArgumentTypeError,
    CBOGymError,
    MissingExtraError,
    OperationError,
    did_you_mean,
)
from cbo_gym.evaluation import AgentError, leaderboard, sweep
from cbo_gym.evaluation.runs.results import Run
from cbo_gym.evaluation.suites import load as load_suite
from cbo_gym.modes import classes_of, make_dynamics
from cbo_gym.problems import build_problem

MANY = [Run(f"Agent-{number}", "CBO/Dropwave-v0", 0, 1, "soft") for number in range(50)]
ALPINE2 = "cbo_gym.problems.systems.function_networks:alpine2"


class Rude:
    def __repr__(self):
        raise ZeroDivisionError

    __eq__ = __iter__ = __repr__
    __hash__ = None


#: arrays, which are neither equal nor unequal, what has no hash, no end or no text, and great numbers
ODD = [np.zeros(0), np.zeros(3), np.zeros(2, [("a", float)]), [[]], {}, range(10**9), "x" * 10**4, 10**5000, 1j, Rude()]


@pytest.mark.parametrize(
    ("kind", "also"),
    [
        (ArgumentError, ValueError),
        (RegistryError, ArgumentError),
        (UnsupportedModeError, ArgumentError),
        (ArgumentTypeError, TypeError),
        (OperationError, RuntimeError),
        (AgentError, OperationError),
        (MissingExtraError, ImportError),
    ],
)
def test_every_error_is_also_of_one_of_pythons_kinds(kind, also):
    assert issubclass(kind, CBOGymError)
    assert issubclass(kind, also)


def test_a_missing_extra_says_what_to_install():
    told = str(MissingExtraError("a picture", "evaluation"))
    how = "pip install '.[evaluation]' in the folder of the clone"
    assert told == f"a picture needs libraries that are not installed: {how}"


@pytest.mark.parametrize("library", ["polars", "sqlalchemy"])
def test_a_study_names_the_extra_with_all_its_libraries(monkeypatch, library):
    for name in [name for name in sys.modules if f"{name}.".startswith("cbo_gym.study.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[study\]'"):
        importlib.import_module("cbo_gym.study")


@pytest.mark.parametrize(
    ("given", "known", "hint"),
    [
        ("mcb", ["MCBO", "Random"], "; did you mean 'MCBO'?"),
        ("MCBOO", ["mcbo"], "; did you mean 'mcbo'?"),
        ("horizn", ["horizon", "horizons"], "; did you mean 'horizon' or 'horizons'?"),
        ("colour", ["horizon"], ""),
        ("anything", [], ""),
        (3, ["3d"], "; did you mean '3d'?"),
    ],
)
def test_the_closest_names_are_offered(given, known, hint):
    assert did_you_mean(given, known) == hint


@pytest.mark.parametrize(
    ("look_up", "said"),
    [
        (lambda: create_agent("MCB0"), "no agent is called 'MCB0'; did you mean 'MCBO'"),
        (lambda: make_env(Spec("CBO/Alpin2-v0")), "no such id is registered; did you mean 'CBO/Alpine2-v0'"),
        (
            lambda: make_env(Spec("a.yaml")),
            'no such id is registered; a problem in a file is played as "CBO/Custom-v0(pro',
        ),
        (lambda: load_suite("survey2025"), "no suite is called 'survey2025'; did you mean 'survey2026'"),
        (lambda: sweep(["MCB0?"], ["CBO/ToyGraph-v0"], [0], "out"), "nothing fits 'MCB0?'; did you mean 'MCBO'"),
        (lambda: sweep(["MCBO"], ["CBO/Alpin2-v0*"], [0], "out"), "nothing fits 'CBO/Alpin2-v0*'; did you mean 'CBO/A"),
        (lambda: leaderboard(MANY, agents=["Agent-1l"]), "none of the 50 runs matches; did you mean 'Agent-1'"),
        (lambda: leaderboard(MANY, envs=["CBO/Dropwve-v0"]), "50 runs matches; did you mean 'CBO/Dropwave-v0'"),
    ],
)
def test_the_hint_comes_first_and_no_long_list_after_it(look_up, said):
    with pytest.raises(CBOGymError) as caught:
        look_up()
    assert said in str(caught.value)
    assert len(str(caught.value)) < 300
    assert "cbo-gym " in str(caught.value)  # which lists what there is


def test_a_long_list_is_replaced_by_the_command_that_prints_it():
    with pytest.raises(ArgumentError, match=f"cbo-gym agents lists all {len(known_agents())}"):
        create_agent("Nobody")
    with pytest.raises(ArgumentError, match=f"cbo-gym list lists all {len(entries())}"):
        sweep(["MCBO"], ["Nothing*"], [0], "out")
    there = "the modes soft, the environments CBO/Dropwave-v0 and 50 agents; cbo-gym leaderboard FOLDER --csv"
    with pytest.raises(ArgumentError, match=there):
        leaderboard(MANY, agents=["Nobody"])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: create_agent("tests.support.agents:Center"), "no attribute 'Center'.*did you mean 'Centre'"),
        (lambda: make_dynamics("tests.support.agents:center", "soft"), "no problem builder .* did you mean 'Centre'"),
        (lambda: create_agent("MCBO(bta=1.0)"), r"cannot create MCBO.*unexpected.*'bta'; did you mean 'beta'\?$"),
        (lambda: make_env(Spec.parse("CBO/Alpine2-v0(noise_st=1.0)")), r"noise_st; did you mean 'noise_std'\?"),
        (lambda: gym.make("CBO/Alpine2-v0", max_intervention=1), "did you mean 'max_interventions'"),
        (lambda: gym.make("CBO/Alpine2-v0", constraint=[]), "did you mean 'constraints'"),
        (lambda: gym.make("CBO/Alpine2-v0", mode="sofft"), "given 'sofft'; did you mean 'soft'"),
        (lambda: build_problem(ALPINE2, noise_st=1.0), "did you mean 'noise_std'"),
        (lambda: classes_of("agregated"), "did you mean 'aggregated'"),
    ],
)
def test_misspelt_names_are_answered(build, message):
    with pytest.raises(ArgumentError, match=message):
        build()


def test_a_parameter_is_checked_against_those_of_the_mode_and_of_the_builder():
    with pytest.raises(ArgumentError) as raised:
        make_dynamics(ALPINE2, "aggregated", max_interventions=2)
    assert str(raised.value) == (
        "alpine2 in aggregated mode has no parameter max_interventions; it takes arity, integral, noise_std, points, "
        "and as every environment constraints, costs, graph, graph_missing, graph_added, graph_reversed, "
        "graph_omitted, graph_seed, graph_candidates, instance; "
        "gym.make takes the number of rounds as max_episode_steps, evaluate and sweep take it as horizon"
    )
    with pytest.raises(ArgumentError, match=r"Alpine2 in hard mode has no parameter noise_std; it takes"):
        make_dynamics(build_problem(ALPINE2), "hard", noise_std=1.0)


def test_what_a_builder_cannot_take_is_an_argument_error():
    with pytest.raises(ArgumentError, match=r"cannot build .*:gaussian_noise with .*: .* missing 1 required"):
        gym.make("CBO/Custom-v0", problem="cbo_gym.problems.base:gaussian_noise")
    with pytest.raises(ArgumentError, match="noise_std must be a finite number of at least 0; given 'much'"):
        gym.make("CBO/Alpine2-v0", noise_std="much")


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_whatever_is_given_for_a_keyword_the_error_names_it_soon_and_in_short(odd):
    """A few of the many that the trial of keywords gives to all environments and agents."""
    told = {"graph_missing": odd, "graph": "wrong"}, {"graph_candidates": odd, "graph": "partial"}
    for env_id, keywords in [
        *(("CBO/Alpine2-v0", given) for given in ({"mode": odd}, {"graph": odd}, {"max_interventions": odd}, *told)),
        *(("CBO/Alpine2-v0", {name: odd}) for name in ("noise_std", "costs", "constraints", "problem")),
        ("CBO/Alpine2-Masked-v0", {"super_arm_size": odd}),
        ("CBO/Alpine2-Aggregated-v0", {"points": odd}),
        ("CBO/DCBOMiss-v0", {"slices": odd}),
        ("CBO/SSEMTanh-v1", {"mask": odd}),
        ("CBO/Epidemic-v1", {"noise": odd}),
        ("CBO/Epidemic-v1", {"reference": odd}),
        ("CBO/Alpine2-Contextual-v0", {"contexts": odd}),
        ("CBO/Dropwave-Penny-v0", {"adversary": odd}),
    ]:
        with pytest.raises(ArgumentError) as raised:
            gym.make(env_id, **keywords)
        assert len(str(raised.value)) < 1000
    with pytest.raises(ArgumentError, match="render_mode"):
        make_env(Spec("CBO/Alpine2-v0", (("render_mode", odd),)))
    for agent, keyword in (("MCBO", "beta"), ("CBO", "max_observations"), ("SSEM-UCB", "degree")):
        with pytest.raises(ArgumentError):
            create_agent(Spec(agent, ((keyword, odd),)))
