"""The table of all trials."""

from __future__ import annotations

from typing import Any

from cbo_gym.study.report.markup import folded, number, paragraph, section, table
from cbo_gym.study.report.naming import with_unit
from cbo_gym.study.report.overview import STATES
from cbo_gym.study.study import Study

SHOWN = 50  # rows; more are folded
MOST = 1000  # rows in all: a page with more takes long to open
TITLES = {
    "number": "Trial",
    "status": "Status",
    "why": "Why it was suggested",
    "reason": "Why it failed",
    "asked": "Asked, UTC",
    "ended": "Ended, UTC",
}


def trials_section(study: Study) -> str:
    """The trials, the last ones first; those beyond the newest :data:`SHOWN` are folded."""
    frame = study.to_frame().reverse()
    if not frame["reason"].str.len_chars().sum():
        frame = frame.drop("reason")
    if not len(frame):
        return section("trials", "Trials", paragraph("None was asked for yet."))
    header = [_title(study, name) for name in frame.columns]
    rows = [[_cell(name, value) for name, value in row.items()] for row in frame.head(MOST).iter_rows(named=True)]
    parts = [table("Trials, the newest first", header, rows[:SHOWN])]
    if older := rows[SHOWN:]:
        parts.append(folded(f"{len(older)} older trials", table("Older trials", header, older)))
    if len(frame) > MOST:
        parts.append(paragraph(f"Those before the last {MOST} are left out; export has them.", "note"))
    return section("trials", "Trials", *parts)


def _title(study: Study, name: str) -> str:
    if name in TITLES:
        return TITLES[name]
    if name.startswith("do(") and name[3:-1] in study.about.units:
        return f"{name} [{study.about.units[name[3:-1]]}]"
    return with_unit(study, name)


def _cell(column: str, value: Any) -> str:
    if column == "status":
        return STATES[value]
    if column in ("asked", "ended") and value:
        return value[:16].replace("T", " ")  # to the minute, in UTC
    return number(value)
