"""Data of a study for the templates of the page, above all the fields of its forms and their values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from cbo_gym.actions import TypedDomain
from cbo_gym.study.expectation import Expectation
from cbo_gym.study.forecast import percent
from cbo_gym.study.page.form_input import CONTEXT, DID, DO, FIXED, STD, VALUE, FormInput, read_numbers
from cbo_gym.study.page.service import ServedStudy
from cbo_gym.study.trials import Entry, Status
from cbo_gym.study.units import format_assignments, format_value

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


def format_with_unit(served: ServedStudy, name: str, value: Any) -> str:
    return f"{format_value(value)} {served.description.units.get(name, '')}".strip()


def fields_of(
    served: ServedStudy,
    prefix: str,
    names: Iterable[str],
    filled: Mapping[str, Any],
    problem: FormError | None,
    form: str,
    needed: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """Return the fields of a form, with the user's input or else with initial values.

    Each has the ``key`` by which it is sent, the ``name`` and ``unit`` of the variable, a ``hint``, the ``options`` of
    a category, and a list of ``inputs``, two for an interval. It is ``required`` if it is the measured value of one of
    the variables ``needed``, by default the objectives.
    """
    description = served.description
    typed = problem.typed if problem is not None and problem.form == form else None
    count = 2 if prefix in (DID, DO) and served.study.interface.codec.intervals else 1
    fields, goal = [], "an objective" if description.objectives else "the reward"
    for name in names:
        initial = _inputs(filled.get(name), shortened=prefix == DID)
        inputs = initial if typed is None else list(typed.get(prefix + name, ()))
        required = prefix == VALUE and name in (served.study.units.measured_objectives if needed is None else needed)
        hint = _bounds(served, name) if prefix in (DID, DO, FIXED) else ""
        fields.append(
            {
                "key": prefix + name,
                "name": name,
                "unit": description.units.get(name, ""),
                "hint": goal if required and needed is None else hint,
                "options": _options(served, name, prefix),
                "inputs": (inputs + [""] * count)[:count],
                "required": required,
            }
        )
    return fields


def _inputs(value: Any, shortened: bool = True) -> list[str]:
    """Return the strings of a value, or of the ends of an interval.

    The values of an action are shortened: if a string is sent back unchanged, the trial was done as suggested. A
    measured value has all digits, because the correction of one value sends the others back too.
    """
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if shortened:
        return [format_value(end) for end in (value if isinstance(value, list) else [value])]
    return [repr(int(value)) if value.is_integer() else repr(value)]


def _bounds(served: ServedStudy, name: str) -> str:
    description = served.description
    # The form lists the labels of a category.
    if name in served.study.interface.codec.labels:
        return ""
    if description.arms:
        values = sorted({arm[name] for arm in description.arms if name in arm})
        return f"one of {', '.join(map(format_value, values))}"
    domain = description.parameters[name].bounds if name in description.parameters else description.settable[name]
    if isinstance(domain, TypedDomain):
        return domain.in_words()
    return f"{format_value(domain[0])} to {format_value(domain[1])}"


def _options(served: ServedStudy, name: str, prefix: str) -> tuple[str, ...]:
    """Return the labels of a choice or a category; empty for a number."""
    if prefix in (DID, DO, FIXED):
        return served.study.interface.codec.labels.get(name, ())
    categories = served.study.units.categories
    return categories[name].categories if name in categories else ()


def card_of(served: ServedStudy, entry: Entry, problem: FormError | None = None, form: str = "") -> dict[str, Any]:
    """Return a trial, and the fields of its form, filled with the known values."""
    interface, done, context = served.study.interface, entry.do, entry.context or {}
    products = list(interface.products(served.study.units.from_flat(entry.action)))
    measured = products or [name for name in interface.nodes if name not in done or not interface.sets_variables]
    others = [name for name in served.study.settable if name not in done]
    # Counts are shown as they were typed, without the standard errors that follow from them.
    counted = {name: f"{round((entry.values[name] or 0.0) * count)} of {count}" for name, count in entry.counts.items()}
    errors = {name: error for name, error in entry.std.items() if name not in counted}
    filled = {**context, **entry.values, **counted}
    fields = fields_of(served, VALUE, measured, filled, problem, form, products[-1:] or None)
    for field in fields:
        field["required"] &= entry.status in ("pending", "measured")
    return {
        "entry": entry,
        "done": [(name, format_with_unit(served, name, value)) for name, value in done.items()],
        "context": [(name, format_with_unit(served, name, value)) for name, value in context.items()],
        "was_set": fields_of(served, DID, done, done, problem, form),
        "others": fields_of(served, DID, others, {}, problem, form),
        "measured": fields,
        "errors": fields_of(served, STD, measured, errors, problem, form),
    }


def outcome_of(served: ServedStudy, trial: int, typed: FormInput) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of :meth:`Study.tell` from a form: the values, and the keywords ``did`` and ``std``.

    An empty field of a measured value, or of a value that was to be set, is None.
    """
    entry = served.entries().get(trial)
    done = {} if entry is None else entry.do
    given, names = read_numbers(typed, DID), [field.removeprefix(DID) for field in typed if field.startswith(DID)]
    did = {name: given.get(name) for name in names if [*filter(None, typed[DID + name])] != _inputs(done.get(name))}
    empty = {field.removeprefix(VALUE): None for field in typed if field.startswith(VALUE)}
    return {**empty, **read_numbers(typed, VALUE)}, {"did": did or None, "std": read_numbers(typed, STD) or None}


def counts(entries: Iterable[Entry]) -> dict[str, int]:
    """Return the number of trials of each status."""
    statuses = [entry.status for entry in entries]
    return {status: statuses.count(status) for status in get_args(Status)}


def expectation_content(served: ServedStudy, expected: Expectation) -> dict[str, Any]:
    """Return the agent's expectations as strings: rows of name, value and interval, and the assumed values."""
    rows = []
    for name, value, *intervals in expected.rows():
        words = [ends and f"{format_value(ends[0])} to {format_value(ends[1])}" for ends in intervals]
        rows.append((name, format_with_unit(served, name, value), *words))
    return {
        "rows": rows,
        "met": [f"{limit} with {percent(share)} in a new outcome" for limit, share in expected.probabilities.items()],
        "assumed": ", ".join(
            f"{name} = {format_with_unit(served, name, value)}" for name, value in expected.assumed.items()
        ),
    }


def study_content(served: ServedStudy, problem: FormError | None) -> dict[str, Any]:
    """Return the content of a study's page, except the report and the agent's expectations."""
    # Read the number of the last event first: an open page announces events after this one.
    event, entries, best = served.study.events, served.study.trials, served.study.best_trials
    pending = [entry for entry in entries if entry.is_running]
    description, interface = served.description, served.study.interface
    contexts, reward = interface.context_names, served.study.units.objectives[0]
    # Neither the names of arms nor intervals can be fixed.
    can_steer = interface.codec.domains.names and not (interface.codec.intervals or interface.codec.choice_name)
    return {
        "description": description,
        "variables": [(name, description.units.get(name, "")) for name in interface.nodes],
        "counts": counts(entries),
        "best": [entry.number for entry in best],
        "best_reward": best and format_with_unit(served, reward, best[0].values.get(reward)),
        "event": event,
        "problem": problem,
        "cards": [card_of(served, entry) for entry in pending[:MAX_CARDS]],
        "more_pending": len(pending[MAX_CARDS:]),
        "contexts": fields_of(served, CONTEXT, contexts, {}, problem, "ask"),
        "what_if_contexts": fields_of(served, CONTEXT, contexts, {}, problem, "what-if"),
        "fixed": fields_of(served, FIXED, served.study.settable if can_steer else (), {}, problem, "ask"),
        "what_if_actions": fields_of(served, DO, served.study.settable, {}, problem, "what-if"),
        "own_contexts": fields_of(served, CONTEXT, contexts, {}, problem, "register"),
        "own_actions": fields_of(served, DO, served.study.settable, {}, problem, "register"),
        "rows": [(entry, format_assignments(entry.do)) for entry in reversed(entries[-MAX_ROWS:])],
        "all_rows": len(entries),
    }
