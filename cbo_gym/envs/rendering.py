"""Drawings of ``env.render()``: the causal diagram with the values of the last round, as text or a picture.

Latent variables are shown only as confounding. Matplotlib is imported when the first picture is drawn; it opens no
window, and its global settings do not change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cbo_gym.envs.snapshot import MISSING, Snapshot
from cbo_gym.errors import ArgumentError, did_you_mean, naming_the_extra, short_repr

RENDER_MODES = ("ansi", "rgb_array")


def require_render_mode(render_mode: str | None) -> None:
    """Raise ArgumentError unless environments have this render mode."""
    if render_mode is not None and not (isinstance(render_mode, str) and render_mode in RENDER_MODES):
        raise ArgumentError(
            f"render_mode must be None or one of {list(RENDER_MODES)}; given {short_repr(render_mode)}"
            f"{did_you_mean(render_mode, RENDER_MODES)}"
        )


def render(state: Snapshot, render_mode: str) -> str | np.ndarray:
    """Render an experiment after its last round.

    Args:
        state: state of the experiment.
        render_mode: ``"ansi"`` for a text table, ``"rgb_array"`` for a uint8 array of shape (h, w, 3).

    Raises:
        MissingExtraError: for a picture without Matplotlib.
    """
    if render_mode == "ansi":
        return _table(state)
    with naming_the_extra("a picture"):
        # Imported here, because pictures are rare.
        from cbo_gym.envs.picture import picture_of

        return picture_of(state).pixels()


def _table(state: Snapshot) -> str:
    scm, affected, intervened = state.dynamics.scm, state.dynamics.affected_nodes(), state.intervened
    diagram = scm.diagram
    rows: list[tuple[str, ...]] = [("", "node", "value", "action", "parents", "confounded with")]
    for name in scm.nodes:
        mark = "*" if name in intervened else ""
        confounded = [node for node in diagram.nodes if node in diagram.confounding[name]]
        parents = ", ".join(diagram.parents(name)) or MISSING
        rows.append((mark, name, state.value(name), affected.get(name, ""), parents, ", ".join(confounded) or MISSING))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [_row(row, widths) for row in rows]
    lines.insert(1, _row(tuple("-" * width for width in widths), widths))
    if intervened:
        lines.append("* set by the last action")
    return "\n".join([state.title, "", *lines, "", state.score])


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    # The third column has numbers, which are aligned to the right.
    aligned = [
        cell.rjust(width) if index == 2 else cell.ljust(width)
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(aligned).rstrip()
