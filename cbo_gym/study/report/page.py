"""The sections of a study in their order, and the file that holds them."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from pathlib import Path

from cbo_gym.files import require_file, write_text
from cbo_gym.study.report.beliefs import beliefs_section
from cbo_gym.study.report.curve import curve_section
from cbo_gym.study.report.mind import Mind
from cbo_gym.study.report.now import now_section
from cbo_gym.study.report.overview import overview_section
from cbo_gym.study.report.provenance import provenance_section
from cbo_gym.study.report.system import system_section
from cbo_gym.study.report.trials import trials_section
from cbo_gym.study.study import Study
from cbo_gym.study.thinking import one_at_a_time

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
{style}</style></head><body class="study"><main>
<h1>{title}</h1>
<div class="report">
{body}
</div>
</main></body></html>
"""


def style() -> str:
    """The style sheet of the sections, which expect to lie in an element of the class ``study``."""
    return files(__package__).joinpath("report.css").read_text(encoding="utf-8")


def sections(study: Study, *, preview: bool = False) -> list[str]:
    """The report of a study, a fragment of HTML for each of its parts, each a ``<section>`` with a heading ``<h2>``.

    Nothing is changed: what the agent believes is asked of a copy.

    Args:
        study: whose it is.
        preview: where no trial is running, say what would be suggested next, which takes as long as to ask.
    """
    with one_at_a_time():
        mind = Mind(study)
        found = [
            overview_section(study, mind),
            now_section(study, mind, preview),
            curve_section(study, mind),
            beliefs_section(study, mind),
            system_section(study),
            trials_section(study),
            provenance_section(study),
        ]
    return [text for text in found if text]


def write_report(study: Study, path: Path | str) -> Path:
    """Write the report of a study as one HTML file that needs no network.

    Args:
        study: whose it is.
        path: of the HTML file.

    Raises:
        ArgumentError: if the path is no name of an HTML file.
        OperationError: if it cannot be written.
    """
    file = require_file(path, ".html", ".htm")
    write_text(
        file, PAGE.format(title=escape(study.name), style=style(), body="\n".join(sections(study, preview=True)))
    )
    return file
