"""Curves as a store keeps them, and the tables that are computed from them as runs are read.

A store keeps, in single precision, ``reward``, ``instant_regret`` and ``simple_regret``, in contextual mode also
``recommended_reward`` and ``context_regret``, ``choice`` if there are choices, and any other column that does not
follow from these to :data:`SLACK`. Noisy rewards are rounded, see :mod:`cbo_gym.evaluation.store.rounding`. GAP counts
the rounds to the last improvement; if it depends on more digits, ``reward`` and ``best_so_far_regret`` are also kept in
double precision, as ``<column>_double``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.metrics import regret
from cbo_gym.evaluation.metrics.gap import gaps_of
from cbo_gym.evaluation.runs.results import (
    ALWAYS_KNOWN,
    COLUMNS,
    OPTIONAL_COLUMNS,
    TIMING_COLUMNS,
    Run,
    all_finite,
    require_choices,
    with_curves,
)
from cbo_gym.evaluation.store.rounding import round_rewards

ALWAYS = ("reward", "instant_regret", "simple_regret")
NEVER = ("round", *TIMING_COLUMNS, "expected_reward_standard_error", "recommended_reward_standard_error")
EXACT, DOUBLE = ("reward", "best_so_far_regret"), "_double"
# Tolerance, relative to the larger of the column's largest value and the optimum.
SLACK = 1e-6
# Types of columns as they are kept; columns of lists are not.
KEPT_AS = {pl.Float64: pl.Float32, pl.Int64: pl.Int32, pl.Boolean: pl.Boolean}

Array = np.ndarray
Kept = Mapping[str, np.ndarray]
# Column -> its values from the optimum and the kept columns.
FOLLOWING: dict[str, Callable[[float | np.ndarray, Kept], np.ndarray]] = {
    "expected_reward": lambda optimum, kept: optimum - kept["instant_regret"],
    "best_so_far_regret": lambda _, kept: np.minimum.accumulate(
        kept.get("context_regret", kept["instant_regret"]), axis=-1
    ),
    "cumulative_regret": lambda _, kept: np.cumsum(kept["instant_regret"], axis=-1),
    "average_regret": lambda _, kept: regret.running_mean(kept["instant_regret"]),
    "average_reward": lambda optimum, kept: regret.running_mean(optimum - kept["instant_regret"]),
    "recommended_reward": lambda optimum, kept: optimum - kept["simple_regret"],
    "pseudo_regret": lambda optimum, kept: regret.instant_regret(optimum, kept["reward"]),
    "average_pseudo_regret": lambda optimum, kept: regret.running_mean(regret.instant_regret(optimum, kept["reward"])),
}


def _follows(optimum: float | np.ndarray, kept: Kept, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Compute the named columns that follow from the kept ones, in double precision, with rounds on the last axis."""
    return {name: FOLLOWING[name](optimum, kept) for name in names if name in FOLLOWING}


def kept_curves(run: Run) -> dict[str, pl.Series]:
    """Return the columns of a finished run's table that a store keeps, named and rounded as there."""
    table = run.table
    kept = {name: table[name].cast(KEPT_AS[table.schema[name].base_type()]) for name in ALWAYS}
    others = [name for name in table.columns if name not in (*ALWAYS, *NEVER)]
    # best_so_far_regret follows from context_regret, which therefore comes first.
    for name in sorted(others, key=lambda name: name != "context_regret"):
        form = KEPT_AS.get(table.schema[name].base_type())
        if form is None or table[name].null_count() == table.height:
            continue
        follows = _follows(run.optimum, _double(kept), [name])
        if not (follows and _all_close(table[name].cast(pl.Float64).to_numpy(), follows[name], run.optimum)):
            kept[name] = table[name].cast(form)
    shorter = kept | {"reward": _round_rewards(run, kept)}
    for candidate in (shorter, kept):
        if _same_gaps(gaps_of(run), gaps_of(_with_kept(run, candidate))):
            return candidate
    return kept | {f"{name}{DOUBLE}": table[name] for name in EXACT}


def _round_rewards(run: Run, kept: Mapping[str, pl.Series]) -> pl.Series:
    double = _double(kept)
    expected = run.optimum - double["instant_regret"]
    return pl.Series("reward", round_rewards(double["reward"], expected, run.optimum - run.random_value), pl.Float32)


def as_published(run: Run) -> Run:
    """Return the run as it is read from a store, except for its seconds."""
    return _with_kept(run, kept_curves(run)) if run.status == "finished" else run


def _with_kept(run: Run, kept: Mapping[str, pl.Series]) -> Run:
    """Return the run as it is read from a store that keeps these curves."""
    return replace(run, table=_table(run.horizon, run.optimum, dict.fromkeys(TIMING_COLUMNS, 0.0), kept))


def _same_gaps(gaps: Mapping[str, float | None], others: Mapping[str, float | None]) -> bool:
    known = [name for name, gap in gaps.items() if gap is not None]
    return all(abs((gaps[name] or 0.0) - (others[name] or 0.0)) <= SLACK for name in known)


def _double(kept: Mapping[str, pl.Series]) -> dict[str, np.ndarray]:
    return {name: column.cast(pl.Float64).to_numpy() for name, column in kept.items()}


def _all_close(values: np.ndarray, others: np.ndarray, optimum: float) -> bool:
    size = max(np.nanmax(np.abs(values), initial=0.0), abs(optimum))
    return bool(np.allclose(values, others, rtol=SLACK, atol=SLACK * size, equal_nan=True))


def share_curves(runs: Sequence[Run], curves: Lists, descriptions: pl.DataFrame) -> list[Run]:
    """Return the runs; the finished ones share their curves."""
    shared = _SharedCurves(
        runs, curves, {name: descriptions[name].cast(pl.Float64).to_numpy() for name in TIMING_COLUMNS}
    )
    finished = [row for row, run in enumerate(runs) if run.status == "finished"]
    for row in finished:
        shared.require_whole(row, runs[row])
    for name in curves.names if finished else ():
        if name.removesuffix(DOUBLE) in ALWAYS_KNOWN and not all_finite(curves.flat[name]):
            raise ArgumentError(f"there must be a finite number in every round of {name}")
    for row in finished:
        with_curves(runs[row], _Curves(shared, row))
    return list(runs)


class Lists:
    """Columns of lists, concatenated; each row is a slice.

    Args:
        frame: Columns of lists; cells may be null.
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        self.names = frame.columns
        self.height = frame.height
        lengths = {name: frame[name].list.len() for name in self.names}
        self._present = {name: length.is_not_null().to_numpy() for name, length in lengths.items()}
        self.lengths = {name: length.fill_null(0).to_numpy().astype(np.int64) for name, length in lengths.items()}
        self._starts = {name: np.cumsum(length) - length for name, length in self.lengths.items()}
        self.flat = {name: frame[name].filter(lengths[name] > 0).explode().rechunk() for name in self.names}
        self._numbers: dict[str, Array] = {}

    @cached_property
    def kinds(self) -> Array:
        """A bit mask of the columns that are not null, for each row."""
        bits = [self._present[name].astype(np.int64) << index for index, name in enumerate(self.names)]
        return np.sum([np.zeros(self.height, dtype=np.int64), *bits], axis=0)

    def present(self, kind: int) -> tuple[str, ...]:
        """Return the columns that rows of a kind have."""
        return tuple(name for index, name in enumerate(self.names) if kind >> index & 1)

    def of_row(self, row: int) -> dict[str, pl.Series]:
        """Return the values of a row by column, without null."""
        return {
            name: self.flat[name].slice(self._starts[name][row], self.lengths[name][row])
            for name in self.present(int(self.kinds[row]))
        }

    def of_rows(self, name: str, rows: Array, length: int) -> Array:
        """Return the values of rows of one length in a column, shape ``(rows, length)``; null is NaN."""
        values: Array = self._of(name)[self._starts[name][rows][:, None] + np.arange(length)]
        return values

    def last(self, name: str, row: int) -> float:
        """Return the last value of a row in a column."""
        return float(self._of(name)[self._starts[name][row] + self.lengths[name][row] - 1])

    def _of(self, name: str) -> Array:
        if name not in self._numbers:
            flat = self.flat[name]
            self._numbers[name] = (flat.cast(pl.Float64) if flat.null_count() else flat).to_numpy()
        return self._numbers[name]


class _SharedCurves:
    """The curves that the runs of a file share.

    Args:
        runs: Runs in the order of the file.
        curves: One row per run.
        seconds: Mean seconds of each run.
    """

    def __init__(self, runs: Sequence[Run], curves: Lists, seconds: Mapping[str, np.ndarray]) -> None:
        self.curves = curves
        self.seconds = seconds
        self.horizons = np.array([run.horizon for run in runs])
        self.optima = np.array([run.optimum for run in runs])
        kinds = [int(kind) for kind in np.unique(curves.kinds)]
        self.kept = {kind: curves.present(kind) for kind in kinds}
        self.columns = {kind: _columns(names) for kind, names in self.kept.items()}

    def kind(self, row: int) -> int:
        """Return the kind of a run's curves."""
        return int(self.curves.kinds[row])

    def require_whole(self, row: int, run: Run) -> None:
        """Check that a finished run has a value per round in each curve, a recommendation at the end, and times."""
        names = self.kept[self.kind(row)]
        what = f"the run of {run.agent} on {run.env}, seed {run.seed},"
        if not set(ALWAYS) <= set(names) or any(self.curves.lengths[name][row] != run.horizon for name in names):
            raise ArgumentError(f"{what} must have {run.horizon} rounds in all of its curves")
        last = self.curves.last("simple_regret", row)
        if not all(map(math.isfinite, [last, *(seconds[row] for seconds in self.seconds.values())])):
            raise ArgumentError(f"{what} has no finite simple_regret after the last round, or took no finite time")
        if "choice" in names:
            require_choices(self.curves.of_row(row)["choice"], len(run.choices))


def _columns(kept: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of the table of a run that keeps some curves."""
    names = {name.removesuffix(DOUBLE) for name in kept}
    return tuple(name for name in COLUMNS if name in names or name not in OPTIONAL_COLUMNS)


class _Curves:
    """The curves of one run of a file."""

    __slots__ = ("row", "shared")

    def __init__(self, shared: _SharedCurves, row: int) -> None:
        self.shared, self.row = shared, row

    @property
    def kind(self) -> Hashable:
        """The file and the kept curves."""
        return id(self.shared), self.shared.kind(self.row)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table."""
        return self.shared.columns[self.shared.kind(self.row)]

    def table(self) -> pl.DataFrame:
        """Return the table."""
        shared, row = self.shared, self.row
        seconds = {name: float(values[row]) for name, values in shared.seconds.items()}
        return _table(int(shared.horizons[row]), float(shared.optima[row]), seconds, shared.curves.of_row(row))

    def stack(self, others: Sequence[_Curves], names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return columns of several runs that keep the same curves."""
        shared, rounds = self.shared, int(self.shared.horizons[self.row])
        rows = np.array([curves.row for curves in others])
        kept_names = shared.kept[shared.kind(self.row)]
        kept = {name: shared.curves.of_rows(name, rows, rounds) for name in kept_names}
        kept |= {name: kept[f"{name}{DOUBLE}"] for name in EXACT if f"{name}{DOUBLE}" in kept}
        doubled = {name: _to_double(values) for name, values in kept.items()}
        follows = _follows(shared.optima[rows][:, None], doubled, names)
        columns = {"round": np.broadcast_to(np.arange(1, rounds + 1), (len(rows), rounds)), **follows}
        columns |= {name: np.repeat(values[rows][:, None], rounds, axis=1) for name, values in shared.seconds.items()}
        columns |= {name: _to_double(kept[name]) if COLUMNS.get(name) == pl.Float64 else kept[name] for name in kept}
        columns |= {
            name: np.full((len(rows), rounds), np.nan) for name in set(names) & set(self.columns) - set(columns)
        }
        return {name: columns[name] for name in names}


def _to_double(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float64)


def _table(rounds: int, optimum: float, seconds: Mapping[str, float], kept: Mapping[str, pl.Series]) -> pl.DataFrame:
    """Return the table of a finished run: one row per round."""
    kept = {**kept, **{name: kept[f"{name}{DOUBLE}"] for name in EXACT if f"{name}{DOUBLE}" in kept}}
    follows = _follows(optimum, _double(kept), FOLLOWING)
    columns: dict[str, Any] = {"round": np.arange(1, rounds + 1)}
    columns |= {name: np.full(rounds, second) for name, second in seconds.items()}
    for name, dtype in COLUMNS.items():
        if name in kept:
            columns[name] = kept[name].cast(dtype)
        # A column that follows is null in rounds without a recommendation.
        elif name in follows:
            columns[name] = pl.Series(follows[name], dtype=dtype, nan_to_null=True)
        elif name not in columns and name not in OPTIONAL_COLUMNS:
            columns[name] = pl.Series([None], dtype=dtype).new_from_index(0, rounds)
    return pl.DataFrame({name: columns[name] for name in COLUMNS if name in columns})
