"""Figures as SVG, for light pages and for dark ones."""

import io
import re

import matplotlib
from matplotlib.figure import Figure

DARK = {
    "#000000": "#d8dde3", "#2b3440": "#d8dde3",  # ink
    "#4a5560": "#aab4bf", "#8a949e": "#98a3ae",  # arrows, faint lines
    "#ffffff": "#262b36", "#ffd166": "#80600f", "#cfe3f7": "#1f4467", "#d5ead2": "#2d5330",  # boxes
    "#d1495b": "#ff7b8a", "#b5446e": "#e58bb0", "#e9ecef": "#3a414d", "#5a6672": "#b3bcc6",
    "#2f6691": "#6fb1e3", "#d17a22": "#f0a455", "#3a7d44": "#76c083", "#8e5ea2": "#c39bd6", "#7a6a4f": "#c2b08d",
    "#333333": "#d8dde3", "#555555": "#b3bcc6", "#777777": "#98a3ae", "#dddddd": "#3a414d",  # of the figures of results
}  # fmt: skip


def svg_of(figure: Figure) -> str:
    """Return an SVG with text as characters, which keeps the file small, and a transparent background."""
    figure.patch.set_alpha(0.0)
    file = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "cbo-gym"}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = file.getvalue()
    return re.sub(r"\n\s*", "\n", re.sub(r"<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL))


def dark(svg: str) -> str:
    """Return the same picture for dark pages."""
    style = '<style type="text/css">'  # the default colour of text is not in the SVG
    svg = svg.replace(style, f"{style}text {{fill: #000000}} ")
    return re.sub("|".join(DARK), lambda match: DARK[match[0]], svg)


def light_and_dark(path: str, svg: str) -> dict[str, str]:
    """Return address -> a picture for light pages, and one for dark ones; the path is without its ending."""
    return {f"{path}.svg": svg, f"{path}-dark.svg": dark(svg)}


def size_of(svg: str) -> tuple[int, int]:
    """Return width and height in pixels of a screen."""
    width, height = (float(re.findall(rf'\b{side}="([\d.]+)pt"', svg)[0]) for side in ("width", "height"))
    return round(width * 4 / 3), round(height * 4 / 3)
