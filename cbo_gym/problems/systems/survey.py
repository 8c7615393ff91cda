"""Systems on which Huang et al. (2026) compare methods, in their survey and the program published with it.

The survey's function networks and healthcare graph are those of :mod:`cbo_gym.problems.systems.function_networks` and
:mod:`cbo_gym.problems.systems.hard_graphs`. The survey minimises all rewards except ecology's; here they are negated.
Ecology and protein are linear: least-squares fits of the survey to 46 rows of data on a coral reef and to 853 cells
(Sachs et al. 2005).
The targets are the minimal intervention sets; the survey tries all non-empty sets of variables that may be set.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from cbo_gym.problems.base import Problem
from cbo_gym.problems.modes.contextual import Columns, Contexts
from cbo_gym.problems.systems.building import hard_problem, read_equations
from cbo_gym.problems.systems.contextual import make_scope
from cbo_gym.problems.systems.hard_graphs import COMPLETE_DOMAINS, COMPLETE_EQUATIONS, TOY_REWARD
from cbo_gym.scm import Distribution, Normal, StructuralCausalModel, Uniform, Variable

SURVEY = "Huang, Le, Ma & Tran (2026), Causal Bayesian Optimization: Foundations, Methods, and Applications"
UNIT = Normal(0.0, 1.0)
TENTH = Normal(0.0, 0.1)
CHAIN_DOMAINS = {"W": (-1.0, 1.0), "Z": (-1.0, 1.0)}
# The optimum is 1 + 3 E|X|.
CHAIN_OPTIMUM = 1.0 + 3.0 * math.sqrt(2.0 / math.pi)


def _toy_chain(root: Distribution, noise: Distribution) -> list[Variable]:
    equations = {"X": "u", "Z": "exp(-X) + u", "Y": TOY_REWARD.format("Z")}
    return read_equations(equations, {"X": root, "Z": noise, "Y": noise})


def toy_graph() -> Problem:
    """SurveyToyGraph: ToyGraph with a uniform root and a tenth of the noise; Z is the best variable to set.

    Z = exp(-X) + noise reaches 148 where nothing is set. The survey's program clips its observations, X to [-5, 5] and
    Z to [-5, 20], and its X is equally spaced with noise of standard deviation 0.5. Here nothing is clipped,
    because clipping of observations alone is not a mechanism.
    """
    return hard_problem(
        "SurveyToyGraph",
        _toy_chain(Uniform(-5.0, 5.0), TENTH),
        {"X": (-5.0, 5.0), "Z": (-5.0, 20.0)},
        "A chain of three variables with little noise.",
        SURVEY,
    )


def synthetic_2() -> Problem:
    """SurveySynthetic2: ToyGraph with narrow domains; the best value of Z is outside its domain, so X is set."""
    return hard_problem(
        "SurveySynthetic2",
        _toy_chain(UNIT, UNIT),
        {"X": (-3.0, 2.0), "Z": (-1.0, 1.0)},
        "A chain of three variables; the middle one can only be set to poor values.",
        SURVEY,
    )


def synthetic() -> Problem:
    """SurveySynthetic: the graph of CompleteGraph, with noise only at roots and reward; the reward has no linear terms.

    Y = -(cos D + sin E + U1 + 0.1 U2 N), so that cos D = sin E = -1 is best: 2.
    """
    return hard_problem(
        "SurveySynthetic",
        read_equations(
            {**COMPLETE_EQUATIONS, "Y": "-(cos(D) + sin(E) + U1 + U2 * u)"},
            {**dict.fromkeys(("U1", "U2", "F"), UNIT), "Y": TENTH},
            latent="U1 U2",
        ),
        COMPLETE_DOMAINS,
        "Seven variables and two latent confounders, little noise of their own.",
        SURVEY,
        optimal_do={"D": math.pi, "E": -0.5 * math.pi},
    )


def _context_is_root(contexts: Columns, uniforms: Columns) -> Columns:
    return {"X": contexts["X"]}


def _sign_of_context(contexts: Columns) -> Columns:
    return {"W": np.ones_like(contexts["X"]), "Z": np.sign(contexts["X"])}


PRODUCT = {"X": "u", "W": "u", "Z": "u - 0.5 * X", "Y": "W + 3.0 * Z * X + u"}


def chain() -> Problem:
    """SurveyChain: Z multiplies its own cause, so no constant Z helps: W = 1 and any Z have the reward 1.

    Y = W + 3 Z X + N with X ~ N.
    """
    return hard_problem(
        "SurveyChain",
        read_equations(PRODUCT, UNIT),
        CHAIN_DOMAINS,
        "A product of two variables, one of which has mean zero.",
        SURVEY,
        optimal_do={"W": 1.0, "Z": 0.0},
    )


def chain_contextual() -> Problem:
    """SurveyChainContextual: SurveyChain where Z may follow X, and W is set to a number (the survey's chain_soft).

    W = 1 and Z = sign X have the reward 1 + 3 E|X| = 1 + 3 sqrt(2 / pi).
    """
    by_x = {"Z": ("X",)}
    scopes = [make_scope({"W": (), **by_x}), make_scope(by_x), make_scope({"W": ()}), frozenset()]
    return hard_problem(
        "SurveyChainContextual",
        read_equations(PRODUCT, UNIT),
        CHAIN_DOMAINS,
        "A product of two variables, one of which has mean zero and can be seen, not set.",
        SURVEY,
        noise_known=False,
        modes=[Contexts(("X",), scopes, _context_is_root, _sign_of_context, "W = 1, Z = sign X", value=CHAIN_OPTIMUM)],
    )


def chain_policy() -> Problem:
    """SurveyChainPolicy: SurveyChain, where the action is a policy: Z = tan(angle) X + shift, cut off at -1 and 1.

    The steepest angle is Z = sign X, which is optimal among all policies. The survey's policies, sums of sines and
    cosines with one scale and one phase, reach at most 1.214 (by quadrature); the survey scores them by the optimum.
    """
    equations = {**PRODUCT, "W": "weight", "Z": "clip(tan(angle) * X + shift, -1.0, 1.0)"}
    variables = read_equations(equations, UNIT, actions=("weight", "angle", "shift"))
    return Problem(
        name="SurveyChainPolicy",
        scm=StructuralCausalModel(variables, reward="Y"),
        description="How steeply one variable follows another, with whose product it is rewarded.",
        citation=SURVEY,
        action_domains=[(-1.0, 1.0), (-0.5 * math.pi, 0.5 * math.pi), (-1.0, 1.0)],
        action_names=["W", "angle", "shift"],
        null_action=(0.5, 0.5, 0.5),
        optimal_action=(1.0, 1.0, 0.5),
    )


def epidemiology() -> Problem:
    """SurveyEpidemiology: a reward that oscillates in L, faster for larger L, until it averages out.

    E[Y | do(L, B)] holds (cos(8 + 15 L) - cos(8 + 7 L)) / (8 L), so the highest peak is in the first thousandth of
    the domain of L, and all peaks beyond the first hundredth are less than a seventh as high.
    """
    equations = {
        "B": "u",
        "T": "u",
        "L": "exp(0.5 * T + u)",
        "R": "4.0 + L * T",
        "Y": "-(0.5 + cos(4.0 * T) + sin(2.0 * R - L) + B + u)",
    }
    noise = {"B": Uniform(-1.0, 1.0), "T": Uniform(4.0, 8.0), "L": UNIT, "Y": UNIT}
    return hard_problem(
        "SurveyEpidemiology",
        read_equations(equations, noise),
        {"L": (0.479, 801.787), "B": (-0.994, 0.999)},
        "A load that acts on the reward through a sine of growing frequency, and a behaviour that adds to it.",
        SURVEY,
        # The highest peak, exact to rounding.
        optimal_do={"L": 1.1284516055996028, "B": -0.994},
    )


def _linear_variables(rows: Mapping[str, tuple[str, float | Distribution]]) -> list[Variable]:
    """Return variables from their equations and noise: a distribution, or the standard deviation of a normal one."""
    noise = {name: scale for name, (_, scale) in rows.items()}
    return read_equations({name: equation for name, (equation, _) in rows.items()}, noise)


def ecology() -> Problem:
    """SurveyEcology: calcification of a coral reef; T and D have no effect on it.

    Linear: nutrients N at their highest, chlorophyll C at its highest and saturation O at its lowest are best.
    """
    rows = {
        "E": ("24.184130 + u", 3.220405),
        "S": ("36.591624 + u", 0.149197),
        "N": ("0.492065 + u", 1.592408),
        "T": ("2357.893696 + u", 27.609355),
        "X": ("18.798174 + u + 15.797384 * E", 28.896639),
        "C": ("0.373420 + u - 0.002400 * N", 0.039295),
        "L": ("6665.081996 + u - 10737.462582 * C", 1546.913034),
        "P": ("8.427706 + u - 0.000965531 * X", 0.005258258),
        "D": ("2131.672107 + u - 0.216560 * X", 18.412100),
        "O": ("3.245248 + u + 0.094332 * E + 0.006753921 * S - 0.005737087 * X", 0.036957978),
        "Y": ("211.422555 + u - 3.012577e-5 * L + 0.016679591 * N - 25.719277 * P - 0.500403 * O", 1.073340),
    }
    domains = {"N": (-2.0, 5.0), "O": (2.0, 4.0), "C": (0.0, 1.0), "T": (2200.0, 2500.0), "D": (1950.0, 2100.0)}
    return hard_problem(
        "SurveyEcology",
        _linear_variables(rows),
        domains,
        "A linear model of eleven variables of a coral reef; the reward is its net calcification.",
        SURVEY,
        optimal_do={"N": 5.0, "C": 1.0, "O": 2.0},
    )


def protein() -> Problem:
    """SurveyProtein: signalling proteins of a cell; the reward is negated Erk, on which Akt has no effect.

    Linear: PKA at its lowest and Mek at its highest are best.
    """
    rows: dict[str, tuple[str, float | Distribution]] = {
        "PKC": ("u", Uniform(1.0, 106.0)),
        "PKA": ("554.390731 + u + 0.841152557 * PKC", 427.437996),
        "Raf": ("62.199046 + u - 0.177745091 * PKC - 0.000379207522 * PKA", 41.768782),
        "Mek": ("-1.090275 + u + 0.0396624572 * PKC - 0.000652026685 * PKA + 0.520844705 * Raf", 16.695866),
        "P38": ("15.144328 + u + 1.234783290 * PKC + 0.000590540236 * PKA", 13.111163),
        "Jnk": ("52.953603 + u - 0.764801188 * PKC - 0.00530609682 * PKA", 42.074715),
        "Akt": ("-31.110747 + u + 0.128905329 * PKA", 113.959504),
        "Y": ("23.248743 + u - 0.0817067325 * PKA + 0.0298858143 * Mek", 82.760198),
    }
    return hard_problem(
        "SurveyProtein",
        _linear_variables(rows),
        {"PKC": (0.5, 106.5), "PKA": (1.45, 4491.5), "Mek": (0.5, 389.5), "Akt": (1.2, 3555.5)},
        "A linear model of eight signalling proteins of a cell; the reward is the negated amount of Erk.",
        SURVEY,
        optimal_do={"PKA": 1.45, "Mek": 389.5},
    )
