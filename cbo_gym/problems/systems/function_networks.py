"""Function networks of Astudillo & Frazier (2021), noiseless and noisy (Sussex et al. 2023, sec. 5 and A.4).

Actions are parameters of the mechanisms. Noise enters each node's structural equation and therefore reaches its
descendants. In hard mode the nodes between can be set to any value that the actions can give them without noise, while
the parameters stay at the null action.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from cbo_gym.arguments import require_truth_value, whole_number
from cbo_gym.problems.base import Problem, gaussian_noise, minimal_targets
from cbo_gym.problems.systems import compositions
from cbo_gym.scm import Floats, StructuralCausalModel, Variable, own_noise
from cbo_gym.sums import add_up

CITATION = (
    "Sussex, Makarova & Krause (2023), Model-based causal Bayesian optimization, sec. 5 and A.4; "
    "the networks are from Astudillo & Frazier (2021)"
)

# Stationary points of sqrt(x) sin(x) on [0, 10], the roots of tan(x) = -2 x: its maximiser and its minimiser.
ALPINE2_PEAK = 7.917052684666207
ALPINE2_TROUGH = 4.815842317845935
TURN = 2.0 * math.pi
MOST_ACTIONS = 50  # of Rosenbrock: finding the intervention sets of twice as many takes five seconds


def norm(x: Floats, y: Floats, u: Floats) -> Floats:
    """Dropwave's radius: the distance of (x, y) from the origin, plus noise."""
    return np.sqrt(x * x + y * y) + u


def ripple(radius: Floats, u: Floats) -> Floats:
    """Dropwave's reward at a radius, plus noise."""
    return (1.0 + np.cos(12.0 * radius)) / (2.0 + 0.5 * radius * radius) + u


def _ripple_of_clean_radius(radius: Floats, radius_noise: Floats, u: Floats) -> Floats:
    return ripple(radius - radius_noise, u)


def _norm_plus_latent(radius_noise: Floats, x: Floats, y: Floats, u: Floats) -> Floats:
    return norm(x, y, radius_noise)


def dropwave(noise_std: float = 0.0, noise_free_parent: bool = False) -> Problem:
    """Dropwave: two actions, one intermediate node (the radius), a rippled reward.

    Args:
        noise_std: standard deviation of the noise on each node (0.1 in the paper's noisy version).
        noise_free_parent: feed the reward the radius without its noise, as the published code does. The radius'
            noise then is a latent common cause of the observed radius and the reward.
    """
    noise = gaussian_noise(noise_std)
    require_truth_value("noise_free_parent", noise_free_parent)
    if noise_free_parent:
        variables = [
            Variable("U0", own_noise, noise=noise, observed=False),
            Variable("X0", _norm_plus_latent, ("U0",), (0, 1)),
            Variable("Y", _ripple_of_clean_radius, ("X0", "U0"), noise=noise),
        ]
    else:
        variables = [
            Variable("X0", norm, (), (0, 1), noise),
            Variable("Y", ripple, ("X0",), (), noise),
        ]
    centre_is_best = noise_std == 0 or noise_free_parent
    reachable = {"X0": (0.0, 5.12 * math.sqrt(2.0))}
    scm = StructuralCausalModel(variables, reward="Y")
    return Problem(
        name="Dropwave",
        scm=scm,
        description="Distance from the centre of a square, then a rippled bell of it.",
        citation=CITATION,
        action_domains=[(-5.12, 5.12)] * 2,
        manipulable=reachable,
        targets=minimal_targets(scm, reachable),
        optimal_action=(0.5, 0.5) if centre_is_best else None,
        noiseless_mean=noise_free_parent,
    )


def alpine_factor(x: Floats) -> Floats:
    """The factor sqrt(x) sin(x) of Alpine2's nodes, x in [0, 10]."""
    return x**0.5 * np.sin(x)


def _alpine_first(x: Floats, u: Floats) -> Floats:
    return u - alpine_factor(x)


def _alpine_next(previous: Floats, x: Floats, u: Floats) -> Floats:
    return alpine_factor(x) * previous + u


def alpine2(noise_std: float = 0.0) -> Problem:
    """Alpine2: a chain of six nodes, each multiplying its parent by a factor set by its own action.

    Args:
        noise_std: standard deviation of the noise on each node (1 in the paper's noisy version).
    """
    noise = gaussian_noise(noise_std)
    names = [f"X{i}" for i in range(5)] + ["Y"]
    high, low = float(alpine_factor(ALPINE2_PEAK)), float(alpine_factor(ALPINE2_TROUGH))
    reachable = {f"X{i}": (-(high ** (i + 1)), -low * high**i) for i in range(5)}
    variables = [Variable(names[0], _alpine_first, (), (0,), noise)]
    variables += [Variable(names[i], _alpine_next, (names[i - 1],), (i,), noise) for i in range(1, 6)]
    scm = StructuralCausalModel(variables, reward="Y")
    return Problem(
        name="Alpine2",
        scm=scm,
        description="A chain of products sqrt(x) sin(x) with many local optima.",
        citation=CITATION,
        action_domains=[(0.0, 10.0)] * 6,
        null_action=(0.5,) * 6,  # a zero factor anywhere would wipe out the whole chain
        manipulable=reachable,
        targets=minimal_targets(scm, reachable),
        optimal_action=(ALPINE2_TROUGH / 10.0,) + (ALPINE2_PEAK / 10.0,) * 5,
        noiseless_mean=True,
    )


def valley(x: Any, y: Any) -> Any:
    """A term of the negated Rosenbrock function."""
    across, along = y - x * x, 1.0 - x
    return -100.0 * across * across - along * along


def _rosenbrock_first(x: Floats, y: Floats, u: Floats) -> Floats:
    return valley(x, y) + u


def _rosenbrock_next(previous: Floats, x: Floats, y: Floats, u: Floats) -> Floats:
    return valley(x, y) + previous + u


def rosenbrock(noise_std: float = 0.0, dim: int = 5) -> Problem:
    """Rosenbrock: partial sums along a chain of ``dim - 1`` nodes, of which neighbours share an action.

    Args:
        noise_std: standard deviation of the noise on each node (1 in the paper's noisy version).
        dim: number of actions, 2 to 50 (5 in the paper; Huang et al. 2026 have 3 and 7 as well).

    Raises:
        ArgumentError: if ``dim`` is no whole number from 2 to 50.
    """
    dim = whole_number("dim", dim, at_least=2, at_most=MOST_ACTIONS)
    noise = gaussian_noise(noise_std)
    names = [*(f"X{i}" for i in range(dim - 2)), "Y"]
    reachable = {name: (valley(-2.0, -2.0) * i, 0.0) for i, name in enumerate(names[:-1], start=1)}
    variables = [Variable(names[0], _rosenbrock_first, (), (0, 1), noise)]
    variables += [
        Variable(name, _rosenbrock_next, (previous,), (i, i + 1), noise)
        for i, (previous, name) in enumerate(pairwise(names), start=1)
    ]
    scm = StructuralCausalModel(variables, reward="Y")
    return Problem(
        name="Rosenbrock",
        scm=scm,
        description="The negated Rosenbrock valley, summed along a chain.",
        citation=CITATION,
        action_domains=[(-2.0, 2.0)] * dim,
        manipulable=reachable,
        targets=minimal_targets(scm, reachable),
        optimal_action=(0.75,) * dim,
        noiseless_mean=True,
    )


def mean_square(*args: Floats) -> Floats:
    """Ackley's first node: the mean square of its actions, plus noise, which comes last."""
    *xs, u = args
    return add_up([x * x for x in xs]) / len(xs) + u


def mean_cosine(*args: Floats) -> Floats:
    """Ackley's second node: the mean cosine of whole turns, plus noise."""
    *xs, u = args
    return add_up([np.cos(TURN * x) for x in xs]) / len(xs) + u


def _ackley_reward(mean_square: Floats, mean_cosine: Floats, u: Floats) -> Floats:
    bell = 20.0 * (np.exp(-0.2 * np.sqrt(mean_square)) - 1.0)
    return bell + (np.exp(mean_cosine) - math.e) + u


def ackley(known_composition: bool = False) -> Problem:
    """Ackley: six actions drive two nodes, which the reward combines. There is no noisy version.

    Args:
        known_composition: tell agents how the reward depends on X0 and X1 (for composite methods).
    """
    require_truth_value("known_composition", known_composition)
    every = tuple(range(6))
    reachable = {"X0": (0.0, 4.0), "X1": (-1.0, 1.0)}
    variables = [
        Variable("X0", mean_square, (), every),
        Variable("X1", mean_cosine, (), every),
        Variable("Y", _ackley_reward, ("X0", "X1")),
    ]
    scm = StructuralCausalModel(variables, reward="Y")
    return Problem(
        name="Ackley",
        scm=scm,
        description="The negated Ackley function through its mean square and its mean cosine.",
        citation=CITATION,
        action_domains=[(-2.0, 2.0)] * 6,
        manipulable=reachable,
        targets=minimal_targets(scm, reachable),
        optimal_action=(0.5,) * 6,
        composition=compositions.ackley if known_composition else None,
    )
