"""Runs on disk: one Parquet file each, its name a hash of what was run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from cbo_gym.errors import ArgumentError
from cbo_gym.files import replacing

METADATA_KEY = "cbo_gym"
Status = Literal["finished", "failed", "skipped"]


def package_version() -> str:
    from cbo_gym.version import __version__

    return __version__


@dataclass(frozen=True)
class Run:
    """One run: what was run, how it ended, and a table with a row a round (empty unless it finished).

    ``choices`` names the target sets or scopes that the table's column ``choice`` counts from 0, where there is one;
    ``error`` is the traceback of a failed run, or why the pair was skipped. ``date`` (UTC, ``2026-01-31``) and
    ``machine`` (cores and processor) say when and on what it was played.
    """

    agent: str
    env: str
    seed: int
    horizon: int
    mode: str = ""
    status: Status = "finished"
    error: str = ""
    version: str = field(default_factory=package_version)
    date: str = ""
    machine: str = ""
    optimum: float = float("nan")
    optimum_standard_error: float = float("nan")
    random_value: float = float("nan")
    choices: tuple[str, ...] = ()
    table: pl.DataFrame = field(default_factory=pl.DataFrame, compare=False)

    @property
    def seconds_a_round(self) -> float:
        """Mean time of ``act`` and ``update`` together."""
        return float(np.mean(self.table["act_seconds"].to_numpy() + self.table["update_seconds"].to_numpy()))


def today() -> str:
    """The date of a run that ends now."""
    return datetime.now(UTC).date().isoformat()


def run_path(folder: Path, agent: str, env: str, seed: int, horizon: int) -> Path:
    """Where a run is kept: a hash of the agent and environment with their parameters, seed, horizon and version."""
    what = json.dumps([agent, env, seed, horizon, package_version()])
    return folder / f"{hashlib.sha256(what.encode()).hexdigest()[:24]}.parquet"


def save_run(path: Path, run: Run) -> None:
    """Write a run in one step: a reader sees the whole file or none."""
    metadata = {f.name: getattr(run, f.name) for f in fields(run) if f.name != "table"}
    table = run.table if run.table.width else pl.DataFrame({"round": pl.Series([], dtype=pl.Int64)})
    with replacing(path) as temporary:
        table.write_parquet(temporary, metadata={METADATA_KEY: json.dumps(metadata)})


def load_run(path: Path) -> Run:
    """Read a run back.

    Raises:
        ArgumentError: if the file is no run of this package.
    """
    try:
        stored: dict[str, Any] = json.loads(pl.read_parquet_metadata(path)[METADATA_KEY])
        stored["choices"] = tuple(stored["choices"])
        return Run(**stored, table=pl.read_parquet(path))
    except (OSError, KeyError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise ArgumentError(f"{path} is not a result of cbo-gym: {error}") from error


def run_files(folder: Path) -> list[Path]:
    """The files of the runs in a folder, in the order of their names.

    Raises:
        ArgumentError: if the folder is missing.
    """
    if not folder.is_dir():
        raise ArgumentError(f"there is no folder {folder}; a sweep makes one")
    # a leading dot: a temporary file of a run that is being written
    return sorted(path for path in folder.glob("*.parquet") if not path.name.startswith("."))


def load_runs(folder: Path) -> Iterator[Run]:
    """All runs in a folder, in the order of their files; raises as :func:`run_files` and :func:`load_run` do."""
    yield from map(load_run, run_files(folder))
