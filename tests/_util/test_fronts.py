"""Dominance, hypervolume and distances against hand-computed cases and definitions."""

import numpy as np
import pytest

from cbo_gym._util.fronts import (
    generational_distance_plus,
    hypervolume,
    inverted_generational_distance_plus,
    non_dominated,
    search_pareto_set,
    spread_out,
)


def test_dominance_by_its_definition() -> None:
    rng = np.random.default_rng(0)
    for m in (1, 2, 3, 4):
        for _ in range(100):
            vectors = rng.integers(0, 4, (rng.integers(0, 12), m)).astype(float)
            expected = [
                not any(
                    ((other >= one).all() and (other > one).any()) or (before < index and (other == one).all())
                    for before, other in enumerate(vectors)
                )
                for index, one in enumerate(vectors)
            ]
            assert non_dominated(vectors).tolist() == expected


def test_hypervolumes_by_hand() -> None:
    steps = np.array([[3.0, 1.0], [2.0, 2.0], [1.0, 3.0], [1.0, 1.0]])
    assert hypervolume(steps, np.zeros(2)) == 6.0
    assert hypervolume(steps, np.array([1.0, 0.0])) == 3.0  # of what does not exceed it nothing counts
    assert hypervolume(np.array([[5.0, -1.0]]), np.zeros(2)) == 0.0
    assert hypervolume(np.zeros((0, 2)), np.zeros(2)) == 0.0
    assert hypervolume(np.array([[2.0], [3.0]]), np.array([1.0])) == 2.0
    boxes = np.array([[2.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 2.0]])
    assert hypervolume(boxes, np.zeros(3)) == 4.0
    assert hypervolume(np.ones((1, 5)) * 2.0, np.zeros(5)) == 32.0


def test_hypervolumes_against_sampling() -> None:
    rng = np.random.default_rng(1)
    for m in (2, 3, 4):
        vectors = rng.random((8, m))
        points = rng.random((200_000, m))
        share = (points[:, None] < vectors[None]).all(-1).any(-1).mean()
        assert hypervolume(vectors, np.zeros(m)) == pytest.approx(share, abs=6e-3)


def test_distances_by_hand() -> None:
    front = np.array([[0.0, 4.0], [4.0, 0.0]])
    vectors = np.array([[1.0, 1.0], [5.0, 0.0]])
    assert generational_distance_plus(vectors, front) == 1.5  # (1, 1) lacks 3 of either point; (5, 0) nothing
    assert inverted_generational_distance_plus(vectors, front) == 1.5
    assert inverted_generational_distance_plus(vectors[:1], front) == 3.0
    assert generational_distance_plus(front, front) == inverted_generational_distance_plus(front, front) == 0.0


def test_what_is_spread_out_holds_the_ends() -> None:
    curve = np.linspace(0.0, 1.0, 101)
    vectors = np.stack([curve, 1.0 - curve], -1)
    indices = spread_out(vectors, 5)
    assert indices.tolist() == [0, 25, 50, 75, 100]
    assert spread_out(vectors[:3], 5).tolist() == [0, 1, 2]


def test_the_search_finds_a_front_of_several_boxes() -> None:
    """Of (x, 1 - x - (y - 0.3)^2) the front is y = 0.3; a box without coordinates adds a point beyond it."""

    def slope(points: np.ndarray) -> np.ndarray:
        x, y = points.T
        return np.stack([x, 1.0 - x - (y - 0.3) ** 2], -1)

    def corner(points: np.ndarray) -> np.ndarray:
        return np.full((len(points), 2), 0.6)

    found = search_pareto_set([slope, corner], [[0, 1], []], np.random.default_rng(0), size=100)
    assert (found.box == 1).sum() == 1
    assert np.median(np.abs(found.points[found.box == 0, 1] - 0.3)) < 0.005
    assert hypervolume(found.vectors, np.zeros(2)) == pytest.approx(0.5 + 0.5 * 0.2**2, abs=5e-3)
    again = search_pareto_set([slope, corner], [[0, 1], []], np.random.default_rng(0), size=100)
    np.testing.assert_array_equal(found.points, again.points)
