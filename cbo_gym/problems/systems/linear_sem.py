"""Linear systems with soft interventions on any subset of the nodes (Varici et al. 2023; Yan & Tajer 2024).

Each node has two vectors of weights: the observational one, and the interventional one if the node is in the subset
that is played. Both include a constant. E[Y | subset] and the optimum are exact, see :mod:`cbo_gym.scm.linear`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cbo_gym._util.arguments import whole_number
from cbo_gym.errors import ArgumentError
from cbo_gym.problems.base import Problem
from cbo_gym.scm import Distribution, Floats, Normal, StructuralCausalModel, Uniform, Variable
from cbo_gym.scm.linear import MAX_NODES, LinearNetwork

VARICI = "Varici, Shanmugam, Sattigeri & Tajer (2023), Causal bandits for linear structural equation models"
YAN = "Yan & Tajer (2024), Linear causal bandits: unknown graph and soft interventions"
REWARD = "Y"
# Range of the absolute values of the weights' means.
MAGNITUDES = (0.25, 1.0)
# Mean of noise on [0, 1].
NOISE_MEAN = 0.5
# Standard deviation of the weights about their means.
WEIGHT_STD = 0.1

Weights = tuple[float, ...]


@dataclass(frozen=True)
class SwitchableMechanism:
    """``w . (1, causes) + u``; a parameter in [0, 1] interpolates w from observational to interventional weights.

    Args:
        observational: weights for a parameter of 0: the constant, then one weight per cause.
        interventional: weights for a parameter of 1, in the same order.
    """

    observational: Weights
    interventional: Weights

    def __call__(self, *values: Any) -> Floats:
        *causes, parameter, noise = values
        constant, *weights = [weight + parameter * change for weight, change in self._weights]
        total = noise + constant
        for weight, cause in zip(weights, causes, strict=True):
            total = total + weight * cause
        return total

    def inline(self, values: Sequence[str]) -> str:
        """Return code of the same sum."""
        *causes, parameter, noise = values
        weights = [f"({weight!r} + {parameter} * {change!r})" for weight, change in self._weights]
        products = [f"{weight} * {cause}" for weight, cause in zip(weights[1:], causes, strict=True)]
        return " + ".join([noise, weights[0], *products])

    @property
    def _weights(self) -> list[tuple[float, float]]:
        """Each observational weight, and the difference of the interventional weight from it."""
        weights = zip(self.observational, self.interventional, strict=True)
        return [(float(before), float(after - before)) for before, after in weights]


@dataclass(frozen=True)
class ConstantMechanism:
    """A constant plus noise."""

    constant: float

    def __call__(self, u: Any) -> Floats:
        return self.constant + u


def hierarchical(degree: int = 3, layers: int = 3, instance_seed: int = 0) -> Problem:
    """Return a system of layers: all nodes of a layer cause each node of the next, and those of the last the reward.

    Weights and constants are drawn as in :func:`enhanced_parallel`.

    Args:
        degree: number of nodes in a layer, at least 1; the paper has 2 to 4.
        layers: number of layers, at least 1; the paper has 1 to 4. With the reward there are at most 17 nodes.
        instance_seed: seed of the weights, at least 0.
    """
    causes = _connect_layers(degree, layers)
    rng = np.random.default_rng(whole_number("instance_seed", instance_seed, at_least=0))
    return _random_problem("LinearSEMHierarchical", f"{layers} layers of {degree} nodes", causes, rng)


def enhanced_parallel(nodes: int = 9, instance_seed: int = 0) -> Problem:
    """Return a system in which all nodes cause the reward and all but the first have one earlier, random cause.

    Every weight and constant has a mean with a random sign and an absolute value drawn uniformly from [0.25, 1]. The
    means of the interventional vector have the opposite signs. Weights differ from their means by N(0, 0.01). The noise
    is N(0, 1).

    Args:
        nodes: number of nodes, the reward included, 3 to 17; the paper has 5 to 9.
        instance_seed: seed of the graph and the weights, at least 0.
    """
    count = whole_number("nodes", nodes, at_least=3, at_most=MAX_NODES)
    rng = np.random.default_rng(whole_number("instance_seed", instance_seed, at_least=0))
    tree = [[int(rng.integers(i))] if i else [] for i in range(count - 1)]
    causes = [*tree, list(range(count - 1))]
    return _random_problem("LinearSEMParallel", f"{count - 1} causes of the reward in a tree", causes, rng)


def halved(degree: int = 3, layers: int = 2) -> Problem:
    """Return the system of Yan & Tajer (2024): a hierarchical graph with weights that halve, or double at the reward.

    The nodes of the first layer are noise and have no intervention. All other weights are 1, and 0.5 under
    intervention. At the reward it is the other way round, so the best action is to intervene on the reward alone.
    Noise is uniform on [0, 1], which is written as a constant of 0.5 plus noise with mean 0.

    The paper's agent does not know the graph: ``graph="hidden"``. The regrets that its program prints assume that the
    first layer's means are 1; they are 0.5.

    Args:
        degree: number of nodes in a layer, at least 1; the paper has 3.
        layers: number of layers, at least 1; the paper has 2. With the reward there are at most 17 nodes.
    """
    causes = _connect_layers(degree, layers)
    ones, halves = (
        [(NOISE_MEAN, *[weight] * len(causes_of_node)) for causes_of_node in causes] for weight in (1.0, 0.5)
    )
    ones[-1], halves[-1] = halves[-1], ones[-1]
    description = f"{layers} layers of {degree} nodes, weights of 1 and 0.5"
    weights = list(zip(ones, halves, strict=True))
    return _problem("LinearSEMHalved", description, YAN, causes, weights, Uniform(-NOISE_MEAN, NOISE_MEAN))


def _connect_layers(degree: int, layers: int) -> list[list[int]]:
    """Return the indices of the causes of each node, layer by layer, the reward last."""
    degree = whole_number("degree", degree, at_least=1, at_most=MAX_NODES - 1)
    layers = whole_number("layers", layers, at_least=1, at_most=MAX_NODES - 1)
    if degree * layers >= MAX_NODES:
        raise ArgumentError(f"degree times layers must be at most {MAX_NODES - 1}; given {degree} times {layers}")
    nodes_of_layers = [list(range(degree * layer, degree * (layer + 1))) for layer in range(layers)]
    inner = [layer for layer in nodes_of_layers[:-1] for _ in range(degree)]
    return [[] for _ in range(degree)] + inner + [nodes_of_layers[-1]]


def _random_problem(name: str, description: str, causes: Sequence[Sequence[int]], rng: np.random.Generator) -> Problem:
    weights = [_draw_weights(rng, 1 + len(causes_of_node)) for causes_of_node in causes]
    return _problem(f"{name}{len(causes)}", description, VARICI, causes, weights, Normal())


def _draw_weights(rng: np.random.Generator, size: int) -> tuple[Weights, Weights]:
    """Return an observational and an interventional vector of weights."""
    means = rng.uniform(*MAGNITUDES, size) * rng.choice([-1.0, 1.0], size)
    observational, interventional = np.stack([means, -means]) + WEIGHT_STD * rng.standard_normal((2, size))
    return tuple(observational.tolist()), tuple(interventional.tolist())


def _problem(
    name: str,
    description: str,
    citation: str,
    causes: Sequence[Sequence[int]],
    weights: Sequence[tuple[Weights, Weights]],
    noise: Distribution,
) -> Problem:
    """Return the problem with an observational and an interventional vector of weights for each node.

    A node whose vectors are equal has no parameter.
    """
    names = [*(f"X{i + 1}" for i in range(len(causes) - 1)), REWARD]
    # Nodes that an action can intervene on.
    manipulable = [i for i, (observational, interventional) in enumerate(weights) if observational != interventional]
    variables = [
        Variable(
            names[i],
            # Only nodes of noise and a constant have no intervention.
            SwitchableMechanism(*vectors) if i in manipulable else ConstantMechanism(*vectors[0]),
            tuple(names[cause] for cause in causes_of_node),
            (manipulable.index(i),) if i in manipulable else (),
            noise,
        )
        for i, (causes_of_node, vectors) in enumerate(zip(causes, weights, strict=True))
    ]
    best = _best_subset(causes, weights, manipulable)
    return Problem(
        name=name,
        scm=StructuralCausalModel(variables, reward=REWARD),
        description=f"A linear system, {description}; each node of the chosen subset gets other weights.",
        citation=citation,
        action_domains=[(0.0, 1.0)] * len(manipulable),
        action_names=[f"soft_{names[i]}" for i in manipulable],
        optimal_action=[float(best[i]) for i in manipulable],
        noiseless_mean=True,
    )


def _best_subset(
    causes: Sequence[Sequence[int]], pairs: Sequence[tuple[Weights, Weights]], manipulable: Collection[int]
) -> np.ndarray:
    """Return the optimal subset: 1 for each node whose interventional vector is better, else 0."""
    network = LinearNetwork(causes, [1 + (i in manipulable) for i in range(len(causes))])
    weights = np.zeros((len(causes), 2, network.width))
    for i, pair in enumerate(pairs):
        weights[i, :, : len(pair[0])] = pair
    return network.best(weights).options
