"""The published results: a store of what was played, compact enough to lie in the repository.

A store is a folder with one Parquet file per suite, with one row per run. A row holds what a :class:`Run` records,
how its file is named among full runs (``key``), what a round took on average, and curves in single precision, a list a
run:

* ``reward``, ``instant_regret`` and ``simple_regret``, in contextual mode ``recommended_reward`` and ``context_regret``
  too, ``choice`` where there are choices; of ``reward`` where it is noisy the digits that are not noise, see
  :mod:`cbo_gym.evaluation.store.rounding`;
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

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from io import BytesIO
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import polars as pl
from pydantic import ValidationError

from cbo_gym.errors import ArgumentError, OperationError, shown
from cbo_gym.evaluation.metrics import regret
from cbo_gym.evaluation.metrics.gap import gaps_of
from cbo_gym.evaluation.runs.counted import identity, newest
from cbo_gym.evaluation.runs.folder import load_runs, run_files, stored_run
from cbo_gym.evaluation.runs.locking import locked
from cbo_gym.evaluation.runs.recorded import with_actions
from cbo_gym.evaluation.runs.results import (
    ALWAYS_KNOWN,
    COLUMNS,
    MOST_FILE_BYTES,
    NO_RESULT,
    SECONDS,
    SOMETIMES,
    NewerError,
    Run,
    all_finite,
    as_json,
    content_of,
    from_json,
    held_elsewhere,
    last_line,
    metadata_of,
    require_choices,
    require_intact,
    run_of,
    sealed,
)
from cbo_gym.evaluation.runs.rounds import Lists, Rounds
from cbo_gym.evaluation.store.rounding import rounded
from cbo_gym.files import write_bytes
from cbo_gym.labels import bare_name
from cbo_gym.seed_ranges import PUBLICATION
from cbo_gym.specs import matches
from cbo_gym.suites import Suite, load_all, suites_path
from cbo_gym.validation import field_errors

HISTORY = "history"  # folder in a store: runs that were replaced, or on which no verdict stands any more
SCHEMA = 3  # raised when older versions of the package could not read what is written
READ = (1, 2, 3)  # schemas; earlier ones lack fields that have a default
# How files are; beside zstd brotli takes a tenth off, and twice as long to read
COMPRESSED: dict[str, Any] = {"compression": "brotli", "compression_level": 11, "statistics": False}
MOST_BYTES = 40 * 2**20  # of a store
NAME = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")
ALWAYS = ("reward", "instant_regret", "simple_regret")
NEVER = ("round", *SECONDS, "expected_reward_standard_error", "recommended_reward_standard_error")
EXACT, DOUBLE = ("reward", "best_so_far_regret"), "_double"
SLACK = 1e-6  # of the largest value of a column and the optimum together
_CURVES = {pl.Float64: pl.Float32, pl.Int64: pl.Int32, pl.Boolean: pl.Boolean}  # how columns are kept; lists are not
_EMPTY = pl.DataFrame({"round": pl.Series([], dtype=pl.Int64)})  # of runs that did not finish
_HINTS = {name: hint for name, hint in get_type_hints(Run).items() if name != "table"}


@dataclass(frozen=True)
class Published:
    """The outcome of :func:`publish`.

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
    submission: bool = False,
    track: Callable[[Sequence[Path]], Iterable[Path]] = lambda paths: paths,
) -> Published:
    """Put the runs of a folder into a store: those that it lacks, and those that are newer than its own.

    One run is kept of each environment, number of rounds, agent and seed: see
    :func:`cbo_gym.evaluation.runs.counted.newest`. The file is written in one step, or left as it was; of several
    processes that publish to a store one reads, merges and writes at a time. Runs that are replaced, and those on seeds
    that the suite's verdicts do not take any more, go to the file of the same name in the store's folder
    :data:`HISTORY`, which is read by its own path alone: an id that was published stays known.

    Args:
        folder: that a sweep wrote.
        store: folder of the published results; it is made where there is none.
        suite: name of the file. Of a suite of the package (see ``cbo_gym.suites``) only runs on its environments are
            taken, with any keywords. None for the name of the folder.
        submission: whether the runs are to be judged by whoever has another store: they keep their actions, and are
            marked as unverified until then.
        track: wraps the files that are read, to show how far it is.

    Raises:
        ArgumentError: if a run is damaged; if there is none; if the suite's verdicts take seeds for publication alone,
            and one has another; for a name with other signs than lower case letters,
            digits, ``-`` and ``_``; if the file of the store is damaged; if the store would be larger than
            :data:`MOST_BYTES`.
        OperationError: if the store cannot be written, or another process has it for too long.
    """
    store, name = Path(store), suite if suite is not None else Path(folder).resolve().name
    if not NAME.fullmatch(name):
        raise ArgumentError(f"name the suite by lower case letters, digits, - and _; given {name!r}")
    found = [stored_run(path) for path in track(run_files(Path(folder)))]
    known = next((suite for suite in load_all() if suite.name == name), None)
    patterns = known.environments if known else ["*"]
    new = [run for run in found if matches(run.env, patterns)]
    _require_seeds(new, known)
    if not new:
        where = f"; {len(found)} are on environments that the suite {name} has not" if found else ""
        raise ArgumentError(f"there are no runs in {folder} to publish{where}")
    with locked(store):
        kept = [replace(with_actions(run), unverified=True) for run in new] if submission else new
        left_out = len(found) - len(new)
        return _merge(store, name, list(map(_compact, kept)), left_out, overrule=submission, suite=known)


def _require_seeds(runs: Sequence[Run], suite: Suite | None) -> None:
    """Of a suite whose verdicts take seeds for publication alone, no other ones."""
    if suite is not None and (others := _not_taken(runs, suite)):
        first, last = PUBLICATION.start, PUBLICATION.stop - 1
        raise ArgumentError(
            f"{len(others)} runs have other seeds or instances than {first} to {last}, such as {others[0].agent} on "
            f"{others[0].env}, seed {others[0].seed}; the verdicts of {suite.name} take these alone. Play them, "
            "cbo-gym sweep --suite does, or publish the others under another name: --suite my-trials"
        )


def _not_taken(runs: Sequence[Run], suite: Suite) -> list[Run]:
    """Runs that do not count for a suite's verdicts."""
    return [run for run in runs if not suite.takes(run.seed, run.env)]


def put(path: Path, runs: Sequence[Run]) -> Published:
    """Put runs into one file of a store, in the place of those that it has of the same; raises as :func:`publish`.

    Where all are unverified they take no place of one that is verified.
    """
    if not NAME.fullmatch(path.stem) or path.suffix != ".parquet":
        raise ArgumentError(f"name the file by lower case letters, digits, - and _, and .parquet; given {path.name!r}")
    with locked(path.parent):
        return _merge(
            path.parent,
            path.stem,
            list(map(_compact, runs)),
            left_out=0,
            overrule=not all(run.unverified for run in runs),
        )


def _merge(
    store: Path, name: str, new: Sequence[Run], left_out: int, *, overrule: bool = False, suite: Suite | None = None
) -> Published:
    """Read a file of the store, put runs into it, and write it again; of the same the newest, or all that are new.

    What is replaced, and what a suite's verdicts no longer take, goes to :data:`HISTORY` first.
    """
    path = store / f"{name}.parquet"
    there = old = read_part(path) if path.exists() else []
    if suite is not None:
        old = [run for run in old if suite.takes(run.seed, run.env)]
    if overrule:
        theirs = set(map(identity, new))
        blind = {_blind_group(run) for run in new if run.secret}
        old = [run for run in old if identity(run) not in theirs and not (run.secret and _blind_group(run) in blind)]
    kept = newest([*new, *old])  # of two that are equally new the last counts
    content = _fitting(path, kept)
    _set_aside(store / HISTORY / path.name, there, {run.id for run in kept})
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


def _fitting(path: Path, runs: Sequence[Run]) -> bytes:
    """The content of a file with these runs, with which its store is not too large."""
    content = _sealed(path.stem, runs)
    size = len(content) + sum(other.stat().st_size for other in parts(path.parent) if other != path)
    if size > MOST_BYTES:
        raise ArgumentError(
            f"with these runs {path.parent} would take {size / 2**20:.1f} MiB; at most {MOST_BYTES / 2**20:g} may be"
        )
    return content


def _set_aside(path: Path, runs: Iterable[Run], kept: Collection[str]) -> None:
    """Add those runs to a file of the history whose ids are not kept elsewhere; blind and unverified ones have none."""
    past = {run.id: run for run in runs if run.id not in kept and not run.unverified and not run.secret}
    if not past:
        return
    with locked(path.parent):
        past |= {run.id: run for run in (read_part(path) if path.exists() else [])}
        write_bytes(path, _fitting(path, sorted(past.values(), key=lambda run: (identity(run), run.date))))


def _blind_group(run: Run) -> tuple[str, str]:
    """What blind runs are played for together: an agent on an environment, whatever its parameters."""
    return run.agent, bare_name(run.env)


def load_published(store: Path | str | None = None, suite: str | None = None) -> list[Run]:
    """The published runs, finished ones and others, with the tables that leaderboards and figures need.

    ``leaderboard(load_published("survey2026"))`` compares those of a suite.

    Args:
        store: a folder of published results, or one file of it; or, as a text, the name of a file that the package has,
            ``"mcbo2023"``; None for all that it has.
        suite: the file of this name alone.

    Raises:
        ArgumentError: if there is no such folder or file, or one is damaged or no published results.
        OperationError: without a folder, if the package was installed without its results.
    """
    path = own_store() if store is None else _named(store)
    if suite is not None:
        path = path / f"{suite}.parquet"
    if not path.exists():
        there = f"; there are {', '.join(part.stem for part in parts(path.parent))}" if path.parent.is_dir() else ""
        raise ArgumentError(f"there are no published results {path}{there if suite is not None else ''}")
    return [run for part in parts(path) for run in read_part(part)]


def _named(store: Path | str) -> Path:
    """A path, or the file of the package's own that a text names."""
    path = Path(store)
    if isinstance(store, str) and NAME.fullmatch(store) and not path.exists():
        own = own_store()
        if (own / f"{store}.parquet").exists():
            return own / f"{store}.parquet"
        there = ", ".join(part.stem for part in parts(own))
        raise ArgumentError(
            f"there are no published results {store}, neither here nor in the package, which has {there}"
        )
    return path


def own_store() -> Path:
    """``results`` of the package: within it where it is installed, beside it in a checkout.

    Raises:
        OperationError: if it is not there.
    """
    found = suites_path().parent / "results"
    if not found.is_dir():
        raise OperationError(
            f"the published results are missing from this installation ({found}); install cbo-gym anew"
        )
    return found


def runs_in(path: Path | str) -> Iterable[Run]:
    """The runs of a folder that a sweep wrote, or of published results.

    Raises:
        ArgumentError: if there is no such folder or file, or it is no published results.
    """
    return load_published(path) if is_published(Path(path)) else load_runs(Path(path))


def is_published(path: Path) -> bool:
    """Whether a file, or the first Parquet file of a folder, says that it holds published results."""
    first = next(iter(parts(path)), None)
    try:
        if first is None or not first.is_file() or first.stat().st_size > MOST_FILE_BYTES:
            return False
        return "schema" in metadata_of(first)
    except (*NO_RESULT, OSError):
        return False


def parts(store: Path) -> list[Path]:
    """The files of a store; of one file itself."""
    if not store.is_dir():
        return [store]
    return sorted(path for path in store.glob("*.parquet") if not path.name.startswith("."))


# Runs and rows -----------------------------------------------------------------------------------------------


Kept = Mapping[str, np.ndarray]
#: how a column that follows does, from the optimum and what is kept
FOLLOWING: dict[str, Callable[[float | np.ndarray, Kept], np.ndarray]] = {
    "expected_reward": lambda optimum, kept: optimum - kept["instant_regret"],
    "best_so_far_regret": lambda _, kept: np.minimum.accumulate(
        kept.get("context_regret", kept["instant_regret"]), axis=-1
    ),
    "cumulative_regret": lambda _, kept: np.cumsum(kept["instant_regret"], axis=-1),
    "average_regret": lambda _, kept: regret.running_mean(kept["instant_regret"]),
    "average_reward": lambda optimum, kept: regret.running_mean(optimum - kept["instant_regret"]),
    "recommended_reward": lambda optimum, kept: optimum - kept["simple_regret"],
    "pseudo_regret": lambda optimum, kept: regret.pseudo_regret(optimum, kept["reward"]),
    "average_pseudo_regret": lambda optimum, kept: regret.running_mean(regret.pseudo_regret(optimum, kept["reward"])),
}


def _compact(run: Run) -> Run:
    """The run with the error that is published."""
    return replace(run, error=last_line(run.error) if run.error else "")


def _follows(optimum: float | np.ndarray, kept: Kept, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Of some columns those that follow from what is kept, in double precision; the rounds are on the last axis."""
    return {name: FOLLOWING[name](optimum, kept) for name in names if name in FOLLOWING}


def curves(run: Run) -> dict[str, pl.Series]:
    """The columns of a finished run's table that a store keeps, named and rounded as they are there."""
    table = run.table
    kept = {name: table[name].cast(_CURVES[table.schema[name].base_type()]) for name in ALWAYS}
    others = [name for name in table.columns if name not in (*ALWAYS, *NEVER)]
    for name in sorted(others, key=lambda name: name != "context_regret"):  # from which another one follows
        form = _CURVES.get(table.schema[name].base_type())
        if form is None or table[name].null_count() == table.height:
            continue
        follows = _follows(run.optimum, _double(kept), [name])
        if not (follows and _alike(table[name].cast(pl.Float64).to_numpy(), follows[name], run.optimum)):
            kept[name] = table[name].cast(form)
    shorter = kept | {"reward": _rounded(run, kept)}
    for candidate in (shorter, kept):
        if _same_gaps(gaps_of(run), gaps_of(_with_kept(run, candidate))):
            return candidate
    return kept | {f"{name}{DOUBLE}": table[name] for name in EXACT}


def _rounded(run: Run, kept: Mapping[str, pl.Series]) -> pl.Series:
    double = _double(kept)
    expected = run.optimum - double["instant_regret"]
    return pl.Series("reward", rounded(double["reward"], expected, run.optimum - run.random_value), pl.Float32)


def as_published(run: Run) -> Run:
    """The run as it is read from a store, but for its seconds."""
    return _with_kept(run, curves(run)) if run.status == "finished" else run


def _with_kept(run: Run, kept: Mapping[str, pl.Series]) -> Run:
    """The same if the store keeps these curves."""
    return replace(run, table=_table(run.horizon, run.optimum, dict.fromkeys(SECONDS, 0.0), kept))


def _same_gaps(ones: Mapping[str, float | None], others: Mapping[str, float | None]) -> bool:
    known = [name for name, one in ones.items() if one is not None]
    return all(abs((ones[name] or 0.0) - (others[name] or 0.0)) <= SLACK for name in known)


def _double(kept: Mapping[str, pl.Series]) -> dict[str, np.ndarray]:
    return {name: column.cast(pl.Float64).to_numpy() for name, column in kept.items()}


def _alike(values: np.ndarray, others: np.ndarray, optimum: float) -> bool:
    size = max(np.nanmax(np.abs(values), initial=0.0), abs(optimum))
    return bool(np.allclose(values, others, rtol=SLACK, atol=SLACK * size, equal_nan=True))


def _row(run: Run) -> dict[str, Any]:
    row: dict[str, Any] = {"key": run.id}
    for name in _HINTS:
        value = getattr(run, name)
        row[name] = as_json(value) if _is_json(name) else value
    if run.status == "finished":
        row |= {name: float(run.table[name].to_numpy().mean()) for name in SECONDS}
        row |= curves(run)
    return row


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
    return sealed(pl.DataFrame(columns), about, **COMPRESSED)


def read_part(path: Path) -> list[Run]:
    """The runs of one file of a store, in its order.

    Their tables are made when they are asked for, from curves that the runs share.

    Raises:
        ArgumentError: if it is damaged, of a newer version, larger than what is read, or no file of published results.
    """
    content = content_of(path)
    require_intact(path, content)
    try:
        about = metadata_of(content)
        if "schema" not in about:
            raise ArgumentError("it is a single run; cbo-gym publish makes a file of published results from a folder")
        if about["schema"] not in READ:
            which = f"its schema is {shown(about['schema'])}, this version reads {SCHEMA}; install a newer one"
            raise NewerError(f"{path} is of another version of cbo-gym: {which}")
        described = _described(content)
        runs = _runs(described)
        lists = [name for name, dtype in pl.read_parquet_schema(BytesIO(content)).items() if dtype == pl.List]
        curves = Lists(pl.read_parquet(BytesIO(content), columns=lists) if lists else pl.DataFrame())
        return _with_curves(runs, curves, described)
    except NewerError:
        raise
    except ValidationError as error:
        raise ArgumentError(f"{path} has no published results of cbo-gym: {field_errors(error)}") from error
    except NO_RESULT as error:
        raise ArgumentError(f"{path} has no published results of cbo-gym: {error}") from error


def _described(content: bytes) -> pl.DataFrame:
    """The runs of a file, without their curves."""
    schema = pl.read_parquet_schema(BytesIO(content))
    if wrong := [name for name, dtype in schema.items() if _known_columns().get(name) != dtype]:
        raise ArgumentError(f"its columns are wrong: {', '.join(wrong)}")
    plain = [name for name, dtype in schema.items() if dtype != pl.List]
    frame = pl.read_parquet(BytesIO(content), columns=plain)
    needed = {f.name for f in fields(Run) if f.default is MISSING and f.default_factory is MISSING}
    curves = ALWAYS if "finished" in frame.get_column("status", default=pl.Series(["finished"])) else ()
    if lacking := sorted({"key", *needed, *SECONDS, *curves} - set(schema)):
        raise ArgumentError(f"its columns are wrong: {', '.join(lacking)}")
    return frame


def _known_columns() -> dict[str, Any]:
    """Every column that is read, with its type: those that are written, and ``restamps``, which once was."""
    known = dict.fromkeys(("key", "restamps"), pl.String) | {name: _dtype(name) for name in _HINTS}
    known |= dict.fromkeys(SECONDS, pl.Float32)
    known |= {f"{name}{DOUBLE}": pl.List(pl.Float64) for name in EXACT}
    return known | {
        name: pl.List(_CURVES[dtype.base_type()])
        for name, dtype in COLUMNS.items()
        if dtype.base_type() in _CURVES and name not in NEVER
    }


def _runs(described: pl.DataFrame) -> list[Run]:
    """The runs without their tables; what many of them say is in memory once."""
    known: dict[Any, Any] = {}
    parsed: dict[str, Any] = {}

    def value(name: str, found: Any) -> Any:
        if not _is_json(name):
            return known.setdefault(found, found) if isinstance(found, str) else found
        if found not in parsed:
            parsed[found] = from_json(found)
        return parsed[found]

    runs = []
    for row in described.iter_rows(named=True):
        run = run_of({name: value(name, row[name]) for name in _HINTS if name in row}, _EMPTY)
        if row["key"] != run.id:
            raise ArgumentError(f"the run of {run.agent} on {run.env}, seed {run.seed}, is not what its key says")
        runs.append(run)
    return runs


def _with_curves(runs: Sequence[Run], curves: Lists, described: pl.DataFrame) -> list[Run]:
    """The runs, of which those that finished share their curves."""
    part = _Part(runs, curves, {name: described[name].cast(pl.Float64).to_numpy() for name in SECONDS})
    finished = [place for place, run in enumerate(runs) if run.status == "finished"]
    for place in finished:
        part.require_whole(place, runs[place])
    for name in curves.names if finished else ():
        if name.removesuffix(DOUBLE) in ALWAYS_KNOWN and not all_finite(curves.flat[name]):
            raise ArgumentError(f"there must be a finite number in every round of {name}")
    for place in finished:
        held_elsewhere(runs[place], _StoredRounds(part, place))
    return list(runs)


class _Part:
    """The fields that the runs of a file share.

    Args:
        runs: in the order of the file.
        curves: one row per run.
        seconds: the means of each run.
    """

    def __init__(self, runs: Sequence[Run], curves: Lists, seconds: Mapping[str, np.ndarray]) -> None:
        self.curves = curves
        self.seconds = seconds
        self.horizons = np.array([run.horizon for run in runs])
        self.optima = np.array([run.optimum for run in runs])
        kinds = [int(kind) for kind in np.unique(curves.kinds)]
        self.kept = {kind: curves.present(kind) for kind in kinds}
        self.columns = {kind: _columns(names) for kind, names in self.kept.items()}

    def kind(self, place: int) -> int:
        """Which curves a run has."""
        return int(self.curves.kinds[place])

    def require_whole(self, place: int, run: Run) -> None:
        """A finished run has one value per round in each of its curves, a recommendation at the end, and times."""
        names = self.kept[self.kind(place)]
        what = f"the run of {run.agent} on {run.env}, seed {run.seed},"
        if not set(ALWAYS) <= set(names) or any(self.curves.lengths[name][place] != run.horizon for name in names):
            raise ArgumentError(f"{what} has not {run.horizon} rounds in all of its curves")
        last = self.curves.last("simple_regret", place)
        if not all(map(math.isfinite, [last, *(seconds[place] for seconds in self.seconds.values())])):
            raise ArgumentError(f"{what} has no finite simple_regret after the last round, or took no finite time")
        if "choice" in names:
            require_choices(self.curves.of_row(place)["choice"], len(run.choices))


def _columns(kept: Iterable[str]) -> tuple[str, ...]:
    """The columns of the table of a run that keeps some curves."""
    names = {name.removesuffix(DOUBLE) for name in kept}
    return tuple(name for name in COLUMNS if name in names or name not in SOMETIMES)


class _StoredRounds(Rounds):
    """Those of one run of a file."""

    __slots__ = ("part", "place")

    def __init__(self, part: _Part, place: int) -> None:
        self.part, self.place = part, place

    @property
    def kind(self) -> Hashable:
        """The file, and which curves are kept."""
        return id(self.part), self.part.kind(self.place)

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the table."""
        return self.part.columns[self.part.kind(self.place)]

    def table(self) -> pl.DataFrame:
        """One row per round."""
        part, place = self.part, self.place
        seconds = {name: float(values[place]) for name, values in part.seconds.items()}
        return _table(int(part.horizons[place]), float(part.optima[place]), seconds, part.curves.of_row(place))

    def stacked(self, others: Sequence[_StoredRounds], names: Sequence[str]) -> dict[str, np.ndarray]:
        """Columns of several runs that keep the same curves."""
        part, rounds = self.part, int(self.part.horizons[self.place])
        places = np.array([one.place for one in others])
        curves = part.kept[part.kind(self.place)]
        kept = {name: part.curves.of_rows(name, places, rounds) for name in curves}
        kept |= {name: kept[f"{name}{DOUBLE}"] for name in EXACT if f"{name}{DOUBLE}" in kept}
        doubled = {name: _doubled(values) for name, values in kept.items()}
        follows = _follows(part.optima[places][:, None], doubled, names)
        found = {"round": np.broadcast_to(np.arange(1, rounds + 1), (len(places), rounds)), **follows}
        found |= {name: np.repeat(values[places][:, None], rounds, axis=1) for name, values in part.seconds.items()}
        found |= {name: _doubled(kept[name]) if COLUMNS.get(name) == pl.Float64 else kept[name] for name in kept}
        found |= {name: np.full((len(places), rounds), np.nan) for name in set(names) & set(self.columns) - set(found)}
        return {name: found[name] for name in names}


def _doubled(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float64)


def _table(rounds: int, optimum: float, seconds: Mapping[str, float], kept: Mapping[str, pl.Series]) -> pl.DataFrame:
    """The table of a finished run: one row per round."""
    kept = {**kept, **{name: kept[f"{name}{DOUBLE}"] for name in EXACT if f"{name}{DOUBLE}" in kept}}
    follows = _follows(optimum, _double(kept), FOLLOWING)
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
