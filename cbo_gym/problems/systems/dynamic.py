"""Systems of Aglietti, Dhir, Gonzalez & Damoulas (2021), unrolled over time; the paper's objectives are negated.

Equations, domains and numbers of observational time series are those of the authors' public program for Stat, Noisy,
Ind, Multiv and NonStat, and so are the equations of ODE. Departures are listed with each system. In all systems:

* The noise of trials is multiplied by ``trial_noise``, 0 by default, because the program evaluates trials without
  noise. The observational time series have the whole noise, standard normal unless stated otherwise.
* Every set of manipulable variables is a target, because methods without a graph set all variables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp
from re import findall, sub

from cbo_gym._util.arguments import require_not_negative, whole_number
from cbo_gym.actions import Interval
from cbo_gym.problems.base import Problem
from cbo_gym.problems.modes.dynamic import Slices
from cbo_gym.problems.outcomes import PlayedSlice
from cbo_gym.problems.systems.building import read_equations
from cbo_gym.scm import Distribution, Normal, StructuralCausalModel, Zero
from cbo_gym.scm.scopes.intervention_sets import subsets

AGLIETTI = "Aglietti, Dhir, Gonzalez & Damoulas (2021), Dynamic causal Bayesian optimization"
UNIT = Normal(0.0, 1.0)
# Largest number of slices, with which a step takes a third of a millisecond.
MAX_SLICES = 100
CHAIN_DOMAINS = {"X": (-4.0, 1.0), "Z": (-3.0, 3.0)}

#: Equation of each variable of a slice, in topological order, the reward last. ``X_before`` is X in the slice before.
Equations = Mapping[str, str]


def dynamic_problem(
    name: str,
    description: str,
    section: str,
    equations: Sequence[Equations],
    manipulable: Mapping[str, Interval],
    *,
    slices: int,
    trial_noise: float,
    noise: Mapping[str, Normal] | None = None,
    measured: int | None = None,
) -> Problem:
    """Return a problem with slices.

    Args:
        name: name of the problem.
        description: one or two sentences for users.
        section: section of the paper.
        equations: equations of slice 0, slice 1 and so on; the last ones also hold in all later slices.
        manipulable: variable of a slice -> native ``(low, high)``.
        slices: the number T of slices, 1 to 100.
        trial_noise: factor of the noise in trials, finite and at least 0.
        noise: variable of a slice -> its noise, if not standard normal; a standard deviation of 0 means no noise.
        measured: number of slices with observational data, which are the first ones; None for all.
    """
    count = whole_number("slices", slices, at_least=1, at_most=MAX_SLICES)
    require_not_negative("trial_noise", trial_noise)
    noise_of = noise or {}
    names = tuple(equations[0])

    def system(factor: float) -> StructuralCausalModel:
        unrolled, noises = {}, {}
        for index in range(count):
            for variable, equation in equations[min(index, len(equations) - 1)].items():
                noises[f"{variable}_{index}"] = _scale_noise(noise_of.get(variable, UNIT), factor)
                unrolled[f"{variable}_{index}"] = _in_slice(equation, names, index)
        return StructuralCausalModel(read_equations(unrolled, noises), reward=f"{names[-1]}_{count - 1}")

    trials = system(float(trial_noise))
    return Problem(
        name=name,
        scm=trials,
        description=description,
        citation=f"{AGLIETTI}, {section}",
        outcomes=PlayedSlice(trials.reward, bare=names[-1]),
        modes=[
            Slices(
                count=count,
                names=names,
                manipulable=manipulable,
                targets=subsets(list(manipulable)),
                history=system(1.0),
                measured=count if measured is None else min(measured, count),
            )
        ],
    )


def _in_slice(equation: str, names: Sequence[str], index: int) -> str:
    """Return the equation with the names of variables in slice ``index`` and the slice before."""
    for word in set(findall(r"[A-Za-z_]\w*", equation)):
        name = word.removesuffix("_before")
        if name in names:
            slice_index = index if word == name else index - 1
            equation = sub(rf"\b{word}\b", f"{name}_{slice_index}", equation)
    return equation


def _scale_noise(noise: Normal, factor: float) -> Distribution:
    std = factor * noise.std
    return Normal(factor * noise.mean, std) if std else Zero()


STAT = (
    {"X": "u", "Z": "exp(-X) + u", "Y": "exp(-0.05 * Z) - cos(Z) - u"},
    {"X": "X_before + u", "Z": "exp(-X) + Z_before + u", "Y": "exp(-0.05 * Z) - cos(Z) + Y_before - u"},
)


def stat(slices: int = 3, trial_noise: float = 0.0) -> Problem:
    """Stat: the chain X -> Z -> Y, each variable carried over to the next slice.

    ``CBO/DCBOStat-v0`` has 10 observational time series, as NonStat has, and as many as the paper has replicates. The
    program's notebook for the same system had 5 in 2021, and 20 later.
    """
    return dynamic_problem(
        "Stat",
        "A chain of three variables in every slice, each of which also depends on itself in the slice before.",
        "sec. 4 (Stat.)",
        STAT,
        CHAIN_DOMAINS,
        slices=slices,
        trial_noise=trial_noise,
    )


def miss(slices: int = 6, trial_noise: float = 0.0) -> Problem:
    """Miss: Stat with observational data for the first three slices only.

    The default of six slices, and data for three of them, are ours, because the program does not fix these numbers.
    """
    return dynamic_problem(
        "Miss",
        "The system of Stat; observational data exist for the first three slices only.",
        "sec. 4 (Miss.)",
        STAT,
        CHAIN_DOMAINS,
        slices=slices,
        trial_noise=trial_noise,
        measured=3,
    )


def noisy(slices: int = 3, trial_noise: float = 0.0) -> Problem:
    """Noisy: Stat, whose X and Z have noise of mean 8 and standard deviation 4 in the observational data."""
    return dynamic_problem(
        "Noisy",
        "The system of Stat; in the observational data the variables that can be set have large noise, with mean 8.",
        "sec. 4 (Noisy)",
        STAT,
        CHAIN_DOMAINS,
        slices=slices,
        trial_noise=trial_noise,
        noise=dict.fromkeys("XZ", Normal(8.0, 4.0)),
    )


#: Two hills, the higher one at X = Z = 1.
HILLS = "2.0 * exp(-((X - 1.0) * (X - 1.0)) - (Z - 1.0) * (Z - 1.0)) + exp(-((X + 1.0) * (X + 1.0)) - Z * Z)"
IND = (
    {"X": "u", "Z": "u", "Y": f"{HILLS} - u"},
    {"X": "-X_before + u", "Z": "-Z_before + u", "Y": f"{HILLS} + Y_before - u"},
)


def ind(slices: int = 3, trial_noise: float = 0.0, x_domain: Interval = (-3.0, 3.0)) -> Problem:
    """Ind: X and Z are independent causes of Y, so that the graph is of no help within a slice.

    In the program X can be set from -4 to 1, so that the higher hill, at X = 1, is at the end of its domain. That is
    ``CBO/DCBOInd-v1``; in version 0 both domains run from -3 to 3.
    """
    return dynamic_problem(
        "Ind",
        "Two causes that do not affect each other; the best value of each depends on the other.",
        "sec. 4 (Ind.)",
        IND,
        {"X": x_domain, "Z": (-3.0, 3.0)},
        slices=slices,
        trial_noise=trial_noise,
    )


MULTIV = (
    {"X": "u", "W": "u", "Z": "sin(W) + u", "Y": f"{HILLS} - cos(Z) - u"},
    {
        "X": "-X_before + u",
        "W": "u",
        "Z": "sin(W) - Z_before + u",
        "Y": f"{HILLS} - cos(Z * Y_before) - Y_before - u",
    },
)


def multiv(slices: int = 3, trial_noise: float = 0.0) -> Problem:
    """Multiv: W -> Z -> Y <- X; a good reward lowers the next one."""
    return dynamic_problem(
        "Multiv",
        "Three variables that can be set; setting two of them is enough. A good reward lowers the next one.",
        "sec. 4 (Multiv.)",
        MULTIV,
        dict.fromkeys("XWZ", (-3.0, 3.0)),
        slices=slices,
        trial_noise=trial_noise,
    )


NONSTAT = (
    {"X": "u", "Z": "X + u", "Y": "-sqrt(absolute(36.0 - (Z - 1.0) * (Z - 1.0))) - 1.0 - u"},
    {
        "X": "X_before + u",
        "Z": "-X * X_before / (X_before * X_before + 0.01) + Z_before + u",
        "Y": "-Z * cos(pi * Z) - Y_before - u",
    },
    {"X": "X_before + u", "Z": "X + Z_before + u", "Y": "-absolute(Z) - Y_before + Z_before - u"},
)


def nonstat(slices: int = 3, trial_noise: float = 0.0) -> Problem:
    """NonStat: the chain X -> Z -> Y, whose equations and edges between slices change in slice 1 and after it.

    The program's quotient X_1 / X_0 is replaced by ``X_1 X_0 / (X_0^2 + 0.01)``: without noise it is 0 / 0 if nothing
    was set in slice 0, and with noise it has no finite expectation.
    """
    return dynamic_problem(
        "NonStat",
        "A chain of three variables whose equations, and edges from slice to slice, change over time.",
        "sec. 4 (NonStat.)",
        NONSTAT,
        CHAIN_DOMAINS,
        slices=slices,
        trial_noise=trial_noise,
    )


#: Unemployment due to growth, taxes and inflation: a Phillips curve, plus penalties on inflation and taxes by their
#: squared distances from 3 % and 25 %.
UNEMPLOYMENT = "(4.0 * exp(-0.5 * I) + 0.05 * (I - 3.0) * (I - 3.0) + 0.01 * (T - 25.0) * (T - 25.0) - 0.4 * G)"
ECONOMY = (
    {
        "G": "2.0 + u",
        "T": "22.0 + 0.5 * G + u",
        "I": "1.5 + 0.5 * G + u",
        "U": f"-(6.0 + {UNEMPLOYMENT} + u)",
    },
    {
        "G": "1.0 + 0.5 * G_before - 0.1 * (T_before - 25.0) + u",
        "T": "8.0 + 0.5 * G + 0.6 * T_before + u",
        "I": "0.5 + 0.5 * G + 0.5 * I_before + u",
        "U": f"-(3.0 + {UNEMPLOYMENT} + u) + 0.5 * U_before",
    },
)


def economy(slices: int = 3, trial_noise: float = 0.0) -> Problem:
    """Economy: taxes and inflation are set against unemployment; taxes slow the growth of the next slice.

    The variables are the paper's (growth G, taxes T, inflation I, all in per cent, and unemployment U). Its equations
    are regressions on data that its program does not include, so all numbers here are ours.
    """
    return dynamic_problem(
        "Economy",
        "Growth, taxes, inflation and unemployment of a closed economy; the reward is unemployment, negated.",
        "sec. 4 (Econ.); the equations are ours",
        ECONOMY,
        {"T": (10.0, 40.0), "I": (0.0, 10.0)},
        slices=slices,
        trial_noise=trial_noise,
        noise=dict.fromkeys("GIU", Normal(0.0, 0.5)),
    )


# Constants of ODE: rates per day.
DILUTION, MORTALITY = 0.55, 0.15
# Share of a day's eggs that dilution leaves to hatch.
HATCHING = exp(-DILUTION)
# Half-saturation constant and exponent of recruitment as a function of algae.
ROTIFER_HALF, ROTIFER_POWER = 15.0, 1.25
# State on the day before the first one.
N_BEFORE, P_BEFORE, J_BEFORE, A_BEFORE, E_BEFORE = 41.3, 2.71605, 1.23036, 6.15179, 0.171


def _uptake(nitrogen: object) -> str:
    return f"3.3 * (1.0 + u) * {nitrogen} / (4.3 + {nitrogen})"


def _recruitment(algae: str) -> str:
    return f"2.25 * (1.0 + u) * (food := power({algae}, {ROTIFER_POWER})) / ({ROTIFER_HALF**ROTIFER_POWER} + food)"


def _growth(gain: str, stock: object) -> str:
    """Return a day's offspring minus the losses of a stock, at least 0, as in the program."""
    return f"non_negative({gain} * {HATCHING} - {MORTALITY + DILUTION} * {stock})"


# As in the program, the first day differs: N loses nothing to dilution, and only the eggs that do not hatch count in E.
ODE = (
    {
        "M": "80.0 + u",
        "N": f"non_negative({DILUTION} * M - {_uptake(N_BEFORE)} * {P_BEFORE})",
        "P": f"non_negative({_uptake('N')} * {P_BEFORE})",
        "J": _growth(f"{_recruitment('P')} * {A_BEFORE}", J_BEFORE),
        "A": _growth(f"5.0 * ({_recruitment('P')}) * {A_BEFORE}", A_BEFORE),
        "E": f"non_negative({_recruitment('P')} * A * {1.0 - HATCHING} - {DILUTION * E_BEFORE})",
        "D": f"-({MORTALITY} * (J + A) + u)",
    },
    {
        "M": "80.0 + u",
        "N": f"non_negative({DILUTION} * M - {_uptake('N_before')} * P_before - {DILUTION} * N_before)",
        "P": f"non_negative({_uptake('N')} * P_before)",
        "J": _growth(f"{_recruitment('P_before')} * A_before", "J_before"),
        "A": _growth(f"5.0 * ({_recruitment('P_before')}) * A_before", "A_before"),
        "E": f"non_negative({_recruitment('P')} * A - {DILUTION} * E_before)",
        "D": f"-({MORTALITY} * (J + A) + u) - {DILUTION} * D_before",
    },
)


def ode(slices: int = 3, trial_noise: float = 0.0) -> Problem:
    """ODE: algae and rotifers in a chemostat, day by day; the reward is the number of dead animals, negated.

    The nitrogen M of the inflow, the juveniles J and the adults A can be set. Equations and constants are those of the
    program, after Blasius et al. (2020). Three things are ours. Concentrations are cut off at 0, because the equations
    are not defined for negative ones. The observational data are simulated, because the measured ones are not
    available; their noise has standard deviation 0.1 on the rates, 5 on M and 0.1 on D. The domains are ours, too.
    """
    return dynamic_problem(
        "ODE",
        "Nitrogen, algae and rotifers in a chemostat from day to day; the reward is the dead animals, negated.",
        "sec. 4 (ODE), after Blasius et al. (2020), Nature 577",
        ODE,
        {"M": (40.0, 160.0), "J": (0.0, 20.0), "A": (0.0, 100.0)},
        slices=slices,
        trial_noise=trial_noise,
        noise={"M": Normal(0.0, 5.0), **dict.fromkeys("NPJAED", Normal(0.0, 0.1))},
    )
