"""Networks for partial mode, in which nodes are bought one at a time (Buathong et al. 2024; Kusakawa et al. 2022).

Equations, domains, lengthscales and prices are those of the authors' published program (frazier-lab/partial_kgfn). Its
draws from Gaussian processes cannot be reproduced, because their random state is unknown. This module makes its own
draws with the same kernels, by random Fourier features with fixed seeds. The keyword ``costs`` changes the prices.

The objective of the program's pharmaceutical network swaps its two nodes, disintegration time and strength, so that it
prefers tablets that disintegrate slowly. Here it prefers strong tablets that disintegrate quickly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cbo_gym.actions import Costs, Interval
from cbo_gym.problems.base import Problem, gaussian_noise
from cbo_gym.problems.modes.partial import NodePurchases
from cbo_gym.problems.outcomes import Outcomes
from cbo_gym.problems.systems import compositions
from cbo_gym.problems.systems.building import read_equations
from cbo_gym.problems.systems.function_networks import ackley_means
from cbo_gym.scm import Floats, StructuralCausalModel, Variable

CITATION = (
    "Buathong, Wan, Astudillo, Daulton, Balandat & Frazier (2024), Bayesian optimization of function networks with "
    "partial evaluations, sec. 5; the published program"
)
CASCADE_CITATION = (
    "Kusakawa, Takeno, Inatsu, Kutsukake, Iwazaki, Nakano, Ujihara, Karasuyama & Takeuchi (2022), Bayesian "
    "optimization for cascade-type multistage processes, sec. 5; the published program"
)
# Number of Fourier features of a draw.
FEATURES = 64
# Degrees of freedom of the spectral density of the Matern kernel of smoothness 5/2.
DEGREES = 5
# Lengthscale and variance of the program's kernels before they are fitted: log 2.
UNFITTED = 0.6931471805599453
COORDINATES = [f"x{index}" for index in range(6)]
MEAN_SQUARE, MEAN_COSINE = ackley_means(*COORDINATES).values()
#: Minus the Ackley function of x0, ..., x5.
HEIGHT = f"20.0 * (exp(-0.2 * sqrt({MEAN_SQUARE})) - 1.0) + (exp({MEAN_COSINE}) - {math.e})"


@dataclass(frozen=True)
class FourierDraw:
    """A draw from a zero-mean Gaussian process with the Matern kernel of smoothness 5/2, as a mechanism.

    It is ``sqrt(2 variance / m) sum_j w_j cos(k_j x + b_j) + u``, with m random frequencies k_j.

    Args:
        seed: seed of the frequencies, the phases and the weights.
        lengthscale: lengthscale of all inputs.
        variance: variance of the kernel.
        dim: number of inputs.
    """

    seed: int
    lengthscale: float = UNFITTED
    variance: float = UNFITTED
    dim: int = 1

    @cached_property
    def _terms(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(self.seed)
        spread = np.sqrt(DEGREES / rng.chisquare(DEGREES, FEATURES))
        frequencies = rng.standard_normal((self.dim, FEATURES)) * spread / self.lengthscale
        phases = rng.uniform(0.0, 2.0 * np.pi, FEATURES)
        return frequencies, phases, np.sqrt(2.0 * self.variance / FEATURES) * rng.standard_normal(FEATURES)

    def __call__(self, *causes: Floats) -> Floats:
        *inputs, u = causes
        frequencies, phases, weights = self._terms
        angles: Any = phases
        for value, row in zip(inputs, frequencies, strict=True):
            # An outer product with a single number takes twice as long as the product.
            angles = angles + (value * row if isinstance(value, float) else np.multiply.outer(value, row))
        return np.cos(angles).dot(weights) + u


def ackley_sine(noise_std: float = 0.0) -> Problem:
    """Ackley's function of six parameters, then a sine of it that costs nine times as much.

    Args:
        noise_std: standard deviation of the noise on each node (1 in the published program).
    """
    equations = {"f0": f"{HEIGHT} + u", "f1": "-f0 * sin(5.0 / (6.0 * pi) * f0) + u"}
    return _problem(
        "AckleySine",
        "Minus Ackley's function, which is cheap, then an expensive sine of it.",
        read_equations(equations, gaussian_noise(noise_std), actions=COORDINATES),
        dict.fromkeys(COORDINATES, (-2.0, 2.0)),
        {"f0": 1.0, "f1": 9.0},
        NodePurchases(-7.0, {"f0": (-20.0, 0.0)}),
        optimal_action=None if noise_std else [0.5] * 6,
        noiseless_mean=not noise_std,
    )


def ackley_matyas(noise_std: float = 0.0) -> Problem:
    """Ackley's function of six parameters, then Matyas' function of it and a seventh, which costs nine times as much.

    For the argument see :func:`ackley_sine`.
    """
    equations = {"f0": f"-({HEIGHT}) + u", "f1": "0.48 * f0 * z - 0.26 * (f0 * f0 + z * z) + u"}
    return _problem(
        "AckleyMatyas",
        "Ackley's function, which is cheap, then an expensive one, minus Matyas' function of it and a parameter.",
        read_equations(equations, gaussian_noise(noise_std), actions=[*COORDINATES, "z"]),
        {**dict.fromkeys(COORDINATES, (-2.0, 2.0)), "z": (-10.0, 10.0)},
        {"f0": 1.0, "f1": 9.0},
        NodePurchases(-100.0, {"f0": (0.0, 20.0)}),
        optimal_action=None if noise_std else [0.5] * 7,
        noiseless_mean=not noise_std,
    )


def gps1() -> Problem:
    """Two draws from Gaussian processes in a row; the second costs nine times as much."""
    variables = [
        Variable("f0", FourierDraw(1, 0.5), actions=(0,)),
        Variable("f1", FourierDraw(2, 0.25), parents=("f0",)),
    ]
    return _problem(
        "GPs1",
        "A smooth cheap function of one parameter, then an expensive function of its value.",
        variables,
        {"x0": (-1.0, 1.0)},
        {"f0": 1.0, "f1": 9.0},
        NodePurchases(-4.0, {"f0": (-2.0, 2.0)}),
    )


def gps2() -> Problem:
    """Three cheap draws from Gaussian processes, and a draw of their three values that costs 47 times as much."""
    roots = [Variable(f"f{index}", FourierDraw(11 + index), actions=(index,)) for index in range(3)]
    last = Variable("f3", FourierDraw(14, dim=3), parents=("f0", "f1", "f2"))
    return _problem(
        "GPs2",
        "Three cheap functions of one parameter each, then an expensive function of their values.",
        [*roots, last],
        {f"x{index}": (-1.0, 1.0) for index in range(3)},
        {"f0": 1.0, "f1": 1.0, "f2": 1.0, "f3": 47.0},
        NodePurchases(-4.0, dict.fromkeys(["f0", "f1", "f2"], (-2.0, 2.0))),
    )


def manufacturing() -> Problem:
    """A part made in two steps, another made in one, and their assembly."""
    variables = [
        Variable("f0", FourierDraw(21, dim=2), actions=(0, 1)),
        Variable("f1", FourierDraw(22, 1.0), parents=("f0",)),
        Variable("f2", FourierDraw(23, 1.0, dim=2), actions=(2, 3)),
        Variable("f3", FourierDraw(24, 3.0, 10.0, dim=2), parents=("f1", "f2")),
    ]
    return _problem(
        "Manufacturing",
        "One part is made in two steps, another in one step, and the expensive last step assembles them.",
        variables,
        {f"x{index}": (-1.0, 1.0) for index in range(4)},
        {"f0": 5.0, "f1": 10.0, "f2": 10.0, "f3": 45.0},
        NodePurchases(-12.0, {"f0": (-2.0, 2.0), "f1": (-2.0, 2.0), "f2": (-2.0, 2.0)}),
    )


def cascade_matyas(noise_std: float = 0.0) -> Problem:
    """A cascade of three stages, each minus Matyas' function of the last product and a parameter, scaled to [-10, 10].

    The last stage has its maximum, 10, at a product of 0 and a parameter of 0. With ``x0 = x1 = 0`` the first is
    10, and the second product is 0 if ``10 - 5.2 - 0.052 x2^2 + 0.96 x2 = 0``.

    Args:
        noise_std: standard deviation of the noise of each stage (0.01 in the published program).
    """
    stage = "10.0 - 0.052 * ({0} * {0} + {1} * {1}) + 0.096 * {0} * {1} + u"
    inputs = {"f0": ("x0", "x1"), "f1": ("f0", "x2"), "f2": ("f1", "x3")}
    names = [f"x{index}" for index in range(4)]
    equations = {node: stage.format(*inputs_of_node) for node, inputs_of_node in inputs.items()}
    best_x2 = (0.96 - math.sqrt(0.96 * 0.96 + 4.0 * 0.052 * 4.8)) / 0.104
    return _problem(
        "CascadeMatyas",
        "Two cheap stages of a process and an expensive last one; each works on the product of the one before.",
        read_equations(equations, gaussian_noise(noise_std), actions=names),
        dict.fromkeys(names, (-10.0, 10.0)),
        {"f0": 1.0, "f1": 1.0, "f2": 10.0},
        NodePurchases(-10.0, dict.fromkeys(["f0", "f1"], (-10.0, 10.0))),
        optimal_action=None if noise_std else [0.5, 0.5, (best_x2 + 10.0) / 20.0, 0.5],
        noiseless_mean=not noise_std,
        citation=CASCADE_CITATION,
    )


def pharmaceutical() -> Problem:
    """A tablet's tensile strength and its disintegration time, which are measured separately."""
    names = [f"x{index}" for index in range(4)]
    nodes = {"strength": _logistic(1.07, STRENGTH), "time": _logistic(-3.95, TIME)}
    reward = "(60.0 - time) / 60.0 * strength / 1.5"
    return _problem(
        "Pharmaceutical",
        "A tablet with a cheap measurement of disintegration time and an expensive one of strength; known utility.",
        read_equations({**nodes, "utility": reward}, 0.0, actions=names),
        dict.fromkeys(names, (-1.0, 1.0)),
        {"strength": 9.0, "time": 1.0},
        NodePurchases(-1.0),
        composition=compositions.tablet_utility,
    )


#: Height, offset and slopes of each logistic term.
STRENGTH = (
    (0.62, 3.05, 0.03, -0.16, 4.03, -0.54),
    (0.65, 1.78, 0.60, -3.19, 0.10, 0.52),
    (-0.72, 0.01, 2.04, -3.73, 0.10, -1.05),
    (-0.45, 1.82, 4.78, 0.48, -4.68, -1.65),
    (-0.32, 2.69, 5.99, 3.87, 3.10, -2.17),
)
TIME = (
    (9.20, 0.32, 5.06, -4.07, -0.36, -0.34),
    (9.88, -4.83, 7.43, 3.46, 9.19, 16.58),
    (10.84, 7.90, 7.91, 4.48, 4.08, 8.28),
    (15.18, 9.41, -7.99, 0.65, 3.14, 0.31),
)


def _logistic(offset: float, terms: Sequence[Sequence[float]]) -> str:
    """Return the equation of a sum of logistic functions of x0, ..., x3."""
    arguments = [" + ".join([f"{first}", *(f"{slope} * x{i}" for i, slope in enumerate(slopes))])
                 for _, first, *slopes in terms]  # fmt: skip
    return " + ".join([f"{offset}", *(f"{term[0]} * sigmoid({a})" for term, a in zip(terms, arguments, strict=True))])


def _problem(
    name: str,
    description: str,
    variables: Sequence[Variable],
    domains: Mapping[str, Interval],
    prices: Mapping[str, float],
    purchases: NodePurchases,
    citation: str = CITATION,
    **fields: Any,
) -> Problem:
    scm = StructuralCausalModel(variables, reward=variables[-1].name)
    return Problem(
        name=name,
        scm=scm,
        description=description,
        citation=citation,
        action_domains=list(domains.values()),
        action_names=list(domains),
        outcomes=Outcomes(scm.reward, costs=Costs(variables=prices)),
        modes=[purchases],
        **fields,
    )
