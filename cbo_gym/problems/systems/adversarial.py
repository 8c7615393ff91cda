"""The function networks of Sussex, Sessa, Makarova & Krause (2024), in which an adversary has parameters too.

In a *penny* game the adversary's coordinate is a factor of a node, as in matching pennies; in a *perturb* game it is
added to the agent's. Constants are those of the authors' published code, in which the networks are smaller than in
other papers and some equations differ. Every coordinate takes one of four values, and the reward is scaled so that it
ranges from 0 to 1 over both players' choices. There is no noise. The authors' code also scales the other nodes; here
they keep their units. Coordinates ``x0``, ``x1``, ... are the agent's, ``z0``, ``z1``, ... the adversary's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from cbo_gym.actions import Domains, GridBox, Interval
from cbo_gym.problems.base import Problem
from cbo_gym.problems.modes.adversarial import Adversary
from cbo_gym.problems.systems.building import read_equations
from cbo_gym.problems.systems.function_networks import ackley_means, valley
from cbo_gym.scm import Intervention, StructuralCausalModel, Uniform, Variable, own_noise

CITATION = (
    "Sussex, Sessa, Makarova & Krause (2024), Adversarial causal Bayesian optimization, sec. 5 and appendix; "
    "the networks are from Astudillo & Frazier (2021)"
)
# Number of values of every coordinate of both players.
LEVELS = 4
# Name of the latent U(0, 1) variable from which the adversary's random moves are drawn.
RANDOMNESS = "randomness"


def dropwave_penny() -> Problem:
    """Dropwave whose wave the adversary multiplies by a number from -4.95 to 4.95."""
    equations = {"X0": "sqrt(x0 * x0 + x1 * x1)", "Y": "z0 * cos(3.0 * X0) / (2.0 + 0.5 * X0 * X0)"}
    description = "Distance from a corner of a square, then a wave whose sign and height the adversary sets."
    return _game("DropwavePenny", description, equations, [(0.0, 2.0)] * 2, [(-4.95, 4.95)])


def dropwave_perturb() -> Problem:
    """Dropwave whose first coordinate the adversary shifts by up to a fifth of its domain."""
    equations = {
        "X0": "sqrt((x0 - z0) * (x0 - z0) + x1 * x1)",
        "Y": "(1.0 + cos(3.0 * X0)) / (2.0 + 0.5 * X0 * X0)",
    }
    description = "Distance from the centre of a square, which the adversary shifts, then a rippled bell of it."
    return _game("DropwavePerturb", description, equations, [(-5.12, 5.12)] * 2, [(-1.024, 1.024)])


def _factor(x: str) -> str:
    # A root rather than a power, because only roots round alike for floats and arrays.
    return f"sqrt({x}) * sin({x})"


def alpine2_penny() -> Problem:
    """Alpine2 with four nodes; the adversary alone sets the factor of the third node."""
    equations = {
        "X0": f"u - {_factor('x0')}",
        "X1": f"{_factor('x1')} * X0 + u",
        "X2": f"{_factor('z0')} * X1 + u",
        "Y": f"{_factor('x2')} * X2 + u",
    }
    description = "A chain of products sqrt(x) sin(x), one of whose factors is the adversary's."
    return _game("Alpine2Penny", description, equations, [(0.0, 10.0)] * 3, [(1.0, 11.0)])


def alpine2_perturb() -> Problem:
    """Alpine2 with four nodes; the adversary adds up to 2 to the actions of the first three."""
    equations = {
        "X0": f"u - {_factor('(x0 + z0)')}",
        "X1": f"{_factor('(x1 + z1)')} * X0 + u",
        "X2": f"{_factor('(x2 + z2)')} * X1 + u",
        "Y": f"{_factor('x3')} * X2 + u",
    }
    description = "A chain of products sqrt(x) sin(x); the adversary shifts the actions of three of its four nodes."
    return _game("Alpine2Perturb", description, equations, [(0.0, 10.0)] * 4, [(0.0, 2.0)] * 3)


def rosenbrock_penny() -> Problem:
    """Rosenbrock with four actions; the adversary multiplies the second and third partial sum by up to 0.995."""
    equations = {
        "X0": f"{valley('x0', 'x1')} + 10.0",
        "X1": f"({valley('x1', 'x2')} + 10.0 + X0) * z0",
        "Y": f"({valley('x2', 'x3')} + 10.0 + X1) * z1",
    }
    description = "The negated Rosenbrock valley, summed along a chain; the adversary shrinks two of the partial sums."
    return _game("RosenbrockPenny", description, equations, [(0.0, 1.0)] * 4, [(0.005, 0.995)] * 2)


def rosenbrock_perturb() -> Problem:
    """Rosenbrock with four actions; the adversary subtracts up to 1 from the two in the middle."""
    equations = {
        "X0": valley("x0", "(x1 - z0)"),
        "X1": f"{valley('(x1 - z0)', '(x2 - z1)')} + X0",
        "Y": f"{valley('(x2 - z1)', 'x3')} + X1",
    }
    description = "The negated Rosenbrock valley, summed along a chain; the adversary shifts two of the four actions."
    return _game("RosenbrockPerturb", description, equations, [(-2.0, 2.0)] * 4, [(-1.0, 1.0)] * 2)


def _bell(sign: str) -> str:
    return f"20.0 * exp(-0.2 * sqrt(X0)) * {sign} + exp(X1) - 20.0 - {math.e}"


def ackley_penny() -> Problem:
    """Ackley with four actions, whose wide bell the adversary multiplies by a number from -0.99 to 0.99."""
    equations = {**ackley_means("x0", "x1", "x2", "x3"), "Y": _bell("z0")}
    description = "The negated Ackley function, whose wide bell the adversary may turn into a pit."
    return _game("AckleyPenny", description, equations, [(-2.0, 2.0)] * 4, [(-0.99, 0.99)])


def ackley_perturb() -> Problem:
    """Ackley with four actions; the adversary adds up to 1 to two of them, either way."""
    equations = {**ackley_means("(x0 + z0)", "(x1 + z1)", "x2", "x3"), "Y": _bell("1.0")}
    description = (
        "The negated Ackley function through its mean square and its mean cosine; the adversary shifts two actions."
    )
    return _game("AckleyPerturb", description, equations, [(-2.0, 2.0)] * 4, [(-1.0, 1.0)] * 2)


def _game(
    name: str,
    description: str,
    equations: Mapping[str, str],
    actions: Sequence[Interval],
    adversary_domains: Sequence[Interval],
) -> Problem:
    """Return the problem with its reward Y scaled to [0, 1], and with a latent source of the adversary's random moves.

    Args:
        name: the problem's name.
        description: the system in one sentence.
        equations: variable -> mechanism, Y last.
        actions: domains of the agent's coordinates.
        adversary_domains: domains of the adversary's coordinates.
    """
    names = [f"x{i}" for i in range(len(actions))] + [f"z{i}" for i in range(len(adversary_domains))]
    domains = [*actions, *adversary_domains]
    low, high = _reward_range(StructuralCausalModel(read_equations(equations, 0.0, actions=names), "Y"), domains)
    scaled = {**equations, "Y": f"({equations['Y']} - {low}) / {high - low}"}
    randomness = Variable(RANDOMNESS, own_noise, noise=Uniform(0.0, 1.0), observed=False)
    return Problem(
        name=name,
        scm=StructuralCausalModel([*read_equations(scaled, 0.0, actions=names), randomness], "Y"),
        description=description,
        citation=CITATION,
        action_domains=domains,
        action_names=names,
        noiseless_mean=True,
        # Moves are noise to a method that does not observe them.
        noise_known=False,
        modes=[Adversary(len(adversary_domains), LEVELS, RANDOMNESS)],
    )


def _reward_range(scm: StructuralCausalModel, domains: Sequence[Interval]) -> tuple[float, float]:
    """Return the least and the greatest reward over all choices of both players."""
    choices = Domains(domains).points_to_native(GridBox(len(domains), LEVELS).all())
    rewards = scm.propagate((), Intervention.parameters(choices))[scm.reward]
    return float(np.min(rewards)), float(np.max(rewards))
