"""The systems of the 2026 survey: their optima by another way, and what theory says of them."""

import dataclasses

import numpy as np
import pytest

from cbo_gym.envs.registry import find_entry
from cbo_gym.errors import ArgumentError
from cbo_gym.problems import Problem
from cbo_gym.problems.systems.function_networks import rosenbrock
from cbo_gym.problems.systems.survey import (
    chain,
    ecology,
    epidemiology,
    protein,
    synthetic,
    synthetic_2,
    toy_graph,
)
from cbo_gym.scm import Intervention
from tests.support.examples import load_example

OPTIMA = load_example("survey_optima").OPTIMA


@pytest.mark.parametrize("env_id", OPTIMA)
def test_recorded_optima_are_those_of_an_independent_computation(env_id: str) -> None:
    recorded = find_entry(env_id).optimum
    rounding = 1e-8 * (recorded.value - recorded.random_value)
    assert abs(recorded.value - OPTIMA[env_id]()) <= 3.0 * recorded.standard_error + rounding


def by_hand(name: str, u: dict[str, np.ndarray]) -> np.ndarray:
    """The reward without intervention, from the survey's equations."""
    if name in ("SurveyToyGraph", "SurveySynthetic2"):
        z = np.exp(-u["X"]) + u["Z"]
        return -(np.cos(z) - np.exp(-z / 20) + u["Y"])
    if name == "SurveySynthetic":
        c = np.exp(-u["U2"])
        d, e = np.exp(-c) / 10, np.cos(u["F"] ** 2 + u["U1"]) + c / 10
        return -(np.cos(d) + np.sin(e) + u["U1"] + u["U2"] * u["Y"])
    if name == "SurveyChain":
        return u["W"] + 3 * (u["Z"] - 0.5 * u["X"]) * u["X"] + u["Y"]
    if name == "SurveyEpidemiology":
        load = np.exp(0.5 * u["T"] + u["L"])
        return -(0.5 + np.cos(4 * u["T"]) + np.sin(-load + 2 * (4 + load * u["T"])) + u["B"] + u["Y"])
    if name == "SurveyEcology":
        temperature, salt, nutrients = 24.184130 + u["E"], 36.591624 + u["S"], 0.492065 + u["N"]
        x = 18.798174 + 15.797384 * temperature + u["X"]
        light = 6665.081996 - 10737.462582 * (0.373420 - 0.002400 * nutrients + u["C"]) + u["L"]
        p = 8.427706 - 0.000965531 * x + u["P"]
        o = 3.245248 + 0.094332 * temperature + 0.006753921 * salt - 0.005737087 * x + u["O"]
        return 211.422555 - 3.012577e-5 * light + 0.016679591 * nutrients - 25.719277 * p - 0.500403 * o + u["Y"]
    pkc = u["PKC"]
    pka = 554.390731 + 0.841152557 * pkc + u["PKA"]
    raf = 62.199046 - 0.177745091 * pkc - 0.000379207522 * pka + u["Raf"]
    mek = -1.090275 + 0.0396624572 * pkc - 0.000652026685 * pka + 0.520844705 * raf + u["Mek"]
    return -(-23.248743 + 0.0817067325 * pka - 0.0298858143 * mek - u["Y"])


SYSTEMS = [toy_graph(), synthetic(), synthetic_2(), chain(), epidemiology(), ecology(), protein()]
every_system = pytest.mark.parametrize("problem", SYSTEMS, ids=lambda problem: problem.name)


@every_system
def test_rewards_equal_the_surveys_equations(problem: Problem) -> None:
    noise = problem.scm.draw_noise(np.random.default_rng(0), 200)
    named = {v.name: column for v, column in zip(problem.scm.noisy, noise, strict=True)}
    np.testing.assert_allclose(problem.scm.propagate(noise)["Y"], by_hand(problem.name, named), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("problem", "inert"), [(ecology(), {"T", "D"}), (protein(), {"Akt"})], ids=["ecology", "protein"]
)
def test_what_has_no_effect_is_in_no_target(problem: Problem, inert: set[str]) -> None:
    assert set(problem.manipulable) - frozenset().union(*problem.targets) == inert


@pytest.mark.parametrize("dim", [3, 7])
def test_rosenbrock_of_other_dimensions(dim: int) -> None:
    problem = rosenbrock(dim=dim)
    assert problem.scm.nodes == (*(f"X{i}" for i in range(dim - 2)), "Y")
    x = np.random.default_rng(0).uniform(-2.0, 2.0, dim)
    valley = np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    assert problem.scm.propagate((), Intervention(tuple(x)))["Y"] == pytest.approx(-valley)
    assert problem.scm.propagate((), Intervention((1.0,) * dim))["Y"] == 0.0


@pytest.mark.parametrize("best", [{"W": 2.0}, {"X": 0.0}, {"W": 1.0, "Z": float("nan")}])
def test_an_optimum_of_theory_must_be_an_intervention(best: dict[str, float]) -> None:
    with pytest.raises(ArgumentError, match="optimal_do must set one of the targets"):
        dataclasses.replace(chain(), optimal_do=best)
