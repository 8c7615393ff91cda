"""PartitionTree: the adaptive K-ary partition of the unit box, for tree searches."""

from __future__ import annotations

import numpy as np

from cbo_gym.actions.cells import split, unit_cell


class PartitionTree:
    """A tree of cells: the root is the unit box, the children of a node are its cell's parts.

    Nodes are numbered in the order of their creation; parents come before children.

    Args:
        dim: dimension d of the box.
        arity: number K of parts of a cell, at least 2; cells are cut along their longest edge.

    Attributes:
        cells: shape ``(m, 2, d)``, the lower and the upper corner of each node.
        depth: shape ``(m,)``; the root's is 0.
        parent: shape ``(m,)``; the root is its own parent.
        is_leaf: shape ``(m,)``, boolean.
    """

    def __init__(self, dim: int, arity: int) -> None:
        self.arity = arity
        self.cells = unit_cell(dim)[None]
        self.depth = np.zeros(1, dtype=int)
        self.parent = np.zeros(1, dtype=int)
        self.is_leaf = np.ones(1, dtype=bool)
        self._nodes = {self.cells[0].tobytes(): 0}

    def __len__(self) -> int:
        """Number of nodes m."""
        return len(self.depth)

    @property
    def leaves(self) -> np.ndarray:
        """The indices of the leaves, ascending."""
        return np.flatnonzero(self.is_leaf)

    def find(self, cell: np.ndarray) -> int | None:
        """Return the node of a cell, or None."""
        return self._nodes.get(np.ascontiguousarray(cell, dtype=np.float64).tobytes())

    def expand(self, node: int) -> np.ndarray:
        """Split a leaf; return the indices of its children."""
        children_cells = split(self.cells[node], self.arity)
        children = np.arange(len(self), len(self) + self.arity)
        self._nodes |= {cell.tobytes(): int(child) for cell, child in zip(children_cells, children, strict=True)}
        self.cells = np.concatenate([self.cells, children_cells])
        self.depth = np.append(self.depth, np.full(self.arity, self.depth[node] + 1))
        self.parent = np.append(self.parent, np.full(self.arity, node))
        self.is_leaf = np.append(self.is_leaf, np.ones(self.arity, dtype=bool))
        self.is_leaf[node] = False
        return children

    def deepest_expanded(self) -> np.ndarray:
        """Return the indices of the expanded nodes of greatest depth; the root if no node is expanded."""
        expanded = np.flatnonzero(~self.is_leaf)
        if not len(expanded):
            return np.zeros(1, dtype=int)
        return expanded[self.depth[expanded] == self.depth[expanded].max()]
