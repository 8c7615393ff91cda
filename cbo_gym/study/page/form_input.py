"""Conversion of form input to arguments of a study.

A string that is not a number is passed on, because the study refuses it with a message that says what it must be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import FormData, UploadFile

from cbo_gym._util.arguments import number_in
from cbo_gym._util.yaml import Lines
from cbo_gym.errors import ArgumentError
from cbo_gym.modes import classes_of
from cbo_gym.study.description import modes
from cbo_gym.study.units import pairs_in

# Prefixes of the names of fields; the name of a variable or parameter follows.
VALUE, STD, DID, DO, CONTEXT, FIXED = "value:", "std:", "did:", "do:", "context:", "fixed:"
# Fields of a row in the table of settable variables.
ROW_FIELDS = ("setting", "node", "low", "high", "step", "unit", "cost")
# A scale, a number of digits, or both in the field of the step.
SCALE_AND_DIGITS = re.compile(r"(?P<log>log)?[\s,]*((?P<digits>\d+)\s*digits?)?")
# Largest number of trials that are asked for at once.
MAX_ASKED = 100
# Field of a form -> its strings.
FormInput = Mapping[str, list[str]]


def strings_of(form: FormData) -> dict[str, list[str]]:
    """Return the strings of a form by field, without surrounding white space and without files."""
    strings: dict[str, list[str]] = {}
    for name, value in form.multi_items():
        if isinstance(value, str):
            strings.setdefault(name, []).append(value.strip())
    return strings


async def content_of(form: FormData, name: str) -> bytes:
    """Return the content of a file field; empty if no file was chosen."""
    value = form.get(name)
    return await value.read() if isinstance(value, UploadFile) else b""


def first_string(typed: FormInput, name: str) -> str:
    """Return the first string of a field; empty if the field is missing."""
    return typed.get(name, [""])[0]


def lines_of(typed: FormInput, name: str) -> list[str]:
    """Return the lines of a field that are not blank."""
    return [line.strip() for line in first_string(typed, name).splitlines() if line.strip()]


def read_number(string: str) -> float | str:
    value = number_in(string)
    return string if value is None else value


def read_whole_number(string: str) -> int | str:
    return int(string) if re.fullmatch(r"[+-]?\d{1,30}", string) else string


def read_trial_count(string: str) -> Any:
    count = read_whole_number(string)
    if isinstance(count, int) and count > MAX_ASKED:
        raise ArgumentError(f"the page asks for at most {MAX_ASKED} trials at once; given {string}")
    return count


def read_numbers(typed: FormInput, prefix: str) -> dict[str, Any]:
    """Return variable or parameter -> input of its field with this prefix; a list for an interval."""
    by_name: dict[str, Any] = {}
    for field, strings in typed.items():
        if field.startswith(prefix) and any(strings):
            values = [read_number(string) for string in strings]
            by_name[field.removeprefix(prefix)] = values[0] if len(values) == 1 else values
    return by_name


def read_description(typed: FormInput) -> tuple[dict[str, Any], Lines]:
    """Return the fields of a description, and no lines, for :func:`~cbo_gym.study.files.read_arguments`."""
    rows = _settable_rows(typed)
    fields: dict[str, Any] = {
        name: first_string(typed, name) for name in ("name", "mode", "reward", "direction", "diagram", "agent")
    }
    fields["variables"] = names_in(first_string(typed, "variables"))
    fields["contexts"] = names_in(first_string(typed, "contexts"))
    fields |= {name: lines_of(typed, name) for name in ("limits", "constraints")}
    fields["arms"] = [_read_arm(line) for line in lines_of(typed, "arms")]
    units = pairs_in(lines_of(typed, "units"), "it as in titre = g/L")
    fields["units"] = units | {row["setting"]: row["unit"] for row in rows if row["unit"]}
    if goals := pairs_in(lines_of(typed, "objectives"), "it as in titre = maximize"):
        fields |= {"objectives": goals, "direction": ""}
    prices = pairs_in(lines_of(typed, "prices"), "it as in titre = 9")
    prices |= {row["setting"]: row["cost"] for row in rows if row["cost"]}
    fields["costs"] = {name: read_number(price) for name, price in prices.items()}
    fields["reward_range"] = [read_number(end) for end in typed.get("reward_range", []) if end]
    fields |= {name: read_whole_number(first_string(typed, name)) for name in ("horizon", "seed")}
    fields |= {name: read_number(first_string(typed, name)) for name in ("budget", "delta")}
    bounds = {row["setting"]: _domain(row) for row in rows}
    if fields["mode"] in modes() and not classes_of(fields["mode"]).INTERFACE.sets_variables:
        fields["parameters"] = {
            row["setting"]: {"node": names_in(row["node"]), "bounds": bounds[row["setting"]]} for row in rows
        }
    else:
        fields["settable"] = bounds
    return {name: value for name, value in fields.items() if value not in ("", [], {})}, Lines(None)


def _settable_rows(typed: FormInput) -> list[dict[str, str]]:
    """Return the rows of settable variables that are not empty."""
    columns = [typed.get(name, []) for name in ROW_FIELDS]
    if len({len(column) for column in columns}) > 1:
        raise ArgumentError(
            "each row of settable variables must have a name, a variable, two bounds, a step, a unit and a cost"
        )
    rows = [dict(zip(ROW_FIELDS, row, strict=True)) for row in zip(*columns, strict=True) if any(row)]
    names = [row["setting"] for row in rows]
    if "" in names:
        raise ArgumentError("a row of settable variables has no name")
    if twice := {name for name in names if names.count(name) > 1}:
        raise ArgumentError(f"{sorted(twice)[0]!r} has two rows among the settable variables")
    return rows


def _domain(row: Mapping[str, str]) -> Any:
    """Return the domain of a row: two bounds, also with a step, or a scale and digits, or categories."""
    if not row["high"] and "," in row["low"]:
        return {"categories": names_in(row["low"])}
    domain: dict[str, Any] = {"low": read_number(row["low"]), "high": read_number(row["high"])}
    step = row["step"].casefold()
    if not step:
        return list(domain.values())
    if step == "integer":
        domain["type"] = "integer"
    elif not (options := SCALE_AND_DIGITS.fullmatch(step)):
        domain["step"] = read_number(step)
    else:
        domain |= {"scale": "log"} if options["log"] else {}
        domain |= {"digits": int(options["digits"])} if options["digits"] else {}
    return domain


def names_in(line: str) -> list[str]:
    """Return names that are separated by commas."""
    return [name.strip() for name in line.replace("\n", ",").split(",") if name.strip()]


def _read_arm(line: str) -> dict[str, Any]:
    """Read ``x = 1, z = 0`` as a mapping; ``observe`` sets nothing."""
    if line.strip() == "observe":
        return {}
    return {name: read_number(value) for name, value in pairs_in(line.split(","), "it as in x = 1, z = 0").items()}
