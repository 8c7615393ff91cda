"""Curves of edges between the boxes of a picture in layers, as control points of cubic Bezier curves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from cbo_gym.drawing.layout import Layout, Slot
from cbo_gym.drawing.sheet import Layers, Point

# Tail and head of an edge, and whether it is bidirected.
Edge = tuple[str, str, bool]


def curve_of(sheet: Layers, edge: Edge) -> list[Point]:
    """Return the 1 + 3 n control points of an edge's n Bezier curves, which pass through no box."""
    tail, head, bidirected = edge
    route = sheet.layout.routes[edge]
    return _arc(sheet, tail, head) if bidirected and len(route) == 2 else _curve(sheet, route, bidirected)


def crowding(layout: Layout) -> dict[Edge, int]:
    """Return for each directed edge the number of edges that leave its tail times the number that enter its head."""
    directed = [edge for edge in layout.routes if not edge[2]]
    leaving = Counter(tail for tail, _, _ in directed)
    arriving = Counter(head for _, head, _ in directed)
    return {edge: leaving[edge[0]] * arriving[edge[1]] for edge in directed}


def _curve(sheet: Layers, route: Sequence[Slot], bidirected: bool) -> list[Point]:
    """Return a curve that is horizontal inside the layers and bends between them."""
    half = 0.5 * sheet.box_width
    start, *passed, end = [sheet.centres[slot] for slot in route]
    # Bidirected edges leave a box above the directed ones.
    lift = 0.3 * sheet.box_height if bidirected else 0.0
    stops = [(start[0] + half, start[1] + lift)]
    stops += [(x + side, y) for x, y in passed for side in (-half, half)]
    stops.append((end[0] - half, end[1] + _port(sheet, route)))
    points = stops[:1]
    for (x0, y0), (x1, y1) in pairwise(stops):
        middle = 0.5 * (x0 + x1)
        points += [(middle, y0), (middle, y1), (x1, y1)]
    return points


def _port(sheet: Layers, route: Sequence[Slot]) -> float:
    """Return how far above the middle of the head's left side a curve ends, so that curves do not meet there."""
    order = sheet.arrivals[route[-1]]
    spread = sheet.box_height * (1.0 - 1.0 / len(order))
    return spread * (order.index(route[-2]) / max(len(order) - 1, 1) - 0.5)


def _arc(sheet: Layers, tail: str, head: str) -> list[Point]:
    """Return an arc for a bidirected edge between neighbouring layers or within a layer."""
    (x0, y0), (x1, y1) = sheet.centres[tail], sheet.centres[head]
    half, lift = 0.5 * sheet.box_width, 0.3 * sheet.box_height
    if x0 == x1:
        bulge = x0 - half - 0.7 * sheet.gap
        return [(x0 - half, y0), (bulge, y0), (bulge, y1), (x1 - half, y1)]
    start, end = (x0 + half, y0 + lift), (x1 - half, y1 + lift)
    third = sheet.gap / 3.0
    return [start, (start[0] + third, start[1] + sheet.rise), (end[0] - third, end[1] + sheet.rise), end]
