"""The parts of the report that the page shows."""

from __future__ import annotations

import re
from html import escape

from cbo_gym.drawing.html import svg_of
from cbo_gym.study.report import _diagram, _recommendation, curve
from cbo_gym.study.study import Study


def sections(study: Study) -> list[str]:
    """HTML of what is known by now, without styles of its own, which the page's policy would refuse."""
    told = [entry for entry in study.trials if entry.status == "told"]
    parts = [svg_of(_diagram(study).figure)] if study.diagram is not None else []
    if told:
        parts.append(svg_of(curve(study)))
        parts.append(_recommendation(study))
    return [re.sub(r"<style.*?</style>", "", part, flags=re.DOTALL) for part in parts]


def note(text: str) -> str:
    """A paragraph in the place of what cannot be shown."""
    return f'<p class="note">{escape(text)}</p>'
