"""Binary systems for discrete mode: the bandits of Lattimore et al. (2016), and the graphs of Lee & Bareinboim (2018).

All variables are 0 or 1, and an arm sets some of them. Exclusive or is addition modulo 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, product

from cbo_gym._util.arguments import is_finite_number, whole_number
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.problems.base import Problem
from cbo_gym.problems.modes.discrete import Arms
from cbo_gym.problems.systems.building import read_equations
from cbo_gym.scm import Discrete, Floats, StructuralCausalModel, Variable, own_noise

LATTIMORE = "Lattimore, Lattimore & Reid (2016), Causal bandits: learning good interventions via causal inference"
LEE = "Lee & Bareinboim (2018), Structural causal bandits: where to intervene?"
Arm = dict[str, float]
MAX_CAUSES = 200


def _problem(name: str, variables: list[Variable], arms: list[Arm], description: str, citation: str) -> Problem:
    scm = StructuralCausalModel(variables, reward="Y")
    return Problem(name, scm, description, citation, modes=[Arms(arms)], noise_known=False)


def _bernoulli(probability: float) -> Discrete:
    return Discrete([0.0, 1.0], [1.0 - probability, probability])


def _exceeds(cause: Floats, u: Floats) -> Floats:
    return 1.0 * (cause > u)


def _conditional_noise(if_0: float, if_1: float) -> Discrete:
    """Return noise with which ``_exceeds`` is 1 with probability ``if_0`` if the cause is 0, else with ``if_1``."""
    return Discrete([-0.5, 0.5, 1.5], [if_0, if_1 - if_0, 1.0 - if_1])


def _single_arms(names: list[str]) -> list[Arm]:
    return [{}, *({name: value} for name in names for value in (0.0, 1.0))]


def _reward_variable(causes: list[str], probability: float, epsilon: float) -> Variable:
    """Return the reward, which is 1 with probability 1/2 + epsilon if X1 = 1, and with a lower one if X1 = 0.

    Its mean is 1/2, given ``probability``, P(X1 = 1). The other causes are parents in the graph, without an effect.
    """
    loss = epsilon * probability / (1.0 - probability)
    noise = _conditional_noise(0.5 - loss, 0.5 + epsilon)
    return Variable("Y", _exceeds, tuple(causes[:1]), noise=noise, idle_parents=tuple(causes[1:]))


def _check_causes(causes: int, rare: int, epsilon: float) -> list[str]:
    whole_number("causes", causes, at_least=2, at_most=MAX_CAUSES)
    whole_number("rare", rare, at_least=1)
    if rare >= causes:
        raise ArgumentError(f"rare must be less than the number of causes, {causes}; given {short_repr(rare)}")
    if not (is_finite_number(epsilon) and 0.0 < epsilon <= 0.5):
        raise ArgumentError(f"epsilon must be a number above 0 and at most 0.5; given {short_repr(epsilon)}")
    return [f"X{i}" for i in range(1, causes + 1)]


def parallel_bandit(causes: int = 50, rare: int = 2, q: float = 0.0, epsilon: float = 0.3) -> Problem:
    """ParallelBandit: independent causes X1, ..., XN of one reward; an arm sets one of them, or none.

    The first ``rare`` causes are 1 with probability q and the others with 1/2. If q is small, observations tell little
    of the arms that set a rare cause to 1; the paper's m(q) counts such arms and is ``rare`` if q is 0. Only X1
    matters: E[Y | do(X1 = 1)] = 1/2 + epsilon. The mean reward of any other arm is 1/2, or less if it sets X1 to 0.

    Args:
        causes: number N, 2 to 200.
        rare: number of rare causes, at least 1 and less than ``causes``.
        q: P(X = 1) of each rare cause, from 0 to 1/2.
        epsilon: excess of the best arm's mean reward over 1/2; above 0, at most 1/2.
    """
    names = _check_causes(causes, rare, epsilon)
    if not (is_finite_number(q) and 0.0 <= q <= 0.5):
        raise ArgumentError(f"q must be a number from 0 to 0.5; given {short_repr(q)}")
    probabilities = [q] * rare + [0.5] * (causes - rare)
    variables = [Variable(name, own_noise, noise=_bernoulli(p)) for name, p in zip(names, probabilities, strict=True)]
    variables.append(_reward_variable(names, q, epsilon))
    description = f"{causes} independent binary causes of one reward, {rare} of them seldom 1; one matters."
    return _problem("ParallelBandit", variables, _single_arms(names), description, f"{LATTIMORE}, sec. 3 and 5")


# P(X = 1) of a rare cause, P(Z = 1), and P(X = 1 | Z = 0) and P(X = 1 | Z = 1) of any other cause.
P_RARE, P_Z, P_GIVEN_Z = 1e-5, 0.4, (0.4, 0.65)


def confounded_bandit(causes: int = 50, rare: int = 1, epsilon: float = 0.3) -> Problem:
    """ConfoundedBandit: the causes of a parallel bandit share a cause Z, which is observed and may be set.

    P(Z = 1) = 0.4. The first ``rare`` causes are 1 with probability 0.00001, and the others with 0.4 if Z = 0 and 0.65
    if Z = 1. For the reward and the arguments see :func:`parallel_bandit`.
    """
    names = _check_causes(causes, rare, epsilon)
    probabilities = [(P_RARE, P_RARE)] * rare + [P_GIVEN_Z] * (causes - rare)
    variables = [Variable("Z", own_noise, noise=_bernoulli(P_Z))]
    for name, given_z in zip(names, probabilities, strict=True):
        variables.append(Variable(name, _exceeds, ("Z",), noise=_conditional_noise(*given_z)))
    variables.append(_reward_variable(names, P_RARE, epsilon))
    description = f"{causes} binary causes of one reward with a common cause, {rare} of them seldom 1; one matters."
    citation = f"{LATTIMORE}, sec. 5; constants: the published program's experiment 6"
    return _problem("ConfoundedBandit", variables, _single_arms(["Z", *names]), description, citation)


def _all_arms(names: list[str]) -> list[Arm]:
    """Return an arm for each subset of the variables and each assignment of 0 and 1 to it."""
    sets = [members for size in range(len(names) + 1) for members in combinations(names, size)]
    return [
        dict(zip(members, bits, strict=True)) for members in sets for bits in product((0.0, 1.0), repeat=len(members))
    ]


def _lee_problem(
    name: str, equations: Mapping[str, tuple[str, float]], description: str, section: str, latent: str = ""
) -> Problem:
    """Return a problem from the equation of each variable and the probability that its noise is 1."""
    noise = {variable: _bernoulli(probability) for variable, (_, probability) in equations.items()}
    expressions = {variable: equation for variable, (equation, _) in equations.items()}
    variables = read_equations(expressions, noise, latent=latent)
    arms = _all_arms([variable.name for variable in variables[:-1] if variable.observed])
    return _problem(name, variables, arms, description, f"{LEE}, {section}; constants: the published program, seed 0")


def markovian_bandit() -> Problem:
    """MarkovianBandit: Z1 and Z2 cause X1 and X2, which cause the reward; nothing is confounded.

    Only the set of the reward's parents can be optimal.
    """
    equations = {
        "Z1": ("u", 0.54),
        "Z2": ("u", 0.44),
        "X1": ("(Z1 + Z2 + u) % 2.0", 0.54),
        "X2": ("(1.0 + Z1 + Z2 + u) % 2.0", 0.67),
        "Y": ("1.0 - (1.0 - u) * (1.0 - X1 * X2)", 0.58),
    }
    return _lee_problem("MarkovianBandit", equations, "Five binary variables without confounding.", "sec. 5, task 1")


def iv_bandit() -> Problem:
    """IVBandit: the instrumental variable Z moves X, which is confounded with the reward; no best arm sets X."""
    equations = {
        "U": ("u", 0.51),
        "Z": ("u", 0.6),
        "X": ("(U + Z + u) % 2.0", 0.11),
        "Y": ("(1.0 + U + X + u) % 2.0", 0.15),
    }
    return _lee_problem(
        "IVBandit", equations, "An instrument, a treatment and a confounded reward.", "sec. 5, task 2", "U"
    )


def xyzw_bandit() -> Problem:
    """XYZWBandit: Z -> X -> Y <- W, with two confounded pairs: X and W, Z and Y."""
    equations = {
        "UWX": ("u", 0.51),
        "UYZ": ("u", 0.54),
        "W": ("(UWX + u) % 2.0", 0.07),
        "Z": ("(UYZ + u) % 2.0", 0.05),
        "X": ("(1.0 + Z + UWX + u) % 2.0", 0.06),
        "Y": ("(UYZ + X + W + u) % 2.0", 0.06),
    }
    return _lee_problem(
        "XYZWBandit", equations, "Four binary variables, two pairs of them confounded.", "Fig. 3", "UWX UYZ"
    )


def xyzwst_bandit() -> Problem:
    """XYZWSTBandit: XYZWBandit with S -> W, and T as a cause of X and Y."""
    equations = {
        "UWX": ("u", 0.51),
        "UYZ": ("u", 0.54),
        "S": ("u", 0.45),
        "T": ("u", 0.81),
        "W": ("(UWX + S + u) % 2.0", 0.07),
        "Z": ("(UYZ + u) % 2.0", 0.05),
        "X": ("(1.0 + Z + UWX + T + u) % 2.0", 0.06),
        "Y": ("(UYZ + X + W + T + u) % 2.0", 0.06),
    }
    return _lee_problem(
        "XYZWSTBandit", equations, "Six binary variables, two pairs of them confounded.", "sec. 5, task 3", "UWX UYZ"
    )
