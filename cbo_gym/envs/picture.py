"""The picture of a round: the causal diagram with the values of the nodes, drawn by Matplotlib's object interface."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from cbo_gym.envs.layout import Layout, Slot, lay_out
from cbo_gym.envs.snapshot import Snapshot
from cbo_gym.scm import System

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float]

COLOURS = {"reward": "#ffd166", "acted on": "#cfe3f7", "other": "#ffffff"}
SET_BY_AGENT, CONFOUNDING, ARROW, OUTLINE = "#d1495b", "#b5446e", "#4a5560", "#2b3440"
DPI = 100


class _Sheet:
    """One picture in inches: the figure, its axes, and the sizes of boxes and gaps."""

    scale: float
    box_width: float
    box_height: float

    def open(self, width: float, height: float) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        # whole, even numbers of pixels: video encoders ask for them
        size = 2 * round(0.5 * DPI * width) / DPI, 2 * round(0.5 * DPI * height) / DPI
        self.figure: Figure = Figure(figsize=size, dpi=DPI, facecolor="white")
        self.agg = FigureCanvasAgg(self.figure)
        self.axes: Axes = self.figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self.axes.set(xlim=(0.0, size[0]), ylim=(-0.5 * size[1] + 0.15, 0.5 * size[1] + 0.15))
        self.axes.axis("off")

    @abstractmethod
    def centre(self, slot: Slot) -> Point:
        """Where the box of a node lies."""

    def pixels(self) -> np.ndarray:
        self.agg.draw()
        pixels = np.asarray(self.agg.buffer_rgba())[..., :3]
        height, width = (size // 2 * 2 for size in pixels.shape[:2])  # even, as video encoders want it
        return pixels[:height, :width].copy()


class _Canvas(_Sheet):
    """Layers from left to right."""

    def __init__(self, layout: Layout, longest_name: int) -> None:
        self.layout = layout
        self.scale = float(np.clip(12.0 / layout.rows, 0.6, 1.0))  # full layers get smaller boxes
        self.box_width = self.scale * (0.3 + 0.09 * max(longest_name, 10))  # -1.234e+05 has ten characters
        self.box_height = 0.44 * self.scale
        self.gap = 0.75 + 0.012 * layout.rows  # edges between full layers are steep; give them room
        heights = list(layout.height.values())
        columns = 1 + max(layout.column.values())
        inner = columns * self.box_width + (columns - 1) * self.gap
        width = max(inner + 1.0, 5.2)
        self.left = 0.5 * (width - inner + self.box_width)
        self.open(width, (max(heights) - min(heights) + 1.0) * self.row + 1.5)

    @property
    def row(self) -> float:
        return 0.58 * self.scale

    def centre(self, slot: Slot) -> Point:
        x = self.left + self.layout.column[slot] * (self.box_width + self.gap)
        return x, self.layout.height[slot] * self.row


class _RoundCanvas(_Sheet):
    """For diagrams with cycles, which have no layers: the nodes on a circle, the reward in its middle."""

    def __init__(self, names: Sequence[str]) -> None:
        *around, reward = names
        self.scale = 0.9
        self.box_width = self.scale * (0.3 + 0.09 * max(10, *map(len, names)))
        self.box_height = 0.44 * self.scale
        # neighbours at the top and the bottom, where the circle is level, lie side by side
        radius = max(2.2, (self.box_width + 0.2) / np.sin(2.0 * np.pi / max(len(around), 4)))
        self.middle = radius + 0.5 * self.box_width + 0.4
        angles = 0.5 * np.pi - 2.0 * np.pi * np.arange(len(around)) / len(around)
        self.places: dict[Slot, Point] = {reward: (self.middle, 0.0)}
        for name, x, y in zip(around, np.cos(angles), np.sin(angles), strict=True):
            self.places[name] = self.middle + radius * float(x), 0.75 * radius * float(y)
        self.open(2.0 * self.middle, 2.0 * 0.75 * radius + 2.0)

    def centre(self, slot: Slot) -> Point:
        return self.places[slot]


def _canvas(scm: System) -> _Canvas | _RoundCanvas:
    if scm.diagram.is_acyclic:
        return _Canvas(lay_out(scm.diagram), max(map(len, scm.nodes)))
    return _RoundCanvas(scm.nodes)


def draw(state: Snapshot) -> np.ndarray:
    """A uint8 array of shape (h, w, 3)."""
    scm = state.feedback.scm
    canvas = _canvas(scm)
    if isinstance(canvas, _Canvas):
        for edge in canvas.layout.routes:
            _draw_edge(canvas, *edge)
    else:
        for tail, head in sorted(scm.diagram.directed):
            _draw_chord(canvas, tail, head, faint=head == scm.reward)
    acted_on = state.feedback.acted_on()
    for name in scm.nodes:
        role = "reward" if name == scm.reward else "acted on" if name in acted_on else "other"
        value = state.value(name) if state.values else ""
        _draw_node(canvas, name, value, COLOURS[role], name in state.intervened)
    _draw_texts(canvas, state)
    return canvas.pixels()


def _draw_node(canvas: _Sheet, name: str, value: str, colour: str, is_cut: bool) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y = canvas.centre(name)
    w, h, s = canvas.box_width, canvas.box_height, canvas.scale
    colour_of_border, width_of_border = (SET_BY_AGENT, 2.4) if is_cut else (OUTLINE, 1.0)
    shape = f"round,pad=0,rounding_size={0.25 * h}"
    box = FancyBboxPatch((x - w / 2, y - h / 2), w, h, boxstyle=shape, facecolor=colour, zorder=3)
    box.set(edgecolor=colour_of_border, linewidth=width_of_border * s)
    canvas.axes.add_patch(box)
    style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "color": OUTLINE, "zorder": 4}
    canvas.axes.text(x, y + (0.22 * h if value else 0.0), name, weight="bold", size=10 * s, **style)
    canvas.axes.text(x, y - 0.25 * h, value, size=9.5 * s, **style)


def _draw_edge(canvas: _Canvas, tail: str, head: str, bidirected: bool) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    places = canvas.layout.routes[tail, head, bidirected]
    points = _arc(canvas, tail, head) if bidirected and len(places) == 2 else _curve(canvas, places, bidirected)
    codes = [Path.MOVETO] + [Path.CURVE4] * (len(points) - 1)
    style: dict[str, Any] = {
        "color": ARROW,
        "linewidth": 1.1 * canvas.scale,
        "arrowstyle": "-|>",
        "zorder": 2,
    }
    if bidirected:
        style |= {"color": CONFOUNDING, "linestyle": (0, (4, 2.5)), "arrowstyle": "<->", "zorder": 2.5}
    else:
        crowd = _curves_at(canvas.layout, tail, 0) * _curves_at(canvas.layout, head, 1)
        style["alpha"] = min(max(0.15, 300.0 / crowd), 1.0)  # where all meet all, a light web
    arrow = FancyArrowPatch(path=Path(points, codes), mutation_scale=10 * canvas.scale, **style)
    canvas.axes.add_patch(arrow)


def _draw_chord(canvas: _Sheet, tail: str, head: str, faint: bool) -> None:
    """An arrow from box to box, bent a little so that the two of a pair lie apart."""
    from matplotlib.patches import FancyArrowPatch

    (x0, y0), (x1, y1) = canvas.centre(tail), canvas.centre(head)
    style: dict[str, Any] = {"arrowstyle": "-|>", "connectionstyle": "arc3,rad=0.12", "color": ARROW, "zorder": 2}
    style |= {"alpha": 0.25 if faint else 0.8, "linewidth": 1.0}
    margin = 0.5 * canvas.box_height + 0.05
    across, along = abs(x1 - x0), abs(y1 - y0)
    steep = along * canvas.box_width >= across * canvas.box_height  # leaves the box by its upper or lower side
    distance = float(np.hypot(across, along))
    reach = margin * distance / along if steep else (0.5 * canvas.box_width + 0.05) * distance / across
    points = 72.0 * reach
    arrow = FancyArrowPatch((x0, y0), (x1, y1), mutation_scale=9, shrinkA=points, shrinkB=points, **style)
    canvas.axes.add_patch(arrow)


def _curves_at(layout: Layout, name: str, end: int) -> int:
    return sum(edge[end] == name and not edge[2] for edge in layout.routes)


def _curve(canvas: _Canvas, places: Sequence[Slot], bidirected: bool) -> list[Point]:
    """Bends between the columns, level across them."""
    half = 0.5 * canvas.box_width
    start, *passed, end = [canvas.centre(slot) for slot in places]
    leave = 0.3 * canvas.box_height if bidirected else 0.0  # apart from the directed edges
    stops = [(start[0] + half, start[1] + leave)]
    stops += [(x + side, y) for x, y in passed for side in (-half, half)]
    stops.append((end[0] - half, end[1] + _port(canvas, places)))
    points = stops[:1]
    for (x0, y0), (x1, y1) in pairwise(stops):
        middle = 0.5 * (x0 + x1)
        points += [(middle, y0), (middle, y1), (x1, y1)]
    return points


def _port(canvas: _Canvas, places: Sequence[Slot]) -> float:
    """Where on the head's left side a curve ends, from its middle: in the order in which curves arrive."""
    routes = canvas.layout.routes.items()
    arriving = {
        route[-2]
        for (_, head, bidirected), route in routes
        if head == places[-1] and not (bidirected and len(route) == 2)  # those are arcs
    }
    order = sorted(arriving, key=canvas.layout.height.__getitem__)
    spread = canvas.box_height * (1.0 - 1.0 / len(order))
    return spread * (order.index(places[-2]) / max(len(order) - 1, 1) - 0.5)


def _arc(canvas: _Canvas, tail: str, head: str) -> list[Point]:
    """Confounding between neighbouring layers, or inside one: an arc that no directed edge follows."""
    (x0, y0), (x1, y1) = canvas.centre(tail), canvas.centre(head)
    half, lift = 0.5 * canvas.box_width, 0.3 * canvas.box_height
    if x0 == x1:
        bulge = x0 - half - 0.7 * canvas.gap
        return [(x0 - half, y0), (bulge, y0), (bulge, y1), (x1 - half, y1)]
    start, end = (x0 + half, y0 + lift), (x1 - half, y1 + lift)
    rise, third = 0.55 * canvas.scale, canvas.gap / 3.0
    return [start, (start[0] + third, start[1] + rise), (end[0] - third, end[1] + rise), end]


def _draw_texts(canvas: _Sheet, state: Snapshot) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    (left, right), (_, top) = canvas.axes.get_xlim(), canvas.axes.get_ylim()
    centre: dict[str, Any] = {"ha": "center", "va": "center", "color": OUTLINE}
    middle = 0.5 * (left + right)
    canvas.axes.text(middle, top - 0.25, state.title, weight="bold", size=12, **centre)
    canvas.axes.text(middle, top - 0.52, state.score, size=10, **centre)
    keys: list[Artist] = [
        Patch(facecolor=COLOURS["reward"], edgecolor=OUTLINE, label="reward"),
        Patch(facecolor=COLOURS["acted on"], edgecolor=OUTLINE, label="takes actions"),
    ]
    if state.intervened:
        keys.append(Patch(facecolor="white", edgecolor=SET_BY_AGENT, linewidth=2, label="set this round"))
    if state.feedback.scm.diagram.bidirected:
        keys.append(Line2D([], [], color=CONFOUNDING, linestyle=(0, (4, 2.5)), label="confounded"))
    key: dict[str, Any] = {"loc": "lower center", "ncols": len(keys), "frameon": False, "fontsize": 8}
    canvas.figure.legend(handles=keys, **key)
