"""Problems with several objectives: the four of Bhatija et al. (2025), and two of other papers with what acting costs.

Equations and domains of the four are those of the program published with the paper. It minimises all objectives; here
each is to be small, so that the reward of a round is their negated values. There a round is the mean of 1,000 samples;
here it is one. The targets are the minimal intervention sets for all objectives together, and all variables that can be
set, which is what the paper's rival sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from cbo_gym.actions import Costs, Interval
from cbo_gym.problems.base import Problem, minimal_targets
from cbo_gym.problems.outcomes import COST, Outcomes
from cbo_gym.problems.systems import function_networks, hard_graphs
from cbo_gym.problems.systems.hard_graphs import natural_aspirin, sigmoid
from cbo_gym.scm import (
    Discrete,
    Floats,
    Normal,
    StructuralCausalModel,
    TruncatedNormal,
    Uniform,
    Variable,
    own_noise,
)
from cbo_gym.task import Objective

BHATIJA = "Bhatija, Zuercher, Thumm & Bohné (2025), Multi-Objective Causal Bayesian Optimization"
UNIT = Normal(0.0, 1.0)


def _cubed(x3: Floats, x4: Floats, u: Floats) -> Floats:
    half = (x3 - x4) / 2.0
    return half * half * half + u


def _raised(x3: Floats, x4: Floats, u: Floats) -> Floats:
    return np.exp((x3 - x4) / 2.0) + u


def _from_zero(x1: Floats, x2: Floats, u: Floats) -> Floats:
    total = x1 + x2
    return total * total + u


def _from_ten(x1: Floats, x2: Floats, u: Floats) -> Floats:
    missing = x1 + x2 - 10.0
    return missing * missing + u


def mocbo1() -> Problem:
    """MOCBO1: X3 and X4 drive X1 and X2, whose sum should be near 0 for one objective and near 10 for the other.

    The Pareto front is (s^2, (s - 10)^2) for sums s from 0 to 4, the greatest that can be set. It goes on where X2 is
    not set, but driven beyond its domain by X3 and X4: with X1 = 2 to s = 2 + e, where both objectives are 1 more. No
    set of the paper reaches that part.
    """
    variables = [
        Variable("X3", own_noise, noise=UNIT),
        Variable("X4", own_noise, noise=UNIT),
        Variable("X1", _cubed, ("X3", "X4"), noise=UNIT),
        Variable("X2", _raised, ("X3", "X4"), noise=UNIT),
        Variable("Y1", _from_zero, ("X1", "X2"), noise=UNIT),
        Variable("Y2", _from_ten, ("X1", "X2"), noise=UNIT),
    ]
    return _minimised(
        "MOCBO1",
        variables,
        ["Y1", "Y2"],
        {"X1": (-1.0, 2.0), "X2": (-1.0, 2.0), "X3": (-1.0, 1.0), "X4": (-1.0, 1.0)},
        "Four variables whose effects on two objectives pull in opposite directions; both are to be small.",
    )


def _squared_from(centre: Floats, u: Floats) -> Floats:
    return u * u + centre


def _halved(x4: Floats, u: Floats) -> Floats:
    return x4 / 2.0 + u * u


def _squared(u: Floats) -> Floats:
    return u * u


def _logarithm(x1: Floats, x2: Floats, u: Floats) -> Floats:
    return np.log(1.0 + x1 * x1) + 2.0 * x2 * x2


def _wave(x2: Floats, x3: Floats, u: Floats) -> Floats:
    return np.sin(x2 * x2) - x3 * x3 - x2 * x3 + 50.0


def mocbo2() -> Problem:
    """MOCBO2: X2 makes one objective worse and the other better, in waves, so that the front has gaps.

    The front is at X1 = 0 and X3 = 5: (2 x^2, sin x^2 - 5 x + 25) for those X2 = x that no other dominates. As in the
    published equations neither objective is noisy, and the latent U, which confounds X4 and Y1 in the diagram, is
    multiplied by 0 in Y1. That diagram lacks the edge X2 -> Y1, which the equation of Y1 has; here it is there.
    """
    variables = [
        Variable("U", own_noise, noise=Discrete((-4.0, 4.0), (0.5, 0.5)), observed=False),
        Variable("X4", _squared_from, ("U",), noise=UNIT),
        Variable("X1", _halved, ("X4",), noise=UNIT),
        Variable("X2", _squared, noise=UNIT),
        Variable("X3", _squared, noise=UNIT),
        Variable("Y1", _logarithm, ("X1", "X2"), idle_parents=("U",)),
        Variable("Y2", _wave, ("X2", "X3")),
    ]
    return _minimised(
        "MOCBO2",
        variables,
        ["Y1", "Y2"],
        {"X1": (-2.0, 5.0), "X2": (0.0, 5.0), "X3": (0.0, 5.0), "X4": (-4.0, 5.0)},
        "Four variables, one of them confounded with an objective; both objectives are to be small.",
        noise_known=False,  # it is squared on its way into the variables
    )


def _shifted(centre: Floats, u: Floats) -> Floats:
    return centre + u


def _near_origin(x1: Floats, x2: Floats, u: Floats) -> Floats:
    return x1 * x1 + x2 * x2 + u


def _near_corner(x1: Floats, x2: Floats, u: Floats) -> Floats:
    return (x2 - 5.0) * (x2 - 5.0) + (x1 - 10.0) * (x1 - 10.0) + u


def _in_step(x2: Floats, x3: Floats, centre: Floats, u: Floats) -> Floats:
    return (x2 - 10.0) * (x2 - 10.0) - x3 * centre + u


def mocbo3() -> Problem:
    """MOCBO3: three objectives; X3, left alone, keeps in step with the latent U, and whoever sets it loses 25 by that.

    The front is at values of X1 and X2 that are set while X3 is not.
    """
    variables = [
        Variable("U", own_noise, noise=Discrete((-5.0, 5.0), (0.5, 0.5)), observed=False),
        Variable("X1", own_noise, noise=UNIT),
        Variable("X2", own_noise, noise=UNIT),
        Variable("X3", _shifted, ("U",), noise=UNIT),
        Variable("Y1", _near_origin, ("X1", "X2"), noise=UNIT),
        Variable("Y2", _near_corner, ("X1", "X2"), noise=UNIT),
        Variable("Y3", _in_step, ("X2", "X3", "U"), noise=UNIT),
    ]
    return _minimised(
        "MOCBO3",
        variables,
        ["Y1", "Y2", "Y3"],
        {"X1": (0.0, 5.0), "X2": (0.0, 5.0), "X3": (-5.0, 5.0)},
        "Three variables, one of them confounded with an objective; three objectives are to be small.",
    )


def _weight(calories: Floats, rate: Floats, height: Floats, age: Floats, u: Floats) -> Floats:
    return (rate + 6.8 * age - 5.0 * height) / (13.7 + calories * 150.0 / 7716.0)


def _bmi(weight: Floats, height: Floats, u: Floats) -> Floats:
    metres = height / 100.0
    return weight / (metres * metres)


def _statin(age: Floats, bmi: Floats, u: Floats) -> Floats:
    return sigmoid(-13.0 + 0.10 * age + 0.20 * bmi)


def _cancer(age: Floats, bmi: Floats, aspirin: Floats, statin: Floats, u: Floats) -> Floats:
    return sigmoid(2.2 - 0.05 * age + 0.01 * bmi - 0.04 * statin + 0.02 * aspirin)


def _psa(age: Floats, bmi: Floats, aspirin: Floats, statin: Floats, cancer: Floats, u: Floats) -> Floats:
    return 6.8 + 0.04 * age - 0.15 * bmi - 0.60 * statin + 0.55 * aspirin + cancer + u


def health() -> Problem:
    """MOCBOHealth: as little statin as possible against a low level of prostate-specific antigen (PSA).

    A low BMI needs little statin and raises the level. The front runs from a weight of 50, by which the BMI falls to
    16, to one of 100: beyond 20 and 30, between which alone the BMI can be set. So {Weight, Aspirin} reaches its ends,
    and {BMI, Aspirin}, the set of the paper, does not. BMR is the basal metabolic rate in kcal a day, Calories the
    daily surplus. Weight divides by calories and all, as the published program does; that of CCBOHealth adds them.
    """
    variables = [
        Variable("Calories", own_noise, noise=Uniform(-100.0, 100.0)),
        Variable("BMR", own_noise, noise=TruncatedNormal(1500.0, 10.0, 1495.0, 1505.0)),
        Variable("Height", own_noise, noise=TruncatedNormal(175.0, 10.0, 165.0, 195.0)),
        Variable("Age", own_noise, noise=Normal(65.0, 1.0)),
        Variable("Weight", _weight, ("Calories", "BMR", "Height", "Age")),
        Variable("BMI", _bmi, ("Weight", "Height")),
        Variable("Statin", _statin, ("Age", "BMI")),
        Variable("Aspirin", natural_aspirin, ("Age", "BMI")),
        Variable("Cancer", _cancer, ("Age", "BMI", "Aspirin", "Statin")),
        Variable("PSA", _psa, ("Age", "BMI", "Aspirin", "Statin", "Cancer"), noise=Normal(0.0, 0.4)),
    ]
    return _minimised(
        "MOCBOHealth",
        variables,
        ["Statin", "PSA"],
        {"BMI": (20.0, 30.0), "Weight": (50.0, 100.0), "Calories": (-100.0, 100.0), "Aspirin": (0.0, 1.0)},
        "A patient's weight and aspirin; the dose of statin and the PSA level are to be small.",
    )


def alpine2_cost() -> Problem:
    """Alpine2 with what acting costs as a second objective: 1, and each parameter's distance from its null value, 5."""
    base = function_networks.alpine2()
    return _paid_for(base, Costs(base=1.0, per_unit=dict.fromkeys(base.scm.action_nodes, 1.0)))


def psa_cost() -> Problem:
    """PSAGraph with what acting costs as a second objective: 0.1 for each drug that is set, and its dose."""
    base = hard_graphs.psa_graph()
    return _paid_for(
        base, Costs(variables=dict.fromkeys(base.manipulable, 0.1), per_unit=dict.fromkeys(base.manipulable, 1.0))
    )


def _paid_for(base: Problem, costs: Costs) -> Problem:
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


def _minimised(
    name: str,
    variables: Sequence[Variable],
    objectives: Sequence[str],
    manipulable: Mapping[str, Interval],
    description: str,
    noise_known: bool = True,
) -> Problem:
    *others, reward = objectives
    scm = StructuralCausalModel(variables, reward=reward)
    targets = minimal_targets(scm, manipulable, limited=others)
    everything = frozenset(manipulable)
    return Problem(
        name=name,
        scm=scm,
        description=description,
        citation=BHATIJA,
        manipulable=manipulable,
        targets=targets if everything in targets else [*targets, everything],
        noise_known=noise_known,
        outcomes=Outcomes(reward, objectives=tuple(Objective(one, "minimize") for one in objectives)),
    )
