"""Positions of the nodes and edges of an acyclic diagram in a picture: Sugiyama's layered drawing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

import networkx as nx
import numpy as np

# What has a position in a layer: a node, by its name, or the point at which a long edge passes the layer, by the nodes
# of the edge and the index of the layer.
Slot = str | tuple[tuple[str, ...], int]


class Diagram(Hashable, Protocol):
    """The attributes of :class:`~cbo_gym.scm.CausalDiagram` that are drawn; this module does not import that class."""

    nodes: tuple[str, ...]
    directed: frozenset[tuple[str, str]]
    bidirected: frozenset[frozenset[str]]

    @property
    def graph(self) -> nx.DiGraph: ...

    @property
    def is_acyclic(self) -> bool: ...


@dataclass(frozen=True)
class Layout:
    """Positions of slots, and routes of edges.

    Attributes:
        column: index of each slot's layer, counted from the left.
        height: height of each slot, in units of one node's row.
        routes: slots that an edge passes, its ends included; the key is (tail, head, whether it is bidirected).
        rows: number of nodes in the fullest layer.
    """

    column: Mapping[Slot, int]
    height: Mapping[Slot, float]
    routes: Mapping[tuple[str, str, bool], tuple[Slot, ...]]
    rows: int


@lru_cache(maxsize=32)
def lay_out(diagram: Diagram) -> Layout:
    """Lay out an acyclic diagram in layers (Sugiyama, Tagawa & Toda 1981).

    A node's layer is the length of the longest path to it. An edge that passes a layer has a slot there, so that it
    meets no node; long edges with the same tail share their slots. In sweeps each slot moves to the mean index of its
    neighbours. Heights solve a least-squares problem in which neighbouring slots keep a distance.
    """
    index: dict[Slot, int] = {name: i for i, name in enumerate(diagram.nodes)}
    generations = nx.topological_generations(diagram.graph)
    layers: list[list[Slot]] = [sorted(layer, key=index.__getitem__) for layer in generations]
    column: dict[Slot, int] = {name: k for k, layer in enumerate(layers) for name in layer}
    rows = max(map(len, layers))
    routes: dict[tuple[str, str, bool], tuple[Slot, ...]] = {}
    for tail, head, bidirected in _edges(diagram, column):
        bundle: tuple[str, ...] = (tail, head) if bidirected else (tail,)
        passed = tuple((bundle, k) for k in range(column[tail] + 1, column[head]))
        for slot in passed:
            if slot not in column:
                column[slot] = slot[1]
                layers[slot[1]].append(slot)
        routes[tail, head, bidirected] = (tail, *passed, head)
    linked: defaultdict[Slot, set[Slot]] = defaultdict(set)
    for route in routes.values():
        for start, end in pairwise(route):
            linked[start].add(end)
            linked[end].add(start)
    _order(layers, column, linked)
    return Layout(column, _heights(layers, column, linked), routes, rows)


def _edges(diagram: Diagram, column: Mapping[Slot, int]) -> list[tuple[str, str, bool]]:
    """Return (tail, head, whether it is bidirected) of each edge; the tail of a bidirected edge is on the left."""
    pairs = [sorted(pair, key=lambda name: (column[name], name)) for pair in diagram.bidirected]
    edges = [(tail, head, False) for tail, head in diagram.directed] + [(left, right, True) for left, right in pairs]
    return sorted(edges, key=lambda edge: (edge[2], diagram.nodes.index(edge[0]), diagram.nodes.index(edge[1])))


def _sweeps(
    layers: list[list[Slot]], column: Mapping[Slot, int], linked: Mapping[Slot, set[Slot]], times: int
) -> Iterator[tuple[list[Slot], list[list[Slot]]]]:
    """Yield each layer, with the neighbours of its slots in the layer before it, in sweeps to the right and back.

    The last sweep goes to the right, so that the layer of the reward comes last.
    """
    rightward = [(layer, -1) for layer in layers[1:]]
    leftward = [(layer, +1) for layer in layers[-2::-1]]
    for layer, step in (rightward + leftward) * times + rightward:
        neighbours = [[other for other in linked[slot] if column[other] == column[slot] + step] for slot in layer]
        yield layer, neighbours


def _means(layer: list[Slot], neighbours: list[list[Slot]], position: Mapping[Slot, float]) -> list[float]:
    """Return the mean position of each slot's neighbours; the slot's own position if it has none."""
    return [
        float(np.mean([position[other] for other in others] or [position[slot]]))
        for slot, others in zip(layer, neighbours, strict=True)
    ]


def _order(layers: list[list[Slot]], column: Mapping[Slot, int], linked: Mapping[Slot, set[Slot]]) -> None:
    """Sort each layer in place, so that edges cross rarely."""
    index = {slot: i for layer in layers for i, slot in enumerate(layer)}
    for layer, neighbours in _sweeps(layers, column, linked, times=6):
        means = dict(zip(layer, _means(layer, neighbours, index), strict=True))
        layer.sort(key=means.__getitem__)
        index.update({slot: i for i, slot in enumerate(layer)})


def _heights(
    layers: list[list[Slot]], column: Mapping[Slot, int], linked: Mapping[Slot, set[Slot]]
) -> dict[Slot, float]:
    from scipy.optimize import isotonic_regression

    height: dict[Slot, float] = {}
    offsets = []
    for layer in layers:
        sizes = np.array([1.0 if isinstance(slot, str) else 0.45 for slot in layer])
        centres = np.cumsum(sizes) - 0.5 * sizes
        offsets.append(centres - centres.mean())
        height.update(zip(layer, offsets[-1].tolist(), strict=True))
    for layer, neighbours in _sweeps(layers, column, linked, times=4):
        offset = offsets[column[layer[0]]]
        fitted = isotonic_regression(np.array(_means(layer, neighbours, height)) - offset).x + offset
        height.update(zip(layer, fitted.tolist(), strict=True))
    middle = 0.5 * (min(height.values()) + max(height.values()))
    # The first slot of a layer is on top.
    return {slot: middle - value for slot, value in height.items()}
