"""The published results: a store of what was played, compact enough to lie in the repository.

A store is a folder with a Parquet file a suite; each has a row a run. A row holds what a :class:`Run` says of itself,
how its file is named among full runs (``key``), what a round took on average, and curves in single precision, a list a
run:

* ``reward``, ``instant_regret`` and ``simple_regret``, in contextual mode ``recommended_reward`` and ``context_regret``
  too, ``choice`` where there are choices;
* any other column of the run's table that does not follow from these to :data:`SLACK`;
* ``reward`` and ``best_so_far_regret`` in double precision, as ``<column>_double``, of the few runs whose GAP hangs on
  more digits: it counts the rounds to the last improvement, however small that was.

The columns that follow are worked out as the runs are read, so a published run has the table of a full one, with these
differences. Regrets and rewards have 24 binary digits, 7 decimal ones; regrets are what is kept, rather than expected
rewards, since near the optimum they are the smaller numbers. Each round's seconds are the run's mean. Actions, the
nodes' values, contexts and the standard errors of expected rewards are null: ``cbo-gym verify`` plays a run again. Of
the error of a failed run the last line is kept.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import polars as pl
from pydantic import ValidationError

from cbo_gym.errors import ArgumentError, OperationError
from cbo_gym.evaluation import regret
from cbo_gym.evaluation.folder import run_files, stored_run
from cbo_gym.evaluation.gap import gaps_of
from cbo_gym.evaluation.leaderboard import newest
from cbo_gym.evaluation.locking import locked
from cbo_gym.evaluation.results import (
    COLUMNS,
    METADATA_KEY,
    SECONDS,
    SOMETIMES,
    Run,
    last_line,
    name_of,
    read_sealed,
    run_of,
    sealed,
)
from cbo_gym.files import write_bytes
from cbo_gym.specs import matches
from cbo_gym.suites import load_all, suites_path
from cbo_gym.validation import field_errors

SCHEMA = 1  # raised when older versions of the package could not read what is written
MOST_BYTES = 40 * 2**20  # of a store
NAME = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")
ALWAYS = ("reward", "instant_regret", "simple_regret")
NEVER = ("round", *SECONDS, "expected_reward_standard_error", "recommended_reward_standard_error")
EXACT, DOUBLE = ("reward", "best_so_far_regret"), "_double"
SLACK = 1e-6  # of the largest value of a column and the optimum together
_CURVES = {pl.Float64: pl.Float32, pl.Int64: pl.Int32, pl.Boolean: pl.Boolean}  # how columns are kept; lists are not
_HINTS = {name: hint for name, hint in get_type_hints(Run).items() if name != "table"}


@dataclass(frozen=True)
class Published:
    """What :func:`publish` did.

    Attributes:
        path: the file.
        added, replaced, unchanged: runs that are new in it, that took the place of others, and that stay.
        left_out: runs of the folder that are of no environment of the suite.
        outdated: runs of the folder in whose place the file has a newer one, or the same.
        bytes: size of the file.
    """

    path: Path
    added: int
    replaced: int
    unchanged: int
    left_out: int
    outdated: int
    bytes: int


def publish(
    folder: Path | str,
    store: Path | str,
    suite: str | None = None,
    *,
    track: Callable[[Sequence[Path]], Iterable[Path]] = lambda paths: paths,
) -> Published:
    """Put the runs of a folder into a store: those that it lacks, and those that are newer than its own.

    One run is kept of each environment, number of rounds, agent and seed: see
    :func:`cbo_gym.evaluation.leaderboard.newest`. The file is written in one step, or left as it was; of several
    processes that publish to a store one reads, merges and writes at a time.

    Args:
        folder: that a sweep wrote.
        store: folder of the published results; it is made where there is none.
        suite: name of the file. Of a suite of the package (see ``cbo_gym.suites``) only runs on its environments are
            taken, with any keywords. None for the name of the folder.
        track: wraps the files that are read, to show how far it is.

    Raises:
        ArgumentError: if a run is damaged; if there is none; for a name with other signs than lower case letters,
            digits, ``-`` and ``_``; if the file of the store is damaged; if the store would be larger than
            :data:`MOST_BYTES`.
        OperationError: if the store cannot be written, or another process has it for too long.
    """
    store, name = Path(store), suite if suite is not None else Path(folder).resolve().name
    if not NAME.fullmatch(name):
        raise ArgumentError(f"name the suite by lower case letters, digits, - and _; given {name!r}")
    found = [stored_run(path) for path in track(run_files(Path(folder)))]
    patterns = next((suite.environments for suite in load_all() if suite.name == name), ["*"])
    new = [run for run in found if matches(run.env, patterns)]
    if not new:
        where = f"; {len(found)} are on environments that the suite {name} has not" if found else ""
        raise ArgumentError(f"there are no runs in {folder} to publish{where}")
    with locked(store):
        return _merge(store, name, [_compact(run) for run in new], left_out=len(found) - len(new))


def _merge(store: Path, name: str, new: Sequence[Run], left_out: int) -> Published:
    """Read a file of the store, put runs into it, and write it again."""
    path = store / f"{name}.parquet"
    old = read_part(path) if path.exists() else []
    kept = newest([*new, *old])  # of two that are equally new the last counts
    content = _sealed(name, kept)
    others = sum(other.stat().st_size for other in _parts(store) if other != path)
    if others + len(content) > MOST_BYTES:
        size = (others + len(content)) / 2**20
        raise ArgumentError(f"with these runs {store} would take {size:.1f} MiB; at most {MOST_BYTES / 2**20:g} may be")
    write_bytes(path, content)
    before = {id(run) for run in old}
    stay = sum(id(run) in before for run in kept)
    return Published(
        path=path,
        added=len(kept) - len(newest(old)),
        replaced=len(newest(old)) - stay,
        unchanged=stay,
        left_out=left_out,
        outdated=len(new) - (len(kept) - stay),
        bytes=len(content),
    )


def load_published(store: Path | str | None = None, suite: str | None = None) -> list[Run]:
    """The published runs, finished ones and others, with the tables that leaderboards and figures need.

    ``leaderboard(load_published(suite="survey2026"))`` compares those of a suite.

    Args:
        store: a folder of published results, or one file of it; None for ``results`` of the checkout that the package
            is imported from.
        suite: the file of this name alone.

    Raises:
        ArgumentError: if there is no such folder or file, or one is damaged or no published results.
        OperationError: without a folder, if the package is installed from a wheel, which has no results in it.
    """
    path = own_store() if store is None else Path(store)
    if suite is not None:
        path = path / f"{suite}.parquet"
    if not path.exists():
        there = f"; there are {', '.join(part.stem for part in _parts(path.parent))}" if path.parent.is_dir() else ""
        raise ArgumentError(f"there are no published results {path}{there if suite is not None else ''}")
    return [run for part in (_parts(path) if path.is_dir() else [path]) for run in read_part(part)]


def own_store() -> Path:
    """``results`` of the checkout that the package is imported from.

    Raises:
        OperationError: if it is not imported from a checkout.
    """
    top = suites_path().parent
    if top == Path(str(files("cbo_gym"))):
        raise OperationError(
            "the published results are not part of the installed package; give the folder results of a checkout of "
            "the repository"
        )
    return top / "results"


def is_published(path: Path) -> bool:
    """Whether a file, or the first Parquet file of a folder, says that it holds published results."""
    first = next(iter(_parts(path)), None) if path.is_dir() else path
    if first is None or not first.is_file():
        return False
    try:
        return "schema" in json.loads(pl.read_parquet_metadata(first)[METADATA_KEY])
    except (KeyError, ValueError, OSError, pl.exceptions.PolarsError):
        return False


def _parts(store: Path) -> list[Path]:
    return sorted(path for path in store.glob("*.parquet") if not path.name.startswith("."))


# Runs and rows -----------------------------------------------------------------------------------------------


def _compact(run: Run) -> Run:
    """The run with the error that is published."""
    return replace(run, error=last_line(run.error) if run.error else "")


def _follows(optimum: float, kept: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns that follow from those that are kept, all in double precision."""
    instant = kept["instant_regret"]
    expected = optimum - instant
    pseudo = regret.pseudo_regret(optimum, kept["reward"])
    return {
        "expected_reward": expected,
        "best_so_far_regret": np.minimum.accumulate(kept.get("context_regret", instant)),
        "cumulative_regret": np.cumsum(instant),
        "average_regret": regret.running_mean(instant),
        "average_reward": regret.running_mean(expected),
        "recommended_reward": optimum - kept["simple_regret"],
        "pseudo_regret": pseudo,
        "average_pseudo_regret": regret.running_mean(pseudo),
    }


def curves(run: Run) -> dict[str, pl.Series]:
    """The columns of a finished run's table that a store keeps, named and rounded as they are there."""
    table = run.table
    kept = {name: table[name].cast(_CURVES[table.schema[name].base_type()]) for name in ALWAYS}
    follows: dict[str, np.ndarray] = {}
    others = [name for name in table.columns if name not in (*ALWAYS, *NEVER)]
    for name in sorted(others, key=lambda name: name != "context_regret"):  # from which another one follows
        form = _CURVES.get(table.schema[name].base_type())
        if form is None or table[name].null_count() == table.height:
            continue
        follows = _follows(run.optimum, _double(kept))
        if not (name in follows and _alike(table[name].cast(pl.Float64).to_numpy(), follows[name], run.optimum)):
            kept[name] = table[name].cast(form)
    single = replace(run, table=_table(run, dict.fromkeys(SECONDS, 0.0), kept))
    if not _same_gaps(gaps_of(run), gaps_of(single)):
        kept |= {f"{name}{DOUBLE}": table[name] for name in EXACT}
    return kept


def _same_gaps(ones: Mapping[str, float | None], others: Mapping[str, float | None]) -> bool:
    known = [name for name, one in ones.items() if one is not None]
    return all(abs((ones[name] or 0.0) - (others[name] or 0.0)) <= SLACK for name in known)


def _double(kept: Mapping[str, pl.Series]) -> dict[str, np.ndarray]:
    return {name: column.cast(pl.Float64).to_numpy() for name, column in kept.items()}


def _alike(values: np.ndarray, others: np.ndarray, optimum: float) -> bool:
    size = max(np.nanmax(np.abs(values), initial=0.0), abs(optimum))
    return bool(np.allclose(values, others, rtol=SLACK, atol=SLACK * size, equal_nan=True))


def _row(run: Run) -> dict[str, Any]:
    row: dict[str, Any] = {"key": _key(run)}
    for name in _HINTS:
        value = getattr(run, name)
        row[name] = json.dumps(value, sort_keys=True) if _is_json(name) else value
    if run.status == "finished":
        row |= {name: float(run.table[name].to_numpy().mean()) for name in SECONDS}
        row |= curves(run)
    return row


def _key(run: Run) -> str:
    return Path(name_of(run)).stem


def _kind(name: str) -> Any:
    """The type of a field; of one that may be None the other."""
    hint = _HINTS[name]
    return next(part for part in get_args(hint) if part is not type(None)) if isinstance(hint, UnionType) else hint


def _is_json(name: str) -> bool:
    return get_origin(_kind(name)) in (dict, list, tuple)


def _dtype(name: str) -> Any:
    """Of a field's column."""
    kinds: dict[Any, Any] = {int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
    return kinds.get(_kind(name), pl.String)


def _sealed(name: str, runs: Sequence[Run]) -> bytes:
    rows = [_row(run) for run in runs]
    schema: dict[str, Any] = {"key": pl.String, **{field: _dtype(field) for field in _HINTS}}
    schema |= dict.fromkeys(SECONDS, pl.Float32)
    for row in rows:
        schema |= {column: pl.List(value.dtype) for column, value in row.items() if isinstance(value, pl.Series)}
    columns = {
        column: pl.Series(column, [row.get(column) for row in rows], dtype=dtype) for column, dtype in schema.items()
    }
    counts = Counter(run.status for run in runs)
    about = {"schema": SCHEMA, "suite": name, "runs": dict(sorted(counts.items()))}
    return sealed(pl.DataFrame(columns), about, compression="zstd", compression_level=19, statistics=False)


def read_part(path: Path) -> list[Run]:
    """The runs of one file of a store, in its order.

    Raises:
        ArgumentError: if it is damaged, of a newer version, or no file of published results.
    """
    content = read_sealed(path)
    try:
        about = json.loads(pl.read_parquet_metadata(BytesIO(content))[METADATA_KEY])
        if "schema" not in about:
            raise ArgumentError("it is a single run; cbo-gym publish makes a file of published results from a folder")
        if about["schema"] != SCHEMA:
            raise ArgumentError(f"its schema is {about['schema']}, this version reads {SCHEMA}; install a newer one")
        frame = pl.read_parquet(BytesIO(content))
        _require_columns(frame)
        return [_run(frame, place, row) for place, row in enumerate(_described(frame))]
    except ValidationError as error:
        raise ArgumentError(f"{path} has no published results of cbo-gym: {field_errors(error)}") from error
    except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise ArgumentError(f"{path} has no published results of cbo-gym: {error}") from error


def _require_columns(frame: pl.DataFrame) -> None:
    """Every column is one that is written, and of its type; fields that have a default may be missing."""
    needed = {f.name for f in fields(Run) if f.default is MISSING and f.default_factory is MISSING}
    known = {"key": pl.String, **{name: _dtype(name) for name in _HINTS}, **dict.fromkeys(SECONDS, pl.Float32)}
    known |= {f"{name}{DOUBLE}": pl.List(pl.Float64) for name in EXACT}
    known |= {
        name: pl.List(_CURVES[dtype.base_type()])
        for name, dtype in COLUMNS.items()
        if dtype.base_type() in _CURVES and name not in NEVER
    }
    lacking = sorted({"key", *needed, *SECONDS, *ALWAYS} - set(frame.columns))
    finished = "finished" in frame["status"] if "status" in frame.columns else True
    wrong = [name for name, dtype in frame.schema.items() if known.get(name) != dtype]
    if wrong or [name for name in lacking if finished or name not in ALWAYS]:
        raise ArgumentError(f"its columns are wrong: {', '.join([*wrong, *lacking])}")


def _described(frame: pl.DataFrame) -> Iterable[dict[str, Any]]:
    """The rows without curves."""
    return frame.select(name for name, dtype in frame.schema.items() if dtype.base_type() is not pl.List).iter_rows(
        named=True
    )


def _run(frame: pl.DataFrame, place: int, row: dict[str, Any]) -> Run:
    stored = {name: json.loads(row[name]) if _is_json(name) else row[name] for name in _HINTS if name in row}
    run = run_of(stored, pl.DataFrame({"round": pl.Series([], dtype=pl.Int64)}))
    if row["key"] != _key(run):
        raise ArgumentError(f"the run of {run.agent} on {run.env}, seed {run.seed}, is not what its key says")
    if run.status != "finished":
        return run
    lists = [name for name, dtype in frame.schema.items() if dtype.base_type() is pl.List]
    kept = {name: part for name in lists if (part := frame[name][place]) is not None}
    return replace(run, table=_table(run, {name: row[name] for name in SECONDS}, kept))


def _table(run: Run, seconds: Mapping[str, float], kept: Mapping[str, pl.Series]) -> pl.DataFrame:
    """The table of a finished run: a row a round."""
    rounds = run.horizon
    if not set(ALWAYS) <= set(kept) or any(len(column) != rounds for column in kept.values()):
        what = f"the run of {run.agent} on {run.env}, seed {run.seed}"
        raise ArgumentError(f"{what}, has not {rounds} rounds in all of its curves")
    kept = {**kept, **{name: kept[f"{name}{DOUBLE}"] for name in EXACT if f"{name}{DOUBLE}" in kept}}
    follows = _follows(run.optimum, _double(kept))
    columns: dict[str, Any] = {"round": np.arange(1, rounds + 1)}
    columns |= {name: np.full(rounds, second) for name, second in seconds.items()}
    for name, dtype in COLUMNS.items():
        if name in kept:
            columns[name] = kept[name].cast(dtype)
        elif name in follows:  # nothing follows where there is no recommendation
            columns[name] = pl.Series(follows[name], dtype=dtype, nan_to_null=True)
        elif name not in columns and name not in SOMETIMES:
            columns[name] = pl.Series([None], dtype=dtype).new_from_index(0, rounds)
    return pl.DataFrame({name: columns[name] for name in COLUMNS if name in columns})
