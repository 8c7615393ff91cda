"""Where the report comes from: the description of the study, and what it was made with."""

from __future__ import annotations

import json
from html import escape

from cbo_gym.evaluation.runs.provenance import library_versions
from cbo_gym.study.report.markup import folded, section, table
from cbo_gym.study.study import Study
from cbo_gym.version import __version__


def provenance_section(study: Study) -> str:
    """Agent, seed, description and versions, folded."""
    described = json.dumps(study.about.model_dump(exclude_defaults=True), indent=1, ensure_ascii=False)
    versions = [["cbo-gym", __version__], *([name, version] for name, version in library_versions().items())]
    times = [time for entry in study.trials for time in (entry.asked, entry.ended) if time]
    spans = [["first asked", min(times)], ["last heard of", max(times)]] if times else []
    facts = [["agent", study.about.agent], ["seed", str(study.about.seed)], *spans]
    inside = (
        table("Agent and times, in UTC", ["What", "Value"], facts)
        + table("Versions of this report's libraries", ["Library", "Version"], versions)
        + f'<pre tabindex="0" aria-label="The description of the study">{escape(described)}</pre>'
    )
    return section("provenance", "Provenance", folded("Agent, description and versions", inside))
