"""Data for the templates of a study: names, values and input of the fields of its forms."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from cbo_gym.actions import TypedDomain
from cbo_gym.study.expectation import Expectation
from cbo_gym.study.forecast import percent
from cbo_gym.study.page.form_input import CONTEXT, DID, DO, FIXED, STD, VALUE, FormInput, numbers
from cbo_gym.study.page.service import Case
from cbo_gym.study.trials import Entry, Status
from cbo_gym.study.units import format_value

# Largest number of trials in the table; the CSV file has all of them.
MAX_ROWS = 100
# Largest number of pending trials that have a form on the page.
MAX_CARDS = 30


@dataclass(frozen=True)
class FormError:
    """A mistake in a form.

    Attributes:
        form: the id of the form.
        message: the message; empty if the form is only to be shown again.
        typed: the input.
        status: the status of the answer.
    """

    form: str
    message: str
    typed: FormInput
    status: int


def with_unit(case: Case, name: str, value: Any) -> str:
    return f"{format_value(value)} {case.description.units.get(name, '')}".strip()


def fields_of(
    case: Case,
    prefix: str,
    names: Iterable[str],
    filled: Mapping[str, Any],
    problem: FormError | None,
    form: str,
    needed: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """Return the fields of a form, with the user's input or else with initial values.

    Each has the ``key`` by which it is sent, the ``name`` and ``unit`` of the variable, a ``hint``, the ``options`` of
    a category, and a list of ``inputs``, two for an interval. Measured values are ``required`` for the variables
    ``needed``, by default the objectives.
    """
    description = case.description
    typed = problem.typed if problem is not None and problem.form == form else None
    count = 2 if prefix in (DID, DO) and case.study.interface.codec.intervals else 1
    fields, goal = [], "an objective" if description.objectives else "the reward"
    for name in names:
        initial = _inputs(filled.get(name), shortened=prefix == DID)
        inputs = initial if typed is None else list(typed.get(prefix + name, ()))
        required = prefix == VALUE and name in (case.study.units.measured_objectives if needed is None else needed)
        hint = _bounds(case, name) if prefix in (DID, DO, FIXED) else ""
        fields.append(
            {
                "key": prefix + name,
                "name": name,
                "unit": description.units.get(name, ""),
                "hint": goal if required and needed is None else hint,
                "options": _options(case, name, prefix),
                "inputs": (inputs + [""] * count)[:count],
                "required": required,
            }
        )
    return fields


def _inputs(value: Any, shortened: bool = True) -> list[str]:
    """Return the strings of a value, or of the ends of an interval.

    The digits of an action are shortened: if the string is sent back unchanged, the trial was done as suggested. A
    measured value has all digits, because a correction of one value keeps the others.
    """
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if shortened:
        return [format_value(end) for end in value] if isinstance(value, list) else [format_value(value)]
    return [repr(int(value)) if value.is_integer() else repr(value)]


def _bounds(case: Case, name: str) -> str:
    description = case.description
    # The form lists the labels.
    if name in case.study.interface.codec.labels:
        return ""
    if description.arms:
        return "one of " + ", ".join(map(format_value, sorted({arm[name] for arm in description.arms if name in arm})))
    domain = description.parameters[name].bounds if name in description.parameters else description.settable[name]
    if isinstance(domain, TypedDomain):
        return domain.in_words()
    return f"{format_value(domain[0])} to {format_value(domain[1])}"


def _options(case: Case, name: str, prefix: str) -> tuple[str, ...]:
    """Return the labels of a choice or a category; empty for a number."""
    if prefix in (DID, DO, FIXED):
        return case.study.interface.codec.labels.get(name, ())
    known = case.study.units.categories
    return known[name].categories if name in known else ()


# Trials ------------------------------------------------------------------------------------------------------


def card_of(case: Case, entry: Entry, problem: FormError | None = None, form: str = "") -> dict[str, Any]:
    """Return a trial, and the fields of its form, filled with the known values.

    ``done`` and ``context`` are pairs of name and value with unit; ``was_set``, ``others`` and ``measured`` are fields.
    """
    interface, done, context = case.study.interface, case.done(entry), entry.context or {}
    measured = [name for name in interface.nodes if name not in done or not interface.sets_variables]
    others = [name for name in case.study.settable if name not in done]
    # Counts are shown as they were typed, and their standard errors are not.
    counted = {name: f"{round((entry.values[name] or 0.0) * count)} of {count}" for name, count in entry.counts.items()}
    errors = {name: error for name, error in entry.std.items() if name not in counted}
    products = list(interface.products(case.study.units.from_flat(entry.action)))
    if products:
        measured = products
    filled = {**context, **entry.values, **counted}
    fields = fields_of(case, VALUE, measured, filled, problem, form, products[-1:] or None)
    for field in fields:
        field["required"] &= entry.status in ("pending", "measured")
    return {
        "entry": entry,
        "done": [(name, with_unit(case, name, value)) for name, value in done.items()],
        "context": [(name, with_unit(case, name, value)) for name, value in context.items()],
        "was_set": fields_of(case, DID, done, done, problem, form),
        "others": fields_of(case, DID, others, {}, problem, form),
        "measured": fields,
        "errors": fields_of(case, STD, measured, errors, problem, form),
    }


def outcome_of(case: Case, trial: int, typed: FormInput) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values in a form, and keywords of :meth:`Study.tell`: standard errors, and the action if it differs.

    The values include those that were set.
    """
    entry = case.entries().get(trial)
    known = {} if entry is None else case.done(entry)
    did = {name: value for name, value in numbers(typed, DID).items() if typed[DID + name] != _inputs(known.get(name))}
    values = numbers(typed, VALUE)
    is_partial = "partial" in typed or (entry is not None and entry.status == "partial")
    if case.study.interface.sets_variables and not is_partial:
        values = {**known, **did, **values}
    if entry is not None and entry.done is not None:
        # An earlier outcome says that the trial was not done as suggested, so record the full action.
        did = {**known, **did}
    return values, {"did": did or None, "std": numbers(typed, STD) or None}


def counts(entries: Iterable[Entry]) -> dict[str, int]:
    """Return the number of trials of each status."""
    statuses = [entry.status for entry in entries]
    return {status: statuses.count(status) for status in get_args(Status)}


def expected_context(case: Case, expected: Expectation) -> dict[str, Any]:
    """Return the agent's expectations as strings: rows of name, value and interval, and the assumed values."""
    return {
        "rows": [
            (
                name,
                with_unit(case, name, value),
                *(ends and f"{format_value(ends[0])} to {format_value(ends[1])}" for ends in intervals),
            )
            for name, value, *intervals in expected.rows()
        ],
        "met": [f"{limit} with {percent(share)} in a new outcome" for limit, share in expected.probabilities.items()],
        "assumed": ", ".join(f"{name} = {with_unit(case, name, value)}" for name, value in expected.assumed.items()),
    }


def study_context(case: Case, problem: FormError | None) -> dict[str, Any]:
    """Return the content of a study's page, except the report and the agent's expectations."""
    # An open page is notified of later events than this one.
    event, entries, best = case.study.events, case.study.trials, case.study.best_trials
    pending = [entry for entry in entries if entry.is_running]
    description, interface = case.description, case.study.interface
    contexts, reward = interface.context_names, case.study.units.objectives[0]
    # Neither the names of arms nor intervals can be fixed.
    can_steer = interface.codec.domains.names and not (interface.codec.intervals or interface.codec.choice_name)
    return {
        "description": description,
        "variables": [(name, description.units.get(name, "")) for name in interface.nodes],
        "counts": counts(entries),
        "best": [entry.number for entry in best],
        "best_reward": best and with_unit(case, reward, best[0].values.get(reward)),
        "event": event,
        "problem": problem,
        "cards": [card_of(case, entry) for entry in pending[:MAX_CARDS]],
        "more_pending": len(pending[MAX_CARDS:]),
        "contexts": fields_of(case, CONTEXT, contexts, {}, problem, "ask"),
        "what_if_contexts": fields_of(case, CONTEXT, contexts, {}, problem, "what-if"),
        "fixed": fields_of(case, FIXED, case.study.settable if can_steer else (), {}, problem, "ask"),
        "what_if_actions": fields_of(case, DO, case.study.settable, {}, problem, "what-if"),
        "own_contexts": fields_of(case, CONTEXT, contexts, {}, problem, "register"),
        "own_actions": fields_of(case, DO, case.study.settable, {}, problem, "register"),
        "rows": [
            (entry, ", ".join(f"{name} = {format_value(value)}" for name, value in case.done(entry).items()))
            for entry in reversed(entries[-MAX_ROWS:])
        ],
        "all_rows": len(entries),
    }
