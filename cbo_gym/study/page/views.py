"""Data for the templates of a study: names, content and input of the fields of its forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cbo_gym.study.expectation import Expectation
from cbo_gym.study.page.service import Case, Seen
from cbo_gym.study.page.typed import CONTEXT, DID, DO, VALUE, Typed, numbers
from cbo_gym.study.units import written

MAX_ROWS = 100  # of the table; the CSV file has all
MAX_CARDS = 30  # pending trials with a form each
# The mode whose actions are intervals, and the modes whose actions are parameters.
INTERVALS = "aggregated"
PARAMETERS = ("soft", "aggregated")


@dataclass(frozen=True)
class Problem:
    """A mistake in a form.

    Attributes:
        form: the id of the form.
        words: the message; empty if the form is only to be shown again.
        typed: the input.
        status: the status of the answer.
    """

    form: str
    words: str
    typed: Typed
    status: int


def with_unit(case: Case, name: str, value: Any) -> str:
    return f"{written(value)} {case.about.units.get(name, '')}".strip()


def fields_of(
    case: Case, beginning: str, names: Iterable[str], filled: Mapping[str, Any], problem: Problem | None, form: str
) -> list[dict[str, Any]]:
    """Fields with what was typed into them, or with what they are filled with at first.

    Each has the ``key`` by which it is sent, the ``name`` and ``unit`` of the variable, a ``hint``, and a list of
    ``texts``, two for an interval; the reward is ``required``.
    """
    about = case.about
    typed = problem.typed if problem is not None and problem.form == form else None
    count = 2 if beginning in (DID, DO) and about.mode == INTERVALS else 1
    fields = []
    for name in names:
        usual = _texts(filled.get(name), shortened=beginning == DID)
        texts = usual if typed is None else list(typed.get(beginning + name, ()))
        required = beginning == VALUE and name == about.reward
        fields.append(
            {
                "key": beginning + name,
                "name": name,
                "unit": about.units.get(name, ""),
                "hint": "what counts" if required else _bounds(case, name) if beginning in (DID, DO) else "",
                "texts": (texts + [""] * count)[:count],
                "required": required,
            }
        )
    return fields


def _texts(value: Any, shortened: bool = True) -> list[str]:
    """A value, or the ends of an interval.

    An action is shortened: if it is sent back unchanged, the trial was done as asked. A measured value has all
    digits, because a correction of one value keeps the others.
    """
    if value is None:
        return []
    if shortened:
        return [written(end) for end in value] if isinstance(value, list) else [written(value)]
    return [repr(int(value)) if value.is_integer() else repr(value)]


def _bounds(case: Case, name: str) -> str:
    about = case.about
    if about.arms:
        return "one of " + ", ".join(map(written, sorted({arm[name] for arm in about.arms if name in arm})))
    low, high = about.parameters[name].bounds if name in about.parameters else about.settable[name]
    return f"{written(low)} to {written(high)}"


# Trials ------------------------------------------------------------------------------------------------------


def card_of(case: Case, seen: Seen, trial: int, problem: Problem | None = None, form: str = "") -> dict[str, Any]:
    """A trial, and the fields of its form, which are filled with what is known of it.

    ``done`` and ``context`` are what was set and seen, in words; ``was_set``, ``others`` and ``measured`` the fields.
    """
    entry, done, context = seen.entries[trial], seen.done[trial], seen.entries[trial].context or {}
    measured = [name for name in case.study.interface.nodes if name not in done or case.about.mode in PARAMETERS]
    others = [name for name in case.study.settable if name not in done]
    return {
        "entry": entry,
        "done": [(name, with_unit(case, name, value)) for name, value in done.items()],
        "context": [(name, with_unit(case, name, value)) for name, value in context.items()],
        "was_set": fields_of(case, DID, done, done, problem, form),
        "others": fields_of(case, DID, others, {}, problem, form),
        "measured": fields_of(case, VALUE, measured, {**context, **entry.values}, problem, form),
    }


def outcome_of(case: Case, seen: Seen, trial: int, typed: Typed) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The values in a form, and what was really set if that differs from what was asked.

    A variable that was set has the value that it was set to.
    """
    known = seen.done.get(trial, {})
    did = {name: value for name, value in numbers(typed, DID).items() if typed[DID + name] != _texts(known.get(name))}
    values = numbers(typed, VALUE)
    if case.about.mode not in PARAMETERS:
        values = {**known, **did, **values}
    if trial in seen.entries and seen.entries[trial].done is not None:
        # All of it, because the trial was not done as asked.
        return values, {**known, **did}
    return values, did or None


def counts(seen: Seen) -> dict[str, int]:
    """How many trials are told, pending and failed."""
    stands = [entry.status for entry in seen.entries.values()]
    return {status: stands.count(status) for status in ("told", "pending", "failed")}


def expected_context(case: Case, expected: Expectation) -> dict[str, Any]:
    """The agent's expectations as strings: rows of name, value and interval, and the assumed values."""
    return {
        "rows": [
            (name, with_unit(case, name, value), interval and f"{written(interval[0])} to {written(interval[1])}")
            for name, value, interval in expected.rows(case.about.reward)
        ],
        "assumed": ", ".join(f"{name} = {with_unit(case, name, value)}" for name, value in expected.assumed.items()),
    }


def study_context(case: Case, seen: Seen, problem: Problem | None) -> dict[str, Any]:
    """The content of a study's page, except the report and the agent's expectations."""
    pending = [trial for trial, entry in sorted(seen.entries.items()) if entry.status == "pending"]
    about = case.about
    contexts = about.contexts if about.mode == "contextual" else []
    return {
        "about": about,
        "variables": [(name, about.units.get(name, "")) for name in case.study.interface.nodes],
        "counts": counts(seen),
        "best": seen.best,
        "best_reward": seen.best and with_unit(case, about.reward, seen.best.values[about.reward]),
        "event": seen.event,
        "problem": problem,
        "cards": [card_of(case, seen, trial) for trial in pending[:MAX_CARDS]],
        "more_pending": len(pending[MAX_CARDS:]),
        "contexts": fields_of(case, CONTEXT, contexts, {}, problem, "ask"),
        "supposed_contexts": fields_of(case, CONTEXT, contexts, {}, problem, "what-if"),
        "supposed": fields_of(case, DO, case.study.settable, {}, problem, "what-if"),
        "rows": [
            (seen.entries[trial], ", ".join(f"{name} = {written(value)}" for name, value in done.items()))
            for trial, done in sorted(seen.done.items(), reverse=True)[:MAX_ROWS]
        ],
        "all_rows": len(seen.entries),
    }
