"""Systems of Aglietti, Dhir, Gonzalez & Damoulas (2021), unrolled over time. They minimise; here rewards are negated.

Equations, domains and sizes of the observational data are those of the authors' public program where it has them: Stat,
Noisy, Ind, Multiv, NonStat and the equations of ODE. What is ours is said with each system. In all of them:

* Trials are met by the noise times ``trial_noise``, 0 by default: the program computes what a trial gives without
  noise. The observational time series have the whole noise, normal with mean 0 and standard deviation 1 where nothing
  else is said.
* Every set of manipulable variables is a target, since the methods without a graph set all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from cbo_gym.actions import Interval
from cbo_gym.arguments import require_not_negative, whole_number
from cbo_gym.problems.base import Problem, non_negative
from cbo_gym.problems.modes.dynamic import Slices
from cbo_gym.problems.outcomes import PlayedSlice
from cbo_gym.scm import Distribution, Floats, Normal, StructuralCausalModel, Variable, Zero, own_noise

AGLIETTI = "Aglietti, Dhir, Gonzalez & Damoulas (2021), Dynamic causal Bayesian optimization"
UNIT = Normal(0.0, 1.0)
MOST_SLICES = 100  # a step takes a third of a millisecond then
CHAIN_DOMAINS = {"X": (-4.0, 1.0), "Z": (-3.0, 3.0)}


class Equation(NamedTuple):
    """A mechanism in a slice: called with ``now``, variables of the same slice, ``before``, and its noise."""

    mechanism: Callable[..., Floats]
    now: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


Equations = Mapping[str, Equation]  # of a slice, in topological order, the reward last


def dynamic_problem(
    name: str,
    description: str,
    section: str,
    equations: Callable[[int], Equations],
    manipulable: Mapping[str, Interval],
    *,
    slices: int,
    trial_noise: float,
    noise: Mapping[str, Normal] | None = None,
    measured: int | None = None,
) -> Problem:
    """A problem with slices.

    Args:
        name: of the problem.
        description: one or two sentences for users.
        section: of the paper.
        equations: slice, from 0 -> its equations.
        manipulable: variable of a slice -> native ``(low, high)``.
        slices: the number T of slices, 1 to 100.
        trial_noise: factor of the noise in trials, finite and at least 0.
        noise: variable of a slice -> its noise, where that is not standard normal; of standard deviation 0 for none.
        measured: in how many slices, the first ones, there are observational data; None for all.

    Raises:
        ArgumentError: if ``slices`` or ``trial_noise`` is out of range.
    """
    count = whole_number("slices", slices, at_least=1, at_most=MOST_SLICES)
    require_not_negative("trial_noise", trial_noise)
    own = noise or {}
    names = tuple(equations(0))

    def system(factor: float) -> StructuralCausalModel:
        variables = [
            Variable(
                f"{variable}_{place}",
                equation.mechanism,
                (*(f"{n}_{place}" for n in equation.now), *(f"{n}_{place - 1}" for n in equation.before)),
                noise=_scaled(own.get(variable, UNIT), factor),
            )
            for place in range(count)
            for variable, equation in equations(place).items()
        ]
        return StructuralCausalModel(variables, reward=f"{names[-1]}_{count - 1}")

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
                targets=every_set(list(manipulable)),
                history=system(1.0),
                measured=count if measured is None else min(measured, count),
            )
        ],
    )


def _scaled(noise: Normal, factor: float) -> Distribution:
    std = factor * noise.std
    return Normal(factor * noise.mean, std) if std else Zero()


def every_set(names: Sequence[str]) -> list[frozenset[str]]:
    """All sets of the names, smaller ones first, the empty one included."""
    return [frozenset(members) for size in range(len(names) + 1) for members in combinations(names, size)]


def _carried(before: Floats, u: Floats) -> Floats:
    return before + u


def _turned(before: Floats, u: Floats) -> Floats:
    return -before + u


# Stat, Miss and Noisy


def _stat_middle(x: Floats, u: Floats) -> Floats:
    return np.exp(-x) + u


def _stat_middle_later(x: Floats, z_before: Floats, u: Floats) -> Floats:
    return np.exp(-x) + z_before + u


def _stat_reward(z: Floats, u: Floats) -> Floats:
    return np.exp(-0.05 * z) - np.cos(z) - u


def _stat_reward_later(z: Floats, y_before: Floats, u: Floats) -> Floats:
    return np.exp(-0.05 * z) - np.cos(z) + y_before - u


STAT_FIRST: Equations = {
    "X": Equation(own_noise),
    "Z": Equation(_stat_middle, ("X",)),
    "Y": Equation(_stat_reward, ("Z",)),
}
STAT_LATER: Equations = {
    "X": Equation(_carried, (), ("X",)),
    "Z": Equation(_stat_middle_later, ("X",), ("Z",)),
    "Y": Equation(_stat_reward_later, ("Z",), ("Y",)),
}


def _stat_equations(place: int) -> Equations:
    return STAT_LATER if place else STAT_FIRST


def stat(slices: int = 3, trial_noise: float = 0.0) -> Problem:
    """Stat: the chain X -> Z -> Y, each variable carried over to the next slice.

    ``CBO/DCBOStat-v0`` has 10 observational time series, as NonStat and the replicates of the paper. The program's
    notebook of this system had 5 in 2021 and has 20 since; the system is the same.
    """
    return dynamic_problem(
        "Stat",
        "A chain of three variables in every slice, each of which also depends on itself in the slice before.",
        "sec. 4 (Stat.)",
        _stat_equations,
        CHAIN_DOMAINS,
        slices=slices,
        trial_noise=trial_noise,
    )


def miss(slices: int = 6, trial_noise: float = 0.0) -> Problem:
    """Miss: Stat with twice the slices, the second half of which nothing was measured in.

    That there are six, and data in three of them, is ours: the program does not fix it.
    """
    return dynamic_problem(
        "Miss",
        "The system of Stat; observational data exist for the first three slices alone.",
        "sec. 4 (Miss.)",
        _stat_equations,
        CHAIN_DOMAINS,
        slices=slices,
        trial_noise=trial_noise,
        measured=3,
    )


def noisy(slices: int = 3, trial_noise: float = 0.0) -> Problem:
    """Noisy: Stat, whose X and Z have noise of mean 8 and standard deviation 4 in the observational data."""
    loud = Normal(8.0, 4.0)
    return dynamic_problem(
        "Noisy",
        "The system of Stat; in the observational data the noise of what can be set is large and off centre.",
        "sec. 4 (Noisy)",
        _stat_equations,
        CHAIN_DOMAINS,
        slices=slices,
        trial_noise=trial_noise,
        noise={"X": loud, "Z": loud},
    )


# Ind and Multiv


def _hills(x: Floats, z: Floats) -> Floats:
    """Two hills, the higher one at (1, 1)."""
    return 2.0 * np.exp(-((x - 1.0) * (x - 1.0)) - (z - 1.0) * (z - 1.0)) + np.exp(-((x + 1.0) * (x + 1.0)) - z * z)


def _ind_reward(x: Floats, z: Floats, u: Floats) -> Floats:
    return _hills(x, z) - u


def _ind_reward_later(x: Floats, z: Floats, y_before: Floats, u: Floats) -> Floats:
    return _hills(x, z) + y_before - u


IND_FIRST: Equations = {
    "X": Equation(own_noise),
    "Z": Equation(own_noise),
    "Y": Equation(_ind_reward, ("X", "Z")),
}
IND_LATER: Equations = {
    "X": Equation(_turned, (), ("X",)),
    "Z": Equation(_turned, (), ("Z",)),
    "Y": Equation(_ind_reward_later, ("X", "Z"), ("Y",)),
}


def _ind_equations(place: int) -> Equations:
    return IND_LATER if place else IND_FIRST


def ind(slices: int = 3, trial_noise: float = 0.0, x_domain: Interval = (-3.0, 3.0)) -> Problem:
    """Ind: X and Z are independent causes of Y, so that the graph is of no help within a slice.

    In the program X can be set from -4 to 1, so that the higher hill, at X = 1, is at the end of its domain. That is
    ``CBO/DCBOInd-v1``; in version 0 both domains run from -3 to 3.
    """
    return dynamic_problem(
        "Ind",
        "Two causes that do not affect each other; the best values of both are found together.",
        "sec. 4 (Ind.)",
        _ind_equations,
        {"X": x_domain, "Z": (-3.0, 3.0)},
        slices=slices,
        trial_noise=trial_noise,
    )


def _wave(w: Floats, u: Floats) -> Floats:
    return np.sin(w) + u


def _wave_later(w: Floats, z_before: Floats, u: Floats) -> Floats:
    return np.sin(w) - z_before + u


def _multiv_reward(x: Floats, z: Floats, u: Floats) -> Floats:
    return _hills(x, z) - np.cos(z) - u


def _multiv_reward_later(x: Floats, z: Floats, y_before: Floats, u: Floats) -> Floats:
    return _hills(x, z) - np.cos(z * y_before) - y_before - u


MULTIV_FIRST: Equations = {
    "X": Equation(own_noise),
    "W": Equation(own_noise),
    "Z": Equation(_wave, ("W",)),
    "Y": Equation(_multiv_reward, ("X", "Z")),
}
MULTIV_LATER: Equations = {
    "X": Equation(_turned, (), ("X",)),
    "W": Equation(own_noise),
    "Z": Equation(_wave_later, ("W",), ("Z",)),
    "Y": Equation(_multiv_reward_later, ("X", "Z"), ("Y",)),
}


def _multiv_equations(place: int) -> Equations:
    return MULTIV_LATER if place else MULTIV_FIRST


def multiv(slices: int = 3, trial_noise: float = 0.0) -> Problem:
    """Multiv: W -> Z -> Y <- X; a good reward lowers the next one."""
    return dynamic_problem(
        "Multiv",
        "Three variables that can be set, two at a time to the best effect; a good reward lowers the next one.",
        "sec. 4 (Multiv.)",
        _multiv_equations,
        {"X": (-3.0, 3.0), "W": (-3.0, 3.0), "Z": (-3.0, 3.0)},
        slices=slices,
        trial_noise=trial_noise,
    )


# NonStat

CHANGE = 1  # the slice with other equations
SOFTENING = 0.01  # added to the square of a divisor


def _sum(x: Floats, u: Floats) -> Floats:
    return x + u


def _nonstat_reward(z: Floats, u: Floats) -> Floats:
    return -np.sqrt(np.abs(36.0 - (z - 1.0) * (z - 1.0))) - 1.0 - u


def _ratio(x: Floats, x_before: Floats, z_before: Floats, u: Floats) -> Floats:
    return -x * x_before / (x_before * x_before + SOFTENING) + z_before + u


def _nonstat_reward_changed(z: Floats, y_before: Floats, u: Floats) -> Floats:
    return -z * np.cos(np.pi * z) - y_before - u


def _sum_later(x: Floats, z_before: Floats, u: Floats) -> Floats:
    return x + z_before + u


def _nonstat_reward_later(z: Floats, y_before: Floats, z_before: Floats, u: Floats) -> Floats:
    return -np.abs(z) - y_before + z_before - u


NONSTAT_FIRST: Equations = {
    "X": Equation(own_noise),
    "Z": Equation(_sum, ("X",)),
    "Y": Equation(_nonstat_reward, ("Z",)),
}
NONSTAT_CHANGED: Equations = {
    "X": Equation(_carried, (), ("X",)),
    "Z": Equation(_ratio, ("X",), ("X", "Z")),
    "Y": Equation(_nonstat_reward_changed, ("Z",), ("Y",)),
}
NONSTAT_LATER: Equations = {
    "X": Equation(_carried, (), ("X",)),
    "Z": Equation(_sum_later, ("X",), ("Z",)),
    "Y": Equation(_nonstat_reward_later, ("Z",), ("Y", "Z")),
}


def _nonstat_equations(place: int) -> Equations:
    if place == 0:
        return NONSTAT_FIRST
    return NONSTAT_CHANGED if place == CHANGE else NONSTAT_LATER


def nonstat(slices: int = 3, trial_noise: float = 0.0) -> Problem:
    """NonStat: the chain X -> Z -> Y, whose equations and edges between slices change in slice 1 and after it.

    The quotient X_1 / X_0 is ``X_1 X_0 / (X_0^2 + 0.01)`` here. The program's is 0 / 0 where nothing was set in slice
    0, and without a finite expectation where there is noise.
    """
    return dynamic_problem(
        "NonStat",
        "A chain of three variables whose equations, and edges from slice to slice, change over time.",
        "sec. 4 (NonStat.)",
        _nonstat_equations,
        CHAIN_DOMAINS,
        slices=slices,
        trial_noise=trial_noise,
    )


# Economy

USUAL_TAX = 25.0  # per cent of the product, at which neither growth nor employment suffers


def _growth(u: Floats) -> Floats:
    return 2.0 + u


def _growth_later(growth_before: Floats, tax_before: Floats, u: Floats) -> Floats:
    return 1.0 + 0.5 * growth_before - 0.1 * (tax_before - USUAL_TAX) + u


def _tax(growth: Floats, u: Floats) -> Floats:
    return 22.0 + 0.5 * growth + u


def _tax_later(growth: Floats, tax_before: Floats, u: Floats) -> Floats:
    return 8.0 + 0.5 * growth + 0.6 * tax_before + u


def _inflation(growth: Floats, u: Floats) -> Floats:
    return 1.5 + 0.5 * growth + u


def _inflation_later(growth: Floats, inflation_before: Floats, u: Floats) -> Floats:
    return 0.5 + 0.5 * growth + 0.5 * inflation_before + u


def _burden(growth: Floats, tax: Floats, inflation: Floats) -> Floats:
    """The part of unemployment due to growth, taxes and inflation: Phillips' curve, with a cost of high inflation."""
    off = tax - USUAL_TAX
    high = inflation - 3.0
    return 4.0 * np.exp(-0.5 * inflation) + 0.05 * high * high + 0.01 * off * off - 0.4 * growth


def _unemployment(growth: Floats, tax: Floats, inflation: Floats, u: Floats) -> Floats:
    return -(6.0 + _burden(growth, tax, inflation) + u)


def _unemployment_later(growth: Floats, tax: Floats, inflation: Floats, before: Floats, u: Floats) -> Floats:
    return -(3.0 + _burden(growth, tax, inflation) + u) + 0.5 * before


ECONOMY_FIRST: Equations = {
    "G": Equation(_growth),
    "T": Equation(_tax, ("G",)),
    "I": Equation(_inflation, ("G",)),
    "U": Equation(_unemployment, ("G", "T", "I")),
}
ECONOMY_LATER: Equations = {
    "G": Equation(_growth_later, (), ("G", "T")),
    "T": Equation(_tax_later, ("G",), ("T",)),
    "I": Equation(_inflation_later, ("G",), ("I",)),
    "U": Equation(_unemployment_later, ("G", "T", "I"), ("U",)),
}


def _economy_equations(place: int) -> Equations:
    return ECONOMY_LATER if place else ECONOMY_FIRST


def economy(slices: int = 3, trial_noise: float = 0.0) -> Problem:
    """Economy: taxes and inflation are set against unemployment; taxes slow the growth of the next slice.

    The variables are the paper's (growth G, taxes T, inflation I, all in per cent, and unemployment U). Its equations
    are regressions on data that its program does not hold, so all numbers here are ours.
    """
    return dynamic_problem(
        "Economy",
        "Growth, taxes, inflation and unemployment of a closed economy; the reward is unemployment, negated.",
        "sec. 4 (Econ.); the equations are ours",
        _economy_equations,
        {"T": (10.0, 40.0), "I": (0.0, 10.0)},
        slices=slices,
        trial_noise=trial_noise,
        noise={"G": Normal(0.0, 0.5), "T": UNIT, "I": Normal(0.0, 0.5), "U": Normal(0.0, 0.5)},
    )


# ODE

DILUTION, MORTALITY = 0.55, 0.15  # a day
MASS_RATIO = 5.0  # of an adult to a juvenile
ALGAE_UPTAKE, ALGAE_HALF = 3.3, 4.3
ROTIFER_UPTAKE, ROTIFER_HALF, ROTIFER_POWER = 2.25, 15.0, 1.25
HATCHING = float(np.exp(-DILUTION))  # share of a day's eggs that are left
NITROGEN = 80.0  # outside
N_BEFORE, P_BEFORE, J_BEFORE, A_BEFORE, E_BEFORE, D_BEFORE = 41.3, 2.71605, 1.23036, 6.15179, 0.171, 0.0
RATE_NOISE = Normal(0.0, 0.1)


def _uptake(nitrogen: Floats, u: Floats) -> Floats:
    return ALGAE_UPTAKE * (1.0 + u) * nitrogen / (ALGAE_HALF + nitrogen)


def _recruitment(algae: Floats, u: Floats) -> Floats:
    power = np.power(algae, ROTIFER_POWER)
    return ROTIFER_UPTAKE * (1.0 + u) * power / (ROTIFER_HALF**ROTIFER_POWER + power)


def _supply(u: Floats) -> Floats:
    return NITROGEN + u


def _nitrogen_later(m: Floats, n: Floats, p: Floats, u: Floats) -> Floats:
    return non_negative(DILUTION * m - _uptake(n, u) * p - DILUTION * n)


def _nitrogen(m: Floats, u: Floats) -> Floats:
    return non_negative(DILUTION * m - _uptake(N_BEFORE, u) * P_BEFORE)


def _algae(n: Floats, u: Floats) -> Floats:
    return non_negative(_uptake(n, u) * P_BEFORE)


def _algae_later(n: Floats, p: Floats, u: Floats) -> Floats:
    return non_negative(_uptake(n, u) * p)


def _juveniles(p: Floats, u: Floats) -> Floats:
    return non_negative(_recruitment(p, u) * A_BEFORE * HATCHING - (MORTALITY + DILUTION) * J_BEFORE)


def _juveniles_later(p: Floats, a: Floats, j: Floats, u: Floats) -> Floats:
    return non_negative(_recruitment(p, u) * a * HATCHING - (MORTALITY + DILUTION) * j)


def _adults(p: Floats, u: Floats) -> Floats:
    return non_negative(MASS_RATIO * _recruitment(p, u) * A_BEFORE * HATCHING - (MORTALITY + DILUTION) * A_BEFORE)


def _adults_later(p: Floats, a: Floats, u: Floats) -> Floats:
    return non_negative(MASS_RATIO * _recruitment(p, u) * a * HATCHING - (MORTALITY + DILUTION) * a)


def _eggs(p: Floats, a: Floats, u: Floats) -> Floats:
    return non_negative(_recruitment(p, u) * a * (1.0 - HATCHING) - DILUTION * E_BEFORE)


def _eggs_later(p: Floats, a: Floats, e: Floats, u: Floats) -> Floats:
    return non_negative(_recruitment(p, u) * a - DILUTION * e)


def _dead(j: Floats, a: Floats, u: Floats) -> Floats:
    return -(MORTALITY * (j + a) - DILUTION * D_BEFORE + u)


def _dead_later(j: Floats, a: Floats, before: Floats, u: Floats) -> Floats:
    return -(MORTALITY * (j + a) + u) - DILUTION * before


ODE_FIRST: Equations = {
    "M": Equation(_supply),
    "N": Equation(_nitrogen, ("M",)),
    "P": Equation(_algae, ("N",)),
    "J": Equation(_juveniles, ("P",)),
    "A": Equation(_adults, ("P",)),
    "E": Equation(_eggs, ("P", "A")),
    "D": Equation(_dead, ("J", "A")),
}
ODE_LATER: Equations = {
    "M": Equation(_supply),
    "N": Equation(_nitrogen_later, ("M",), ("N", "P")),
    "P": Equation(_algae_later, ("N",), ("P",)),
    "J": Equation(_juveniles_later, (), ("P", "A", "J")),
    "A": Equation(_adults_later, (), ("P", "A")),
    "E": Equation(_eggs_later, ("P", "A"), ("E",)),
    "D": Equation(_dead_later, ("J", "A"), ("D",)),
}


def _ode_equations(place: int) -> Equations:
    return ODE_LATER if place else ODE_FIRST


def ode(slices: int = 3, trial_noise: float = 0.0) -> Problem:
    """ODE: algae and rotifers in a chemostat, day by day; the reward is the number of dead animals, negated.

    The nitrogen M outside, the juveniles J and the adults A can be set. Equations and constants are the program's,
    after Blasius et al. (2020). Ours are: concentrations are cut off at 0, without which they leave the domain of the
    equations; the observational data are simulated, with noise of standard deviation 0.1 on the rates, 5 on M and 0.1
    on D, for want of the measured ones; and the domains.
    """
    return dynamic_problem(
        "ODE",
        "Nitrogen, algae and rotifers in a chemostat from day to day; the reward is the dead animals, negated.",
        "sec. 4 (ODE), after Blasius et al. (2020), Nature 577",
        _ode_equations,
        {"M": (40.0, 160.0), "J": (0.0, 20.0), "A": (0.0, 100.0)},
        slices=slices,
        trial_noise=trial_noise,
        noise={"M": Normal(0.0, 5.0), **dict.fromkeys("NPJAED", RATE_NOISE)},
    )
