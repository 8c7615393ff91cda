"""Random systems on Erdos-Renyi graphs, for comparing methods that do not know the graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbo_gym._util.arguments import is_finite_number, require_truth_value, whole_number
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.problems.base import Problem
from cbo_gym.scm import Component, Floats, Linear, Normal, Periodic, StructuralCausalModel, Tanh, Variable

REWARD = "Y"
# Range of the absolute value of a weight, before it is divided by the square root of the number of parents.
WEIGHTS = (0.5, 1.5)
# Range of the frequency of a sine.
FREQUENCIES = (0.05, 0.2)
# Range of the slope of a tanh.
SLOPES = (0.5, 1.5)
# Distance from its mean, in standard deviations, up to which a variable can be set.
DEVIATIONS = 2.0
MAX_NODES = 200
# Limit of the expected number of edges.
MAX_EDGES = 5000
# Number of samples from which means and standard deviations are computed.
SAMPLES = 10_000


@dataclass(frozen=True)
class Additive:
    """``sum_j f_j(parent_j) + u``, with one component f_j for each parent."""

    components: tuple[Component, ...]

    def __call__(self, *values: Any) -> Floats:
        *parents, total = values
        for component, parent in zip(self.components, parents, strict=True):
            total = total + component(parent)
        return total

    def inline(self, values: Sequence[str]) -> str:
        """Return code of the same sum, or an empty string if a component is not linear."""
        *parents, total = values
        slopes = [float(component.slope) for component in self.components if isinstance(component, Linear)]
        terms = [f"{slope!r} * {parent}" for slope, parent in zip(slopes, parents, strict=False)]
        return " + ".join([total, *terms]) if len(slopes) == len(self.components) else ""


def erdos_renyi(nodes: int = 10, density: float = 2.0, nonlinear: bool = False, instance_seed: int = 0) -> Problem:
    """Return a random system: an Erdos-Renyi graph, additive mechanisms and noise N(0, 1).

    The variables have a random order that ends in the reward. Each pair is joined with the same probability, by an edge
    that follows the order; the reward has at least one parent. The function of an edge is linear: its weight is from
    0.5 to 1.5, with a random sign, divided by the square root of the number of parents, so that values do not grow
    without bounds in deep graphs. If ``nonlinear``, it is a tanh or a sine with this weight as its amplitude. Every
    variable but the reward can be set, one at a time, to values within two standard deviations of its mean. Names and
    their order are independent of the graph.

    Args:
        nodes: number of variables, the reward included, 2 to 200.
        density: expected number of edges divided by ``nodes``, above 0 and at most (nodes - 1) / 2, as in a complete
            graph, and 5,000 / nodes.
        nonlinear: whether the functions are sines and tanh instead of linear.
        instance_seed: seed of the graph and the functions, at least 0.
    """
    count = whole_number("nodes", nodes, at_least=2, at_most=MAX_NODES)
    densest = min((count - 1) / 2, MAX_EDGES / count)
    if not (is_finite_number(density) and 0 < density <= densest):
        raise ArgumentError(f"density must be above 0 and at most {densest:g}; given {short_repr(density)}")
    require_truth_value("nonlinear", nonlinear)
    rng = np.random.default_rng(whole_number("instance_seed", instance_seed, at_least=0))
    parents = _draw_graph(rng, count, 2.0 * density / (count - 1))
    variables = [
        Variable(
            name,
            Additive(tuple(_draw_function(rng, nonlinear, len(causes)) for _ in causes)),
            tuple(causes),
            noise=Normal(0.0, 1.0),
        )
        for name, causes in parents.items()
    ]
    scm = StructuralCausalModel(variables, reward=REWARD)
    samples = scm.sample(SAMPLES, np.random.default_rng(0))
    domains = {}
    for name in (f"X{i}" for i in range(1, count)):
        mean, width = float(samples[name].mean()), DEVIATIONS * float(samples[name].std())
        domains[name] = (round(mean - width, 3), round(mean + width, 3))
    return Problem(
        name=f"ErdosRenyi{count}",
        scm=scm,
        description=f"A random graph of {count} variables, {'nonlinear' if nonlinear else 'linear'} in each edge; "
        "one variable at a time is set.",
        citation="after Durand, Annadani, Bauer & Parbhoo (2025), Causal Bayesian optimization with unknown graphs",
        manipulable=domains,
        targets=[frozenset(), *(frozenset({name}) for name in domains)],
    )


def _draw_graph(rng: np.random.Generator, count: int, probability: float) -> Mapping[str, list[str]]:
    """Return variable -> its parents, in a random order of the variables that ends in the reward."""
    order = [*(f"X{i}" for i in rng.permutation(count - 1) + 1), REWARD]
    joined = rng.random((count, count)) < probability
    parents = {name: [cause for j, cause in enumerate(order[:i]) if joined[i, j]] for i, name in enumerate(order)}
    if not parents[REWARD]:
        parents[REWARD] = [order[rng.integers(count - 1)]]
    return parents


def _draw_function(rng: np.random.Generator, nonlinear: bool, parents: int) -> Component:
    weight = rng.choice([-1.0, 1.0]) * rng.uniform(*WEIGHTS) / math.sqrt(parents)
    if not nonlinear:
        return Linear(weight)
    if rng.random() < 0.5:
        return Tanh(weight, rng.uniform(*SLOPES), rng.uniform(-1.0, 1.0))
    return Periodic(weight, rng.uniform(*FREQUENCIES))
