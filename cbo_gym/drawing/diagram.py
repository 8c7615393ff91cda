"""Pictures of causal diagrams: a box for each node and an arrow for each edge, drawn by Matplotlib without pyplot.

Environments (``render``), studies and the documentation fill the boxes with values and actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from cbo_gym.drawing.edges import Edge, crowding, curve_of
from cbo_gym.drawing.layout import Diagram
from cbo_gym.drawing.sheet import Layers, Sizes, sheet_for

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

# Colours of boxes, text, arrows and borders; of what an action sets and of confounding; of lines at the foot of a box.
PLAIN, INK, ARROW, OUTLINE = "#ffffff", "#2b3440", "#4a5560", "#2b3440"
SET, CONFOUNDING = "#d1495b", "#b5446e"
ACTION, ON_ACTION, UNUSED, ON_UNUSED = "#2f6690", "#fefefe", "#e9ecef", "#5a6672"
DPI = 100
NAME_ROW, VALUE_ROW, LINE_ROW, PADDING = 0.21, 0.19, 0.18, 0.05  # inches
NAME_SIZE, VALUE_SIZE, LINE_SIZE = 10.0, 9.5, 8.5  # points
TITLE_SIZE, SUBTITLE_SIZE, KEY_SIZE = 12.0, 10.0, 8.0
WIDEST_VALUE = "-1.234e+05"
# Inches that the rewards of any round need, so that all pictures of an experiment have the same size.
SUBTITLE_WIDTH = 5.0
DASHES = (0, (4, 2.5))


@dataclass(frozen=True)
class Line:
    """A line at the foot of a box, which describes an action on the node.

    Args:
        label: content of the line.
        widest: the longest label that the line can have, which sets the width of the box.
        used: whether the last action uses the line; other lines are pale.
    """

    label: str
    widest: str
    used: bool = True


@dataclass(frozen=True)
class Box:
    """Contents and style of a node's box.

    Args:
        value: string below the node's name; None for no value.
        lines: lines at the foot of the box.
        fill: colour of the box.
        is_set: whether an action sets the node, which the border shows.
    """

    value: str | None = None
    lines: Sequence[Line] = ()
    fill: str = PLAIN
    is_set: bool = False


class Picture:
    """A diagram drawn on a separate figure.

    Args:
        diagram: the diagram.
        boxes: boxes by node; a node without an entry shows its name alone.
        title: a line in bold above the diagram, and optionally a second line; empty for no title.
        key: entries below the diagram: style of Matplotlib, and its meaning. An entry for confounding is added.

    Attributes:
        figure: figure of Matplotlib.
        axes: axes with one unit per inch.
        boxes: box of each node.
        sheet: positions of the boxes.
        texts: texts of Matplotlib inside the boxes.
    """

    def __init__(
        self,
        diagram: Diagram,
        boxes: Mapping[str, Box] | None = None,
        title: Sequence[str] = (),
        key: Sequence[tuple[dict[str, Any], str]] = (),
    ) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self._diagram, self._key, self._title = diagram, list(key), tuple(title)
        if diagram.bidirected:
            self._key.append(({"color": CONFOUNDING, "linestyle": DASHES}, "confounded"))
        self.boxes = {name: (boxes or {}).get(name, Box()) for name in diagram.nodes}
        self.sheet = sheet_for(diagram, self._sizes())
        # Even numbers of pixels, which video encoders require.
        height = self.sheet.above + self.sheet.below
        size = 2 * np.ceil(0.5 * DPI * self.sheet.width) / DPI, 2 * np.ceil(0.5 * DPI * height) / DPI
        self.figure: Figure = Figure(figsize=size, dpi=DPI, facecolor=PLAIN)
        self._agg = FigureCanvasAgg(self.figure)
        self.axes: Axes = self.figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self.axes.set(xlim=(0.0, size[0]), ylim=(self.sheet.above - size[1], self.sheet.above))
        self.axes.axis("off")
        self._draw()

    def _sizes(self) -> Sizes:
        boxes = self.boxes.values()
        widths = [width_of(name, NAME_SIZE, True) for name in self._diagram.nodes]
        widths += [width_of(line.widest, LINE_SIZE, False) for box in boxes for line in box.lines]
        value_row = 0.0
        if any(box.value is not None for box in boxes):
            widths.append(width_of(WIDEST_VALUE, VALUE_SIZE, False))
            value_row = VALUE_ROW
        lines = max(len(box.lines) for box in boxes)
        height = NAME_ROW + value_row + LINE_ROW * lines + PADDING * (2 if lines else 1)
        title = width_of(self._title[0], TITLE_SIZE, True) if self._title else 0.0
        title_height = 0.27 * len(self._title) + 0.1 if self._title else 0.0
        subtitle = SUBTITLE_WIDTH if len(self._title) > 1 else 0.0
        key = sum(0.7 + width_of(meaning, KEY_SIZE, False) for _, meaning in self._key)
        min_width = max(title, subtitle, key) + 0.3
        return Sizes((max(0.18 + max(widths), 0.9), height), title_height, 0.3 if self._key else 0.0, min_width)

    def _draw(self) -> None:
        if isinstance(self.sheet, Layers):
            crowding_of = crowding(self.sheet.layout)
            for edge in self.sheet.layout.routes:
                self._draw_edge(self.sheet, edge, crowding_of.get(edge, 0))
        else:
            for tail, head in sorted(self._diagram.directed):
                self._draw_chord(tail, head, bidirected=False, faint=head == self.sheet.central_node)
            for first, second in sorted(map(sorted, self._diagram.bidirected)):
                self._draw_chord(first, second, bidirected=True)
        self.texts: list[Text] = []
        for name, box in self.boxes.items():
            self._draw_box(name, box)
        self._draw_title()
        if self._key:
            self._draw_key()

    def _draw_edge(self, sheet: Layers, edge: Edge, crowding: int) -> None:
        from matplotlib.path import Path

        points = curve_of(sheet, edge)
        path = Path(points, [Path.MOVETO] + [Path.CURVE4] * (len(points) - 1))
        # Directed edges between full layers are pale.
        style = {"zorder": 2.5} if edge[2] else {"zorder": 2, "alpha": min(max(0.15, 300.0 / crowding), 1.0)}
        self._add_arrow(edge[2], path=path, mutation_scale=10 * sheet.scale, linewidth=1.1 * sheet.scale, **style)

    def _draw_chord(self, tail: str, head: str, bidirected: bool, faint: bool = False) -> None:
        """Draw a slightly bent arrow from box to box, so that the two arrows of a pair do not overlap."""
        sheet = self.sheet
        (x0, y0), (x1, y1) = sheet.centres[tail], sheet.centres[head]
        margin = 0.5 * sheet.box_height + 0.05
        width, height = abs(x1 - x0), abs(y1 - y0)
        # A steep arrow leaves the box by its upper or lower side.
        steep = height * sheet.box_width >= width * sheet.box_height
        distance = float(np.hypot(width, height))
        reach = margin * distance / height if steep else (0.5 * sheet.box_width + 0.05) * distance / width
        style: dict[str, Any] = {"connectionstyle": "arc3,rad=0.12", "shrinkA": 72.0 * reach, "shrinkB": 72.0 * reach}
        style |= {"alpha": 0.25 if faint else 0.8, "linewidth": 1.0, "mutation_scale": 9, "zorder": 2}
        self._add_arrow(bidirected, posA=(x0, y0), posB=(x1, y1), **style)

    def _add_arrow(self, bidirected: bool, **style: Any) -> None:
        from matplotlib.patches import FancyArrowPatch

        if bidirected:
            style |= {"color": CONFOUNDING, "linestyle": DASHES, "arrowstyle": "<->"}
        else:
            style |= {"color": ARROW, "arrowstyle": "-|>"}
        self.axes.add_patch(FancyArrowPatch(**style))

    def _draw_box(self, name: str, box: Box) -> None:
        from matplotlib.patches import FancyBboxPatch

        x, y = self.sheet.centres[name]
        width, height, scale = self.sheet.box_width, self.sheet.box_height, self.sheet.scale
        shape = f"round,pad=0,rounding_size={min(0.11 * scale, 0.25 * height)}"
        corner = (x - width / 2, y - height / 2)
        body = FancyBboxPatch(corner, width, height, boxstyle=shape, facecolor=box.fill, zorder=3)
        body.set(edgecolor=SET if box.is_set else OUTLINE, linewidth=(2.4 if box.is_set else 1.0) * scale)
        self.axes.add_patch(body)
        bottom = y - height / 2 + PADDING * scale
        for index, line in enumerate(reversed(box.lines)):
            self._draw_line(x, bottom + index * LINE_ROW * scale, line)
        bottom += LINE_ROW * scale * len(box.lines)
        middle = 0.5 * (bottom + y + height / 2)
        lift = 0.0 if box.value is None else 0.5 * VALUE_ROW * scale
        self._write(x, middle + lift, name, NAME_SIZE * scale, weight="bold")
        if box.value is not None:
            self._write(x, middle + lift - VALUE_ROW * scale, box.value, VALUE_SIZE * scale)

    def _draw_line(self, x: float, bottom: float, line: Line) -> None:
        from matplotlib.patches import Rectangle

        scale = self.sheet.scale
        width, height = self.sheet.box_width - 0.1 * scale, (LINE_ROW - 0.015) * scale
        colour, ink = (ACTION, ON_ACTION) if line.used else (UNUSED, ON_UNUSED)
        self.axes.add_patch(Rectangle((x - width / 2, bottom), width, height, facecolor=colour, zorder=3.5))
        self._write(x, bottom + 0.5 * height, line.label, LINE_SIZE * scale, color=ink)

    def _write(self, x: float, y: float, label: str, size: float, **style: Any) -> None:
        style = {"ha": "center", "va": "center_baseline", "color": INK, "zorder": 4, **style}
        self.texts.append(self.axes.text(x, y, label, size=size, **style))

    def _draw_title(self) -> None:
        (left, right), (_, top) = self.axes.get_xlim(), self.axes.get_ylim()
        style: dict[str, Any] = {"ha": "center", "va": "center", "color": INK}
        fonts: tuple[dict[str, Any], ...] = ({"weight": "bold", "size": TITLE_SIZE}, {"size": SUBTITLE_SIZE})
        for index, (line, font) in enumerate(zip(self._title, fonts, strict=False)):
            self.axes.text(0.5 * (left + right), top - 0.25 - 0.27 * index, line, **style, **font)

    def _draw_key(self) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        handles: list[Artist] = [
            Line2D([], [], label=meaning, **look) if "linestyle" in look else Patch(label=meaning, **look)
            for look, meaning in self._key
        ]
        style: dict[str, Any] = {"loc": "lower center", "ncols": len(handles), "frameon": False}
        self.figure.legend(handles=handles, fontsize=KEY_SIZE, labelcolor=INK, **style)

    def pixels(self) -> np.ndarray:
        """Return the pixels as a uint8 array of shape (height, width, 3) with even height and width."""
        self._agg.draw()
        pixels = np.asarray(self._agg.buffer_rgba())[..., :3]
        height, width = (size // 2 * 2 for size in pixels.shape[:2])
        return pixels[:height, :width].copy()


@lru_cache(maxsize=4096)
def width_of(label: str, size: float, bold: bool) -> float:
    """Return the width of a label in inches, at a font size in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight="bold" if bold else "normal")
    return text_to_path.get_text_width_height_descent(label, font, False)[0] / 72.0
