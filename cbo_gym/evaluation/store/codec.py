"""The file of published runs: one row each, with the fields of a :class:`Run`, its curves, and its id as ``key``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import MISSING, fields
from io import BytesIO
from pathlib import Path
from types import NoneType, UnionType
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
from cbo_gym.evaluation.store.curves import (
    DOUBLE_SUFFIX,
    GAP_COLUMNS,
    OMITTED_COLUMNS,
    REQUIRED_COLUMNS,
    STORED_TYPES,
    attach_curves,
    kept_curves,
)

# Raised when older versions of the package cannot read the files.
SCHEMA = 3
# Readable schemas; earlier ones lack fields that have a default.
READ = (1, 2, 3)
# Brotli files are a tenth smaller than zstd files and take twice as long to read.
COMPRESSED: dict[str, Any] = {"compression": "brotli", "compression_level": 11, "statistics": False}
_EMPTY = pl.DataFrame({"round": pl.Series([], dtype=pl.Int64)})
_HINTS = {name: hint for name, hint in get_type_hints(Run).items() if name != "table"}
# Types of the fields, without None.
_KINDS = {
    name: next(kind for kind in (get_args(hint) if isinstance(hint, UnionType) else [hint]) if kind is not NoneType)
    for name, hint in _HINTS.items()
}
_JSON = {name for name, kind in _KINDS.items() if get_origin(kind) in (dict, list, tuple)}
_NUMBERS: dict[Any, Any] = {int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
# Types of the columns of fields and times.
_DTYPES: dict[str, Any] = {
    "key": pl.String,
    **{name: _NUMBERS.get(kind, pl.String) for name, kind in _KINDS.items()},
    **dict.fromkeys(TIMING_COLUMNS, pl.Float32),
}


def _row(run: Run) -> dict[str, Any]:
    row: dict[str, Any] = {"key": run.id}
    row |= {name: as_json(getattr(run, name)) if name in _JSON else getattr(run, name) for name in _KINDS}
    if run.status == "finished":
        row |= {name: float(run.table[name].to_numpy().mean()) for name in TIMING_COLUMNS}
        row |= kept_curves(run)
    return row


def file_content(name: str, runs: Sequence[Run]) -> bytes:
    """Return the content of a store's file of that name."""
    rows = [_row(run) for run in runs]
    schema = dict(_DTYPES)
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
        frame = _read_frame(content)
        runs = _runs(frame)
        attach_curves(runs, frame)
        return runs
    except NewerError:
        raise
    except ValidationError as error:
        raise ArgumentError(f"{path} has no published results of cbo-gym: {field_errors(error)}") from error
    except NO_RESULT as error:
        raise ArgumentError(f"{path} has no published results of cbo-gym: {error}") from error


def _read_frame(content: bytes) -> pl.DataFrame:
    schema = pl.read_parquet_schema(BytesIO(content))
    known = _known_columns()
    if wrong := [name for name, dtype in schema.items() if known.get(name) != dtype]:
        raise ArgumentError(f"its columns are wrong: {', '.join(wrong)}")
    frame = pl.read_parquet(BytesIO(content))
    needed = {f.name for f in fields(Run) if f.default is MISSING and f.default_factory is MISSING}
    curves = REQUIRED_COLUMNS if "finished" in frame.get_column("status", default=pl.Series(["finished"])) else ()
    if lacking := sorted({"key", *needed, *TIMING_COLUMNS, *curves} - set(schema)):
        raise ArgumentError(f"its columns are wrong: {', '.join(lacking)}")
    return frame


def _known_columns() -> dict[str, Any]:
    """Return every column that is read, with its type; ``restamps`` is of older versions."""
    known = _DTYPES | {"restamps": pl.String} | {f"{name}{DOUBLE_SUFFIX}": pl.List(pl.Float64) for name in GAP_COLUMNS}
    return known | {
        name: pl.List(STORED_TYPES[dtype.base_type()])
        for name, dtype in COLUMNS.items()
        if dtype.base_type() in STORED_TYPES and name not in OMITTED_COLUMNS
    }


def _runs(frame: pl.DataFrame) -> list[Run]:
    """Return the runs without their tables; equal values are in memory once."""
    known: dict[tuple[bool, Any], Any] = {}

    def value(name: str, stored: Any) -> Any:
        if not isinstance(stored, str):
            return stored
        is_json = name in _JSON
        if (is_json, stored) not in known:
            known[is_json, stored] = from_json(stored) if is_json else stored
        return known[is_json, stored]

    runs = []
    for row in frame.select(name for name in frame.columns if name in _DTYPES).iter_rows(named=True):
        run = run_of({name: value(name, row[name]) for name in _KINDS if name in row}, _EMPTY)
        if row["key"] != run.id:
            raise ArgumentError(f"the run of {run.agent} on {run.env}, seed {run.seed}, does not match its key")
        runs.append(run)
    return runs
