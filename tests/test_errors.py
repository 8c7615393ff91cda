"""Errors that a user can mend: their kinds, and that misspelt names are answered with what may have been meant."""

import gymnasium as gym
import pytest

from cbo_gym import UnsupportedModeError
from cbo_gym.errors import (
    ArgumentError,
    ArgumentTypeError,
    CBOGymError,
    MissingExtraError,
    OperationError,
    did_you_mean,
)
from cbo_gym.evaluation import AgentError
from cbo_gym.feedback import feedback_class, make_feedback
from cbo_gym.problems import build_problem
from cbo_gym.registry import RegistryError
from cbo_gym.specs import Spec, create_agent, make_env

ALPINE2 = "cbo_gym.problems.function_networks:alpine2"


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
    assert told == "a picture needs libraries that are not installed: pip install 'cbo-gym[evaluation]'"


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
    ("build", "message"),
    [
        (lambda: create_agent("mcb"), "no agent is called 'mcb'; .*did you mean 'MCBO'"),
        (lambda: create_agent("MCBO(bta=1.0)"), "cannot create MCBO.*unexpected.*'bta'; did you mean 'beta'"),
        (lambda: make_env(Spec("CBO/Alpin2-v0")), "cannot make .*CBO/Alpin2-v0: .*did you mean 'CBO/Alpine2-v0'"),
        (lambda: make_env(Spec.parse("CBO/Alpine2-v0(noise_st=1.0)")), r"\['noise_st'\]; did you mean 'noise_std'\?"),
        (lambda: gym.make("CBO/Alpine2-v0", max_intervention=1), "did you mean 'max_interventions'"),
        (lambda: gym.make("CBO/Alpine2-v0", mode="sofft"), "given 'sofft'; did you mean 'soft'"),
        (lambda: build_problem(ALPINE2, noise_st=1.0), "did you mean 'noise_std'"),
        (lambda: feedback_class("agregated"), "did you mean 'aggregated'"),
    ],
)
def test_misspelt_names_are_answered(build, message):
    with pytest.raises(ArgumentError, match=message):
        build()


def test_a_parameter_is_checked_against_those_of_the_mode_and_of_the_builder():
    with pytest.raises(ArgumentError) as raised:
        make_feedback(ALPINE2, "aggregated", max_interventions=2)
    assert str(raised.value) == (
        f"{ALPINE2} in aggregated mode takes the parameters ['arity', 'integral', 'noise_std', 'points']; "
        "given also ['max_interventions']"
    )
    with pytest.raises(ArgumentError, match=r"Alpine2 in hard mode takes the parameters .*; given also .*noise_std"):
        make_feedback(build_problem(ALPINE2), "hard", noise_std=1.0)


def test_what_a_builder_cannot_take_is_an_argument_error():
    with pytest.raises(ArgumentError, match=r"cannot build .*:gaussian_noise with .*: .* missing 1 required"):
        gym.make("CBO/Custom-v0", problem="cbo_gym.problems.base:gaussian_noise")
    with pytest.raises(ArgumentError, match="noise_std must be a finite number of at least 0; given 'much'"):
        gym.make("CBO/Alpine2-v0", noise_std="much")
