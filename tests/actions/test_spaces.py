"""Action spaces: seeded samples, batches, equality and copies of all of them, and what each contains."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from gymnasium.vector.utils import batch_space, create_empty_array, iterate

from cbo_gym.actions import CellBox, GridBox, SparseBox, SuperArmSpace

NULL = np.array([0.5, 0.0, 1.0, 0.5, 0.25])
CASES = {
    "sparse": (
        lambda seed=None: SparseBox(NULL, 2, seed=seed),
        [SparseBox(NULL, 3), SparseBox(np.zeros(5), 2)],
        np.full(5, 0.1),
        "SparseBox(0.0, 1.0, (5,), max_interventions=2)",
    ),
    "grid": (
        lambda seed=None: GridBox(2, 3, seed=seed),
        [GridBox(2, 4), GridBox(3, 3)],
        np.array([0.5, 0.4]),
        "GridBox(0.0, 1.0, (2,), levels=3)",
    ),
    "cells": (
        lambda seed=None: CellBox(2, seed=seed),
        [CellBox(3)],
        np.array([[0.5, 0.5], [0.5, 0.6]]),
        "CellBox(0.0, 1.0, (2, 2))",
    ),
    "super arms": (
        lambda seed=None: SuperArmSpace(5, 2, seed=seed),
        [SuperArmSpace(5, 3), SuperArmSpace(6, 2)],
        np.ones(5),
        "SuperArmSpace((5,), size=2)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_spaces_are_seeded_batched_compared_and_copied(name: str) -> None:
    build, others, outside, string = CASES[name]
    space = build(seed=1)
    assert repr(space) == string
    assert space == build()
    assert space not in (*others, type(space).__base__, batch_space(space, 3))
    drawn = build(seed=1)
    expected = [drawn.sample() for _ in range(9)]
    for twin in (build(seed=1), pickle.loads(pickle.dumps(space)), copy.deepcopy(space)):
        assert twin == space
        np.testing.assert_array_equal([twin.sample() for _ in range(9)], expected)
    before = copy.deepcopy(space)
    batch = batch_space(space, 40)
    samples = batch.sample()
    np.testing.assert_array_equal(space.sample(), before.sample())  # a batch has a random stream of its own
    assert type(batch) is type(space)
    assert batch.shape == samples.shape == create_empty_array(space, 40).shape == (40, *space.shape)
    assert batch.contains(samples)
    assert all(space.contains(row) for row in iterate(batch, samples))
    assert len(np.unique(samples, axis=0)) > 5
    assert not space.contains(outside)
    samples[4] = outside
    assert not batch.contains(samples)


def test_samples_change_exactly_the_limit_and_every_choice_is_equally_likely() -> None:
    space = SparseBox(NULL, 2, seed=0)
    samples = batch_space(space, 4000).sample()
    changed = samples != NULL
    assert (changed.sum(axis=1) == 2).all()
    counts = [np.all(changed[:, pair], axis=1).sum() for pair in itertools.combinations(range(5), 2)]
    assert np.abs(np.array(counts) - 400).max() < 4.5 * np.sqrt(4000 * 0.1 * 0.9)
    values = samples[changed]
    assert abs(values.mean() - 0.5) < 4.5 * np.sqrt(1 / 12 / values.size)
    assert values.min() < 0.01
    assert values.max() > 0.99


ARM = [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("space", "point", "inside"),
    [
        (SparseBox(NULL, 2), NULL, True),
        (SparseBox(NULL, 2), [0.6, 0.0, 1.0, 0.6, 0.25], True),
        (SparseBox(NULL, 2), [0.6, 0.0, 1.0, 0.6, 0.35], False),
        (SparseBox(NULL, 2), [1.1, 0.0, 1.0, 0.5, 0.25], False),
        (SparseBox(NULL, 2), [np.nan, 0.0, 1.0, 0.5, 0.25], False),
        (SparseBox(NULL, 2), NULL[:4], False),
        (SparseBox(NULL, 2), [NULL, NULL], False),
        (SuperArmSpace(4, 2), ARM, True),
        (SuperArmSpace(4, 2), [1, 1, 0, 1], False),
        (SuperArmSpace(4, 2), [1, 0, 2, 0], False),
        (SuperArmSpace(4, 2), ARM[:3], False),
        (SuperArmSpace(4, 2), [ARM], False),
        (SuperArmSpace(4, 2), "arms", False),
    ],
)
def test_what_a_space_contains(space, point, inside: bool) -> None:
    assert space.contains(point if isinstance(point, str) else np.array(point)) is inside


def test_keep_largest_is_the_nearest_point_of_the_space() -> None:
    """Checked against all choices of coordinates to keep."""
    space, rng = SparseBox(NULL, 2), np.random.default_rng(0)
    points = rng.random((200, 5))
    kept = space.keep_largest(points)
    for point, projected in zip(points, kept, strict=True):
        assert space.contains(projected)
        candidates = []
        for pair in itertools.combinations(range(5), 2):
            candidate = NULL.copy()
            candidate[list(pair)] = point[list(pair)]
            candidates.append(np.linalg.norm(candidate - point))
        assert np.linalg.norm(projected - point) == pytest.approx(min(candidates), abs=1e-12)
    np.testing.assert_array_equal(space.keep_largest(kept), kept)
    np.testing.assert_array_equal(space.keep_largest(points[0]), kept[0])
    np.testing.assert_array_equal(space.keep_largest(points.reshape(4, 50, 5)), kept.reshape(4, 50, 5))

    ties = SparseBox(np.zeros(4), 2)
    assert ties.contains(ties.keep_largest(np.full(4, 0.7)))


@pytest.mark.parametrize("limit", [0, 6, -1, 1.5])
def test_limits_out_of_range(limit: float) -> None:
    with pytest.raises(ValueError, match=f"whole number from 1 to 5; given {limit}"):
        SparseBox(NULL, limit)
    with pytest.raises(ValueError, match="levels must be at least 2; given 1"):
        GridBox(2, 1)


def test_the_points_of_a_grid() -> None:
    space = GridBox(3, 4)
    points = space.all()
    assert points.shape == (64, 3)
    assert all(space.contains(point) for point in points)
    np.testing.assert_array_equal(
        points[[0, 1, 4, 16, 63]] * 3, [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [3, 3, 3]]
    )
    np.testing.assert_array_equal(space.indices(points), np.arange(64))
    assert space.indices(points[5]) == 5
    space = GridBox(2, 3, seed=0)
    assert not space.contains(np.array([0.5, 0.4]))
    assert not space.contains(np.array([0.5, 1.5]))
    np.testing.assert_array_equal(space.nearest(np.array([0.3, 0.8])), [0.5, 1.0])
    drawn = [space.sample() for _ in range(200)]
    assert all(space.contains(point) for point in drawn)
    assert {int(space.indices(point)) for point in drawn} == set(range(9))


def test_super_arms_are_drawn_uniformly() -> None:
    space = SuperArmSpace(5, 2, seed=0)
    drawn = batch_space(space, 8000).sample()
    assert drawn.dtype == np.int8
    arms, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(arms) == space.count == 1 + 5 + 10
    assert np.abs(counts - 500).max() < 4.5 * np.sqrt(500)


@pytest.mark.parametrize(("arms", "size", "count"), [(4, 1, 5), (4, 4, 16), (6, 3, 42), (10, 6, 848)])
def test_all_super_arms_are_listed_once(arms: int, size: int, count: int) -> None:
    space = SuperArmSpace(arms, size)
    listed = space.all()
    assert len(listed) == space.count == count
    wanted = [arm for arm in itertools.product((0, 1), repeat=arms) if sum(arm) <= size]
    assert sorted(map(tuple, listed.tolist())) == sorted(wanted)


def test_scores_become_the_best_super_arm() -> None:
    space = SuperArmSpace(5, 2)
    assert space.keep_largest(np.array([0.9, 0.6, 0.1, 0.7, 0.5])).tolist() == [1, 0, 0, 1, 0]
    assert space.keep_largest(np.array([0.1, 0.6, 0.1, 0.2, 0.5])).tolist() == [0, 1, 0, 0, 0]
