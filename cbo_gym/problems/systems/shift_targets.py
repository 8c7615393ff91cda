"""Linear Gaussian systems in which shifts should bring the nodes' means to a target (Zhang et al. 2023).

A shift a_i is added to the equation of node i, X = B X + a + noise, so that E[X | a] = (I - B)^-1 a. Every node has
variance 1. The reward is minus the squared distance of X from the target, plus noise whose mean is the sum of the
variances. Its expectation is therefore minus the squared distance of the means from the target. The optimum is 0, at
a = (I - B) target.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from cbo_gym._util.arguments import require_word, whole_number
from cbo_gym.problems.base import Problem
from cbo_gym.problems.systems.compositions import squared_distance
from cbo_gym.scm import Floats, Normal, StructuralCausalModel, Variable

CITATION = (
    "Zhang, Cammarata, Squires, Sapsis & Uhler (2023), Active learning for optimal intervention design in causal models"
)
REWARD = "Y"
# Range of the absolute values of weights, and of the shifts of the optimum before they are scaled to length 1.
MAGNITUDES = (0.25, 1.0)
# Probability of an edge of a random graph.
EDGE_PROBABILITY = 0.2
MAX_NODES = 30
# Standard deviation of the reward's own noise.
REWARD_NOISE = 0.1


@dataclass(frozen=True)
class ShiftedSum:
    """``w . parents + shift + u``."""

    weights: tuple[float, ...]

    def __call__(self, *values: Any) -> Floats:
        total = values[-2] + values[-1]
        for weight, parent in zip(self.weights, values):  # noqa: B905  # the shift and the noise come after the parents
            total = total + weight * parent
        return total


@dataclass(frozen=True)
class NegatedDistance:
    """Mechanism of the reward: minus the squared distance of the parents from the target, plus u."""

    target: tuple[float, ...]

    def __call__(self, *values: Any) -> Floats:
        total = values[-1]
        for goal, value in zip(self.target, values):  # noqa: B905  # the noise comes after the parents
            total = total - (value - goal) * (value - goal)
        return total


def shift_target(
    nodes: int = 5, shape: Literal["path", "complete", "random"] = "complete", targets: int = 2, instance_seed: int = 0
) -> Problem:
    """Return a random system with unit variances, whose target mean shifts of Euclidean length 1 can reach.

    Weights have random signs and absolute values from 0.25 to 1, and the noise is N(0, 1). Then all nodes are scaled to
    variance 1. The shifts of the optimum are on the last nodes, with random signs and absolute values from 0.25 to 1,
    scaled to length 1.

    Args:
        nodes: number of nodes, 2 to 30, without the reward.
        shape: graph, ``"path"``, ``"complete"``, or ``"random"`` with each edge at probability 0.2.
        targets: number of nodes that the optimum shifts, at least 1.
        instance_seed: seed of the graph, the weights and the optimum, at least 0.
    """
    count = whole_number("nodes", nodes, at_least=2, at_most=MAX_NODES)
    size = whole_number("targets", targets, at_least=1, at_most=count)
    require_word("shape", shape, ("path", "complete", "random"))
    rng = np.random.default_rng(whole_number("instance_seed", instance_seed, at_least=0))
    joined = {
        "path": np.eye(count, k=-1, dtype=bool),
        "complete": np.ones((count, count), dtype=bool),
        "random": rng.random((count, count)) < EDGE_PROBABILITY,
    }[shape]
    weights = np.tril(_draw(rng, (count, count)) * joined, -1)
    effects = np.linalg.inv(np.eye(count) - weights)
    scales = 1.0 / np.linalg.norm(effects, axis=1)
    weights = scales[:, None] * weights / scales
    shift = np.zeros(count)
    shift[-size:] = _draw(rng, size)
    shift /= np.linalg.norm(shift[-size:])
    target = np.linalg.solve(np.eye(count) - weights, shift)
    return _problem(f"ShiftTarget{count}", weights, scales, shift, tuple(target.tolist()))


def _draw(rng: np.random.Generator, shape: int | tuple[int, int]) -> np.ndarray:
    return rng.uniform(*MAGNITUDES, shape) * rng.choice([-1.0, 1.0], shape)


def _problem(
    name: str, weights: np.ndarray, noise: np.ndarray, shift: np.ndarray, target: tuple[float, ...]
) -> Problem:
    names = [f"X{i}" for i in range(len(target))]
    parents_of = [np.flatnonzero(row).tolist() for row in weights]
    variables = [
        Variable(
            names[i],
            ShiftedSum(tuple(weights[i, parents].tolist())),
            tuple(names[parent] for parent in parents),
            (i,),
            Normal(0.0, float(noise[i])),
        )
        for i, parents in enumerate(parents_of)
    ]
    reward = Variable(REWARD, NegatedDistance(target), tuple(names), noise=Normal(float(len(names)), REWARD_NOISE))
    return Problem(
        name=name,
        scm=StructuralCausalModel([*variables, reward], reward=REWARD),
        description=f"{len(names)} linear nodes whose means shifts should bring to a target.",
        citation=CITATION,
        action_domains=[(-1.0, 1.0)] * len(names),
        null_action=(0.5,) * len(names),
        optimal_action=tuple(((1.0 + shift) / 2.0).tolist()),
        noiseless_mean=True,
        composition=partial(squared_distance, target, tuple(names)),
    )
