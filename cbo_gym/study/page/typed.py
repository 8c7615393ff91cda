"""Form input as arguments of a study, which checks whether they fit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import FormData, UploadFile

from cbo_gym.arguments import number_in
from cbo_gym.errors import ArgumentError
from cbo_gym.study.units import pairs_in

# Prefixes of the names of fields; the name of a variable or parameter follows.
VALUE, DID, DO, CONTEXT = "value:", "did:", "do:", "context:"
# Fields of a row of what may be set.
ROW_FIELDS = ("thing", "node", "low", "high", "unit", "cost")
# Trials at once.
MAX_ASKED = 100
Typed = Mapping[str, list[str]]


def texts_of(form: FormData) -> dict[str, list[str]]:
    """The strings of a form by field, without surrounding white space; files are left out."""
    found: dict[str, list[str]] = {}
    for name, value in form.multi_items():
        if isinstance(value, str):
            found.setdefault(name, []).append(value.strip())
    return found


async def content_of(form: FormData, name: str) -> bytes:
    """The content of a file field; empty if no file was chosen."""
    value = form.get(name)
    return await value.read() if isinstance(value, UploadFile) else b""


def text(typed: Typed, name: str) -> str:
    """The first string of a field; empty if it is missing."""
    return typed.get(name, [""])[0]


def number(typed: str) -> float | str:
    """A number; any other string for the study to refuse."""
    found = number_in(typed)
    return typed if found is None else found


def whole(typed: str) -> int | str:
    """A whole number; any other string for the study to refuse."""
    return int(typed) if re.fullmatch(r"[+-]?\d{1,30}", typed) else typed


def asked_number(typed: str) -> Any:
    """The number of trials to ask for; any other string for the study to refuse.

    Raises:
        ArgumentError: for more than the agent should think about while others wait.
    """
    read = whole(typed)
    if isinstance(read, int) and read > MAX_ASKED:
        raise ArgumentError(f"the page asks for at most {MAX_ASKED} trials at once; given {typed}")
    return read


def numbers(typed: Typed, beginning: str) -> dict[str, Any]:
    """The input of the fields of one prefix, by the names that follow it; a list where a name has several."""
    found: dict[str, Any] = {}
    for name, given in typed.items():
        if name.startswith(beginning) and any(given):
            read = [number(one) for one in given]
            found[name.removeprefix(beginning)] = read[0] if len(read) == 1 else read
    return found


def description(typed: Typed) -> dict[str, Any]:
    """The fields of a study's description, as :func:`~cbo_gym.study.files.arguments_of` takes them.

    Raises:
        ArgumentError: for a line that cannot be read.
    """
    rows = _rows(typed)
    said: dict[str, Any] = {
        name: text(typed, name) for name in ("name", "mode", "reward", "direction", "diagram", "agent")
    }
    said["variables"] = _names(text(typed, "variables"))
    said["contexts"] = _names(text(typed, "contexts"))
    said["constraints"] = [line.strip() for line in text(typed, "constraints").splitlines() if line.strip()]
    said["arms"] = [_pairs(line) for line in text(typed, "arms").splitlines() if line.strip()]
    units = filter(str.strip, text(typed, "units").splitlines())
    said["units"] = pairs_in(units, "it as in titre = g/L") | {row["thing"]: row["unit"] for row in rows if row["unit"]}
    said["costs"] = {row["thing"]: number(row["cost"]) for row in rows if row["cost"]}
    said["reward_range"] = [number(one) for one in typed.get("reward_range", []) if one]
    said |= {name: whole(text(typed, name)) for name in ("horizon", "seed") if text(typed, name)}
    bounds = {row["thing"]: [number(row["low"]), number(row["high"])] for row in rows}
    if said["mode"] in ("soft", "aggregated"):
        said["parameters"] = {row["thing"]: {"node": row["node"], "bounds": bounds[row["thing"]]} for row in rows}
    else:
        said["settable"] = bounds
    return {name: value for name, value in said.items() if value not in ("", [], {})}


def _rows(typed: Typed) -> list[dict[str, str]]:
    """The rows of what may be set that have something in them."""
    columns = [typed.get(name, []) for name in ROW_FIELDS]
    if len({len(column) for column in columns}) > 1:
        raise ArgumentError("each row of what may be set has a name, a variable, two bounds, a unit and a cost")
    rows = [dict(zip(ROW_FIELDS, row, strict=True)) for row in zip(*columns, strict=True) if any(row)]
    names = [row["thing"] for row in rows]
    if "" in names:
        raise ArgumentError("a row of what may be set has no name")
    if twice := {name for name in names if names.count(name) > 1}:
        raise ArgumentError(f"{sorted(twice)[0]!r} has two rows among what may be set")
    return rows


def _names(line: str) -> list[str]:
    return [name.strip() for name in line.replace("\n", ",").split(",") if name.strip()]


def _pairs(line: str) -> dict[str, Any]:
    """``x = 1, z = 0`` as a mapping; ``observe`` is to set nothing."""
    if line.strip() == "observe":
        return {}
    return {name: number(value) for name, value in pairs_in(line.split(","), "it as in x = 1, z = 0").items()}
