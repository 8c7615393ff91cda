"""Display of environments and figures in Jupyter notebooks, which ``import cbo_gym`` registers."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym


def show_wrapped(env: gym.Env[Any, Any]) -> str | None:
    """Return the HTML of an environment inside its wrappers; None if it has no HTML form."""
    to_html = getattr(env.unwrapped, "_repr_html_", None)
    return None if to_html is None else str(to_html())


def show_figure(figure: Any) -> str:
    """Return the SVG of a figure of Matplotlib."""
    # Imported here, because importing the package must not import Matplotlib.
    from cbo_gym.drawing.html import svg_of

    return svg_of(figure)


def register_display() -> None:
    """Let a notebook show figures, and wrapped environments, because wrappers do not pass on ``_repr_html_``.

    Once pyplot is imported, its own display of figures replaces this one.
    """
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        formatters = shell.display_formatter.formatters
        formatters["text/html"].for_type(gym.Wrapper, show_wrapped)
        formatters["image/svg+xml"].for_type_by_name("matplotlib.figure", "Figure", show_figure)
