"""The parts of the report that the page shows."""

from __future__ import annotations

from html import escape

from cbo_gym.study import report
from cbo_gym.study.study import Study

#: sections of the report that the page has in a form of its own, with links
OWN = ("overview", "trials")


def sections(study: Study) -> list[str]:
    """HTML of what is known by now, less what the page itself shows."""
    own = tuple(f'<section id="{name}"' for name in OWN)
    return [part for part in report.sections(study) if not part.startswith(own)]


def note(text: str) -> str:
    """A paragraph in the place of what cannot be shown."""
    return f'<p class="note">{escape(text)}</p>'
