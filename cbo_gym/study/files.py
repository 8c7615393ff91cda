"""What goes into a study and comes out of it as files: a description in YAML, rounds and trials in CSV."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import polars as pl

from cbo_gym.errors import ArgumentError
from cbo_gym.files import csv_text
from cbo_gym.study.study import Study, create_study


def create_from_fields(
    fields: Any,
    *,
    storage: Path | str,
    name: str | None = None,
    agent: str | None = None,
    trusted: Collection[str] = (),
) -> Study:
    """A new study from the fields of a description that anybody may have written.

    Args:
        fields: a mapping, as a YAML file holds it.
        storage: as of :func:`create_study`.
        name: of the study, where the fields give none.
        agent: who suggests, in place of the one that the fields name.
        trusted: import paths of agents whose code may be run.

    Raises:
        ArgumentError: naming what is wrong in the fields, or an agent that is an import path nobody trusts; nothing
            is stored then.
        OperationError: if the database cannot be written.
    """
    if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
        raise ArgumentError("a description is a mapping of fields: name, reward, diagram, settable, agent, ...")
    about = dict(fields)
    named = str(about.get("agent", "Auto")) if agent is None else agent
    if ":" in named and agent is None and named not in trusted:
        raise ArgumentError(
            f"it names the agent {named!r}, an import path, whose code would be run; if you trust it, say so: "
            f"--agent {named}"
        )
    if "storage" in about:
        raise ArgumentError("the database is not a field of the description; leave out storage")
    _require_texts(about)
    called = about.pop("name", None) or name
    if not called:
        raise ArgumentError("the study needs a name")
    return create_study(called, storage=storage, **{**about, "agent": named})


def _require_texts(about: dict[str, Any]) -> None:
    """Diagrams in a file are texts; elsewhere they may be objects too."""
    if not isinstance(about.get("diagram"), str | None):
        raise ArgumentError("diagram must be a text, such as dag { feed -> titre }")
    candidates = about.get("candidates", [])
    if not isinstance(candidates, list) or not all(isinstance(one, str) for one in candidates):
        raise ArgumentError("candidates must be a list of texts, such as dag { feed -> titre }")


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
