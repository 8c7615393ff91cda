"""The columns of a run's table that a store keeps, and the tables that are computed from them.

A store keeps, in single precision, ``reward``, ``instant_regret``, ``simple_regret``, and any column that cannot be
computed from these to :data:`TOLERANCE`, such as ``context_regret`` or ``choice``. Noisy rewards are rounded, see
:mod:`cbo_gym.evaluation.store.rounding`. The metric GAP counts the rounds to the last improvement; if it depends on
more digits, ``reward`` and ``best_so_far_regret`` are also kept in double precision, as ``<column>_double``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import polars as pl

from cbo_gym.errors import ArgumentError
from cbo_gym.evaluation.metrics import regret
from cbo_gym.evaluation.metrics.gap import gaps_of
from cbo_gym.evaluation.runs.results import (
    COLUMNS,
    FINITE_COLUMNS,
    OPTIONAL_COLUMNS,
    TIMING_COLUMNS,
    Run,
    all_finite,
    require_choices,
    with_curves,
)
from cbo_gym.evaluation.store.rounding import round_rewards

# Columns that a store keeps of every run, and columns that it never keeps.
REQUIRED_COLUMNS = ("reward", "instant_regret", "simple_regret")
OMITTED_COLUMNS = ("round", *TIMING_COLUMNS, "expected_reward_standard_error", "recommended_reward_standard_error")
# Columns on which GAP depends, and the suffix of their copies in double precision.
GAP_COLUMNS, DOUBLE_SUFFIX = ("reward", "best_so_far_regret"), "_double"
# Tolerance, relative to the largest value of the column or the optimum, whichever is larger.
TOLERANCE = 1e-6
# Type of a column -> the type in which it is kept. Columns of lists are not kept.
STORED_TYPES = {pl.Float64: pl.Float32, pl.Int64: pl.Int32, pl.Boolean: pl.Boolean}

# Name of a kept column -> its values, with rounds on the last axis.
Kept = Mapping[str, np.ndarray]
# Column -> function that computes it from the optimum and the kept columns.
DERIVED_COLUMNS: dict[str, Callable[[float | np.ndarray, Kept], np.ndarray]] = {
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


def _derive(optimum: float | np.ndarray, kept: Kept, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Compute the named columns that can be derived from the kept ones, in double precision."""
    return {name: DERIVED_COLUMNS[name](optimum, kept) for name in names if name in DERIVED_COLUMNS}


def kept_curves(run: Run) -> dict[str, pl.Series]:
    """Return the columns of a finished run's table as a store keeps them."""
    table = run.table
    kept = {name: table[name].cast(STORED_TYPES[table.schema[name].base_type()]) for name in REQUIRED_COLUMNS}
    others = [name for name in table.columns if name not in (*REQUIRED_COLUMNS, *OMITTED_COLUMNS)]
    # context_regret comes first, because best_so_far_regret is derived from it.
    for name in sorted(others, key=lambda name: name != "context_regret"):
        stored_type = STORED_TYPES.get(table.schema[name].base_type())
        if stored_type is None or table[name].null_count() == table.height:
            continue
        derived = _derive(run.optimum, _double(kept), [name])
        if not (derived and _all_close(table[name].cast(pl.Float64).to_numpy(), derived[name], run.optimum)):
            kept[name] = table[name].cast(stored_type)
    double = _double(kept)
    rounded = round_rewards(double["reward"], run.optimum - double["instant_regret"], run.optimum - run.random_value)
    # Neither rounding nor single precision may change GAP; the first form that leaves it unchanged is kept.
    for candidate in (kept | {"reward": pl.Series("reward", rounded, pl.Float32)}, kept):
        if _same_gaps(gaps_of(run), gaps_of(_with_kept(run, candidate))):
            return candidate
    return kept | {f"{name}{DOUBLE_SUFFIX}": table[name] for name in GAP_COLUMNS}


def round_for_store(run: Run) -> Run:
    """Return the run as a store would return it, but with seconds of 0."""
    return _with_kept(run, kept_curves(run)) if run.status == "finished" else run


def _with_kept(run: Run, kept: Mapping[str, pl.Series]) -> Run:
    """Return the run as a store with these columns would return it, but with seconds of 0."""
    curves = KeptCurves(run.horizon, run.optimum, dict.fromkeys(TIMING_COLUMNS, 0.0), _double(kept))
    return replace(run, table=curves.table())


def _same_gaps(gaps: Mapping[str, float | None], others: Mapping[str, float | None]) -> bool:
    pairs = [(gap, others[name] or 0.0) for name, gap in gaps.items() if gap is not None]
    return all(abs(gap - other_gap) <= TOLERANCE for gap, other_gap in pairs)


def _double(kept: Mapping[str, pl.Series]) -> dict[str, np.ndarray]:
    return {name: column.cast(pl.Float64).to_numpy() for name, column in kept.items()}


def _all_close(values: np.ndarray, others: np.ndarray, optimum: float) -> bool:
    size = max(np.nanmax(np.abs(values), initial=0.0), abs(optimum))
    return bool(np.allclose(values, others, rtol=TOLERANCE, atol=TOLERANCE * size, equal_nan=True))


def attach_curves(runs: Sequence[Run], frame: pl.DataFrame) -> None:
    """Give the finished runs of a file the curves from which their tables are computed.

    Args:
        runs: Runs in the order of the file, without tables.
        frame: A row per run, with its mean seconds and its kept columns; a column that the run does not have is null.
    """
    names = [name for name, dtype in frame.schema.items() if dtype == pl.List]
    lengths = {name: frame[name].list.len().to_list() for name in names}
    curves: dict[str, list[np.ndarray]] = {}
    for name in names:
        flat = frame[name].filter(frame[name].list.len() > 0).explode()
        if name.removesuffix(DOUBLE_SUFFIX) in FINITE_COLUMNS and not all_finite(flat):
            raise ArgumentError(f"there must be a finite number in every round of {name}")
        numbers = (flat.cast(pl.Float64) if flat.null_count() else flat).to_numpy()
        curves[name] = np.split(numbers, np.cumsum([length or 0 for length in lengths[name]])[:-1])
    seconds = frame.select(TIMING_COLUMNS).rows(named=True)
    for row, run in enumerate(runs):
        if run.status == "finished":
            kept = {name: curves[name][row] for name in names if lengths[name][row] is not None}
            run_curves = KeptCurves(run.horizon, run.optimum, seconds[row], kept)
            _require_complete(run, run_curves)
            with_curves(run, run_curves)


def _require_complete(run: Run, curves: KeptCurves) -> None:
    """Check that a finished run has a value per round in each column, a last recommendation, and times."""
    subject = f"the run of {run.agent} on {run.env}, seed {run.seed},"
    is_missing = not set(REQUIRED_COLUMNS) <= curves.kept.keys()
    if is_missing or any(len(values) != run.horizon for values in curves.kept.values()):
        raise ArgumentError(f"{subject} must have {run.horizon} rounds in all of its curves")
    if not all(map(math.isfinite, [curves.kept["simple_regret"][-1], *curves.seconds.values()])):
        raise ArgumentError(f"{subject} has no finite simple_regret after the last round, or took no finite time")
    require_choices(curves.kept.get("choice"), len(run.choices))


@dataclass(frozen=True, slots=True)
class KeptCurves:
    """The kept columns of a run, from which its table is computed.

    Attributes:
        rounds: Number of rounds.
        optimum: Optimum of the task.
        seconds: Name of a column of times -> its mean.
        kept: Kept columns, named as in the store, of shape ``(rounds,)``; null is NaN.
    """

    rounds: int
    optimum: float
    seconds: Mapping[str, float]
    kept: Kept

    @property
    def kind(self) -> tuple[str, ...]:
        """``"kept"`` and the names of the kept columns; :meth:`stack` takes curves of the same kind."""
        return "kept", *self.kept

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the table's columns."""
        return _columns(tuple(self.kept))

    def table(self) -> pl.DataFrame:
        """Return the table: one row per round."""
        curves = self.stack([self], self.columns)
        table = {}
        for name in self.columns:
            dtype = COLUMNS[name]
            if dtype.base_type() in STORED_TYPES:
                # A derived column is null in rounds without a recommendation.
                table[name] = pl.Series(curves[name][0], nan_to_null=True).cast(dtype)
            else:
                table[name] = pl.Series([None], dtype=dtype).new_from_index(0, self.rounds)
        return pl.DataFrame(table)

    def stack(self, others: Sequence[KeptCurves], names: Sequence[str]) -> dict[str, np.ndarray]:
        """Return name -> column of several runs of the same kind, shape ``(runs, rounds)``; null is NaN."""
        shape = len(others), self.rounds
        kept = {}
        for name in self.kept:
            values = np.stack([curves.kept[name] for curves in others])
            is_float = COLUMNS.get(name.removesuffix(DOUBLE_SUFFIX)) == pl.Float64
            kept[name] = values.astype(float) if is_float else values
        kept |= {name: kept[f"{name}{DOUBLE_SUFFIX}"] for name in GAP_COLUMNS if f"{name}{DOUBLE_SUFFIX}" in kept}
        columns = {name: np.full(shape, np.nan) for name in names}
        columns |= _derive(np.array([[curves.optimum] for curves in others]), kept, names)
        columns["round"] = np.broadcast_to(np.arange(1, self.rounds + 1), shape)
        for name in TIMING_COLUMNS:
            columns[name] = np.repeat([[curves.seconds[name]] for curves in others], self.rounds, axis=1)
        columns |= kept
        return {name: columns[name] for name in names}


@cache
def _columns(kept: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the columns of a table that is computed from the named kept columns."""
    names = {name.removesuffix(DOUBLE_SUFFIX) for name in kept}
    return tuple(name for name in COLUMNS if name in names or name not in OPTIONAL_COLUMNS)
