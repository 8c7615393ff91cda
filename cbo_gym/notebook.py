"""In notebooks: what is shown of an environment, whatever Gymnasium has put round it, and of a figure."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym


def show_wrapped(env: gym.Env[Any, Any]) -> str | None:
    """The HTML of what an environment encloses; None where that says nothing of itself."""
    shown = getattr(env.unwrapped, "_repr_html_", None)
    return None if shown is None else str(shown())


def show_figure(figure: Any) -> str:
    """The SVG of a figure of Matplotlib."""
    from cbo_gym.drawing.html import svg_of  # late: whoever imports the package draws nothing yet

    return svg_of(figure)


def register_display() -> None:
    """Let a notebook show environments in their wrappers, which hide what begins with an underscore, and figures.

    Those that belong to no window are shown once pyplot was imported, in its way, which takes the place of this one.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        formatters = shell.display_formatter.formatters
        formatters["text/html"].for_type(gym.Wrapper, show_wrapped)
        formatters["image/svg+xml"].for_type_by_name("matplotlib.figure", "Figure", show_figure)
