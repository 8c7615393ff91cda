"""BinaryTree: a function network of any depth, for studies of how methods scale with the number of nodes.

The graph follows the illustration of Sussex et al. (2023), Fig. 3: every node has at most two parents (K = 2) and
the longest path to the reward grows with the logarithm of the number of nodes. The mechanisms are ours.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from cbo_gym._util.arguments import whole_number
from cbo_gym.problems.base import Problem, gaussian_noise
from cbo_gym.scm import Floats, StructuralCausalModel, Variable

AMPLITUDE = 5.0
WEIGHT = 0.1
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
TURN = 2.0 * math.pi
MAX_DEPTH = 6


def _peak(index: int) -> float:
    """Return where the effect of action ``index`` is largest; golden-ratio steps spread the peaks over [0, 1]."""
    return (GOLDEN * (index + 1)) % 1.0


def _leaf(peak: float, x: Floats, u: Floats) -> Floats:
    return AMPLITUDE * np.tanh(np.cos(TURN * (x - peak))) + u


def _inner(peak: float, left: Floats, right: Floats, x: Floats, u: Floats) -> Floats:
    drive = WEIGHT * (left - right) + np.cos(TURN * (x - peak))
    return AMPLITUDE * np.tanh(drive) + u


def _root(left: Floats, right: Floats, u: Floats) -> Floats:
    return left - right + u


def binary_tree(depth: int = 2, noise_std: float = 0.0) -> Problem:
    """BinaryTree: leaves at the top, the reward at the root, one action at every node but the reward.

    With ``h`` the position in heap order, the root is 1, and the causal parents of h, left and right, are ``2h`` and
    ``2h + 1``. X(h-2) is ``5 tanh(0.1 (left - right) + cos 2 pi (a - p)) + u`` and Y is ``left - right + u``. Every
    mechanism increases in its left parent and decreases in its right one, so the best action of a node is its peak p or
    half a turn away.

    Args:
        depth: levels above the root, 1 to 6; the tree has ``2^(depth+1) - 1`` nodes (7 by default, 127 at most).
        noise_std: standard deviation of the noise on each node (1 in ``CBO/BinaryTree-Noisy-v0``).
    """
    depth = whole_number("depth", depth, at_least=1, at_most=MAX_DEPTH)
    noise = gaussian_noise(noise_std)
    size = 2 ** (depth + 1) - 1
    signs = {1: 1.0}
    variables = [Variable("Y", _root, ("X0", "X1"), (), noise)]
    best = []
    for heap in range(2, size + 1):
        index = heap - 2
        signs[heap] = signs[heap // 2] * (1.0 if heap % 2 == 0 else -1.0)
        best.append((_peak(index) + (0.0 if signs[heap] > 0 else 0.5)) % 1.0)
        is_leaf = 2 * heap > size
        parents = () if is_leaf else (f"X{2 * heap - 2}", f"X{2 * heap - 1}")
        mechanism = partial(_leaf if is_leaf else _inner, _peak(index))
        variables.append(Variable(f"X{index}", mechanism, parents, (index,), noise))
    return Problem(
        name="BinaryTree",
        scm=StructuralCausalModel(variables, reward="Y"),
        description=f"A binary tree of {size} nodes: tanh of two parents and an action; the reward is a difference.",
        citation="The graph: Sussex, Makarova & Krause (2023), Fig. 3; the mechanisms: cbo-gym",
        action_domains=[(0.0, 1.0)] * (size - 1),
        optimal_action=tuple(best),
    )
