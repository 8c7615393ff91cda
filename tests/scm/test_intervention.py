"""Intervention: building batches, and broadcasting them."""

import numpy as np

from cbo_gym.scm import Intervention


def test_values_are_set_in_the_whole_batch_and_parameters_split_the_last_axis() -> None:
    assert Intervention.do({"A": 1.0, "B": 2.0}) == ((), {"A": (True, 1.0), "B": (True, 2.0)})
    actions = np.arange(24.0).reshape(2, 3, 4)
    soft = Intervention.parameters(actions).soft
    assert len(soft) == 4
    np.testing.assert_array_equal(soft[2], actions[..., 2])


def test_expand_adds_an_axis_at_the_end_and_entries_broadcast() -> None:
    mask = np.array([True, False])
    batch = Intervention([np.zeros(2), 0.5], {"A": (mask, np.ones(2)), "B": (True, 3.0)}).expand()
    assert [np.shape(column) for column in batch.soft] == [(2, 1), (1,)]
    assert np.shape(batch.hard["A"][0]) == np.shape(batch.hard["A"][1]) == (2, 1)
    assert np.all(batch.hard["B"][0])
    assert np.shape(batch.hard["B"][1]) == (1,)
    assert batch.batch_shape == (2, 1)
    mask = np.ones((3, 1), dtype=bool)
    assert Intervention([np.zeros(4)], {"A": (mask, 1.0)}).batch_shape == (3, 4)


def test_rows_of_a_broadcast_batch() -> None:
    mask = np.array([True, False, True])
    batch = Intervention([np.arange(3.0), 0.5], {"A": (mask, 2.0)}).broadcast((3,))
    part = batch.rows(slice(1, 3))
    assert part.batch_shape == (2,)
    np.testing.assert_array_equal(part.soft[0], [1.0, 2.0])
    np.testing.assert_array_equal(part.soft[1], [0.5, 0.5])
    np.testing.assert_array_equal(part.hard["A"][0], [False, True])
