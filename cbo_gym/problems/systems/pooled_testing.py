"""PooledTesting: pool sizes for three weeks of mass testing in an epidemic (Ren et al. 2024, sec. 11.7).

The epidemic is that of Astudillo & Frazier (2021). Neither paper prints the testing model; ours is matrix pooling:
every sample goes into two pools, and a person is isolated when either is positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cbo_gym._util.arguments import is_finite_number
from cbo_gym.actions.domains import Number
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.problems.base import MixtureComponents, Problem, clip_fraction, mixture_noise
from cbo_gym.problems.systems import compositions
from cbo_gym.problems.systems.exogenous import PAPER
from cbo_gym.scm import Floats, StructuralCausalModel, Variable, own_noise

WEEKS = 3
E = math.e
# Growth rate beta.
GROWTH = 3.23
# Percent infectious in the first week, when none have recovered.
START = 1.0
POOL_SIZES = (1.0, 200.0)


@dataclass(frozen=True)
class PooledTest:
    """A week of testing the population in pools and isolating positive people; the mechanisms of the nodes.

    Shares are in percent of the population. Noise can push them outside [0, 100]; they are then clipped.

    Args:
        sensitivity: share of infected people detected by an individual test, in (0, 1].
        dilution: the sensitivity falls with the pool size n as ``exp(-(n - 1) / dilution)``; above 0.
        false_positive_rate: share of pools without an infected person that are positive, in [0, 1).
        test_cost: cost of a test for each person, in units of the loss of one infection; at least 0.
        isolation_cost: cost for each person isolated, in the same units; at least 0.
    """

    sensitivity: float
    dilution: float
    false_positive_rate: float
    test_cost: float
    isolation_cost: float

    def __post_init__(self) -> None:
        allowed: dict[str, tuple[str, Callable[[float], bool]]] = {
            "sensitivity": ("in (0, 1]", lambda x: 0.0 < x <= 1.0),
            "dilution": ("above 0", lambda x: x > 0.0),
            "false_positive_rate": ("in [0, 1)", lambda x: 0.0 <= x < 1.0),
            "test_cost": ("at least 0", lambda x: x >= 0.0),
            "isolation_cost": ("at least 0", lambda x: x >= 0.0),
        }
        for name, (limits, holds) in allowed.items():
            value = getattr(self, name)
            if not (is_finite_number(value) and holds(value)):
                raise ArgumentError(f"{name} must be a finite number {limits}; given {short_repr(value)}")

    def infectious(self, infectious: Floats, recovered: Floats, pool_size: Floats, u: Floats) -> Floats:
        """Return the percentage infectious in the next week: the people infected in this week."""
        return 100.0 * self._week(infectious, recovered, pool_size)[0] + u

    def loss(self, infectious: Floats, recovered: Floats, pool_size: Floats, u: Floats) -> Floats:
        """Return the percentage infected in this week, plus the costs of testing and isolating."""
        infected, isolated = self._week(infectious, recovered, pool_size)
        tests = 2.0 / pool_size
        return 100.0 * (infected + self.test_cost * tests + self.isolation_cost * isolated) + u

    def _week(self, infectious: Floats, recovered: Floats, pool_size: Floats) -> tuple[Floats, Floats]:
        """Return the shares of the population that are infected and isolated in this week."""
        # Powers of e and absolute values, not np.exp or np.minimum: on single floats these cost many times more.
        infectious, recovered = clip_fraction(0.01 * infectious), clip_fraction(0.01 * recovered)
        rest: Any = 1.0 - infectious - recovered
        # max(rest, 0)
        susceptible = 0.5 * (rest + abs(rest))
        others, false_positive = pool_size - 1.0, self.false_positive_rate
        # Probabilities: that a pool with an infected person is positive, that one of the others in a pool is infected,
        # and that the pool of a person who is not infected is negative.
        detected = self.sensitivity * E ** (-others / self.dilution)
        with_infected = 1.0 - (1.0 - infectious) ** others
        negative = 1.0 - false_positive - (detected - false_positive) * with_infected
        # Probabilities that both pools are negative, of a person who is not infected and of one who is.
        cleared, missed = negative * negative, (1.0 - detected) * (1.0 - detected)
        free_infectious, free_susceptible = infectious * missed, susceptible * cleared
        free = free_infectious + free_susceptible + recovered * cleared
        rise = free_infectious * (E ** (GROWTH * free_susceptible / free) - 1.0)
        # min(susceptible, rise)
        infected = 0.5 * (susceptible + rise - abs(susceptible - rise))
        return infected, infectious + susceptible + recovered - free


def _at_start(u: Floats) -> Floats:
    return START + u


def _recovered_percentage(infectious: Floats, recovered: Floats, u: Floats) -> Floats:
    return 100.0 * (clip_fraction(0.01 * infectious) + clip_fraction(0.01 * recovered)) + u


def _total(first: Number, second: Number, third: Number, u: Number) -> Number:
    return u - (first + second + third)


def pooled_testing(
    *,
    noise: MixtureComponents,
    noise_std: float,
    sensitivity: float,
    dilution: float,
    false_positive_rate: float,
    test_cost: float,
    isolation_cost: float,
) -> Problem:
    """PooledTesting: a pool size of 1 to 200 people for each of three weeks, to limit infections and their cost.

    The nodes are the percentages of the population that are infectious (It) and recovered (Rt) at the start of week t,
    and the week's loss (Lt). Y is minus the sum of the losses, which agents know.

    Args:
        noise: ``(weight, mean, c)`` of each component of every node's noise, see
            :func:`~cbo_gym.problems.base.mixture_noise`.
        noise_std: sigma, in percent; 0.2 and 0.4 in the paper.
        sensitivity: sensitivity of the test; see :class:`PooledTest` for this and the following.
        dilution: loss of sensitivity in pools.
        false_positive_rate: false positive rate of a pool.
        test_cost: cost of a test for each person.
        isolation_cost: cost for each person isolated.
    """
    test = PooledTest(sensitivity, dilution, false_positive_rate, test_cost, isolation_cost)
    u = mixture_noise(noise, noise_std)
    variables = [Variable("I1", _at_start, (), (), u), Variable("R1", own_noise, (), (), u)]
    for week in range(1, WEEKS + 1):
        state = (f"I{week}", f"R{week}")
        variables.append(Variable(f"L{week}", test.loss, state, (week - 1,), u))
        if week < WEEKS:
            variables.append(Variable(f"I{week + 1}", test.infectious, state, (week - 1,), u))
            variables.append(Variable(f"R{week + 1}", _recovered_percentage, state, (), u))
    variables.append(Variable("Y", _total, ("L1", "L2", "L3")))
    return Problem(
        name="PooledTesting",
        scm=StructuralCausalModel(variables, reward="Y"),
        description="Weekly pool sizes in mass testing; the reward is minus the cost of infections, tests, isolation.",
        citation=f"{PAPER}, sec. 11.7; the testing model: cbo-gym",
        action_domains=[POOL_SIZES] * WEEKS,
        composition=compositions.pooled_testing,
        noise_known=False,
    )
