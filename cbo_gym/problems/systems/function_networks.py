"""Function networks of Astudillo & Frazier (2021), noiseless and noisy (Sussex et al. 2023, sec. 5 and A.4).

Actions are parameters of the mechanisms. Noise enters each node's structural equation and therefore reaches its
descendants. In hard mode the intermediate nodes can be set to any value that actions can give them without noise, and
the parameters stay at the null action.
"""

from __future__ import annotations

import math
from itertools import pairwise

from cbo_gym._util.arguments import require_truth_value, whole_number
from cbo_gym.problems.base import Problem, gaussian_noise
from cbo_gym.problems.systems import compositions
from cbo_gym.problems.systems.building import hard_problem, read_equations

CITATION = (
    "Sussex, Makarova & Krause (2023), Model-based causal Bayesian optimization, sec. 5 and A.4; "
    "the networks are from Astudillo & Frazier (2021)"
)

# Stationary points of sqrt(x) sin(x) on [0, 10], the roots of tan(x) = -2 x: its maximiser and its minimiser.
ALPINE2_PEAK = 7.917052684666207
ALPINE2_TROUGH = 4.815842317845935
# Largest number of actions of Rosenbrock; the intervention sets of twice as many take five seconds.
MAX_ACTIONS = 50

#: Dropwave's radius and its reward.
DISTANCE = "sqrt(x * x + y * y)"
RIPPLE = "(1.0 + cos(12.0 * X0)) / (2.0 + 0.5 * X0 * X0) + u"
#: The factor of Alpine2's nodes, on [0, 10]
FACTOR = "{0}**0.5 * sin({0})"
ALPINE2_NODES = [*(f"X{i}" for i in range(5)), "Y"]


def dropwave(noise_std: float = 0.0, noise_free_parent: bool = False) -> Problem:
    """Dropwave: two actions, one intermediate node (the radius), a rippled reward.

    Args:
        noise_std: standard deviation of the noise on each node (0.1 in the paper's noisy version).
        noise_free_parent: whether the reward takes the radius without noise, as in the published code. The radius'
            noise then is a latent common cause of the observed radius and the reward.
    """
    require_truth_value("noise_free_parent", noise_free_parent)
    if noise_free_parent:
        clean = "(1.0 + cos(12.0 * (radius := X0 - U0))) / (2.0 + 0.5 * radius * radius) + u"
        equations = {"U0": "u", "X0": f"{DISTANCE} + U0", "Y": clean}
    else:
        equations = {"X0": f"{DISTANCE} + u", "Y": RIPPLE}
    return hard_problem(
        "Dropwave",
        read_equations(equations, gaussian_noise(noise_std), actions="xy", latent="U0"),
        {"X0": (0.0, 5.12 * math.sqrt(2.0))},
        "Distance from the centre of a square, then a rippled bell of it.",
        CITATION,
        action_domains=[(-5.12, 5.12)] * 2,
        optimal_action=(0.5, 0.5) if noise_std == 0 or noise_free_parent else None,
        noiseless_mean=noise_free_parent,
    )


def alpine2(noise_std: float = 0.0) -> Problem:
    """Alpine2: a chain of six nodes, each multiplying its parent by a factor set by its own action.

    Args:
        noise_std: standard deviation of the noise on each node (1 in the paper's noisy version).
    """
    high, low = (x**0.5 * math.sin(x) for x in (ALPINE2_PEAK, ALPINE2_TROUGH))
    equations = {"X0": f"u - {FACTOR.format('a0')}"}
    for i, (previous, name) in enumerate(pairwise(ALPINE2_NODES), start=1):
        equations[name] = f"{FACTOR.format(f'a{i}')} * {previous} + u"
    return hard_problem(
        "Alpine2",
        read_equations(equations, gaussian_noise(noise_std), actions=[f"a{i}" for i in range(6)]),
        # A factor is in [low, high] with |low| < high, and that of X0 is negated.
        {f"X{i}": (-(high ** (i + 1)), -low * high**i) for i in range(5)},
        "A chain of products sqrt(x) sin(x) with many local optima.",
        CITATION,
        action_domains=[(0.0, 10.0)] * 6,
        # A zero factor anywhere would wipe out the whole chain.
        null_action=(0.5,) * 6,
        optimal_action=(ALPINE2_TROUGH / 10.0,) + (ALPINE2_PEAK / 10.0,) * 5,
        noiseless_mean=True,
    )


def valley(x: str, y: str) -> str:
    """Return a term of the negated Rosenbrock function."""
    return f"(-100.0 * (across := {y} - {x} * {x}) * across - (along := 1.0 - {x}) * along)"


def rosenbrock(noise_std: float = 0.0, dim: int = 5) -> Problem:
    """Rosenbrock: partial sums along a chain of ``dim - 1`` nodes; neighbouring nodes share an action.

    Args:
        noise_std: standard deviation of the noise on each node (1 in the paper's noisy version).
        dim: number of actions, 2 to 50 (5 in the paper; Huang et al. 2026 have 3 and 7 as well).
    """
    dim = whole_number("dim", dim, at_least=2, at_most=MAX_ACTIONS)
    names = [*(f"X{i}" for i in range(dim - 2)), "Y"]
    equations = {names[0]: f"{valley('a0', 'a1')} + u"}
    for i, (previous, name) in enumerate(pairwise(names), start=1):
        equations[name] = f"{valley(f'a{i}', f'a{i + 1}')} + {previous} + u"
    return hard_problem(
        "Rosenbrock",
        read_equations(equations, gaussian_noise(noise_std), actions=[f"a{i}" for i in range(dim)]),
        # The least value of a term is -(100 * 6^2 + 3^2).
        {name: (-3609.0 * i, 0.0) for i, name in enumerate(names[:-1], start=1)},
        "The negated Rosenbrock valley, summed along a chain.",
        CITATION,
        action_domains=[(-2.0, 2.0)] * dim,
        optimal_action=(0.75,) * dim,
        noiseless_mean=True,
    )


def ackley_means(*coordinates: str) -> dict[str, str]:
    """Return Ackley's nodes: the means of x^2 and of cos(2 pi x) over its coordinates x."""
    squares = " + ".join(f"{x} * {x}" for x in coordinates)
    cosines = " + ".join(f"cos({2.0 * math.pi} * {x})" for x in coordinates)
    return {"X0": f"({squares}) / {len(coordinates)}", "X1": f"({cosines}) / {len(coordinates)}"}


def ackley(known_composition: bool = False) -> Problem:
    """Ackley: six actions drive two nodes, which the reward combines. There is no noisy version.

    Args:
        known_composition: whether agents know how the reward depends on X0 and X1 (for composite methods).
    """
    require_truth_value("known_composition", known_composition)
    names = [f"a{i}" for i in range(6)]
    reward = f"20.0 * (exp(-0.2 * sqrt(X0)) - 1.0) + (exp(X1) - {math.e})"
    return hard_problem(
        "Ackley",
        read_equations({**ackley_means(*names), "Y": reward}, 0.0, actions=names),
        {"X0": (0.0, 4.0), "X1": (-1.0, 1.0)},
        "The negated Ackley function through its mean square and its mean cosine.",
        CITATION,
        action_domains=[(-2.0, 2.0)] * 6,
        optimal_action=(0.5,) * 6,
        composition=compositions.ackley if known_composition else None,
    )
