"""The sections of a study's report in their order, and the HTML file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from cbo_gym._util.files import require_file, write_text
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.runs.provenance import library_versions
from cbo_gym.study.report.beliefs import beliefs
from cbo_gym.study.report.curve import progress
from cbo_gym.study.report.snapshot import Snapshot, interval, number
from cbo_gym.study.report.system import system
from cbo_gym.study.study import Study
from cbo_gym.study.suggesting import one_at_a_time
from cbo_gym.version import __version__

SECTIONS = ("overview", "now", "curve", "beliefs", "system", "trials", "provenance")
# Rows of the table; a page with more takes long to open.
MAX_TRIALS = 1000
STATES = {"told": "measured", "pending": "running", "failed": "failed", "rejected": "rejected"}
TITLES = {
    "number": "Trial",
    "status": "Status",
    "why": "Why it was suggested",
    "reason": "Why it failed or was rejected",
    "asked": "Asked, UTC",
    "ended": "Ended, UTC",
}


def templates(package: str) -> Environment:
    """Return the templates of a package, which escape every string."""
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


_templates = templates("cbo_gym.study.report")
_templates.filters["number"] = number


def style() -> str:
    """Return the style sheet of the sections, which must be within an element of the class ``study``."""
    return files(__package__).joinpath("report.css").read_text(encoding="utf-8")


def sections(study: Study, *, preview: bool = False) -> list[str]:
    """Return the sections of a study's report: fragments of HTML, each a ``<section>`` with a heading ``<h2>``.

    The study does not change, because the report uses a copy of the agent.

    Args:
        study: the study.
        preview: if no trial is running, include the next suggestion, which takes as long as :meth:`Study.ask`.
    """
    with one_at_a_time():
        shot = Snapshot(study)
        parts = {
            "about": study.about,
            "facts": list(_facts(shot)),
            **_now(shot, preview),
            "progress": progress(shot),
            "believed": beliefs(shot),
            **system(shot),
            **_trials(shot),
            **_provenance(shot),
        }
    macros = _templates.get_template("sections.html").make_module(parts)
    return [html for name in SECTIONS if (html := str(getattr(macros, name)()).strip())]


def write_report(study: Study, path: Path | str) -> Path:
    """Write the report of a study as one HTML file that needs no network.

    Args:
        study: the study.
        path: path of the HTML file.

    Raises:
        ArgumentError: if the path does not end in ``.html`` or ``.htm``.
        OperationError: if it cannot be written.
    """
    file = require_file(path, ".html", ".htm")
    parts = {"title": study.name, "style": style(), "sections": sections(study, preview=True)}
    write_text(file, _templates.get_template("page.html").render(parts) + "\n")
    return file


def _facts(shot: Snapshot) -> Iterator[tuple[str, str]]:
    about = shot.about
    goal = "minimise" if about.direction == "minimize" else "maximise"
    yield "Goal", f"{goal} {shot.with_unit(about.reward)}"
    count = Counter[str](entry.status for entry in shot.study.trials)
    parts = [f"{count[status]} {word}" for status, word in STATES.items() if count[status]]
    yield "Trials", f"{count.total()} of {about.horizon} planned" + (f": {', '.join(parts)}" if parts else "")
    if shot.rounds:
        yield "Best measured", _best_measured(shot)
    yield "Imported", f"{sum(known.number is None for known in shot.rounds)} rounds"
    # Auto gives a reason for its choice.
    chosen = getattr(shot.agent, "chosen", None)
    yield "Agent", about.agent if chosen is None else f"{about.agent}. {chosen.why}"
    yield "Mode", about.mode
    if about.ignored:
        yield "Ignored", ", ".join(about.ignored)


def _best_measured(shot: Snapshot) -> str:
    index = shot.units.best([known.values for known in shot.rounds])
    if index is None:
        return "no round meets the constraints yet"
    best, unit = shot.rounds[index], shot.about.units.get(shot.about.reward, "")
    where = "imported data" if best.number is None else f"trial {best.number}"
    return f"{number(best.reward)} {unit}".rstrip() + f" in {where}, with {shot.action_words(best.action)}"


def _now(shot: Snapshot, preview: bool) -> dict[str, Any]:
    pending = [
        [
            entry.number,
            (f"at {shot.words(entry.context)}: " if entry.context else "")
            + shot.action_words(shot.units.read(entry.action)),
            entry.why,
        ]
        for entry in shot.study.trials
        if entry.status == "pending"
    ]
    following = "No trial is running; ask for the next one."
    if preview and not pending and (action := shot.next()) is not None:
        band = shot.rewards([action])
        expected = ""
        if band is not None:
            mean, ends = interval(band)
            expected = f", with {shot.about.reward} expected to be {mean} ({ends})"
        following = f"No trial is running. The next suggestion will be {shot.action_words(action)}{expected}."
    return {"pending": pending, "next": following, "recommended": _recommendation(shot)}


def _recommendation(shot: Snapshot) -> dict[str, Any] | None:
    try:
        done = shot.study.recommendation(context=shot.context)
    # No outcome is known.
    except ArgumentError:
        return None
    where = f", for {shot.words(shot.context)}" if shot.context else ""
    content: dict[str, Any] = {"where": where, "words": shot.words(done), "rows": None}
    try:
        expected = shot.study.what_if(done, context=shot.context).rows(shot.about.reward)
    # A third-party agent may have no model.
    except Exception:
        return content
    limits = shot.study.interface.problem.outcomes.constraints
    rows = [
        [
            shot.with_unit(name),
            value,
            "" if ends is None else f"{number(ends[0])} to {number(ends[1])}",
            ", ".join(str(limit) for limit in limits if limit.node == name),
        ]
        for name, value, ends in expected
        if name not in done
    ]
    header = ["Variable", "Mean", "95 % interval", *(["Constraint"] if any(row[-1] for row in rows) else [])]
    return content | {"header": header, "rows": [row[: len(header)] for row in rows]}


def _trials(shot: Snapshot) -> dict[str, Any]:
    frame = shot.study.to_frame().reverse()
    if not frame["reason"].str.len_chars().sum():
        frame = frame.drop("reason")
    rows = [[_cell(*item) for item in row.items()] for row in frame.head(MAX_TRIALS).iter_rows(named=True)]
    return {
        "trial_header": [_title(shot, name) for name in frame.columns],
        "trial_rows": rows,
        "left_out": len(frame) > MAX_TRIALS,
    }


def _title(shot: Snapshot, name: str) -> str:
    if name.startswith("do(") and name[3:-1] in shot.about.units:
        return f"{name} [{shot.about.units[name[3:-1]]}]"
    return TITLES.get(name) or shot.with_unit(name)


def _cell(column: str, value: Any) -> Any:
    if column == "status":
        return STATES[value]
    # Times are shown to the minute.
    return value[:16].replace("T", " ") if column in ("asked", "ended") and value else value


def _provenance(shot: Snapshot) -> dict[str, Any]:
    about = shot.about
    times = [time for entry in shot.study.trials for time in (entry.asked, entry.ended) if time]
    spans = [("first event", min(times)), ("last event", max(times))] if times else []
    return {
        "origin": [("agent", about.agent), ("seed", about.seed), *spans],
        "versions": [("cbo-gym", __version__), *library_versions().items()],
        "description": json.dumps(about.model_dump(exclude_defaults=True), indent=1, ensure_ascii=False),
    }
