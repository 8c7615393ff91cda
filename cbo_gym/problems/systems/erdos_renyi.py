"""Random systems on Erdos-Renyi graphs, on which methods that do not know the graph are compared."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbo_gym.arguments import is_finite_number, require_truth_value, whole_number
from cbo_gym.errors import ArgumentError, shown
from cbo_gym.problems.base import Problem
from cbo_gym.scm import Component, Floats, Linear, Normal, Periodic, StructuralCausalModel, Tanh, Variable

REWARD = "Y"
WEIGHTS = (0.5, 1.5)  # absolute values, times the square root of the number of parents
FREQUENCIES = (0.05, 0.2)
SLOPES = (0.5, 1.5)
SPREADS = 2.0  # standard deviations to each side that a variable can be set to
MAX_NODES = 200
MAX_EDGES = 5000  # limit of the expected number of edges
SAMPLES = 10_000  # samples for means and standard deviations


@dataclass(frozen=True)
class Additive:
    """``sum_j f_j(parent_j) + u``, one component f_j a parent."""

    components: tuple[Component, ...]

    def __call__(self, *values: Any) -> Floats:
        *parents, total = values
        for component, parent in zip(self.components, parents, strict=True):
            total = total + component(parent)
        return total


def erdos_renyi(nodes: int = 10, density: float = 2.0, nonlinear: bool = False, instance_seed: int = 0) -> Problem:
    """Return a random system: an Erdos-Renyi graph, additive mechanisms and noise N(0, 1).

    Each pair of variables is joined with the same probability, along a random order that ends in the reward, which
    has at least one parent. An edge is linear, with a weight of 0.5 to 1.5 and a random sign, divided by the square
    root of the number of parents, so that values do not grow without bounds in deep graphs; or, nonlinear, a tanh or a
    sine of such an amplitude. Every variable but the reward can be set, alone, to values within two standard
    deviations of its mean. Names and their order are independent of the graph.

    Args:
        nodes: number of variables, the reward included, 2 to 200.
        density: expected number of edges a variable, above 0; at most that of a complete graph, (nodes - 1) / 2, and
            5,000 / nodes.
        nonlinear: sines and tanh instead of linear functions.
        instance_seed: seed of the graph and the functions, at least 0.
    """
    count = whole_number("nodes", nodes, at_least=2, at_most=MAX_NODES)
    densest = min((count - 1) / 2, MAX_EDGES / count)
    if not (is_finite_number(density) and 0 < density <= densest):
        raise ArgumentError(f"density must be above 0 and be at most {densest:g}; given {shown(density)}")
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
    drawn = scm.sample(SAMPLES, np.random.default_rng(0))
    settable = [f"X{i}" for i in range(1, count)]
    spans = {name: (float(drawn[name].mean()), SPREADS * float(drawn[name].std())) for name in settable}
    return Problem(
        name=f"ErdosRenyi{count}",
        scm=scm,
        description=f"A random graph of {count} variables, {'nonlinear' if nonlinear else 'linear'} in each edge; "
        "one variable at a time is set.",
        citation="after Durand, Annadani, Bauer & Parbhoo (2025), Causal Bayesian optimization with unknown graphs",
        manipulable={name: (round(mean - span, 3), round(mean + span, 3)) for name, (mean, span) in spans.items()},
        targets=[frozenset(), *(frozenset({name}) for name in settable)],
    )


def _draw_graph(rng: np.random.Generator, count: int, probability: float) -> Mapping[str, list[str]]:
    """Variable -> its parents, in a random order of the names that ends in the reward."""
    order = [*(f"X{i}" for i in rng.permutation(count - 1) + 1), REWARD]
    joined = rng.random((count, count)) < probability
    parents = {name: [cause for j, cause in enumerate(order[:i]) if joined[i, j]] for i, name in enumerate(order)}
    if not parents[REWARD]:
        parents[REWARD] = [order[rng.integers(count - 1)]]
    return parents


def _draw_function(rng: np.random.Generator, nonlinear: bool, siblings: int) -> Component:
    weight = rng.choice([-1.0, 1.0]) * rng.uniform(*WEIGHTS) / math.sqrt(siblings)
    if not nonlinear:
        return Linear(weight)
    if rng.random() < 0.5:
        return Tanh(weight, rng.uniform(*SLOPES), rng.uniform(-1.0, 1.0))
    return Periodic(weight, rng.uniform(*FREQUENCIES))
