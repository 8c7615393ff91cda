"""Runs, and the file of one: Parquet with a checksum, whose name is a hash of what was run."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import field, fields
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from packaging.version import Version
from pydantic import ConfigDict, NonNegativeInt, PositiveInt, ValidationError
from pydantic.dataclasses import dataclass

from cbo_gym.errors import ArgumentError
from cbo_gym.files import write_bytes
from cbo_gym.task import Mode
from cbo_gym.validation import field_errors
from cbo_gym.version import __version__

METADATA_KEY = "cbo_gym"
LONGEST_ERROR = 10_000  # characters
LONGEST_REASON = 300
NO_CHECKSUM = "0" * 64  # stands where the checksum comes, while it is computed
WRITTEN = b'"checksum": "%b"'  # no text among the metadata looks so, for JSON escapes its quotation marks
CHECKSUM = re.compile(WRITTEN % b"([0-9a-f]{64})")
Status = Literal["finished", "failed", "skipped"]
Recommend = Literal["every", "powers", "end"]  # the rounds after which an agent is asked for its recommendation

#: the columns of a run's table. Those of :data:`SOMETIMES` are there where the mode has contexts, choices or slices, or
#: where the task has costs or constraints; a violation is the sum of what is missed of each constraint, in the nodes'
#: units.
COLUMNS: dict[str, Any] = {
    "round": pl.Int64,
    "action": pl.List(pl.Float64),
    "nodes": pl.List(pl.Float64),
    "reward": pl.Float64,
    "context": pl.List(pl.Float64),
    "context_regret": pl.Float64,
    "best_so_far_regret": pl.Float64,
    "simple_regret": pl.Float64,
    "expected_reward": pl.Float64,
    "expected_reward_standard_error": pl.Float64,
    "recommended_reward": pl.Float64,
    "recommended_reward_standard_error": pl.Float64,
    "instant_regret": pl.Float64,
    "cumulative_regret": pl.Float64,
    "average_regret": pl.Float64,
    "average_reward": pl.Float64,
    "pseudo_regret": pl.Float64,
    "average_pseudo_regret": pl.Float64,
    "act_seconds": pl.Float64,
    "update_seconds": pl.Float64,
    "recommend_seconds": pl.Float64,
    "choice": pl.Int64,
    "cost": pl.Float64,
    "feasible": pl.Boolean,
    "violation": pl.Float64,
    "recommended_feasible": pl.Boolean,
    "recommended_violation": pl.Float64,
    "slice": pl.Int64,
    "random_reward": pl.Float64,
}
OF_CONSTRAINTS = ("feasible", "violation", "recommended_feasible", "recommended_violation")
OF_SLICES = ("slice", "random_reward")
SOMETIMES = ("context", "context_regret", "choice", "cost", *OF_CONSTRAINTS, *OF_SLICES)
SECONDS = ("act_seconds", "update_seconds", "recommend_seconds")


@dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True))
class Run:
    """One run: what was run, how it ended, and a table with a row a round (empty unless it finished).

    Attributes:
        agent, env: labels, parameters included.
        seed: of the noise, the initial data and the agent.
        horizon: number of rounds.
        mode: the feedback mode.
        status: how it ended.
        error: the traceback of a failed run, or why the pair was skipped.
        recommend: after which rounds the agent was asked for its recommendation: ``"every"``, those that are
            ``"powers"`` of two and the last, or at the ``"end"``. Elsewhere the columns of the recommendation are null.
        sources: name -> version and fingerprint of the code that was run.
        version: of cbo-gym.
        date: when it ended, UTC: ``2026-01-31T12:00:00+00:00``.
        machine: cores and processor.
        libraries: name -> version, Python and the linear algebra library, with the processor whose kernels it runs,
            included.
        threads: name -> number of threads of a library that has any.
        reset_seconds: what ``reset`` took, the initial data included; no part of the rounds' seconds.
        optimum, optimum_standard_error, random_value: of the task.
        initial_expected: the best expected reward of an action among the initial data; without such data that of a
            random action. None in runs of versions that did not keep it.
        initial_reward: the best reward that was observed of an intervention among the initial data; otherwise as
            ``initial_expected``.
        choices: names of the target sets or scopes that the column ``choice`` counts from 0, where there are any.
        table: columns as in :data:`COLUMNS`.

    Raises:
        pydantic.ValidationError: (a ValueError) if a field has the wrong type.
    """

    agent: str
    env: str
    seed: NonNegativeInt
    horizon: PositiveInt
    mode: str = ""
    status: Status = "finished"
    error: str = ""
    recommend: Recommend = "every"
    sources: dict[str, str] = field(default_factory=dict)
    version: str = __version__
    date: str = ""
    machine: str = ""
    libraries: dict[str, str] = field(default_factory=dict)
    threads: dict[str, int] = field(default_factory=dict)
    reset_seconds: float = 0.0
    optimum: float = float("nan")
    optimum_standard_error: float = float("nan")
    random_value: float = float("nan")
    initial_expected: float | None = None
    initial_reward: float | None = None
    choices: tuple[str, ...] = ()
    table: pl.DataFrame = field(default_factory=pl.DataFrame, compare=False)

    @property
    def seconds(self) -> np.ndarray:
        """What each round took: ``act``, ``update`` and ``recommend`` together, in seconds."""
        return np.sum([self.table[name].to_numpy() for name in SECONDS], axis=0)

    @property
    def is_constrained(self) -> bool:
        """Whether the task has constraints."""
        return "feasible" in self.table.columns

    @property
    def average_counted(self) -> float:
        """The mean over all rounds of what the actions count for, see :func:`cbo_gym.evaluation.regret.counted`."""
        last = self.table.row(-1, named=True)
        return float(self.optimum - last["average_regret"] if self.is_constrained else last["average_reward"])

    @property
    def seconds_a_round(self) -> float:
        """Their mean."""
        return float(self.seconds.mean())


def readable(text: str) -> str:
    """A text that can be stored and printed: what no encoding has is escaped, the middle of a long one left out."""
    escaped = text.strip().encode("utf-8", "backslashreplace").decode()
    if len(escaped) > LONGEST_ERROR:
        half = LONGEST_ERROR // 2
        escaped = f"{escaped[:half]}\n... {len(escaped) - 2 * half} characters ...\n{escaped[-half:]}"
    return escaped


def last_line(error: str) -> str:
    """The end of a run's error, in one line that can be shown."""
    lines = error.strip().splitlines() or ["no reason was given"]
    shown = "".join(character if character.isprintable() else " " for character in lines[-1])
    return shown if len(shown) <= LONGEST_REASON else f"{shown[:LONGEST_REASON]}..."


def run_name(agent: str, env: str, seed: int, horizon: int, recommend: Recommend, sources: Mapping[str, str]) -> str:
    """The name of a run's file: a hash of all that determines the run, the sources included."""
    what = json.dumps([agent, env, seed, horizon, recommend, sorted(sources.items())])
    return f"{hashlib.sha256(what.encode()).hexdigest()[:24]}.parquet"


def name_of(run: Run) -> str:
    """The name of the file that a run belongs in."""
    return run_name(run.agent, run.env, run.seed, run.horizon, run.recommend, run.sources)


def save_run(path: Path, run: Run) -> None:
    """Write a run in one step: a reader sees the whole file or none.

    Raises:
        OperationError: if it cannot be written.
    """
    metadata = {f.name: getattr(run, f.name) for f in fields(run) if f.name != "table"}
    table = run.table if run.table.width else pl.DataFrame({"round": pl.Series([], dtype=pl.Int64)})
    write_bytes(path, sealed(table, metadata))


def sealed(table: pl.DataFrame, metadata: Mapping[str, Any], **how: Any) -> bytes:
    """A table as a Parquet file, with a checksum of it among its metadata.

    Args:
        table: any.
        metadata: what JSON can hold.
        how: more arguments of Polars' ``write_parquet``.
    """
    content = BytesIO()
    named = {METADATA_KEY: json.dumps({"checksum": NO_CHECKSUM, **metadata})}
    table.write_parquet(content, metadata=named, **how)
    blank = content.getvalue()
    checksum = hashlib.sha256(blank).hexdigest().encode()
    return blank.replace(WRITTEN % NO_CHECKSUM.encode(), WRITTEN % checksum)


def load_run(path: Path) -> Run:
    """Read a run back.

    Raises:
        ArgumentError: if the file is no run of this package, or not as it was written.
    """
    content = read_sealed(path)
    try:
        stored: dict[str, Any] = json.loads(pl.read_parquet_metadata(BytesIO(content))[METADATA_KEY])
        del stored["checksum"]
        run = run_of(stored, pl.read_parquet(BytesIO(content)))
    except ValidationError as error:
        raise ArgumentError(f"{path} is not a result of cbo-gym: {field_errors(error)}") from error
    except (KeyError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise ArgumentError(f"{path} is not a result of cbo-gym: {error}") from error
    _require_table(path, run)
    return run


def read_sealed(path: Path) -> bytes:
    """The content of a file that :func:`sealed` made.

    Raises:
        ArgumentError: if it cannot be read, or is not as it was written.
    """
    if path.exists() and not path.is_file():  # a device or a pipe might never end
        raise ArgumentError(f"cannot read {path}: it is no file")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ArgumentError(f"cannot read {path}: {error.strerror}") from error
    _require_intact(path, content)
    return content


def run_of(stored: Mapping[str, Any], table: pl.DataFrame) -> Run:
    """A run of fields that were stored.

    Raises:
        KeyError, TypeError, ValueError: if one is missing or wrong.
    """
    Version(stored["version"])  # raises, as the next two do
    Mode(stored["mode"])
    datetime.fromisoformat(stored["date"])
    described: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
    }
    return Run(**described, table=table)


def _require_intact(path: Path, content: bytes) -> None:
    found = CHECKSUM.findall(content)
    if len(found) != 1:
        raise ArgumentError(f"{path} is not a result of cbo-gym, or is damaged: it has no checksum")
    blank = content.replace(WRITTEN % found[0], WRITTEN % NO_CHECKSUM.encode())
    if hashlib.sha256(blank).hexdigest().encode() != found[0]:
        raise ArgumentError(f"{path} is damaged: its content does not fit its checksum")


def _require_table(path: Path, run: Run) -> None:
    """A finished run has a row for each round, and the columns with their types."""
    if run.status != "finished":
        return
    schema = run.table.schema
    needed = [name for name in COLUMNS if name not in SOMETIMES]
    wrong = [name for name in {**dict.fromkeys(needed), **schema} if schema.get(name) != COLUMNS.get(name)]
    if wrong or run.table["round"].to_list() != list(range(1, run.horizon + 1)):
        what = f"columns {wrong}" if wrong else f"{run.table.height} rows for {run.horizon} rounds"
        raise ArgumentError(f"{path} is not a result of cbo-gym: its table is wrong: {what}")


def asked_after(recommend: Recommend, horizon: int) -> frozenset[int]:
    """The rounds after which an agent is asked for its recommendation; the last one always.

    Raises:
        ArgumentError: for another word than ``"every"``, ``"powers"`` or ``"end"``.
    """
    if recommend not in get_args(Recommend):
        raise ArgumentError(f"recommend is one of {', '.join(get_args(Recommend))}; given {recommend!r}")
    if recommend == "every":
        return frozenset(range(1, horizon + 1))
    powers = (2**k for k in range(horizon.bit_length())) if recommend == "powers" else ()
    return frozenset(powers) | {horizon}
