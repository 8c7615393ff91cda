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

# A node's name, or a point at which a long edge passes a layer: the nodes of the edge, and the layer.
Slot = str | tuple[tuple[str, ...], int]


class Diagram(Hashable, Protocol):
    """The part of :class:`~cbo_gym.scm.CausalDiagram` that is drawn; this module does not import it."""

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
        column: layer of each slot, counted from the left.
        height: height of each slot, in units of one node's row.
        routes: slots that each edge passes, by (tail, head, is bidirected).
        rows: number of nodes in the fullest layer.
    """

    column: Mapping[Slot, int]
    height: Mapping[Slot, float]
    routes: Mapping[tuple[str, str, bool], tuple[Slot, ...]]
    rows: int


@lru_cache(maxsize=32)
def lay_out(diagram: Diagram) -> Layout:
    """Assign nodes to layers by longest path; an edge that skips a layer has a slot there, so that it meets no node.

    Long edges of one tail share their slots, which bundles them. The order within a layer comes from
    barycentre sweeps (Sugiyama, Tagawa & Toda 1981), the heights from least squares under minimal distances.
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
        for a, b in pairwise(route):
            linked[a].add(b)
            linked[b].add(a)
    _order(layers, column, linked)
    return Layout(column, _heights(layers, column, linked), routes, rows)


def _edges(diagram: Diagram, column: Mapping[Slot, int]) -> list[tuple[str, str, bool]]:
    pairs = [sorted(pair, key=lambda name: (column[name], name)) for pair in diagram.bidirected]
    both = [(a, b, False) for a, b in diagram.directed] + [(a, b, True) for a, b in pairs]
    return sorted(both, key=lambda edge: (edge[2], diagram.nodes.index(edge[0]), diagram.nodes.index(edge[1])))


def _sweeps(
    layers: list[list[Slot]], column: Mapping[Slot, int], linked: Mapping[Slot, set[Slot]], times: int
) -> Iterator[tuple[list[Slot], list[list[Slot]]]]:
    """Yield each layer and its slots' neighbours in the previous layer, in sweeps to the right and back.

    A last sweep goes to the right, so that the layer of the reward comes last.
    """
    rightward = [(layer, -1) for layer in layers[1:]]
    leftward = [(layer, +1) for layer in layers[-2::-1]]
    for layer, step in (rightward + leftward) * times + rightward:
        neighbours = [[other for other in linked[slot] if column[other] == column[slot] + step] for slot in layer]
        yield layer, neighbours


def _order(layers: list[list[Slot]], column: Mapping[Slot, int], linked: Mapping[Slot, set[Slot]]) -> None:
    index = {slot: i for layer in layers for i, slot in enumerate(layer)}
    for layer, neighbours in _sweeps(layers, column, linked, times=6):
        wanted = {
            slot: np.mean([index[other] for other in others] or [index[slot]])
            for slot, others in zip(layer, neighbours, strict=True)
        }
        layer.sort(key=wanted.__getitem__)
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
        pairs = zip(layer, neighbours, strict=True)
        wanted = [np.mean([height[other] for other in others] or [height[slot]]) for slot, others in pairs]
        offset = offsets[column[layer[0]]]
        fitted = isotonic_regression(np.array(wanted) - offset).x + offset
        height.update(zip(layer, fitted.tolist(), strict=True))
    middle = 0.5 * (min(height.values()) + max(height.values()))
    # The first slot of a layer is on top.
    return {slot: middle - value for slot, value in height.items()}
