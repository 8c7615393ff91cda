"""Write and read a file of a store: a Parquet file with a row per run.

The columns are the fields of a :class:`Run`, its curves (:mod:`cbo_gym.evaluation.store.curves`), its mean seconds, and
its id as ``key``.
"""

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
    INVALID_FILE_ERRORS,
    TIMING_COLUMNS,
    NewerError,
    Run,
    as_json,
    content_of,
    encode_table,
    from_json,
    metadata_of,
    require_intact,
    run_of,
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

# Version of the format; it is raised when older versions of the package cannot read the files.
SCHEMA = 3
# Versions that can be read; the earlier ones lack fields that have a default.
READABLE_SCHEMAS = (1, 2, 3)
# Brotli files are a tenth smaller than zstd files and take twice as long to read.
COMPRESSION: dict[str, Any] = {"compression": "brotli", "compression_level": 11, "statistics": False}
_EMPTY = pl.DataFrame({"round": pl.Series([], dtype=pl.Int64)})


def _without_none(hint: Any) -> Any:
    """Return the type T of a hint ``T | None``; any other hint unchanged."""
    return next(kind for kind in get_args(hint) if kind is not NoneType) if isinstance(hint, UnionType) else hint


# Types of the fields of a run, and the fields that are stored as JSON.
_TYPES = {name: _without_none(hint) for name, hint in get_type_hints(Run).items() if name != "table"}
_JSON_FIELDS = {name for name, kind in _TYPES.items() if get_origin(kind) in (dict, list, tuple)}
_NUMBERS: dict[Any, Any] = {int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
# Types of the columns other than curves.
_DTYPES: dict[str, Any] = {
    "key": pl.String,
    **{name: _NUMBERS.get(kind, pl.String) for name, kind in _TYPES.items()},
    **dict.fromkeys(TIMING_COLUMNS, pl.Float32),
}


def _row(run: Run) -> dict[str, Any]:
    row: dict[str, Any] = {"key": run.id}
    row |= {name: getattr(run, name) for name in _TYPES}
    row |= {name: as_json(row[name]) for name in _JSON_FIELDS}
    if run.status == "finished":
        row |= {name: float(run.table[name].to_numpy().mean()) for name in TIMING_COLUMNS}
        row |= kept_curves(run)
    return row


def file_content(name: str, runs: Sequence[Run]) -> bytes:
    """Return the content of the file ``name`` of a store."""
    rows = [_row(run) for run in runs]
    schema = dict(_DTYPES)
    for row in rows:
        schema |= {column: pl.List(value.dtype) for column, value in row.items() if isinstance(value, pl.Series)}
    columns = {
        column: pl.Series(column, [row.get(column) for row in rows], dtype=dtype) for column, dtype in schema.items()
    }
    counts = Counter(run.status for run in runs)
    description = {"schema": SCHEMA, "suite": name, "runs": dict(sorted(counts.items()))}
    return encode_table(pl.DataFrame(columns), description, **COMPRESSION)


def read_store_file(path: Path) -> list[Run]:
    """Read the runs of a store's file, in its order; the table of a run is computed from its curves when it is used."""
    content = content_of(path)
    require_intact(path, content)
    try:
        description = metadata_of(content)
        if "schema" not in description:
            raise ArgumentError("it is a single run; cbo-gym publish writes a file of published results from a folder")
        if description["schema"] not in READABLE_SCHEMAS:
            which = (
                f"its schema is {short_repr(description['schema'])}, this version reads {SCHEMA}; install a newer one"
            )
            raise NewerError(f"{path} is of another version of cbo-gym: {which}")
        frame = _read_frame(content)
        runs = _runs(frame)
        attach_curves(runs, frame)
        return runs
    except NewerError:
        raise
    except ValidationError as error:
        raise ArgumentError(f"{path} has no published results of cbo-gym: {field_errors(error)}") from error
    except INVALID_FILE_ERRORS as error:
        raise ArgumentError(f"{path} has no published results of cbo-gym: {error}") from error


def _read_frame(content: bytes) -> pl.DataFrame:
    schema = pl.read_parquet_schema(BytesIO(content))
    known = _known_columns()
    if wrong := [name for name, dtype in schema.items() if known.get(name) != dtype]:
        raise ArgumentError(f"its columns are wrong: {', '.join(wrong)}")
    frame = pl.read_parquet(BytesIO(content))
    needed = {field.name for field in fields(Run) if field.default is MISSING and field.default_factory is MISSING}
    curves = REQUIRED_COLUMNS if "finished" in frame.get_column("status", default=pl.Series(["finished"])) else ()
    if missing := sorted({"key", *needed, *TIMING_COLUMNS, *curves} - set(schema)):
        raise ArgumentError(f"its columns are wrong: {', '.join(missing)}")
    return frame


def _known_columns() -> dict[str, Any]:
    """Return name -> type of all columns that are read; ``restamps`` is a column of older versions."""
    doubles = {f"{name}{DOUBLE_SUFFIX}": pl.List(pl.Float64) for name in GAP_COLUMNS}
    curves = {
        name: pl.List(STORED_TYPES[dtype.base_type()])
        for name, dtype in COLUMNS.items()
        if dtype.base_type() in STORED_TYPES and name not in OMITTED_COLUMNS
    }
    return _DTYPES | {"restamps": pl.String} | doubles | curves


def _runs(frame: pl.DataFrame) -> list[Run]:
    """Return the runs without their tables; strings and JSON that several runs share are in memory once."""
    cache: dict[tuple[bool, Any], Any] = {}

    def decode(name: str, stored: Any) -> Any:
        if not isinstance(stored, str):
            return stored
        is_json = name in _JSON_FIELDS
        if (is_json, stored) not in cache:
            cache[is_json, stored] = from_json(stored) if is_json else stored
        return cache[is_json, stored]

    runs = []
    for row in frame.select(name for name in frame.columns if name in _DTYPES).iter_rows(named=True):
        run = run_of({name: decode(name, row[name]) for name in _TYPES if name in row}, _EMPTY)
        if row["key"] != run.id:
            raise ArgumentError(f"the run of {run.agent} on {run.env}, seed {run.seed}, does not match its key")
        runs.append(run)
    return runs
