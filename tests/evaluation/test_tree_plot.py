"""Pictures of a tree of cells."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from examples.shared.tree_plot import TreeSnapshot, draw_cells, draw_tree

#: a root and two children
ARRAYS = {
    "lower": np.array([0.0, 0.0, 0.5]), "upper": np.array([1.0, 0.5, 1.0]), "depth": np.array([0, 1, 1]),
    "parent": np.array([0, 0, 0]), "is_leaf": np.array([False, True, True]), "draws": np.array([1, 0, 5]),
    "estimate": np.array([0.5, 0.2, 0.8]), "radius": np.array([0.1, 0.1, 0.2]), "variation": np.array([2.0, 1.0, 1.0]),
}  # fmt: skip


def test_nodes_are_drawn_by_class_and_leaves_with_their_bands():
    tree, cells = Figure().subplots(2)
    draw_tree(tree, TreeSnapshot(**ARRAYS))
    edges, *classes = tree.collections
    assert [segment.tolist() for segment in edges.get_segments()] == [[[x, 1.0], [0.5, 0.0]] for x in (0.25, 0.75)]
    assert [points.get_offsets().tolist() for points in classes] == [[[0.25, 1.0]], [[0.5, 0.0]], [[0.75, 1.0]]]
    draw_cells(cells, TreeSnapshot(**ARRAYS), np.sin)
    outer, inner = cells.patches
    np.testing.assert_allclose([inner.get_data().baseline, inner.get_data().values], [[0.1, 0.6], [0.3, 1.0]])
    np.testing.assert_allclose(outer.get_data().values, [1.3, 2.0])
    with pytest.raises(ValueError, match=r"one entry a node; given lengths .*'draws': 2"):
        TreeSnapshot(**ARRAYS | {"draws": np.array([1, 0])})
