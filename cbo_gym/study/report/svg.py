"""Figures as SVG that takes the page's colours, light or dark, and its fonts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from itertools import count
from typing import TYPE_CHECKING, Any

from cbo_gym.drawing.diagram import ACTION, ARROW, CONFOUNDING, INK, ON_ACTION, ON_UNUSED, PLAIN, SET, UNUSED
from cbo_gym.drawing.html import svg_of
from cbo_gym.envs.picture import COLOURS
from cbo_gym.evaluation.report.plots import STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREY, RULE, AXIS = "#0072b2", "#d55e00", "#777777", "#dddddd", "#555555"
# Colour of figures -> variable of the style sheet that replaces it.
VARIABLES = {
    BLUE: "blue",
    ORANGE: "orange",
    GREY: "grey",
    RULE: "rule",
    AXIS: "muted",
    INK: "ink",
    ARROW: "muted",
    PLAIN: "paper",
    SET: "orange",
    CONFOUNDING: "confounding",
    ACTION: "action",
    ON_ACTION: "on-action",
    UNUSED: "raised",
    ON_UNUSED: "muted",
    COLOURS["reward"]: "reward",
    COLOURS["acted on"]: "acted-on",
    COLOURS["context"]: "context",
}
# Parameters of Matplotlib in addition to those of all reports.
PAGE_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "grid.color": RULE,
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), AXIS),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor"), "none"),
}
_figure_numbers = count(1)


@contextmanager
def page_style() -> Iterator[None]:
    """Draw figures in the style of the page."""
    from matplotlib import rc_context

    with rc_context(STYLE | PAGE_STYLE):
        yield


def image(figure: Figure, label: str) -> str:
    """Return a figure as SVG, with ids that no other figure has, and a label for screen readers.

    Call it within :func:`page_style`.
    """
    figure.patch.set_visible(False)
    svg = re.sub(r"<(metadata|style).*?</\1>|<!--.*?-->", "", svg_of(figure), flags=re.DOTALL)
    used = set(re.findall(r"(?:url\(#|href=\"#)([\w-]+)", svg))
    svg = re.sub(r' id="([\w-]+)"', lambda match: match[0] if match[1] in used else "", svg)
    prefix = f"f{next(_figure_numbers)}-"
    svg = re.sub(r'(?<= id=")|(?<=url\(#)|(?<=href="#)', prefix, svg)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    return svg.replace("<svg ", f'<svg role="img" aria-label="{escape(label)}" ', 1)
