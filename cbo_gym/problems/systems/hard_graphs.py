"""Graphs of Aglietti et al. (2020) for hard interventions. Their papers minimise; here the reward is negated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cbo_gym.problems.base import Problem, minimal_targets
from cbo_gym.scm import Distribution, Floats, Normal, StructuralCausalModel, Uniform, Variable, own_noise

AGLIETTI = "Aglietti, Lu, Paleyes & Gonzalez (2020), Causal Bayesian optimization"
UNIT = Normal(0.0, 1.0)


def toy_middle(x0: Floats, u: Floats) -> Floats:
    """ToyGraph's node in the middle."""
    return np.exp(-x0) + u


def toy_reward(x1: Floats, u: Floats) -> Floats:
    """ToyGraph's reward, negated."""
    return np.exp(-0.05 * x1) - np.cos(x1) - u


def toy_graph() -> Problem:
    """ToyGraph: the chain X0 -> X1 -> Y with unit noise; best set at X1."""
    variables = [
        Variable("X0", own_noise, noise=UNIT),
        Variable("X1", toy_middle, ("X0",), noise=UNIT),
        Variable("Y", toy_reward, ("X1",), noise=UNIT),
    ]
    scm = StructuralCausalModel(variables, reward="Y")
    manipulable = {"X0": (-5.0, 5.0), "X1": (-5.0, 20.0)}
    return Problem(
        name="ToyGraph",
        scm=scm,
        description="A chain of three variables; the reward is the negated one of the paper.",
        citation=f"{AGLIETTI}; targets and initial data: Sussex, Makarova & Krause (2023), sec. 5",
        manipulable=manipulable,
        targets=minimal_targets(scm, manipulable),
    )


def sigmoid(x: Floats) -> Floats:
    """The logistic function."""
    return 1.0 / (1.0 + np.exp(-x))


def _bmi(age: Floats, u: Floats) -> Floats:
    return 27.0 - 0.01 * age + u


def natural_aspirin(age: Floats, bmi: Floats, u: Floats) -> Floats:
    """The dose of aspirin that a patient takes if nobody sets it."""
    return sigmoid(-8.0 + 0.10 * age + 0.03 * bmi)


def _statin(age: Floats, bmi: Floats, u: Floats) -> Floats:
    return sigmoid(-13.0 + 0.10 * age + 0.20 * bmi)


def _cancer(age: Floats, bmi: Floats, aspirin: Floats, statin: Floats, u: Floats) -> Floats:
    return sigmoid(2.2 - 0.05 * age + 0.01 * bmi - 0.04 * statin + 0.02 * aspirin)


def _negated_psa(age: Floats, bmi: Floats, aspirin: Floats, statin: Floats, cancer: Floats, u: Floats) -> Floats:
    return -(6.8 + 0.04 * age - 0.15 * bmi - 0.60 * statin + 0.55 * aspirin + cancer + u)


def age_and_bmi(bmi_std: float) -> list[Variable]:
    """A patient: age in years, and the body mass index with its standard deviation given the age."""
    return [
        Variable("Age", own_noise, noise=Uniform(55.0, 75.0)),
        Variable("BMI", _bmi, ("Age",), noise=Normal(0.0, bmi_std)),
    ]


def natural_doses() -> list[Variable]:
    """The doses that a patient takes if nobody sets them."""
    return [Variable("Aspirin", natural_aspirin, ("Age", "BMI")), Variable("Statin", _statin, ("Age", "BMI"))]


def psa_variables() -> list[Variable]:
    """The system behind PSAGraph; its reward Y is the negated level of prostate-specific antigen."""
    drugs = ("Aspirin", "Statin")
    return [
        *age_and_bmi(bmi_std=0.7),
        *natural_doses(),
        Variable("Cancer", _cancer, ("Age", "BMI", *drugs)),
        Variable("Y", _negated_psa, ("Age", "BMI", *drugs, "Cancer"), noise=Normal(0.0, 0.4)),
    ]


def psa_graph() -> Problem:
    """PSAGraph: doses of aspirin and statin against the level of prostate-specific antigen."""
    scm = StructuralCausalModel(psa_variables(), reward="Y")
    manipulable = {"Aspirin": (0.0, 1.0), "Statin": (0.0, 1.0)}
    return Problem(
        name="PSAGraph",
        scm=scm,
        description="Aspirin and statin doses; the reward is the negated PSA level.",
        citation=f"{AGLIETTI}; after Ferro et al. (2015); targets: Sussex, Makarova & Krause (2023), sec. 5",
        manipulable=manipulable,
        targets=minimal_targets(scm, manipulable),
    )


def _complete_a(f: Floats, confounder: Floats, u: Floats) -> Floats:
    return f * f + confounder + u


def _complete_b(confounder: Floats, u: Floats) -> Floats:
    return confounder + u


def _complete_c(b: Floats, u: Floats) -> Floats:
    return np.exp(-b) + u


def _complete_d(c: Floats, u: Floats) -> Floats:
    return 0.1 * np.exp(-c) + u


def _complete_e(a: Floats, c: Floats, u: Floats) -> Floats:
    return np.cos(a) + 0.1 * c + u


def _complete_reward(d: Floats, e: Floats, confounder_1: Floats, confounder_2: Floats, u: Floats) -> Floats:
    of_nodes = np.cos(d) - 0.2 * d + np.sin(e) - 0.25 * e
    return -(of_nodes + confounder_1 + np.exp(-confounder_2) + u)


COMPLETE_DOMAINS = {"B": (-5.0, 4.0), "D": (-5.0, 5.0), "E": (-6.0, 3.0)}


def complete_variables(
    between: Distribution, reward: Callable[..., Floats], reward_noise: Distribution
) -> list[Variable]:
    """The system behind CompleteGraph: two latent confounders, A <-> Y and B <-> Y, and F are standard normal.

    Args:
        between: noise of A, B, C, D and E.
        reward: of ``(d, e, confounder_1, confounder_2, u)``.
        reward_noise: distribution of ``u``.
    """
    return [
        Variable("U1", own_noise, noise=UNIT, observed=False),
        Variable("U2", own_noise, noise=UNIT, observed=False),
        Variable("F", own_noise, noise=UNIT),
        Variable("A", _complete_a, ("F", "U1"), noise=between),
        Variable("B", _complete_b, ("U2",), noise=between),
        Variable("C", _complete_c, ("B",), noise=between),
        Variable("D", _complete_d, ("C",), noise=between),
        Variable("E", _complete_e, ("A", "C"), noise=between),
        Variable("Y", reward, ("D", "E", "U1", "U2"), noise=reward_noise),
    ]


def complete_graph() -> Problem:
    """CompleteGraph: seven observed variables, two latent confounders (A <-> Y and B <-> Y).

    The targets are the minimal intervention sets over the manipulable B, D and E; {B, E} is among them without
    being possibly optimal.
    """
    scm = StructuralCausalModel(complete_variables(UNIT, _complete_reward, UNIT), reward="Y")
    return Problem(
        name="CompleteGraph",
        scm=scm,
        description="Seven variables and two latent confounders; the reward is the negated one of the paper.",
        citation=f"{AGLIETTI}, sec. 4.2",
        manipulable=COMPLETE_DOMAINS,
        targets=minimal_targets(scm, COMPLETE_DOMAINS),
    )
