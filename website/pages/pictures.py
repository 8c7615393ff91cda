"""Pictures for the pages of environments, kept between builds until the code or the registry changes."""

from __future__ import annotations

import hashlib
import io
import json
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import matplotlib
from matplotlib.figure import Figure

from cbo_gym.drawing import Box, Line, Picture
from cbo_gym.drawing.diagram import ACTION, OUTLINE
from cbo_gym.envs.picture import COLOURS, roles_of
from cbo_gym.envs.registry import EnvEntry
from cbo_gym.modes import Feedback
from cbo_gym.modes.parametric import short_numbers
from cbo_gym.task import Mode
from website.common.paths import ROOT
from website.pages import landscapes

KEPT = ROOT / ".cache" / "docs"
SOURCES = ("actions", "drawing", "envs", "modes", "problems", "scm")
DARK = {
    "#000000": "#d8dde3", "#2b3440": "#d8dde3",  # ink
    "#4a5560": "#aab4bf", "#8a949e": "#98a3ae",  # arrows, faint lines
    "#ffffff": "#262b36", "#ffd166": "#80600f", "#cfe3f7": "#1f4467", "#d5ead2": "#2d5330",  # boxes
    "#d1495b": "#ff7b8a", "#b5446e": "#e58bb0", "#e9ecef": "#3a414d", "#5a6672": "#b3bcc6",
    "#2f6691": "#6fb1e3", "#d17a22": "#f0a455", "#3a7d44": "#76c083", "#8e5ea2": "#c39bd6", "#7a6a4f": "#c2b08d",
    "#333333": "#d8dde3", "#555555": "#b3bcc6", "#777777": "#98a3ae", "#dddddd": "#3a414d",  # of the figures of results
}  # fmt: skip


class Pictures(NamedTuple):
    """SVG of an environment for light pages, and the caption of the landscape; empty without a recorded optimum."""

    graph: str
    landscape: str
    caption: str


def pictures_of(entry: EnvEntry, feedback: Feedback) -> Pictures:
    """Both pictures of a registered environment, from the cache if it has them."""
    key = hashlib.sha256(f"{entry.model_dump_json()}{_digest()}".encode()).hexdigest()[:24]
    kept = KEPT / f"{key}.json"
    if kept.is_file():
        return Pictures(**json.loads(kept.read_text(encoding="utf-8")))
    landscape = landscapes.landscape_of(feedback, entry.optimum)
    drawn, caption = (svg_of(landscapes.draw(landscape)), landscape.caption) if landscape else ("", "")
    pictures = Pictures(svg_of(graph_of(feedback).figure), drawn, caption)
    KEPT.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(pictures._asdict()), encoding="utf-8")
    return pictures


@cache
def _digest() -> str:
    """Hash of all code that a picture depends on."""
    files = [Path(__file__), Path(landscapes.__file__)]
    files += sorted(path for name in SOURCES for path in (ROOT / "cbo_gym" / name).rglob("*.[py]*") if path.is_file())
    digest = hashlib.sha256(matplotlib.__version__.encode())
    for path in files:
        if path.suffix in (".py", ".yaml"):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def graph_of(feedback: Feedback) -> Picture:
    """The diagram with the role of each node and the actions that it takes."""
    lines = _settings(feedback) if feedback.codec.choices else _parameters(feedback)
    roles = roles_of(feedback)
    boxes = {name: Box(None, lines.get(name, ()), COLOURS[role]) for name, role in roles.items()}
    meanings = {"reward": "reward", "acted on": "takes actions", "context": "context, seen before"}
    key = [
        ({"facecolor": COLOURS[role], "edgecolor": OUTLINE}, meaning)
        for role, meaning in meanings.items()
        if role in roles.values()
    ]
    action_labels = {Mode.MASKED: "base arm", Mode.HARD: "where it can be set", Mode.CONTEXTUAL: "where it can be set"}
    action_labels[Mode.DYNAMIC] = action_labels[Mode.HARD]
    if lines:
        key.append(({"facecolor": ACTION}, action_labels.get(feedback.mode, "parameter")))
    return Picture(feedback.scm.diagram, boxes, key=key)


def _parameters(feedback: Feedback) -> dict[str, list[Line]]:
    """The names of the parameters, or of the base arms, at the nodes that they enter."""
    names = feedback.problem.domains.names
    if feedback.mode is Mode.MASKED:
        names = feedback.codec.arms
    return {node: [Line(names[i], names[i]) for i in own] for node, own in feedback.scm.action_nodes.items()}


def _settings(feedback: Feedback) -> dict[str, list[Line]]:
    """The native ranges of the variables that may be set."""
    ranges = {
        name: "{} to {}".format(*(short_numbers(*domain)(end) for end in domain))
        for name, domain in feedback.problem.manipulable.items()
        if name in feedback.affected_nodes()
    }
    return {name: [Line(label, label)] for name, label in ranges.items()}


def svg_of(figure: Figure) -> str:
    """SVG with text as text, which keeps the file small, and a transparent background."""
    figure.patch.set_alpha(0.0)
    file = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "cbo-gym"}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    return re.sub(r"\n\s*", "\n", re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL))


def dark(svg: str) -> str:
    """The same picture for dark pages."""
    svg = svg.replace(
        '<style type="text/css">', '<style type="text/css">text {fill: #000000} '
    )  # the default colour is not in the SVG
    return re.sub("|".join(DARK), lambda match: DARK[match[0]], svg)


def size_of(svg: str) -> tuple[int, int]:
    """Width and height in pixels of a screen."""
    match = re.search(r'width="([\d.]+)pt" height="([\d.]+)pt"|height="([\d.]+)pt".*?width="([\d.]+)pt"', svg)
    assert match is not None
    first, second, height, width = match.groups()
    return round(float(first or width) * 4 / 3), round(float(second or height) * 4 / 3)
