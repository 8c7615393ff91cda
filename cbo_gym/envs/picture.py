"""The picture of a round: the causal diagram with the values of the nodes and the action at each of them."""

from __future__ import annotations

from typing import Any

from cbo_gym.drawing import Box, Line, Picture
from cbo_gym.drawing.diagram import ACTION, OUTLINE, PLAIN, SET, UNUSED
from cbo_gym.envs.snapshot import Snapshot
from cbo_gym.modes.base.interface import Interface

COLOURS = {"reward": "#ffd166", "acted on": "#cfe3f7", "context": "#d5ead2", "other": PLAIN}


def picture_of(state: Snapshot) -> Picture:
    """Return the picture of a round."""
    entries = state.dynamics.node_entries(state.intervention, state.values)
    boxes = {
        name: Box(
            state.value(name),
            [Line(*entry) for entry in entries.get(name, ())],
            COLOURS[role],
            name in state.intervened,
        )
        for name, role in roles_of(state.dynamics).items()
    }
    return Picture(state.dynamics.scm.diagram, boxes, (state.title, state.score), _legend(state, boxes))


def roles_of(interface: Interface) -> dict[str, str]:
    """Return the role of each node, a key of ``COLOURS``."""
    affected = interface.affected_nodes()
    roles = dict.fromkeys(interface.scm.nodes, "other")
    roles |= dict.fromkeys(interface.context_names, "context") | dict.fromkeys(affected, "acted on")
    objectives = [objective.name for objective in interface.problem.outcomes.objectives if objective.name in roles]
    return roles | dict.fromkeys([*objectives, interface.scm.reward], "reward")


def _legend(state: Snapshot, boxes: dict[str, Box]) -> list[tuple[dict[str, Any], str]]:
    """Return a colour and its meaning for each entry: the same in all rounds, so that all pictures have one size."""
    fills = {box.fill for box in boxes.values()}
    meanings = {"reward": "reward", "acted on": "takes actions", "context": "context, seen before"}
    legend: list[tuple[dict[str, Any], str]] = [
        ({"facecolor": COLOURS[role], "edgecolor": OUTLINE}, meaning)
        for role, meaning in meanings.items()
        if COLOURS[role] in fills
    ]
    if any(box.lines for box in boxes.values()):
        legend.append(({"facecolor": ACTION}, "the action"))
    else:
        legend.append(({"facecolor": PLAIN, "edgecolor": SET, "linewidth": 2}, state.dynamics.set_label))
    if state.dynamics.unused_label:
        legend.append(({"facecolor": UNUSED}, state.dynamics.unused_label))
    return legend
