"""The four problems of cCBO: expected values of some nodes are limited while that of the reward is maximised.

Equations, domains, thresholds and exploration sets of the first three are those of the program published with the
paper, which minimises; here the reward is negated. A round of the program is the mean of 100 samples (of 10 in health);
here it is one sample. The program does not apply constraints to variables that are set; here the expectation of
such a variable is the value to which it is set, so constraints apply to it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cbo_gym.actions import Interval
from cbo_gym.problems.base import Problem, minimal_targets
from cbo_gym.problems.outcomes import Outcomes
from cbo_gym.problems.systems import survey
from cbo_gym.problems.systems.building import hard_problem, read_equations
from cbo_gym.problems.systems.hard_graphs import AGES, CANCER, NATURAL_ASPIRIN, PSA_LEVEL
from cbo_gym.scm import Normal, System, TruncatedNormal, Uniform, Variable
from cbo_gym.task import Constraint

CCBO = "Aglietti, Malek, Ktena & Chiappa (2023), Constrained causal Bayesian optimization"
UNIT = Normal(0.0, 1.0)


def synthetic_1() -> Problem:
    """CCBOSynthetic1: the chain X -> Z -> Y, where the means of X and Z may not exceed 1.

    E[Z | do(X = x)] = exp(-x), so X must be set to 0 at least, away from where it is best.
    """
    base = survey.synthetic_2()
    return _constrained_problem(
        "CCBOSynthetic1",
        base.scm,
        base.manipulable,
        [frozenset(), frozenset({"X"}), frozenset({"Z"})],
        [Constraint("X", "<=", 1.0), Constraint("Z", "<=", 1.0)],
        "A chain of three variables; the first two may not exceed 1 on average.",
    )


def synthetic_2() -> Problem:
    """CCBOSynthetic2: A -> C -> {D, E} -> Y and B -> D; C, D and E may not exceed 10.

    A low A makes C = exp(-A) / 5 + u large, so that D leaves the domain in which it can be set; the limit of C keeps A
    above -log 50.
    """
    equations = {
        "A": "u",
        "B": "u",
        "C": "exp(-A) / 5.0 + u",
        "D": "cos(B) + C / 10.0 + u",
        "E": "exp(-C) / 10.0 + u",
        "Y": "-(cos(D) - D / 5.0 + sin(E) - E / 4.0 + u)",
    }
    sets = ["", "A", "D", "E", "AD", "AE", "DE"]
    return _constrained_problem(
        "CCBOSynthetic2",
        read_equations(equations, UNIT),
        {"A": (-5.0, 5.0), "D": (-1.0, 1.0), "E": (-1.0, 1.0)},
        list(map(frozenset, sets)),
        [Constraint(name, "<=", 10.0) for name in "CDE"],
        "Six variables; three of them may not exceed 10 on average.",
    )


def health() -> Problem:
    """CCBOHealth: calories and doses against the level of prostate-specific antigen; the BMI may not exceed 25.

    A higher BMI lowers the level, so that calories are best where the BMI is at its limit.

    The known diagram is that of the equations. The program's diagram lacks the edges from age and BMI to the level,
    which depends on both, and has edges from age to statin and BMI, whose equations do not contain age.
    ``graph="wrong"`` gives agents that diagram, with ``graph_missing=[("Age", "Y"), ("BMI", "Y")]`` and
    ``graph_added=[("Age", "Statin"), ("Age", "BMI")]``.
    """
    equations = {
        "Age": "u",
        "BMR": "u",
        "Calories": "u",
        "Height": "u",
        "Weight": "(BMR + 6.8 * Age - 5.0 * Height) / 13.7 + Calories * 150.0 / 7716.0",
        "BMI": "Weight / (Height / 100.0) ** 2",
        "Statin": "u",
        "Aspirin": NATURAL_ASPIRIN,
        "Cancer": CANCER,
        "Y": f"-({PSA_LEVEL})",
    }
    noise = {
        "Age": AGES,
        "BMR": TruncatedNormal(1500.0, 10.0, 1490.0, 1520.0),
        "Calories": Uniform(-100.0, 100.0),
        "Height": TruncatedNormal(175.0, 10.0, 170.0, 180.0),
        "Statin": Uniform(0.0, 1.0),
        "Y": Normal(0.0, 0.4),
    }
    doses = [(), ("Statin",), ("Aspirin",), ("Statin", "Aspirin")]
    return _constrained_problem(
        "CCBOHealth",
        read_equations(equations, noise),
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
    return _constrained_problem(
        "CCBOProtein",
        base.scm,
        base.manipulable,
        minimal_targets(
            base.scm.diagram, base.scm.reward, base.manipulable, [constraint.node for constraint in constraints]
        ),
        constraints,
        "A linear model of eight signalling proteins; the reward is negated Erk, two proteins may not be inhibited.",
    )


def _constrained_problem(
    name: str,
    system: System | Sequence[Variable],
    manipulable: Mapping[str, Interval],
    targets: Sequence[frozenset[str]],
    constraints: Sequence[Constraint],
    description: str,
) -> Problem:
    outcomes = Outcomes("Y", tuple(constraints))
    return hard_problem(name, system, manipulable, description, CCBO, targets=targets, outcomes=outcomes)
