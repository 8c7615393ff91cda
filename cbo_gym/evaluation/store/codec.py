"""The file of published runs: one row each, with the fields of a :class:`Run`, its curves, and its id as ``key``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import MISSING, fields
from functools import cache
from io import BytesIO
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import polars as pl
from pydantic import ValidationError

from cbo_gym._util.validation import field_errors
from cbo_gym.errors import ArgumentError, short_repr
from cbo_gym.evaluation.runs.results import (
    COLUMNS,
    NO_RESULT,
    TIMING_COLUMNS,
    NewerError,
    Run,
    as_json,
    content_of,
    from_json,
    metadata_of,
    require_intact,
    run_of,
    seal_table,
)
from cbo_gym.evaluation.store.curves import ALWAYS, DOUBLE, EXACT, KEPT_AS, NEVER, Lists, kept_curves, share_curves

# Raised when older versions of the package cannot read the files.
SCHEMA = 3
# Readable schemas; earlier ones lack fields that have a default.
READ = (1, 2, 3)
# Brotli files are a tenth smaller than zstd files and take twice as long to read.
COMPRESSED: dict[str, Any] = {"compression": "brotli", "compression_level": 11, "statistics": False}
_EMPTY = pl.DataFrame({"round": pl.Series([], dtype=pl.Int64)})
_HINTS = {name: hint for name, hint in get_type_hints(Run).items() if name != "table"}


def _row(run: Run) -> dict[str, Any]:
    row: dict[str, Any] = {"key": run.id}
    for name in _HINTS:
        value = getattr(run, name)
        row[name] = as_json(value) if _is_json(name) else value
    if run.status == "finished":
        row |= {name: float(run.table[name].to_numpy().mean()) for name in TIMING_COLUMNS}
        row |= kept_curves(run)
    return row


def _type(name: str) -> Any:
    """Return the type of a field without None."""
    hint = _HINTS[name]
    options = get_args(hint) if isinstance(hint, UnionType) else [hint]
    return next(option for option in options if option is not type(None))


@cache
def _is_json(name: str) -> bool:
    return get_origin(_type(name)) in (dict, list, tuple)


def _dtype(name: str) -> Any:
    """Return the type of a field's column."""
    kinds: dict[Any, Any] = {int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
    return kinds.get(_type(name), pl.String)


def file_content(name: str, runs: Sequence[Run]) -> bytes:
    """Return the content of a store's file of that name."""
    rows = [_row(run) for run in runs]
    schema: dict[str, Any] = {"key": pl.String, **{field: _dtype(field) for field in _HINTS}}
    schema |= dict.fromkeys(TIMING_COLUMNS, pl.Float32)
    for row in rows:
        schema |= {column: pl.List(value.dtype) for column, value in row.items() if isinstance(value, pl.Series)}
    columns = {
        column: pl.Series(column, [row.get(column) for row in rows], dtype=dtype) for column, dtype in schema.items()
    }
    counts = Counter(run.status for run in runs)
    about = {"schema": SCHEMA, "suite": name, "runs": dict(sorted(counts.items()))}
    return seal_table(pl.DataFrame(columns), about, **COMPRESSED)


def read_store_file(path: Path) -> list[Run]:
    """Read the runs of one file of a store, in its order; their tables are computed on demand from shared curves.

    Raises:
        ArgumentError: if it is damaged, of a newer version, too large, or not a file of published results.
    """
    content = content_of(path)
    require_intact(path, content)
    try:
        about = metadata_of(content)
        if "schema" not in about:
            raise ArgumentError("it is a single run; cbo-gym publish writes a file of published results from a folder")
        if about["schema"] not in READ:
            which = f"its schema is {short_repr(about['schema'])}, this version reads {SCHEMA}; install a newer one"
            raise NewerError(f"{path} is of another version of cbo-gym: {which}")
        descriptions = _read_descriptions(content)
        runs = _runs(descriptions)
        lists = [name for name, dtype in pl.read_parquet_schema(BytesIO(content)).items() if dtype == pl.List]
        curves = Lists(pl.read_parquet(BytesIO(content), columns=lists) if lists else pl.DataFrame())
        return share_curves(runs, curves, descriptions)
    except NewerError:
        raise
    except ValidationError as error:
        raise ArgumentError(f"{path} has no published results of cbo-gym: {field_errors(error)}") from error
    except NO_RESULT as error:
        raise ArgumentError(f"{path} has no published results of cbo-gym: {error}") from error


def _read_descriptions(content: bytes) -> pl.DataFrame:
    """Read the fields of the runs of a file, without their curves."""
    schema = pl.read_parquet_schema(BytesIO(content))
    if wrong := [name for name, dtype in schema.items() if _known_columns().get(name) != dtype]:
        raise ArgumentError(f"its columns are wrong: {', '.join(wrong)}")
    plain = [name for name, dtype in schema.items() if dtype != pl.List]
    frame = pl.read_parquet(BytesIO(content), columns=plain)
    needed = {f.name for f in fields(Run) if f.default is MISSING and f.default_factory is MISSING}
    curves = ALWAYS if "finished" in frame.get_column("status", default=pl.Series(["finished"])) else ()
    if lacking := sorted({"key", *needed, *TIMING_COLUMNS, *curves} - set(schema)):
        raise ArgumentError(f"its columns are wrong: {', '.join(lacking)}")
    return frame


def _known_columns() -> dict[str, Any]:
    """Return every column that is read, with its type; ``restamps`` is of older versions."""
    known = dict.fromkeys(("key", "restamps"), pl.String) | {name: _dtype(name) for name in _HINTS}
    known |= dict.fromkeys(TIMING_COLUMNS, pl.Float32)
    known |= {f"{name}{DOUBLE}": pl.List(pl.Float64) for name in EXACT}
    return known | {
        name: pl.List(KEPT_AS[dtype.base_type()])
        for name, dtype in COLUMNS.items()
        if dtype.base_type() in KEPT_AS and name not in NEVER
    }


def _runs(descriptions: pl.DataFrame) -> list[Run]:
    """Return the runs without their tables; equal values are in memory once."""
    known: dict[Any, Any] = {}
    parsed: dict[str, Any] = {}

    def value(name: str, stored: Any) -> Any:
        if not _is_json(name):
            return known.setdefault(stored, stored) if isinstance(stored, str) else stored
        if stored not in parsed:
            parsed[stored] = from_json(stored)
        return parsed[stored]

    runs = []
    for row in descriptions.iter_rows(named=True):
        run = run_of({name: value(name, row[name]) for name in _HINTS if name in row}, _EMPTY)
        if row["key"] != run.id:
            raise ArgumentError(f"the run of {run.agent} on {run.env}, seed {run.seed}, does not match its key")
        runs.append(run)
    return runs
