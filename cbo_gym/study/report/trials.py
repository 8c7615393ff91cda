"""The table of all trials."""

from __future__ import annotations

from cbo_gym.study.report.markup import folded, number, section, table
from cbo_gym.study.report.naming import with_unit
from cbo_gym.study.study import Study

SHOWN = 50  # rows; more are folded


def trials_section(study: Study) -> str:
    """All trials, the last ones first; those beyond the newest :data:`SHOWN` are folded."""
    frame = study.to_frame().reverse()
    rows = [[number(value) for value in row] for row in frame.iter_rows()]
    header = [with_unit(study, name) for name in frame.columns]
    shown = table("Trials, the newest first", header, rows[:SHOWN])
    older = rows[SHOWN:]
    more = folded(f"{len(older)} older trials", table("Older trials", header, older)) if older else ""
    return section("trials", "Trials", shown, more)
