"""The best choice of weights in linear networks, against enumeration and against a climb of another kind."""

from itertools import product

import numpy as np
import pytest

from cbo_gym.errors import ArgumentError
from cbo_gym.scm.linear import LinearNetwork


def _drawn(rng, count, density=0.6):
    """Causes, options and weights of a random network, whose last node has a cause."""
    causes = [[j for j in range(i) if rng.random() < density] for i in range(count)]
    causes[-1] = causes[-1] or [0]
    return causes, rng.integers(1, 3, count), rng.normal(size=(count, 2, count))


def _expected(causes, vectors):
    """Of the last node, with one vector ``(constant, weights of the causes)`` a node."""
    means = []
    for own, vector in zip(causes, vectors, strict=True):
        means.append(vector[0] + sum(vector[1 + k] * means[j] for k, j in enumerate(own)))
    return means[-1]


@pytest.mark.parametrize("seed", range(8))
def test_the_best_choice_is_that_of_enumeration(seed):
    causes, options, weights = _drawn(np.random.default_rng(seed), 2 + seed % 6)
    network = LinearNetwork(causes, options)
    choices = list(product(*map(range, options)))
    values = [_expected(causes, [weights[i, place] for i, place in enumerate(choice)]) for choice in choices]
    best = network.best(weights[:, :, : network.width])
    assert best.value == pytest.approx(max(values), abs=1e-12)
    assert values[choices.index(tuple(best.options.tolist()))] == pytest.approx(best.value, abs=1e-12)
    np.testing.assert_allclose(network.means(weights, np.array(choices))[:, -1], values, atol=1e-12)


def _climb(causes, middles, roots, rng):
    """The greatest value over one ellipsoid a node, found vector by vector from a random start."""
    vectors = [
        middle + root @ _unit(rng.normal(size=root.shape[1])) for middle, root in zip(middles, roots, strict=True)
    ]
    for _ in range(60):
        for i, (middle, root) in enumerate(zip(middles, roots, strict=True)):
            zeros = np.zeros_like(middle)
            rest = _expected(causes, [*vectors[:i], zeros, *vectors[i + 1 :]])
            slopes = np.array([_expected(causes, [*vectors[:i], one, *vectors[i + 1 :]]) - rest
                               for one in np.eye(len(middle))])  # fmt: skip
            vectors[i] = middle + root @ _unit(root.T @ slopes)
    return _expected(causes, vectors)


def _unit(vector):
    norm = np.linalg.norm(vector)
    return vector / norm if norm else vector


def test_the_best_system_of_ellipsoids_is_that_of_climbs_under_every_choice():
    rng = np.random.default_rng(100)
    causes, options, weights = _drawn(rng, 4)
    network = LinearNetwork(causes, options)
    width = network.width
    roots = 0.7 * rng.normal(size=(4, 2, width, width))
    found = -np.inf
    for choice in product(*map(range, options)):
        sizes = [1 + len(own) for own in causes]
        middles = [weights[i, c, :k] for i, (c, k) in enumerate(zip(choice, sizes, strict=True))]
        of_choice = [roots[i, c, :k, :] for i, (c, k) in enumerate(zip(choice, sizes, strict=True))]
        found = max(found, *(_climb(causes, middles, of_choice, rng) for _ in range(6)))
    best = network.best(weights[:, :, :width], roots @ roots.swapaxes(-1, -2))
    assert best.value == pytest.approx(found, abs=1e-6)


def test_networks_are_not_too_large_to_go_through():
    with pytest.raises(ArgumentError, match="at most 17 nodes; given 18"):
        LinearNetwork([[]] * 18, [2] * 18)
