"""Files that go into a study and come out of it: a description in YAML, rounds and trials in CSV."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import polars as pl

from cbo_gym.errors import ArgumentError, CBOGymError
from cbo_gym.files import csv_text
from cbo_gym.study.mistakes import at, mistakes
from cbo_gym.study.study import described
from cbo_gym.yaml_files import Lines


def checked(
    read: Callable[[], tuple[Any, Lines]],
    *,
    name: str | None = None,
    agent: str | None = None,
    trusted: Collection[str] = (),
) -> dict[str, Any]:
    """The arguments of :func:`create_study`, but for the storage, which fit together.

    Args:
        read: gives fields, as a YAML file holds them, and the lines of its parts.
        name: of the study, where the fields give none.
        agent: who suggests, in place of the one that the fields name.
        trusted: import paths of agents whose code may be run.

    Raises:
        ArgumentError: naming the line, where there is one, and what is wrong there.
    """

    def arguments(fields: Any) -> dict[str, Any]:
        found = arguments_of(fields, name=name, agent=agent, trusted=trusted)
        described(**found)
        return found

    fields: Any = {}
    lines = Lines(None)
    try:
        fields, lines = read()
        return arguments(fields)
    except CBOGymError as error:
        found = mistakes(error, fields, arguments)
        said = [text if (line := lines.of(place)) is None else f"line {line}: {text}" for place, text in found]
        raise ArgumentError("; ".join(said)) from error


def arguments_of(
    fields: Any, *, name: str | None = None, agent: str | None = None, trusted: Collection[str] = ()
) -> dict[str, Any]:
    """The arguments of :func:`create_study`, but for the storage, from a description that anybody may have written.

    Args:
        fields: a mapping, as a YAML file holds it.
        name: of the study, where the fields give none.
        agent: who suggests, in place of the one that the fields name.
        trusted: import paths of agents whose code may be run.

    Raises:
        ArgumentError: if these are no fields, or they name an agent that is an import path nobody trusts.
    """
    if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
        raise ArgumentError("a description is a mapping of fields: name, reward, diagram, settable, agent, ...")
    about = dict(fields)
    named = about.get("agent", "Auto") if agent is None else agent
    if isinstance(named, str) and ":" in named and agent is None and named not in trusted:
        with at("agent"):
            raise ArgumentError(
                f"it names the agent {named!r}, an import path, whose code would be run; if you trust it, say so: "
                f"--agent {named}"
            )
    if "storage" in about:
        with at("storage"):
            raise ArgumentError("the database is not a field of the description; leave out storage")
    called = about.pop("name", None) or name
    if not called:
        raise ArgumentError("the study needs a name")
    return {**about, "name": called, "agent": named}


def read_rounds(source: Path | bytes, called: str) -> list[dict[str, Any]]:
    """Rounds from a CSV file, or from its content.

    Args:
        source: the file, or its content.
        called: what the error calls it.

    Raises:
        ArgumentError: if it cannot be read as CSV.
    """
    try:
        rows = pl.read_csv(source).to_dicts()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise ArgumentError(f"cannot read {called}: {error}") from error
    return [{name: _cell(value) for name, value in row.items()} for row in rows]


def _cell(value: Any) -> Any:
    """An interval, as :func:`csv_of` writes it, or what it is."""
    match = re.fullmatch(r"\[([^,\]]+),([^,\]]+)\]", value) if isinstance(value, str) else None
    try:
        return value if match is None else [float(end) for end in match.groups()]
    except ValueError:
        return value


def csv_of(frame: pl.DataFrame) -> str:
    """A study's trials or data as CSV, in which no cell is a spreadsheet's formula."""
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    lists = [name for name, kind in frame.schema.items() if kind == pl.List(pl.Float64)]
    return frame.with_columns(
        *(pl.col(name).map_elements(csv_text, return_dtype=pl.String) for name in texts),
        *(pl.col(name).map_elements(lambda ends: str(list(ends)), return_dtype=pl.String) for name in lists),
    ).write_csv()
