"""In notebooks: what is shown of an environment, whatever Gymnasium has put round it."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium as gym


def show_wrapped(env: gym.Env[Any, Any]) -> str | None:
    """The HTML of what an environment encloses; None where that says nothing of itself."""
    shown = getattr(env.unwrapped, "_repr_html_", None)
    return None if shown is None else str(shown())


def register_display() -> None:
    """Let a notebook show environments in their wrappers, which hide what begins with an underscore."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None:
        shell.display_formatter.formatters["text/html"].for_type(gym.Wrapper, show_wrapped)
