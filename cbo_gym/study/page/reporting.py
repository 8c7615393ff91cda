"""The parts of the report that the page shows."""

from __future__ import annotations

import re
from html import escape

from cbo_gym.drawing.html import svg_of
from cbo_gym.study.report import _diagram, _recommendation, curve
from cbo_gym.study.study import Study

#: sections of the report that the page has in a form of its own, with links
OWN = ("overview", "trials")


def style() -> str:
    """The style sheet of the sections."""
    return ".study svg { background: #fff; height: auto; max-width: 100% }"


def sections(study: Study) -> list[str]:
    """HTML of what is known by now, without style sheets in it, which the page's policy refuses."""
    parts = [
        part for part in _all_sections(study) if not part.startswith(tuple(f'<section id="{name}"' for name in OWN))
    ]
    return [re.sub(r"<style.*?</style>", "", part, flags=re.DOTALL) for part in parts]


def _all_sections(study: Study) -> list[str]:
    told = [entry for entry in study.trials if entry.status == "told"]
    found = {"diagram": svg_of(_diagram(study).figure)} if study.diagram is not None else {}
    if told:
        found |= {"curve": svg_of(curve(study)), "now": re.sub("<thead>.*</thead>", "", _recommendation(study))}
    return [f'<section id="{name}">{part}</section>' for name, part in found.items()]


def note(text: str) -> str:
    """A paragraph in the place of what cannot be shown."""
    return f'<p class="note">{escape(text)}</p>'
