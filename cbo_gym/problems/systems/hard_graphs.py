"""The systems of Aglietti et al. (2020), for hard interventions. The paper minimises; here the reward is negated."""

from __future__ import annotations

from cbo_gym.problems.base import Problem
from cbo_gym.problems.systems.building import hard_problem, read_equations
from cbo_gym.scm import Normal, Uniform, Variable

AGLIETTI = "Aglietti, Lu, Paleyes & Gonzalez (2020), Causal Bayesian optimization"
UNIT = Normal(0.0, 1.0)
TOY_REWARD = "exp(-0.05 * {0}) - cos({0}) - u"


def toy_graph() -> Problem:
    """ToyGraph: the chain X0 -> X1 -> Y with unit noise; X1 is the best variable to set."""
    equations = {"X0": "u", "X1": "exp(-X0) + u", "Y": TOY_REWARD.format("X1")}
    return hard_problem(
        "ToyGraph",
        read_equations(equations, UNIT),
        {"X0": (-5.0, 5.0), "X1": (-5.0, 20.0)},
        "A chain of three variables; the reward is the negated one of the paper.",
        f"{AGLIETTI}; targets and initial data: Sussex, Makarova & Krause (2023), sec. 5",
    )


NATURAL_ASPIRIN = "sigmoid(-8.0 + 0.10 * Age + 0.03 * BMI)"
NATURAL_STATIN = "sigmoid(-13.0 + 0.10 * Age + 0.20 * BMI)"
CANCER = "sigmoid(2.2 - 0.05 * Age + 0.01 * BMI - 0.04 * Statin + 0.02 * Aspirin)"
PSA_LEVEL = "6.8 + 0.04 * Age - 0.15 * BMI - 0.60 * Statin + 0.55 * Aspirin + Cancer + u"
PATIENT_EQUATIONS = {
    "Age": "u",
    "BMI": "27.0 - 0.01 * Age + u",
    "Aspirin": NATURAL_ASPIRIN,
    "Statin": NATURAL_STATIN,
}
AGES = Uniform(55.0, 75.0)
DRUGS = {"Aspirin": (0.0, 1.0), "Statin": (0.0, 1.0)}


def psa_variables() -> list[Variable]:
    """Return the system behind PSAGraph; its reward Y is the negated level of prostate-specific antigen."""
    equations = {**PATIENT_EQUATIONS, "Cancer": CANCER, "Y": f"-({PSA_LEVEL})"}
    return read_equations(equations, {"Age": AGES, "BMI": Normal(0.0, 0.7), "Y": Normal(0.0, 0.4)})


def psa_graph() -> Problem:
    """PSAGraph: doses of aspirin and statin against the level of prostate-specific antigen."""
    return hard_problem(
        "PSAGraph",
        psa_variables(),
        DRUGS,
        "Aspirin and statin doses; the reward is the negated PSA level.",
        f"{AGLIETTI}; after Ferro et al. (2015); targets: Sussex, Makarova & Krause (2023), sec. 5",
    )


COMPLETE_DOMAINS = {"B": (-5.0, 4.0), "D": (-5.0, 5.0), "E": (-6.0, 3.0)}
#: Equations of CompleteGraph without its reward: two latent confounders, A <-> Y and B <-> Y.
COMPLETE_EQUATIONS = {
    "U1": "u",
    "U2": "u",
    "F": "u",
    "A": "F * F + U1 + u",
    "B": "U2 + u",
    "C": "exp(-B) + u",
    "D": "0.1 * exp(-C) + u",
    "E": "cos(A) + 0.1 * C + u",
}


def complete_graph() -> Problem:
    """CompleteGraph: seven observed variables, two latent confounders (A <-> Y and B <-> Y).

    The targets are the minimal intervention sets of the manipulable B, D and E. One of them, {B, E}, cannot be optimal
    under any mechanisms.
    """
    reward = "-(cos(D) - 0.2 * D + sin(E) - 0.25 * E + U1 + exp(-U2) + u)"
    return hard_problem(
        "CompleteGraph",
        read_equations({**COMPLETE_EQUATIONS, "Y": reward}, UNIT, latent="U1 U2"),
        COMPLETE_DOMAINS,
        "Seven variables and two latent confounders; the reward is the negated one of the paper.",
        f"{AGLIETTI}, sec. 4.2",
    )
