"""Problems with several objectives: four of Bhatija et al. (2025), and two of other papers, with costs as an objective.

Equations and domains of the four are those of the program published with the paper. The program minimises all
objectives; here the rewards are their negated values. A round of the program is the mean of 1,000 samples; here it is
one sample. The targets are the minimal intervention sets for all objectives together, and the set of all variables that
can be set, which the paper's baseline uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cbo_gym.actions import Costs, Interval
from cbo_gym.problems.base import Problem, minimal_targets
from cbo_gym.problems.outcomes import COST, Outcomes
from cbo_gym.problems.systems import function_networks, hard_graphs
from cbo_gym.problems.systems.building import hard_problem, read_equations
from cbo_gym.problems.systems.hard_graphs import CANCER, NATURAL_ASPIRIN, NATURAL_STATIN, PSA_LEVEL
from cbo_gym.scm import Discrete, Normal, StructuralCausalModel, TruncatedNormal, Uniform, Variable
from cbo_gym.task import Objective

BHATIJA = "Bhatija, Zuercher, Thumm & Bohné (2025), Multi-Objective Causal Bayesian Optimization"
UNIT = Normal(0.0, 1.0)


def mocbo1() -> Problem:
    """MOCBO1: X3 and X4 drive X1 and X2, whose sum should be near 0 for one objective and near 10 for the other.

    The Pareto front is (s^2, (s - 10)^2) for sums s from 0 to 4, the greatest sum that can be set. Greater sums are
    reached if X2 is not set and X3 and X4 drive it beyond its domain: with X1 = 2 up to s = 2 + e, where both
    objectives are greater by 1. No set of the paper reaches that part of the front.
    """
    equations = {
        "X3": "u",
        "X4": "u",
        "X1": "(X3 - X4) / 2.0 * ((X3 - X4) / 2.0) * ((X3 - X4) / 2.0) + u",
        "X2": "exp((X3 - X4) / 2.0) + u",
        "Y1": "(X1 + X2) * (X1 + X2) + u",
        "Y2": "(X1 + X2 - 10.0) * (X1 + X2 - 10.0) + u",
    }
    return _minimisation_problem(
        "MOCBO1",
        read_equations(equations, UNIT),
        ["Y1", "Y2"],
        {"X1": (-1.0, 2.0), "X2": (-1.0, 2.0), "X3": (-1.0, 1.0), "X4": (-1.0, 1.0)},
        "Four variables whose effects on two objectives pull in opposite directions; both are to be small.",
    )


def mocbo2() -> Problem:
    """MOCBO2: X2 makes one objective worse and the other better, in waves, so that the front has gaps.

    The front is at X1 = 0 and X3 = 5: (2 x^2, sin x^2 - 5 x + 25) for the non-dominated values X2 = x. As in the
    published equations neither objective is noisy, and the latent U, which confounds X4 and Y1 in the diagram, is
    multiplied by 0 in Y1. The published diagram lacks the edge X2 -> Y1, which follows from the equation of Y1; the
    diagram here has it.
    """
    equations = {
        "U": "u",
        "X4": "u * u + U",
        "X1": "X4 / 2.0 + u * u",
        "X2": "u * u",
        "X3": "u * u",
        "Y1": "log(1.0 + X1 * X1) + 2.0 * X2 * X2",
        "Y2": "sin(X2 * X2) - X3 * X3 - X2 * X3 + 50.0",
    }
    noise = {"U": Discrete((-4.0, 4.0), (0.5, 0.5)), **dict.fromkeys(("X1", "X2", "X3", "X4"), UNIT)}
    variables = [
        replace(variable, idle_parents=("U",)) if variable.name == "Y1" else variable
        for variable in read_equations(equations, noise, latent="U")
    ]
    return _minimisation_problem(
        "MOCBO2",
        variables,
        ["Y1", "Y2"],
        {"X1": (-2.0, 5.0), "X2": (0.0, 5.0), "X3": (0.0, 5.0), "X4": (-4.0, 5.0)},
        "Four variables, one of them confounded with an objective; both objectives are to be small.",
        # The variables contain the square of the noise.
        noise_known=False,
    )


def mocbo3() -> Problem:
    """MOCBO3: three objectives; X3, if it is not set, follows the latent U, and setting it costs 25.

    The front is at set values of X1 and X2, with X3 not set.
    """
    equations = {
        "U": "u",
        "X1": "u",
        "X2": "u",
        "X3": "U + u",
        "Y1": "X1 * X1 + X2 * X2 + u",
        "Y2": "(X2 - 5.0) * (X2 - 5.0) + (X1 - 10.0) * (X1 - 10.0) + u",
        "Y3": "(X2 - 10.0) * (X2 - 10.0) - X3 * U + u",
    }
    noise = {**dict.fromkeys(equations, UNIT), "U": Discrete((-5.0, 5.0), (0.5, 0.5))}
    return _minimisation_problem(
        "MOCBO3",
        read_equations(equations, noise, latent="U"),
        ["Y1", "Y2", "Y3"],
        {"X1": (0.0, 5.0), "X2": (0.0, 5.0), "X3": (-5.0, 5.0)},
        "Three variables, one of them confounded with an objective; three objectives are to be small.",
    )


def health() -> Problem:
    """MOCBOHealth: as little statin as possible against a low level of prostate-specific antigen (PSA).

    A low BMI needs little statin and raises the level. The front runs from a weight of 50, which lowers the BMI to 16,
    to one of 100. The BMI itself can only be set from 20 to 30, so {Weight, Aspirin} reaches the ends of the front, and
    {BMI, Aspirin}, the set of the paper, does not. BMR is the basal metabolic rate in kcal a day, Calories the
    daily surplus. The equation of Weight divides by a term with Calories, as the program does; CCBOHealth adds it.
    """
    equations = {
        "Calories": "u",
        "BMR": "u",
        "Height": "u",
        "Age": "u",
        "Weight": "(BMR + 6.8 * Age - 5.0 * Height) / (13.7 + Calories * 150.0 / 7716.0)",
        "BMI": "Weight / (Height / 100.0 * (Height / 100.0))",
        "Statin": NATURAL_STATIN,
        "Aspirin": NATURAL_ASPIRIN,
        "Cancer": CANCER,
        "PSA": PSA_LEVEL,
    }
    noise = {
        "Calories": Uniform(-100.0, 100.0),
        "BMR": TruncatedNormal(1500.0, 10.0, 1495.0, 1505.0),
        "Height": TruncatedNormal(175.0, 10.0, 165.0, 195.0),
        "Age": Normal(65.0, 1.0),
        "PSA": Normal(0.0, 0.4),
    }
    return _minimisation_problem(
        "MOCBOHealth",
        read_equations(equations, noise),
        ["Statin", "PSA"],
        {"BMI": (20.0, 30.0), "Weight": (50.0, 100.0), "Calories": (-100.0, 100.0), "Aspirin": (0.0, 1.0)},
        "A patient's weight and aspirin; the dose of statin and the PSA level are to be small.",
    )


def alpine2_cost() -> Problem:
    """Alpine2 with a cost as a second objective: 1 plus each parameter's distance from its null value, 5."""
    base = function_networks.alpine2()
    return _with_cost_objective(base, Costs(base=1.0, per_unit=dict.fromkeys(base.scm.action_nodes, 1.0)))


def psa_cost() -> Problem:
    """PSAGraph with a cost as a second objective: 0.1 for each drug that is set, plus its dose."""
    base = hard_graphs.psa_graph()
    return _with_cost_objective(
        base, Costs(variables=dict.fromkeys(base.manipulable, 0.1), per_unit=dict.fromkeys(base.manipulable, 1.0))
    )


def _with_cost_objective(base: Problem, costs: Costs) -> Problem:
    reward = base.scm.reward
    return replace(
        base,
        name=f"{base.name}-Cost",
        description=f"{base.description} What acting costs is a second objective, to be small.",
        citation=f"{base.citation}; the cost is ours",
        outcomes=Outcomes(reward, costs=costs, objectives=(Objective(reward), Objective(COST, "minimize"))),
        optimal_action=None,
        optimal_do=None,
    )


def _minimisation_problem(
    name: str,
    variables: Sequence[Variable],
    objectives: Sequence[str],
    manipulable: Mapping[str, Interval],
    description: str,
    noise_known: bool = True,
) -> Problem:
    *others, reward = objectives
    scm = StructuralCausalModel(variables, reward=reward)
    targets = minimal_targets(scm.diagram, scm.reward, manipulable, constrained=others)
    everything = frozenset(manipulable)
    return hard_problem(
        name,
        scm,
        manipulable,
        description,
        BHATIJA,
        targets=targets if everything in targets else [*targets, everything],
        noise_known=noise_known,
        outcomes=Outcomes(reward, objectives=tuple(Objective(objective, "minimize") for objective in objectives)),
    )
