"""The function networks of Sussex, Sessa, Makarova & Krause (2024), in which an adversary has parameters too.

In a *penny* game the adversary's coordinate is a factor of a node, as in matching pennies: with the wrong sign, what
was best becomes worst. In a *perturb* game it is added to the agent's. Constants are those of the authors' published
code, in which the networks are smaller than elsewhere and some equations differ (Dropwave's wave is longer,
Rosenbrock's terms are 10 higher in the penny game). Every coordinate takes one of four values, and the reward is scaled
so that it runs from 0 to 1 over both players' choices. Noise is left out, as by default there. The other nodes keep
their units; the program moves and scales each to run from -1 to 1. Agents that standardise what they see, as CBO-MW and
MCBO do, see the same either way.

Coordinates ``x0``, ``x1``, ... are the agent's, ``z0``, ``z1``, ... the adversary's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cbo_gym.actions import Domains, GridBox, Interval
from cbo_gym.problems.base import Problem
from cbo_gym.problems.modes.adversarial import Adversary
from cbo_gym.problems.systems.function_networks import mean_cosine, mean_square, norm, valley
from cbo_gym.scm import Floats, Intervention, StructuralCausalModel, Uniform, Variable, own_noise

CITATION = (
    "Sussex, Sessa, Makarova & Krause (2024), Adversarial causal Bayesian optimization, sec. 5 and appendix; "
    "the networks are from Astudillo & Frazier (2021)"
)
LEVELS = 4  # values of every coordinate, of both players
LUCK = "luck"


@dataclass(frozen=True)
class Scaled:
    """A mechanism whose values are moved and scaled: ``low`` becomes 0 and ``low + span`` 1."""

    mechanism: Callable[..., Floats]
    low: float
    span: float

    def __call__(self, *causes: Floats) -> Floats:
        return (self.mechanism(*causes) - self.low) / self.span


def _shifted_norm(x: Floats, y: Floats, shift: Floats, u: Floats) -> Floats:
    return norm(x - shift, y, u)


def _long_ripple(radius: Floats, u: Floats) -> Floats:
    return (1.0 + np.cos(3.0 * radius)) / (2.0 + 0.5 * radius * radius) + u


def _signed_ripple(radius: Floats, sign: Floats, u: Floats) -> Floats:
    return sign * np.cos(3.0 * radius) / (2.0 + 0.5 * radius * radius) + u


def dropwave_penny() -> Problem:
    """Dropwave whose wave the adversary multiplies by a number from -4.95 to 4.95."""
    variables = [
        Variable("X0", norm, (), (0, 1)),
        Variable("Y", _signed_ripple, ("X0",), (2,)),
    ]
    text = "Distance from a corner of a square, then a wave whose sign and height the adversary sets."
    return _game("DropwavePenny", text, variables, [(0.0, 2.0)] * 2, [(-4.95, 4.95)])


def dropwave_perturb() -> Problem:
    """Dropwave whose first coordinate the adversary shifts by up to a fifth of its domain."""
    variables = [
        Variable("X0", _shifted_norm, (), (0, 1, 2)),
        Variable("Y", _long_ripple, ("X0",)),
    ]
    text = "Distance from the centre of a square, which the adversary shifts, then a rippled bell of it."
    return _game("DropwavePerturb", text, variables, [(-5.12, 5.12)] * 2, [(-1.024, 1.024)])


def _factor(x: Floats) -> Floats:
    # a root, which is rounded correctly of floats and of arrays, in place of a power, which is not
    return np.sqrt(x) * np.sin(x)


def _alpine_first(x: Floats, u: Floats) -> Floats:
    return u - _factor(x)


def _alpine_next(previous: Floats, x: Floats, u: Floats) -> Floats:
    return _factor(x) * previous + u


def _alpine_first_shifted(x: Floats, shift: Floats, u: Floats) -> Floats:
    return _alpine_first(x + shift, u)


def _alpine_next_shifted(previous: Floats, x: Floats, shift: Floats, u: Floats) -> Floats:
    return _alpine_next(previous, x + shift, u)


def alpine2_penny() -> Problem:
    """Alpine2 with four nodes, of which the adversary alone sets the third one's factor."""
    variables = [
        Variable("X0", _alpine_first, (), (0,)),
        Variable("X1", _alpine_next, ("X0",), (1,)),
        Variable("X2", _alpine_next, ("X1",), (3,)),
        Variable("Y", _alpine_next, ("X2",), (2,)),
    ]
    text = "A chain of products sqrt(x) sin(x), one of whose factors is the adversary's."
    return _game("Alpine2Penny", text, variables, [(0.0, 10.0)] * 3, [(1.0, 11.0)])


def alpine2_perturb() -> Problem:
    """Alpine2 with four nodes; the adversary adds up to 2 to the actions of the first three."""
    variables = [
        Variable("X0", _alpine_first_shifted, (), (0, 4)),
        Variable("X1", _alpine_next_shifted, ("X0",), (1, 5)),
        Variable("X2", _alpine_next_shifted, ("X1",), (2, 6)),
        Variable("Y", _alpine_next, ("X2",), (3,)),
    ]
    text = "A chain of products sqrt(x) sin(x); the adversary shifts the actions of three of its four nodes."
    return _game("Alpine2Perturb", text, variables, [(0.0, 10.0)] * 4, [(0.0, 2.0)] * 3)


def _raised_first(x: Floats, y: Floats, u: Floats) -> Floats:
    return valley(x, y) + 10.0 + u


def _raised_next(previous: Floats, x: Floats, y: Floats, factor: Floats, u: Floats) -> Floats:
    return (valley(x, y) + 10.0 + previous + u) * factor


def _shifted_first(x: Floats, y: Floats, y_shift: Floats, u: Floats) -> Floats:
    return valley(x, y - y_shift) + u


def _shifted_middle(previous: Floats, x: Floats, y: Floats, x_shift: Floats, y_shift: Floats, u: Floats) -> Floats:
    return valley(x - x_shift, y - y_shift) + previous + u


def _shifted_last(previous: Floats, x: Floats, y: Floats, x_shift: Floats, u: Floats) -> Floats:
    return valley(x - x_shift, y) + previous + u


def rosenbrock_penny() -> Problem:
    """Rosenbrock with four actions; the adversary multiplies the second and third partial sum by up to 0.995."""
    variables = [
        Variable("X0", _raised_first, (), (0, 1)),
        Variable("X1", _raised_next, ("X0",), (1, 2, 4)),
        Variable("Y", _raised_next, ("X1",), (2, 3, 5)),
    ]
    text = "The negated Rosenbrock valley, summed along a chain; the adversary shrinks two of the partial sums."
    return _game("RosenbrockPenny", text, variables, [(0.0, 1.0)] * 4, [(0.005, 0.995)] * 2)


def rosenbrock_perturb() -> Problem:
    """Rosenbrock with four actions; the adversary subtracts up to 1 from the two in the middle."""
    variables = [
        Variable("X0", _shifted_first, (), (0, 1, 4)),
        Variable("X1", _shifted_middle, ("X0",), (1, 2, 4, 5)),
        Variable("Y", _shifted_last, ("X1",), (2, 3, 5)),
    ]
    text = "The negated Rosenbrock valley, summed along a chain; the adversary shifts two of the four actions."
    return _game("RosenbrockPerturb", text, variables, [(-2.0, 2.0)] * 4, [(-1.0, 1.0)] * 2)


def _mean_square_shifted(*args: Floats) -> Floats:
    *xs, first, second, u = args
    return mean_square(xs[0] + first, xs[1] + second, *xs[2:], u)


def _mean_cosine_shifted(*args: Floats) -> Floats:
    *xs, first, second, u = args
    return mean_cosine(xs[0] + first, xs[1] + second, *xs[2:], u)


def _bell(mean_square: Floats, mean_cosine: Floats, u: Floats) -> Floats:
    return _signed_bell(mean_square, mean_cosine, 1.0, u)


def _signed_bell(mean_square: Floats, mean_cosine: Floats, sign: Floats, u: Floats) -> Floats:
    return 20.0 * np.exp(-0.2 * np.sqrt(mean_square)) * sign + np.exp(mean_cosine) - 20.0 - math.e + u


def ackley_penny() -> Problem:
    """Ackley with four actions, whose wide bell the adversary multiplies by a number from -0.99 to 0.99."""
    every = (0, 1, 2, 3)
    variables = [
        Variable("X0", mean_square, (), every),
        Variable("X1", mean_cosine, (), every),
        Variable("Y", _signed_bell, ("X0", "X1"), (4,)),
    ]
    text = "The negated Ackley function, whose wide bell the adversary may turn into a pit."
    return _game("AckleyPenny", text, variables, [(-2.0, 2.0)] * 4, [(-0.99, 0.99)])


def ackley_perturb() -> Problem:
    """Ackley with four actions; the adversary adds up to 1 to two of them, either way."""
    every = (0, 1, 2, 3, 4, 5)
    variables = [
        Variable("X0", _mean_square_shifted, (), every),
        Variable("X1", _mean_cosine_shifted, (), every),
        Variable("Y", _bell, ("X0", "X1")),
    ]
    text = "The negated Ackley function through its mean square and its mean cosine; the adversary shifts two actions."
    return _game("AckleyPerturb", text, variables, [(-2.0, 2.0)] * 4, [(-1.0, 1.0)] * 2)


def _game(
    name: str,
    description: str,
    variables: Sequence[Variable],
    actions: Sequence[Interval],
    moves: Sequence[Interval],
) -> Problem:
    """The problem with its reward, the last variable, scaled to [0, 1], and with luck for the adversary."""
    *others, reward = variables
    domains = [*actions, *moves]
    low, high = _range(StructuralCausalModel(variables, reward.name), domains)
    scaled = replace(reward, mechanism=Scaled(reward.mechanism, low, high - low))
    luck = Variable(LUCK, own_noise, noise=Uniform(0.0, 1.0), observed=False)
    return Problem(
        name=name,
        scm=StructuralCausalModel([*others, scaled, luck], reward.name),
        description=description,
        citation=CITATION,
        action_domains=domains,
        action_names=[f"x{i}" for i in range(len(actions))] + [f"z{i}" for i in range(len(moves))],
        noiseless_mean=True,
        noise_known=False,  # what the adversary does to a node is noise to a method that does not look at it
        modes=[Adversary(len(moves), LEVELS, LUCK)],
    )


def _range(scm: StructuralCausalModel, domains: Sequence[Interval]) -> tuple[float, float]:
    """The least and the greatest reward over both players' choices."""
    every = Domains(domains).points_to_native(GridBox(len(domains), LEVELS).all())
    rewards = scm.propagate((), Intervention.parameters(every))[scm.reward]
    return float(np.min(rewards)), float(np.max(rewards))
