"""Sheets: where the boxes of a diagram's nodes lie in a picture, in inches, and how large it must be."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cbo_gym.drawing.layout import Diagram, Layout, Slot, lay_out

Point = tuple[float, float]

MARGIN = 0.3  # beside the diagram


@dataclass(frozen=True)
class Sizes:
    """Sizes of the things that a picture must have room for, in inches.

    Args:
        box: width and height of every node's box in a picture that is not crowded.
        head: height of the title.
        foot: height of the key.
        least: width of title and key.
    """

    box: tuple[float, float]
    head: float = 0.0
    foot: float = 0.0
    least: float = 0.0


class Sheet(ABC):
    """A picture's measures; the diagram's own middle is at the height 0.

    Attributes:
        scale: of boxes and texts, at most 1; crowded pictures have smaller ones.
        box_width: of every node.
        box_height: likewise.
        width: of the picture.
        above: its height above the diagram's middle, the head included.
        below: its height below that, the foot included.
    """

    scale: float
    width: float
    above: float
    below: float

    def __init__(self, sizes: Sizes) -> None:
        self.box_width, self.box_height = (self.scale * size for size in sizes.box)

    @abstractmethod
    def centre(self, slot: Slot) -> Point:
        """Where the box of a node lies."""


class Layers(Sheet):
    """Layers from left to right, for diagrams without cycles."""

    def __init__(self, layout: Layout, sizes: Sizes) -> None:
        self.layout = layout
        self.scale = float(np.clip(12.0 / layout.rows, 0.6, 1.0))  # full layers get smaller boxes
        super().__init__(sizes)
        self.gap = 0.75 + 0.012 * layout.rows  # edges between full layers are steep; give them room
        self.row = self.box_height + 0.14 * self.scale
        columns = 1 + max(layout.column.values())
        inner = columns * self.box_width + (columns - 1) * self.gap
        self.width = max(inner + 2.0 * MARGIN, sizes.least)
        self._left = 0.5 * (self.width - inner + self.box_width)
        half = max(layout.height.values()) * self.row + 0.5 * self.box_height + MARGIN
        arcs = [ends for (*ends, both), route in layout.routes.items() if both and len(route) == 2]
        tops = (max(layout.height[end] for end in ends) * self.row + 0.5 * self.box_height for ends in arcs)
        highest = max((self.rise + top for top in tops), default=0.0)
        self.above, self.below = max(half, highest) + sizes.head, half + sizes.foot

    @property
    def rise(self) -> float:
        """Of an arc between neighbouring layers, above the boxes that it joins."""
        return 0.55 * self.scale

    @cached_property
    def arrivals(self) -> dict[Slot, list[Slot]]:
        """For each head the places from which curves arrive, from below; arcs have none."""
        found: defaultdict[Slot, set[Slot]] = defaultdict(set)
        for (_, head, bidirected), route in self.layout.routes.items():
            if not (bidirected and len(route) == 2):
                found[head].add(route[-2])
        return {head: sorted(places, key=self.layout.height.__getitem__) for head, places in found.items()}

    def centre(self, slot: Slot) -> Point:
        x = self._left + self.layout.column[slot] * (self.box_width + self.gap)
        return x, self.layout.height[slot] * self.row


class Circle(Sheet):
    """For diagrams with cycles, which have no layers: the nodes on a circle, the one that all lead to in its middle."""

    def __init__(self, diagram: Diagram, sizes: Sizes) -> None:
        self.scale = 0.9
        super().__init__(sizes)
        self.inmost = _goal(diagram)
        around = [name for name in diagram.nodes if name != self.inmost]
        # neighbours at the top and the bottom, where the circle is level, lie side by side
        across = max(2.2, (self.box_width + 0.2) / np.sin(2.0 * np.pi / max(len(around), 4)))
        along = max(0.75 * across, (self.box_height + 0.2) / np.sin(2.0 * np.pi / max(len(around), 4)))
        self.width = max(2.0 * across + self.box_width + 2.0 * MARGIN, sizes.least)
        angles = 0.5 * np.pi - 2.0 * np.pi * np.arange(len(around)) / len(around)
        middle = 0.5 * self.width
        self.places: dict[Slot, Point] = {
            name: (middle + across * float(x), along * float(y))
            for name, x, y in zip(around, np.cos(angles), np.sin(angles), strict=True)
        }
        if self.inmost is not None:
            self.places[self.inmost] = middle, 0.0
        half = along + 0.5 * self.box_height + MARGIN
        self.above, self.below = half + sizes.head, half + sizes.foot

    def centre(self, slot: Slot) -> Point:
        return self.places[slot]


def _goal(diagram: Diagram) -> str | None:
    """A node that every other leads to directly and that leads nowhere, if there is one."""
    causes = {name: set(diagram.graph.predecessors(name)) for name in diagram.nodes}
    sinks = (name for name in diagram.nodes if len(causes[name]) == len(diagram.nodes) - 1)
    return next((name for name in sinks if not any(diagram.graph.successors(name))), None)


def sheet_for(diagram: Diagram, sizes: Sizes) -> Layers | Circle:
    """The sheet that suits a diagram."""
    return Layers(lay_out(diagram), sizes) if diagram.is_acyclic else Circle(diagram, sizes)
