"""SparseBox: the unit box with few coordinates away from null."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cbo_gym.actions import SparseBox

NULL = np.array([0.5, 0.0, 1.0, 0.5, 0.25])


def test_samples_change_exactly_the_limit_and_every_choice_is_equally_likely() -> None:
    space = SparseBox(NULL, 2, seed=0)
    samples = np.array([space.sample() for _ in range(4000)])
    changed = samples != NULL
    assert (changed.sum(axis=1) == 2).all()
    assert all(space.contains(sample) for sample in samples)
    counts = [np.all(changed[:, pair], axis=1).sum() for pair in itertools.combinations(range(5), 2)]
    standard_error = np.sqrt(4000 * 0.1 * 0.9)
    assert np.abs(np.array(counts) - 400).max() < 4.5 * standard_error
    values = samples[changed]
    assert abs(values.mean() - 0.5) < 4.5 * np.sqrt(1 / 12 / values.size)
    assert values.min() < 0.01
    assert values.max() > 0.99


def away(*differences: float) -> np.ndarray:
    return NULL + np.array(differences)


@pytest.mark.parametrize(
    ("point", "inside"),
    [
        (NULL, True),
        (away(0.1, 0, 0, 0, 0), True),
        (away(0.1, 0, 0, 0.1, 0), True),
        (away(0.1, 0, 0, 0.1, 0.1), False),
        (away(0.6, 0, 0, 0, 0), False),
        (away(0, -0.1, 0, 0, 0), False),
        (NULL[:4], False),
        (np.stack([NULL, NULL]), False),
        (np.array([np.nan, 0.0, 1.0, 0.5, 0.25]), False),
    ],
)
def test_contains(point: np.ndarray, inside: bool) -> None:
    assert SparseBox(NULL, 2).contains(point) is inside


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


def test_ties_never_keep_too_many() -> None:
    space = SparseBox(np.zeros(4), 2)
    assert space.contains(space.keep_largest(np.full(4, 0.7)))


@pytest.mark.parametrize("limit", [0, 6, -1, 1.5])
def test_limits_out_of_range(limit: float) -> None:
    with pytest.raises(ValueError, match=f"whole number from 1 to 5; given {limit}"):
        SparseBox(NULL, limit)
