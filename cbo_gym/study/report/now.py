"""Things to do now: trials that run, what would be suggested next, and what is recommended."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from cbo_gym.errors import ArgumentError
from cbo_gym.study.report.markup import number, paragraph, section, table
from cbo_gym.study.report.mind import Mind, interval
from cbo_gym.study.report.naming import action_words, with_unit
from cbo_gym.study.report.rounds import action_of, done_in
from cbo_gym.study.study import Study


def now_section(study: Study, mind: Mind, preview: bool) -> str:
    """The trials that run, with the reasons for them, and the recommendation with what is expected of it.

    Args:
        study: whose.
        mind: its agent.
        preview: where no trial runs, say what would be suggested next.
    """
    running = _running(study) or _next(study, mind, preview)
    return section("now", "Now", running, _recommended(study, mind))


def _running(study: Study) -> str:
    pending = [entry for entry in study.trials if entry.status == "pending"]
    if not pending:
        return ""
    rows = [
        [
            str(entry.number),
            _after(study, entry.context) + action_words(study, done_in(study, action_of(study, entry))),
            entry.why,
        ]
        for entry in pending
    ]
    return table("Suggested, and not told of yet", ["Trial", "Set", "Why"], rows)


def _next(study: Study, mind: Mind, preview: bool) -> str:
    action = mind.next() if preview else None
    if action is None:
        return paragraph("No trial is running; ask for the next one.")
    words, band = action_words(study, done_in(study, action)), mind.rewards([action])
    expected = "" if band is None else f", with {study.about.reward} expected to be {interval(band)}"
    return paragraph(f"No trial is running. The next suggestion will be {words}{expected}.")


def _after(study: Study, context: Mapping[str, float] | None) -> str:
    return f"at {action_words(study, context)}: " if context else ""


def _recommended(study: Study, mind: Mind) -> str:
    try:
        done = study.recommendation(context=mind.context)
    except ArgumentError:  # nothing has been told
        return ""
    where = f", for {action_words(study, mind.context)}" if mind.context else ""
    words = f"<p>Recommended now{escape(where)}: <strong>{escape(action_words(study, done))}</strong>.</p>"
    return words + "\n" + _expected(study, mind, done)


def _expected(study: Study, mind: Mind, done: Mapping[str, Any]) -> str:
    """The values that the agent expects under the recommendation, of the reward with its interval."""
    try:
        expected = study.what_if(done, context=mind.context).rows(study.about.reward)
    # A third-party agent may have no beliefs.
    except Exception:
        return paragraph(f"{study.about.agent} does not say what it expects of it.")
    limits = study.feedback.problem.outcomes.constraints
    rows = [
        [
            with_unit(study, name),
            number(value),
            "" if interval is None else f"{number(interval[0])} to {number(interval[1])}",
            ", ".join(str(one) for one in limits if one.node == name),
        ]
        for name, value, interval in expected
        if name not in done
    ]
    header = ["Variable", "Mean", "95 % interval", *(["Constraint"] if any(row[-1] for row in rows) else [])]
    return table("Expected under the recommendation", header, [row[: len(header)] for row in rows])
