"""SuperArmSpace: subsets of base arms, at most so many of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cbo_gym.actions import SuperArmSpace


def test_super_arms_are_drawn_uniformly() -> None:
    space = SuperArmSpace(5, 2, seed=0)
    drawn = np.array([space.sample() for _ in range(8000)])
    assert drawn.dtype == np.int8
    assert all(space.contains(arm) for arm in drawn)
    arms, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(arms) == space.count == 1 + 5 + 10
    expected = 8000 / 16
    assert np.abs(counts - expected).max() < 4.5 * np.sqrt(expected)


@pytest.mark.parametrize(("arms", "size", "count"), [(4, 1, 5), (4, 4, 16), (6, 3, 42), (10, 6, 848), (20, 6, 60_460)])
def test_all_super_arms_are_listed_once(arms: int, size: int, count: int) -> None:
    space = SuperArmSpace(arms, size)
    listed = space.all()
    assert len(listed) == space.count == count
    assert len(np.unique(listed, axis=0)) == count
    assert set(np.unique(listed)) <= {0, 1}
    assert listed.sum(axis=1).max() == size
    if arms <= 6:
        wanted = [x for x in itertools.product((0, 1), repeat=arms) if sum(x) <= size]
        assert sorted(map(tuple, listed.tolist())) == sorted(wanted)


def test_what_a_space_of_super_arms_contains() -> None:
    space = SuperArmSpace(4, 2)
    for arm, inside in [
        (np.array([1, 0, 0, 1]), True),
        (np.zeros(4, dtype=np.int8), True),
        (np.array([1, 1, 0, 1]), False),
        (np.array([1, 0, 2, 0]), False),
        (np.array([1, 0, 0]), False),
        (np.array([[1, 0, 0, 1]]), False),
        ("arms", False),
    ]:
        assert space.contains(arm) is inside


def test_scores_become_the_best_super_arm() -> None:
    space = SuperArmSpace(5, 2)
    assert space.keep_largest(np.array([0.9, 0.6, 0.1, 0.7, 0.5])).tolist() == [1, 0, 0, 1, 0]
    assert space.keep_largest(np.array([0.1, 0.6, 0.1, 0.2, 0.5])).tolist() == [0, 1, 0, 0, 0]
