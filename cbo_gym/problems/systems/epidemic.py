"""Epidemic: calibrate the contact rates of an epidemic in two groups (Ren et al. 2024, sec. 7.4 and 11.5)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from cbo_gym.actions.domains import Number
from cbo_gym.actions.reading import require_numbers
from cbo_gym.errors import ArgumentError
from cbo_gym.problems.base import MixtureComponents, Problem, clip_fraction, mixture_noise
from cbo_gym.problems.systems import compositions
from cbo_gym.problems.systems.exogenous import PAPER
from cbo_gym.scm import Floats, StructuralCausalModel, Variable

GROUPS = 2
PERIODS = 3
# 1 - gamma: the share of the infectious who are still infectious a period later.
STILL_INFECTIOUS = 0.5
NODES = tuple(f"I{group}_{period}" for period in range(1, PERIODS + 1) for group in range(1, GROUPS + 1))
# Initial percentage of infectious in each group.
START = 1.0

# Rates beta[t][i][j].
Rates = Sequence[Sequence[Sequence[float]]]


def _step(own: Any, other: Any, from_own: Any, from_other: Any) -> Any:
    """Return the percentage of infectious a period later; inputs are clipped to [0, 100], which noise can exceed."""
    own, other = clip_fraction(0.01 * own), clip_fraction(0.01 * other)
    return 100.0 * (STILL_INFECTIOUS * own + (1.0 - own) * (from_own * own + from_other * other))


def _first_period(from_own: Floats, from_other: Floats, u: Floats) -> Floats:
    """Mechanism of either group in the first period."""
    return _step(START, START, from_own, from_other) + u


def _first_group(first: Floats, second: Floats, from_first: Floats, from_second: Floats, u: Floats) -> Floats:
    """Mechanism of group 1 in a later period; the parents are the groups a period before."""
    return _step(first, second, from_first, from_second) + u


def _second_group(first: Floats, second: Floats, from_first: Floats, from_second: Floats, u: Floats) -> Floats:
    """Mechanism of group 2 in a later period; the parents are the groups a period before."""
    return _step(second, first, from_second, from_first) + u


def _trajectory(rates: np.ndarray) -> tuple[float, ...]:
    """Return the percentages of infectious without noise, in the order of NODES."""
    first, second, values = START, START, list[float]()
    for to_first, to_second in rates:
        first, second = _step(first, second, *to_first), _step(second, first, *to_second[::-1])
        values += [first, second]
    return tuple(map(float, values))


def _misfit(reference: tuple[float, ...], *args: Number) -> Number:
    *percentages, u = args
    return u - compositions.mean_squared_error(percentages, reference)


def epidemic(*, reference: Rates, noise: MixtureComponents, noise_std: float) -> Problem:
    """Epidemic: set twelve contact rates so that three periods match a reference epidemic.

    I(i,t+1) = I(i,t) (1 - gamma) + (1 - I(i,t)) sum_j beta(i,j,t) I(j,t) + u with gamma = 0.5 and, initially, 1 %
    infectious in both groups. The node Ii_t is the percentage 100 I(i,t) after t periods, and the noise is in percent
    too. Y is minus the mean squared error of the six nodes against the noiseless reference. Because the experimenter
    defines Y, agents know how it depends on the nodes.

    Action coordinate ``4 (t - 1) + 2 (i - 1) + (j - 1)`` is beta(i,j,t), the rate at which group j infects group i in
    period t.

    The reference rates are not exactly optimal. The rates of a period also pass on the noise of the period before, and
    noise lowers Y, because Y is minus a squared error. The best rates therefore pass on less noise than the reference
    rates; how much less depends on the constants. Among the rates that give the same noiseless trajectory, those that
    pass on the least noise have, for each group, a ratio (1 - gamma + beta(i,i,t)) / beta(i,j,t) of about
    I(i,t) / I(j,t). In version 1 of the registry's id the reference has this ratio, with contacts mostly across groups,
    and there is little noise: the reference rates are optimal as far as rewards can tell. Version 0 has neither this
    ratio nor little noise.

    Args:
        reference: ``beta[t][i][j]`` in [0, 1] of the reference epidemic, shape ``(3, 2, 2)``.
        noise: ``(weight, mean, c)`` of each component of every node's noise, see
            :func:`~cbo_gym.problems.base.mixture_noise`.
        noise_std: sigma, in percent; 0.1 and 0.3 in the paper.
    """
    rates = require_numbers("reference", reference)
    if rates.shape != (PERIODS, GROUPS, GROUPS) or not ((rates >= 0) & (rates <= 1)).all():
        raise ArgumentError(
            f"reference must hold rates in [0, 1], shape {(PERIODS, GROUPS, GROUPS)}; given shape {rates.shape}, "
            f"from {rates.min(initial=0.0)} to {rates.max(initial=0.0)}"
        )
    u = mixture_noise(noise, noise_std)
    target = _trajectory(rates)
    # The mechanism of the first period takes beta(2,2), the own rate of group 2, before beta(2,1).
    variables = [Variable("I1_1", _first_period, (), (0, 1), u), Variable("I2_1", _first_period, (), (3, 2), u)]
    for period in range(2, PERIODS + 1):
        parents, rate = (f"I1_{period - 1}", f"I2_{period - 1}"), 4 * (period - 1)
        variables.append(Variable(f"I1_{period}", _first_group, parents, (rate, rate + 1), u))
        variables.append(Variable(f"I2_{period}", _second_group, parents, (rate + 2, rate + 3), u))
    variables.append(Variable("Y", partial(_misfit, target), NODES))
    return Problem(
        name="Epidemic",
        scm=StructuralCausalModel(variables, reward="Y"),
        description="Contact rates of two groups; the reward is minus the squared distance from a reference epidemic.",
        citation=f"{PAPER}, sec. 7.4 and 11.5",
        action_domains=[(0.0, 1.0)] * (PERIODS * GROUPS * GROUPS),
        composition=partial(compositions.misfit, target, NODES),
        noise_known=False,
    )
