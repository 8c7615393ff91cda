"""Sizes of pictures of diagrams, and positions of the nodes' boxes in them, in inches.

Diagrams without cycles are drawn in layers, others on a circle.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cbo_gym.drawing.layout import Diagram, Layout, Slot, lay_out

Point = tuple[float, float]

# Margin on either side of the diagram, in inches.
MARGIN = 0.3


@dataclass(frozen=True)
class Sizes:
    """Sizes of the parts of a picture, in inches.

    Args:
        box: width and height of every node's box, before boxes in crowded pictures are scaled down.
        title_height: height of the title.
        key_height: height of the key.
        min_width: width that the title and the key need.
    """

    box: tuple[float, float]
    title_height: float = 0.0
    key_height: float = 0.0
    min_width: float = 0.0


class Sheet:
    """Sizes and positions in a picture; the middle of the diagram has the height 0.

    Attributes:
        scale: factor of boxes and fonts; below 1 in crowded pictures.
        box_width, box_height: size of every node's box.
        width: width of the picture.
        above, below: heights of the picture above and below the diagram's middle, title and key included.
        centres: centres of slots, which are boxes, or points at which long edges pass a layer.
    """

    width: float
    above: float
    below: float
    centres: dict[Slot, Point]

    def __init__(self, scale: float, sizes: Sizes) -> None:
        self.scale = scale
        self.box_width, self.box_height = (scale * size for size in sizes.box)


class Layers(Sheet):
    """Picture of a diagram without cycles, in layers from left to right.

    Attributes:
        layout: layers and heights of the slots, and routes of the edges.
        gap: distance between the boxes of neighbouring layers.
        rise: height of an arc between neighbouring layers above the boxes that it joins.
    """

    def __init__(self, layout: Layout, sizes: Sizes) -> None:
        self.layout = layout
        # Full layers get smaller boxes, and wider gaps because their edges are steep.
        super().__init__(float(np.clip(12.0 / layout.rows, 0.6, 1.0)), sizes)
        self.gap = 0.75 + 0.012 * layout.rows
        self.rise = 0.55 * self.scale
        row = self.box_height + 0.14 * self.scale
        columns = 1 + max(layout.column.values())
        inner = columns * self.box_width + (columns - 1) * self.gap
        self.width = max(inner + 2.0 * MARGIN, sizes.min_width)
        left = 0.5 * (self.width - inner + self.box_width)
        self.centres = {
            slot: (left + column * (self.box_width + self.gap), layout.height[slot] * row)
            for slot, column in layout.column.items()
        }
        half = max(layout.height.values()) * row + 0.5 * self.box_height + MARGIN
        arcs = [ends for (*ends, bidirected), route in layout.routes.items() if bidirected and len(route) == 2]
        tops = (max(layout.height[end] for end in ends) * row + 0.5 * self.box_height for ends in arcs)
        highest = max((self.rise + top for top in tops), default=0.0)
        self.above, self.below = max(half, highest) + sizes.title_height, half + sizes.key_height

    @cached_property
    def arrivals(self) -> dict[Slot, list[Slot]]:
        """Head of an edge -> the slots from which curves reach it, the lowest first; arcs are left out."""
        slots: defaultdict[Slot, set[Slot]] = defaultdict(set)
        for (_, head, bidirected), route in self.layout.routes.items():
            if not (bidirected and len(route) == 2):
                slots[head].add(route[-2])
        return {head: sorted(tails, key=self.layout.height.__getitem__) for head, tails in slots.items()}


class Circle(Sheet):
    """Picture of a diagram with cycles, with the nodes on an ellipse.

    Attributes:
        central_node: node in the middle, which has no children and is a child of all others; None if there is none.
    """

    def __init__(self, diagram: Diagram, sizes: Sizes) -> None:
        super().__init__(0.9, sizes)
        degrees = {name: (diagram.graph.in_degree(name), diagram.graph.out_degree(name)) for name in diagram.nodes}
        self.central_node = next((name for name in diagram.nodes if degrees[name] == (len(diagram.nodes) - 1, 0)), None)
        around = [name for name in diagram.nodes if name != self.central_node]
        # Boxes do not overlap: at the top and the bottom they are side by side, at the sides one above the other.
        step = np.sin(2.0 * np.pi / max(len(around), 4))
        x_radius = max(2.2, (self.box_width + 0.2) / step)
        y_radius = max(0.75 * x_radius, (self.box_height + 0.2) / step)
        self.width = max(2.0 * x_radius + self.box_width + 2.0 * MARGIN, sizes.min_width)
        angles = 0.5 * np.pi - 2.0 * np.pi * np.arange(len(around)) / len(around)
        middle = 0.5 * self.width
        self.centres = {
            name: (middle + x_radius * float(x), y_radius * float(y))
            for name, x, y in zip(around, np.cos(angles), np.sin(angles), strict=True)
        }
        if self.central_node is not None:
            self.centres[self.central_node] = middle, 0.0
        half = y_radius + 0.5 * self.box_height + MARGIN
        self.above, self.below = half + sizes.title_height, half + sizes.key_height


def sheet_for(diagram: Diagram, sizes: Sizes) -> Layers | Circle:
    """Return the sizes and positions of a diagram's picture."""
    return Layers(lay_out(diagram), sizes) if diagram.is_acyclic else Circle(diagram, sizes)
