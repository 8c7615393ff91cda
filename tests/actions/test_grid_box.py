"""GridBox: the points of a grid, in an order."""

import numpy as np
import pytest

from cbo_gym.actions import GridBox


def test_every_point_has_its_place():
    space = GridBox(3, 4)
    points = space.all()
    assert points.shape == (64, 3)
    assert all(space.contains(point) for point in points)
    np.testing.assert_array_equal(
        points[[0, 1, 4, 16, 63]] * 3, [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [3, 3, 3]]
    )
    np.testing.assert_array_equal(space.places(points), np.arange(64))
    assert space.places(points[5]) == 5


def test_what_lies_between_is_no_point_and_has_a_nearest_one():
    space = GridBox(2, 3)
    assert not space.contains(np.array([0.5, 0.4]))
    assert not space.contains(np.array([0.5, 1.5]))
    np.testing.assert_array_equal(space.nearest(np.array([0.3, 0.8])), [0.5, 1.0])


def test_samples_are_points_and_all_of_them_come():
    space = GridBox(2, 3, seed=0)
    drawn = [space.sample() for _ in range(200)]
    assert all(space.contains(point) for point in drawn)
    assert {int(space.places(point)) for point in drawn} == set(range(9))


def test_a_coordinate_has_two_values_at_least():
    with pytest.raises(ValueError, match="levels must be at least 2; given 1"):
        GridBox(2, 1)
