"""The report as a whole: its sections in their order, and the HTML file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import polars as pl
from jinja2 import Environment, PackageLoader, StrictUndefined

from cbo_gym._util.files import require_file, write_text
from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.runs.provenance import library_versions
from cbo_gym.study.forecast import percent
from cbo_gym.study.precision import merge_precision
from cbo_gym.study.report.curve import progress
from cbo_gym.study.report.front import front
from cbo_gym.study.report.predictions import predictions
from cbo_gym.study.report.snapshot import Snapshot, interval, number
from cbo_gym.study.report.system import system
from cbo_gym.study.report.trust import stopping, trust
from cbo_gym.study.study import Study
from cbo_gym.study.suggesting import agents_lock
from cbo_gym.study.trials import Entry, Status
from cbo_gym.version import __version__

SECTIONS = ("overview", "now", "curve", "stopping", "predictions", "trust", "system", "trials", "provenance")
# Largest number of rows of the table of trials, because a page with more takes long to open.
MAX_TRIALS = 1000
# Titles of columns of the table of trials.
TITLES = {
    "number": "Trial",
    "status": "Status",
    "why": "Why it was suggested",
    "reason": "Why it failed, was rejected or closed",
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
    with agents_lock():
        snapshot = Snapshot(study)
        parts = {
            "description": study.description,
            "facts": list(_facts(snapshot)),
            **_now(snapshot, preview),
            "progress": progress(snapshot),
            "stop": stopping(snapshot),
            "predicted": front(snapshot) if snapshot.description.objectives else predictions(snapshot),
            "leave_one_out": trust(snapshot),
            **system(snapshot),
            **_trials(snapshot),
            **_provenance(snapshot),
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


def _facts(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    description = snapshot.description
    goals = [f"{goal.verb} {snapshot.with_unit(goal.name)}" for goal in description.goals]
    yield "Goal" if len(goals) == 1 else "Goals", ", ".join(goals)
    count = Counter[str](entry.status for entry in snapshot.study.trials)
    by_status = ", ".join(f"{count[status]} {status}" for status in get_args(Status) if count[status])
    yield "Trials", f"{count.total()} of {description.horizon} planned" + (f": {by_status}" if by_status else "")
    if snapshot.rounds:
        yield "Best measured", _best_measured(snapshot)
    yield "Imported", f"{snapshot.imported} rounds"
    # Auto gives a reason for its choice.
    chosen = getattr(snapshot.agent, "chosen", None)
    yield "Agent", description.agent if chosen is None else f"{description.agent}. {chosen.why}"
    yield "Mode", description.mode
    if description.ignored:
        yield "Ignored", ", ".join(description.ignored)


def _best_measured(snapshot: Snapshot) -> str:
    if not snapshot.front:
        return f"no round meets the {snapshot.units.conditions} yet"
    if snapshot.description.objectives:
        return f"{len(snapshot.front)} of {len(snapshot.rounds)} rounds are not dominated"
    best, unit = snapshot.rounds[snapshot.front[0]], snapshot.description.units.get(snapshot.units.objectives[0], "")
    reward = f"{number(best.reward)} {unit}".rstrip()
    source = "imported data" if best.number is None else f"trial {best.number}"
    return f"{reward} in {source}, with {snapshot.action_words(best.action)}"


def _now(snapshot: Snapshot, preview: bool) -> dict[str, Any]:
    running = [_running_row(snapshot, entry) for entry in snapshot.study.trials if entry.is_running]
    following = "No trial is running; ask for the next one."
    if preview and not running and (action := snapshot.next()) is not None:
        expected = []
        for name, band in snapshot.forecasts([action]).items():
            mean, ends = interval(band)
            expected.append(f"{name} expected to be {mean} ({ends})")
        condition = f", with {' and '.join(expected)}" if expected else ""
        following = f"No trial is running. The next suggestion will be {snapshot.action_words(action)}{condition}."
    recommendation = _recommended_set if snapshot.description.objectives else _recommendation
    return {"pending": running, "next": following, "recommended": recommendation(snapshot)}


def _running_row(snapshot: Snapshot, entry: Entry) -> list[Any]:
    action, why = snapshot.action_words(snapshot.units.from_flat(entry.action)), entry.why
    if entry.context:
        action = f"at {snapshot.words(entry.context)}: {action}"
    if known := {name: value for name, value in entry.values.items() if value is not None}:
        why = f"known: {snapshot.words(known)}; {why}"
    return [entry.number, action, why]


def _recommended_set(snapshot: Snapshot) -> dict[str, Any] | None:
    recommended = snapshot.recommended_set
    if recommended is None:
        return None
    header, rows = ["Set"], [[snapshot.words(action.do)] for action in recommended]
    for name in snapshot.units.objectives:
        header.append(snapshot.with_unit(name))
        for row, action in zip(rows, recommended, strict=True):
            ends = action.expected.intervals.get(name)
            brackets = "" if ends is None else f" ({number(ends[0])} to {number(ends[1])})"
            row.append(f"{number(action.expected[name])}{brackets}")
    summary = f"{len(rows)} actions, none of which is expected to dominate another" if len(rows) > 1 else rows[0][0]
    return {"where": "", "words": summary, "header": header, "rows": rows, "note": ", with 95 % intervals in brackets"}


def _recommendation(snapshot: Snapshot) -> dict[str, Any] | None:
    try:
        done = snapshot.study.recommendation(context=snapshot.context)
    # No outcome is known.
    except ArgumentError:
        return None
    condition = f", for {snapshot.words(snapshot.context)}" if snapshot.context else ""
    content: dict[str, Any] = {"where": condition, "words": snapshot.words(done), "rows": None}
    try:
        expected = snapshot.study.what_if(done, context=snapshot.context)
    # A third-party agent may have no model.
    except Exception:
        return content
    rows = []
    for name, value, *intervals in expected.rows():
        if name in done:
            continue
        ends_in_words = ["" if ends is None else f"{number(ends[0])} to {number(ends[1])}" for ends in intervals]
        constraints = []
        for limit in snapshot.study.interface.problem.outcomes.constraints:
            if limit.node == name:
                share = expected.probabilities.get(str(limit))
                constraints.append(str(limit) if share is None else f"{limit}, with {percent(share)} in a new outcome")
        rows.append([snapshot.with_unit(name), value, *ends_in_words, ", ".join(constraints)])
    header = ["Variable", "Mean", "95 % interval of the mean", "of a new outcome", "Constraint"]
    filled = [0, 1, *(column for column in (2, 3, 4) if any(row[column] for row in rows))]
    return content | {
        "header": [header[column] for column in filled],
        "rows": [[row[column] for column in filled] for row in rows],
    }


def _trials(snapshot: Snapshot) -> dict[str, Any]:
    frame = merge_precision(snapshot.study.to_frame().reverse(), number)
    if not frame["reason"].str.len_chars().sum():
        frame = frame.drop("reason")
    # Times are shown to the minute.
    rows_shown = frame.head(MAX_TRIALS).with_columns(pl.col("asked", "ended").str.slice(0, 16).str.replace("T", " "))
    return {
        "trial_header": [_title(snapshot, name) for name in frame.columns],
        "trial_rows": rows_shown.rows(),
        "has_more_trials": len(frame) > MAX_TRIALS,
    }


def _title(snapshot: Snapshot, name: str) -> str:
    if name.startswith("do(") and name[3:-1] in snapshot.description.units:
        return f"{name} [{snapshot.description.units[name[3:-1]]}]"
    return TITLES.get(name) or snapshot.with_unit(name)


def _provenance(snapshot: Snapshot) -> dict[str, Any]:
    description = snapshot.description
    times = [time for entry in snapshot.study.trials for time in (entry.asked, entry.ended) if time]
    spans = [("first event", min(times)), ("last event", max(times))] if times else []
    return {
        "origin": [("agent", description.agent), ("seed", description.seed), *spans],
        "versions": [("cbo-gym", __version__), *library_versions().items()],
        "fields": json.dumps(description.model_dump(exclude_defaults=True), indent=1, ensure_ascii=False),
    }
