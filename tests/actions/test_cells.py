"""Cells: splits, representative points, the action space."""

import numpy as np
import pytest

from cbo_gym.actions import CellBox
from cbo_gym.actions.cells import representative_points, split, unit_cell, unit_points


@pytest.mark.parametrize(("count", "dim"), [(1, 3), (4, 1), (10, 2), (31, 6), (12, 5)])
def test_lattices_are_centred_in_every_coordinate(count: int, dim: int) -> None:
    points = unit_points(count, dim)
    assert points.shape == (count, dim)
    for column in points.T:
        np.testing.assert_allclose(np.sort(column), (np.arange(count) + 0.5) / count)


def test_a_lattice_integrates_a_smooth_periodic_function_better_than_random_points() -> None:
    def error(points: np.ndarray) -> float:
        return abs((1.0 + 0.2 * np.cos(2 * np.pi * points)).prod(axis=-1).mean() - 1.0)

    random = [error(np.random.default_rng(i).random((31, 6))) for i in range(50)]
    assert error(unit_points(31, 6)) < np.median(random) / 3


def test_points_scale_with_the_cell_in_any_batch() -> None:
    cells = np.sort(np.random.default_rng(0).random((4, 3, 2, 2)), axis=-2)
    points = representative_points(cells, 7)
    assert points.shape == (4, 3, 7, 2)
    lower, upper = cells[1, 2]
    np.testing.assert_allclose(points[1, 2], lower + (upper - lower) * unit_points(7, 2))


@pytest.mark.parametrize("arity", [2, 3, 5])
def test_parts_of_a_cell_tile_it_along_its_longest_edge(arity: int) -> None:
    cell = np.array([[0.0, 0.1, 0.5], [0.2, 0.9, 1.0]])
    parts = split(cell, arity)
    assert parts.shape == (arity, 2, 3)
    np.testing.assert_array_equal(parts[:, :, [0, 2]], np.tile(cell[:, [0, 2]], (arity, 1, 1)))
    np.testing.assert_allclose(parts[:, 1, 1] - parts[:, 0, 1], 0.8 / arity)
    np.testing.assert_array_equal(parts[1:, 0, 1], parts[:-1, 1, 1])
    assert parts[0, 0, 1] == cell[0, 1]
    assert parts[-1, 1, 1] == cell[1, 1]


def test_of_equal_edges_the_first_is_cut() -> None:
    np.testing.assert_array_equal(split(unit_cell(2), 2)[0], [[0.0, 0.0], [0.5, 1.0]])


def test_numbers_of_parts_and_points_out_of_range() -> None:
    for arity in (1, 2.5, "2", 101):
        with pytest.raises(ValueError, match="arity K must be a whole number from 2 to 100; given"):
            split(unit_cell(1), arity)  # type: ignore[arg-type]
    for count in (0, 1.5, 10_001):
        with pytest.raises(ValueError, match="S must be a whole number from 1 to 10000; given"):
            unit_points(count, 1)  # type: ignore[arg-type]


def test_the_space_samples_non_empty_cells_and_tells_the_others() -> None:
    space = CellBox(3, seed=0)
    for _ in range(100):
        assert space.sample() in space
    good = np.array([[0.0, 0.1, 0.2], [1.0, 0.2, 0.9]])
    assert good in space
    for index, value in [((1, 1), 0.1), ((1, 1), 0.05), ((1, 0), 1.1), ((0, 2), -0.1), ((0, 0), np.nan)]:
        bad = good.copy()
        bad[index] = value
        assert bad not in space
    assert good[:, :2] not in space
    with pytest.raises(ValueError, match="at least one coordinate"):
        CellBox(0)
