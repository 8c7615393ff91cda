import numpy as np
import pytest
from matplotlib.figure import Figure

from examples.shared.tree_plot import GRID, TreeSnapshot, draw_cells, draw_posterior, draw_tree


def snapshot(**changes):
    """A root and two children."""
    arrays = {
        "lower": np.array([0.0, 0.0, 0.5]),
        "upper": np.array([1.0, 0.5, 1.0]),
        "depth": np.array([0, 1, 1]),
        "parent": np.array([0, 0, 0]),
        "is_leaf": np.array([False, True, True]),
        "draws": np.array([1, 0, 5]),
        "estimate": np.array([0.5, 0.2, 0.8]),
        "radius": np.array([0.1, 0.1, 0.2]),
        "variation": np.array([2.0, 1.0, 1.0]),
    }
    return TreeSnapshot(**(arrays | changes))


def test_nodes_are_drawn_by_class_and_edges_join_children_to_parents():
    axis = Figure().subplots()
    draw_tree(axis, snapshot())
    edges, *classes = axis.collections
    drawn = [segment.tolist() for segment in edges.get_segments()]
    assert drawn == [[[0.25, 1.0], [0.5, 0.0]], [[0.75, 1.0], [0.5, 0.0]]]
    assert [points.get_offsets().tolist() for points in classes] == [[[0.25, 1.0]], [[0.5, 0.0]], [[0.75, 1.0]]]
    low, high = axis.get_ylim()
    assert low > high  # the root on top


def test_leaves_are_drawn_with_their_bands():
    axis = Figure().subplots()
    draw_cells(axis, snapshot(), np.sin)
    outer, inner = axis.patches
    np.testing.assert_allclose(inner.get_data().values, [0.3, 1.0])
    np.testing.assert_allclose(inner.get_data().baseline, [0.1, 0.6])
    np.testing.assert_allclose(outer.get_data().values, [1.3, 2.0])
    (lines,) = axis.collections
    assert [segment.tolist() for segment in lines.get_segments()] == [
        [[0.0, 0.2], [0.5, 0.2]],
        [[0.5, 0.8], [1.0, 0.8]],
    ]


def test_a_posterior_is_drawn_with_the_rewards_at_the_centres():
    figure = Figure()
    axis = figure.subplots()
    draw_posterior(axis, 0 * GRID, 0 * GRID + 1, np.array([[0.0, 0.5]]), np.array([0.3]), np.sin)
    assert axis.collections[1].get_offsets().tolist() == [[0.25, 0.3]]
    figure.canvas.draw()


def test_arrays_must_be_of_one_length():
    with pytest.raises(ValueError, match=r"one entry a node; given lengths .*'draws': 2"):
        snapshot(draws=np.array([1, 0]))
