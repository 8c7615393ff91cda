"""The four problems of cCBO: expected values of some nodes are limited while that of the reward is maximised.

Equations, domains, thresholds and exploration sets of the first three are those of the program published with the
paper, which minimises; here the reward is negated. There a round is the mean of 100 samples (of 10 in health); here it
is one. Its constraints do not hold for variables that are set themselves; here they do: a set value is its expected
value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cbo_gym.actions import Interval
from cbo_gym.problems.base import Problem, minimal_targets
from cbo_gym.problems.outcomes import Outcomes
from cbo_gym.problems.systems import survey
from cbo_gym.problems.systems.hard_graphs import natural_aspirin, sigmoid
from cbo_gym.scm import Floats, Normal, StructuralCausalModel, System, TruncatedNormal, Uniform, Variable, own_noise
from cbo_gym.task import Constraint

CCBO = "Aglietti, Malek, Ktena & Chiappa (2023), Constrained causal Bayesian optimization"
UNIT = Normal(0.0, 1.0)


def synthetic_1() -> Problem:
    """CCBOSynthetic1: the chain X -> Z -> Y; Z, which X drives far beyond its limit, is limited to 1 as X is.

    E[Z | do(X = x)] = exp(-x), so X must be set to 0 at least, away from where it is best.
    """
    base = survey.synthetic_2()
    return _constrained(
        "CCBOSynthetic1",
        base.scm,
        base.manipulable,
        [frozenset(), frozenset({"X"}), frozenset({"Z"})],
        [Constraint("X", "<=", 1.0), Constraint("Z", "<=", 1.0)],
        "A chain of three variables; the first two may not exceed 1 on average.",
    )


def _c(a: Floats, u: Floats) -> Floats:
    return np.exp(-a) / 5.0 + u


def _d(b: Floats, c: Floats, u: Floats) -> Floats:
    return np.cos(b) + c / 10.0 + u


def _e(c: Floats, u: Floats) -> Floats:
    return np.exp(-c) / 10.0 + u


def _negated_y(d: Floats, e: Floats, u: Floats) -> Floats:
    return -(np.cos(d) - d / 5.0 + np.sin(e) - e / 4.0 + u)


def synthetic_2() -> Problem:
    """CCBOSynthetic2: A -> C -> {D, E} -> Y and B -> D; C, D and E may not exceed 10.

    C = exp(-A) / 5 + N drives D and E to where they cannot be set; the limit keeps A above -log 50.
    """
    variables = [
        Variable("A", own_noise, noise=UNIT),
        Variable("B", own_noise, noise=UNIT),
        Variable("C", _c, ("A",), noise=UNIT),
        Variable("D", _d, ("B", "C"), noise=UNIT),
        Variable("E", _e, ("C",), noise=UNIT),
        Variable("Y", _negated_y, ("D", "E"), noise=UNIT),
    ]
    sets = ["", "A", "D", "E", "AD", "AE", "DE"]
    return _constrained(
        "CCBOSynthetic2",
        StructuralCausalModel(variables, reward="Y"),
        {"A": (-5.0, 5.0), "D": (-1.0, 1.0), "E": (-1.0, 1.0)},
        list(map(frozenset, sets)),
        [Constraint(name, "<=", 10.0) for name in "CDE"],
        "Six variables; three of them may not exceed 10 on average.",
    )


def _weight(age: Floats, rate: Floats, calories: Floats, height: Floats, u: Floats) -> Floats:
    return (rate + 6.8 * age - 5.0 * height) / 13.7 + calories * 150.0 / 7716.0


def _bmi(height: Floats, weight: Floats, u: Floats) -> Floats:
    return weight / (height / 100.0) ** 2


def _cancer(age: Floats, bmi: Floats, statin: Floats, aspirin: Floats, u: Floats) -> Floats:
    return sigmoid(2.2 - 0.05 * age + 0.01 * bmi - 0.04 * statin + 0.02 * aspirin)


def _negated_psa(age: Floats, bmi: Floats, statin: Floats, aspirin: Floats, cancer: Floats, u: Floats) -> Floats:
    return -(6.8 + 0.04 * age - 0.15 * bmi - 0.60 * statin + 0.55 * aspirin + cancer + u)


def health() -> Problem:
    """CCBOHealth: calories and doses against the level of prostate-specific antigen; the BMI may not exceed 25.

    A higher BMI lowers the level, so that calories are best where the BMI is at its limit.

    The diagram that is told is that of the equations. The program's has no edges from age and BMI to the level, which
    depends on both, and edges from age to statin and BMI, whose equations do not have it. ``graph="wrong"`` tells that
    diagram, with ``graph_missing=[("Age", "Y"), ("BMI", "Y")]`` and
    ``graph_added=[("Age", "Statin"), ("Age", "BMI")]``.
    """
    variables = [
        Variable("Age", own_noise, noise=Uniform(55.0, 75.0)),
        Variable("BMR", own_noise, noise=TruncatedNormal(1500.0, 10.0, 1490.0, 1520.0)),
        Variable("Calories", own_noise, noise=Uniform(-100.0, 100.0)),
        Variable("Height", own_noise, noise=TruncatedNormal(175.0, 10.0, 170.0, 180.0)),
        Variable("Weight", _weight, ("Age", "BMR", "Calories", "Height")),
        Variable("BMI", _bmi, ("Height", "Weight")),
        Variable("Statin", own_noise, noise=Uniform(0.0, 1.0)),
        Variable("Aspirin", natural_aspirin, ("Age", "BMI")),
        Variable("Cancer", _cancer, ("Age", "BMI", "Statin", "Aspirin")),
        Variable("Y", _negated_psa, ("Age", "BMI", "Statin", "Aspirin", "Cancer"), noise=Normal(0.0, 0.4)),
    ]
    doses = [(), ("Statin",), ("Aspirin",), ("Statin", "Aspirin")]
    return _constrained(
        "CCBOHealth",
        StructuralCausalModel(variables, reward="Y"),
        {"Calories": (-400.0, 400.0), "Statin": (0.0, 1.0), "Aspirin": (0.0, 1.0)},
        [frozenset(), *(frozenset({"Calories", *some}) for some in doses)],
        [Constraint("BMI", "<=", 25.0)],
        "Calories and doses of statin and aspirin; the reward is the negated PSA level, the BMI is limited.",
    )


def protein() -> Problem:
    """CCBOProtein: signalling proteins of a cell; the reward is negated Erk, and PKA and PKC may not be inhibited.

    The paper limits PKA and PKC, which healthy cells need; its data and thresholds are not published. Here the system
    is SurveyProtein, and the thresholds are ours, somewhat below the natural means of 599 and 53.5.
    """
    base = survey.protein()
    constraints = [Constraint("PKA", ">=", 500.0), Constraint("PKC", ">=", 40.0)]
    return _constrained(
        "CCBOProtein",
        base.scm,
        base.manipulable,
        minimal_targets(base.scm, base.manipulable, [one.node for one in constraints]),
        constraints,
        "A linear model of eight signalling proteins; the reward is negated Erk, two proteins may not be inhibited.",
    )


def _constrained(
    name: str,
    scm: System,
    manipulable: Mapping[str, Interval],
    targets: Sequence[frozenset[str]],
    constraints: Sequence[Constraint],
    description: str,
) -> Problem:
    return Problem(
        name=name,
        scm=scm,
        description=description,
        citation=CCBO,
        manipulable=manipulable,
        targets=targets,
        outcomes=Outcomes(scm.reward, tuple(constraints)),
    )
