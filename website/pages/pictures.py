"""Pictures for the pages of environments, cached between builds until their code or their registry entry changes.

Drawing them takes minutes, so this cache is separate from that of the pages, which expires with any change of the code.
"""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

import matplotlib

from cbo_gym.drawing import Box, Line, Picture
from cbo_gym.drawing.diagram import ACTION, OUTLINE
from cbo_gym.envs.picture import COLOURS, roles_of
from cbo_gym.envs.registry import EnvEntry
from cbo_gym.modes.base.dynamics import Dynamics
from cbo_gym.modes.base.parametric import number_format
from website.common import svg
from website.common.cache import FOLDER
from website.common.paths import ROOT
from website.common.svg import svg_of
from website.pages import landscapes

SOURCES = ("actions", "drawing", "envs", "modes", "problems", "scm")


class Pictures(NamedTuple):
    """The graph and the landscape as SVG, for light pages, and the landscape's caption.

    Landscape and caption are empty if no optimum is recorded.
    """

    graph: str
    landscape: str
    caption: str


def pictures_of(entry: EnvEntry, dynamics: Dynamics) -> Pictures:
    """Return the pictures of a registered environment, from the cache if it has them."""
    key = hashlib.sha256(f"{entry.model_dump_json()}{_digest()}".encode()).hexdigest()[:24]
    path = FOLDER / f"{key}.json"
    if path.is_file():
        return Pictures(**json.loads(path.read_text(encoding="utf-8")))
    landscape = landscapes.landscape_of(dynamics, entry.optimum)
    svg, caption = (svg_of(landscapes.draw(landscape)), landscape.caption) if landscape else ("", "")
    pictures = Pictures(svg_of(graph_of(dynamics).figure), svg, caption)
    FOLDER.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(pictures._asdict()), encoding="utf-8")
    return pictures


@cache
def _digest() -> str:
    """Return the hash of all code that a picture depends on."""
    files = [*map(Path, (__file__, landscapes.__file__, svg.__file__))]
    files += sorted(path for name in SOURCES for path in (ROOT / "cbo_gym" / name).rglob("*.[py]*"))
    contents = [path.read_bytes() for path in files if path.suffix in (".py", ".yaml")]
    return hashlib.sha256(b"".join([matplotlib.__version__.encode(), *contents])).hexdigest()


def graph_of(dynamics: Dynamics) -> Picture:
    """Return the diagram with the role of each node and the actions that it takes."""
    lines = _settings(dynamics) if dynamics.codec.choices else _parameters(dynamics)
    roles = roles_of(dynamics)
    boxes = {name: Box(None, lines.get(name, ()), COLOURS[role]) for name, role in roles.items()}
    meanings = {"reward": "reward", "acted on": "takes actions", "context": "context, seen before"}
    key = [
        ({"facecolor": COLOURS[role], "edgecolor": OUTLINE}, meaning)
        for role, meaning in meanings.items()
        if role in roles.values()
    ]
    if lines:
        key.append(({"facecolor": ACTION}, dynamics.effect_label))
    return Picture(dynamics.scm.diagram, boxes, key=key)


def _parameters(dynamics: Dynamics) -> dict[str, list[Line]]:
    """Return the names of the parameters, or of the base arms, at the nodes that they enter."""
    names = [
        *(name for name, _ in dynamics.coordinate_labels),
        *dynamics.problem.domains.names[len(dynamics.domains) :],
    ]
    return {node: [Line(names[i], names[i]) for i in own] for node, own in dynamics.scm.action_nodes.items()}


def _settings(dynamics: Dynamics) -> dict[str, list[Line]]:
    """Return the native ranges of the variables that may be set."""
    ranges = {
        name: "{} to {}".format(*(number_format(*domain)(end) for end in domain))
        for name, domain in dynamics.problem.manipulable.items()
        if name in dynamics.affected_nodes()
    }
    return {name: [Line(label, label)] for name, label in ranges.items()}
