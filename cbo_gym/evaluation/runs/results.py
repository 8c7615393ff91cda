"""Run: the result of one run, and its file: Parquet with a checksum, named by a hash of the run's description."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, fields
from datetime import datetime
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np
import polars as pl
from packaging.version import Version
from pydantic import ConfigDict, NonNegativeInt, PositiveInt, ValidationError
from pydantic.dataclasses import dataclass

from cbo_gym._util.arguments import MAX_SEED, require_word
from cbo_gym._util.files import write_bytes
from cbo_gym._util.lazy import LazyMethod
from cbo_gym._util.validation import field_errors
from cbo_gym.errors import ArgumentError, did_you_mean, short_repr
from cbo_gym.task import Mode
from cbo_gym.version import __version__

METADATA_KEY = "cbo_gym"
# Attribute that a published run has instead of its table.
CURVES = "_curves"
# Limits of untrusted files, far above those of our own: a store has at most 40 MiB, a run of 2,000 rounds on 100 nodes
# 3 MiB, and in memory 5,000 runs of 2,000 rounds take 0.4 GiB. Lengths are in characters.
MAX_FILE_BYTES = 256 * 2**20
MAX_ROUNDS = 1_000_000
MAX_METADATA_LENGTH = 4 * 2**20
MAX_LABEL_LENGTH = 10_000
MAX_REASON_LENGTH = 300
# Stands for the checksum while it is computed.
NO_CHECKSUM = "0" * 64
# No string in the metadata looks like this, because JSON escapes quotation marks.
CHECKSUM_FIELD = b'"checksum": "%b"'
CHECKSUM = re.compile(CHECKSUM_FIELD % b"([0-9a-f]{64})")
Status = Literal["finished", "failed", "skipped"]
# Rounds after which an agent is asked for its recommendation.
Recommend = Literal["every", "powers", "end"]

#: Columns of a run's table. Those of :data:`OPTIONAL_COLUMNS` exist only if the mode has contexts, choices or
#: slices, or the task has costs, constraints or several objectives. A violation is the sum of the constraints'
#: shortfalls, in the nodes' units. With several objectives, a reward is the hypervolume of all observations so far, and
#: an expected reward that of the expected rewards of the actions so far; ``rewards`` and ``expected_rewards`` are those
#: of the round alone; ``recommended_rewards`` are the expected rewards of the recommended actions, concatenated.
COLUMNS: dict[str, Any] = {
    "round": pl.Int64,
    "action": pl.List(pl.Float64),
    "recommended": pl.List(pl.Float64),
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
    "gd_plus": pl.Float64,
    "igd_plus": pl.Float64,
    "rewards": pl.List(pl.Float64),
    "expected_rewards": pl.List(pl.Float64),
    "recommended_rewards": pl.List(pl.Float64),
}
CONSTRAINT_COLUMNS = ("feasible", "violation", "recommended_feasible", "recommended_violation")
OPTIONAL_COLUMNS = (
    "recommended", "context", "context_regret", "choice", "cost", *CONSTRAINT_COLUMNS, "slice", "random_reward",
    "gd_plus", "igd_plus", "rewards", "expected_rewards", "recommended_rewards",
)  # fmt: skip
TIMING_COLUMNS = ("act_seconds", "update_seconds", "recommend_seconds")
# Columns that must have a finite number in every round, if they exist.
FINITE_COLUMNS = (
    "round", "reward", "context_regret", "best_so_far_regret", "expected_reward", "instant_regret",
    "cumulative_regret", "average_regret", "average_reward", *TIMING_COLUMNS, "choice", "cost", "feasible", "slice",
    "random_reward",
)  # fmt: skip
# Errors of reading a file that is not a result.
INVALID_FILE_ERRORS = (
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
)


class NewerError(ArgumentError):
    """A file is of a newer version of cbo-gym; this version must not change it."""


class StoredCurves(Protocol):
    """Curves of a published run, from which its table is computed; curves of the same ``kind`` can be stacked fast."""

    @property
    def kind(self) -> Hashable: ...

    @property
    def columns(self) -> tuple[str, ...]: ...

    def table(self) -> pl.DataFrame: ...

    def stack(self, others: Sequence[Any], names: Sequence[str]) -> dict[str, np.ndarray]: ...


@dataclass(frozen=True, repr=False, config=ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True))
class Run:
    """A run: its description, its status, and a table with one row per round, which is empty unless it finished.

    Attributes:
        agent, env: Labels, with parameters.
        seed: Seed of the noise, the initial data and the agent.
        horizon: Number of rounds.
        mode: Feedback mode.
        status: Whether the run finished, failed or was skipped, because the agent does not play the mode.
        error: Traceback of a failed run, or the reason why it was skipped.
        recommend: Rounds after which the agent was asked for its recommendation: ``"every"`` round, ``"powers"`` of
            two and the last round, or the ``"end"``. In other rounds the columns of the recommendation are null.
        batch: Number of actions chosen at a time.
        sources: Code of the run, name -> revision, or hash of third-party code, see
            :func:`cbo_gym.evaluation.runs.revisions.sources`: ``{"CBO/Dropwave-v0": "1", "MCBO": "2"}``.
        version: Version of cbo-gym.
        commit: Commit of a checkout, with ``-dirty`` if files differed from it; empty for an installed package.
        date: Date and time of the run's end, in UTC: ``2026-01-31T12:00:00+00:00``.
        machine: Cores and processor.
        libraries: Name -> version, Python and the linear algebra library with its kernels included.
        threads: Name -> number of threads of a library.
        reset_seconds: Seconds of ``reset``, the initial data included; not part of the rounds' seconds.
        optimum, optimum_standard_error: Best expected reward of an action, and its standard error.
        random_value: Expected reward of a random action.
        initial_expected: Best expected reward of an action in the initial data; ``random_value`` without such data;
            None in runs of versions that did not keep it.
        initial_reward: Best observed reward of an intervention in the initial data; otherwise as ``initial_expected``.
        choices: Names of the target sets or scopes that the column ``choice`` counts from 0.
        isolated: Whether the agent played in a separate process.
        secret: Secret of a blind run, see :mod:`cbo_gym.evaluation.play.seeds`; empty otherwise.
        unverified: Whether the run is of a submission whose agent could not be played again. Such runs are shown apart
            and never ranked.
        actions, recommendations: Actions and recommendations of a submission, see
            :func:`cbo_gym.evaluation.runs.recorded.with_actions`; empty if the table has them, or they were not kept.
        table: Columns as in :data:`COLUMNS`.

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
    batch: PositiveInt = 1
    sources: dict[str, str] = field(default_factory=dict)
    version: str = __version__
    commit: str = ""
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
    isolated: bool = False
    secret: str = ""
    unverified: bool = False
    actions: str = ""
    recommendations: str = ""
    table: pl.DataFrame = field(default_factory=pl.DataFrame, compare=False)

    plot = LazyMethod("cbo_gym.evaluation.report.plots:plot_run", "Regrets against rounds, as a figure of Matplotlib.")
    _repr_html_ = LazyMethod("cbo_gym.evaluation.report.page:show_run", "HTML for a notebook.")

    def __repr__(self) -> str:
        # The environment of a custom problem has the whole problem among its parameters.
        return (
            f"Run(agent={self.agent!r}, env={short_repr(self.env)}, seed={self.seed}, horizon={self.horizon}, "
            f"status={self.status!r})"
        )

    @property
    def id(self) -> str:
        """Permanent id of 24 hexadecimal digits, by which ``cbo-gym replay ID`` finds a published run.

        It is a hash of agent and environment with their parameters, seed, horizon, ``recommend``, ``batch`` and
        :attr:`sources`.
        """
        return Path(name_of(self)).stem

    @property
    def columns(self) -> Collection[str]:
        """Names of the table's columns, without computing the table."""
        curves = vars(self).get(CURVES)
        return self.table.columns if curves is None else curves.columns

    def load_curves(self) -> pl.DataFrame:
        """Return the table; the table of a published run is computed from the stored curves at each call."""
        curves = vars(self).get(CURVES)
        return self.table if curves is None else curves.table()

    def __getattr__(self, name: str) -> Any:
        """Compute the table of a published run."""
        if name == "table" and CURVES in vars(self):
            return self.load_curves()
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with the table instead of the curves, which the runs of a file share."""
        return {**{name: value for name, value in vars(self).items() if name != CURVES}, "table": self.load_curves()}

    def curve(self, name: str) -> np.ndarray:
        """Return a column of the table as an array of shape ``(rounds,)``; null is NaN.

        Raises:
            ArgumentError: if the table has no such column.
        """
        return self._stack(name)[0]

    def _stack(self, *names: str) -> np.ndarray:
        """Return columns of the table, shape ``(columns, rounds)``."""
        if missing := [name for name in names if name not in self.columns]:
            why = "" if self.status == "finished" else f", because the run is {self.status}: {last_line(self.error)}"
            raise ArgumentError(
                f"{self!r} has no column {short_repr(missing[0])}{did_you_mean(missing[0], self.columns)}; it has "
                f"{list(self.columns)}{why}"
            )
        return np.concatenate(list(stack_curves([self], names).values()))

    @property
    def by_batch(self) -> pl.DataFrame:
        """Table with a row for each batch of actions.

        Its columns are ``batch``, from 1; the number of ``actions``; the mean ``reward`` and ``expected_reward``; the
        ``best_expected_reward``; and after the last action ``cumulative_regret``, ``average_regret``,
        ``best_so_far_regret`` and ``simple_regret``.
        """
        after = ("cumulative_regret", "average_regret", "best_so_far_regret", "simple_regret")
        return (
            self.table.with_columns(batch=(pl.col("round") - 1) // self.batch + 1)
            .group_by("batch", maintain_order=True)
            .agg(
                pl.len().cast(pl.Int64).alias("actions"),
                pl.col("reward", "expected_reward").mean(),
                pl.col("expected_reward").max().alias("best_expected_reward"),
                pl.col(*after).last(),
            )
        )

    @property
    def seconds(self) -> np.ndarray:
        """The agent's own seconds in each round: ``act``, ``update`` and ``recommend`` together."""
        return self._stack(*TIMING_COLUMNS).sum(0)

    @property
    def is_constrained(self) -> bool:
        """Whether the task has constraints."""
        return "feasible" in self.columns

    @property
    def average_penalized_reward(self) -> float:
        """Mean expected reward of the rounds, with the penalties of :func:`.regret.penalized_rewards`."""
        if self.is_constrained:
            return float(self.optimum - self.curve("average_regret")[-1])
        return float(self.curve("average_reward")[-1])

    @property
    def seconds_a_round(self) -> float:
        """Mean of :attr:`seconds` over the rounds."""
        return float(self.seconds.mean())


def with_curves(run: Run, curves: StoredCurves) -> Run:
    """Replace the table of ``run`` by curves from which it is computed, in place; return ``run``."""
    del run.__dict__["table"]
    run.__dict__[CURVES] = curves
    return run


def kind_of(run: Run) -> Hashable:
    """Return the kind of a run's curves; runs of the same kind and horizon can be stacked."""
    curves = vars(run).get(CURVES)
    return tuple(run.table.columns) if curves is None else curves.kind


def stack_curves(runs: Sequence[Run], names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return name -> column of finished runs with the same horizon, shape ``(runs, rounds)``; null is NaN."""
    stored = [vars(run).get(CURVES) for run in runs]
    if stored[0] is not None and all(curves is not None and curves.kind == stored[0].kind for curves in stored):
        return stored[0].stack(stored, names)
    rows = [[table[name].to_numpy() for name in names] for table in (run.table for run in runs)]
    return {name: np.stack(columns) for name, columns in zip(names, zip(*rows, strict=True), strict=True)}


def last_line(error: str) -> str:
    """Return the last line of a run's error, shortened and printable."""
    lines = error.strip().splitlines() or ["no reason was given"]
    printable_line = "".join(character if character.isprintable() else " " for character in lines[-1])
    return printable_line if len(printable_line) <= MAX_REASON_LENGTH else f"{printable_line[:MAX_REASON_LENGTH]}..."


def run_name(
    agent: str, env: str, seed: int, horizon: int, recommend: Recommend, sources: Mapping[str, str], batch: int = 1
) -> str:
    """Return the name of a run's file: a hash of all that determines the run."""
    # Names of runs with single actions are those of versions without batches.
    batches = [batch] if batch > 1 else []
    identity = json.dumps([agent, env, seed, horizon, recommend, sorted(sources.items()), *batches])
    return f"{hashlib.sha256(identity.encode()).hexdigest()[:24]}.parquet"


def name_of(run: Run) -> str:
    """Return the name of the file in which a run belongs."""
    return run_name(run.agent, run.env, run.seed, run.horizon, run.recommend, run.sources, run.batch)


def save_run(path: Path, run: Run) -> None:
    """Write a run in one step: a reader sees the whole file or none; raise OperationError if that fails."""
    write_bytes(path, run_to_bytes(run))


def run_to_bytes(run: Run) -> bytes:
    """Return the content of a run's file."""
    metadata = {entry.name: getattr(run, entry.name) for entry in fields(run) if entry.name != "table"}
    table = run.table if run.table.width else pl.DataFrame({"round": pl.Series([], dtype=pl.Int64)})
    return encode_table(table, metadata)


def encode_table(table: pl.DataFrame, metadata: Mapping[str, Any], **options: Any) -> bytes:
    """Return a table as the content of a Parquet file, with a checksum in its metadata.

    Args:
        table: Table to write.
        metadata: Values that JSON can hold.
        options: More arguments of Polars' ``write_parquet``.
    """
    content = BytesIO()
    description = {METADATA_KEY: as_json({"checksum": NO_CHECKSUM, **metadata})}
    table.write_parquet(content, metadata=description, **options)
    blank = content.getvalue()
    checksum = hashlib.sha256(blank).hexdigest().encode()
    return blank.replace(CHECKSUM_FIELD % NO_CHECKSUM.encode(), CHECKSUM_FIELD % checksum)


def as_json(value: object) -> str:
    """Return a value of a run's metadata as JSON."""
    return json.dumps(value, sort_keys=True)


def load_run(path: Path) -> Run:
    """Read a run from a file.

    Raises:
        ArgumentError: if the file is not a run of this package, is damaged, or is too large.
    """
    return run_from_bytes(content_of(path), path)


def run_from_bytes(content: bytes, path: Path) -> Run:
    """Read a run from the content of its file.

    Args:
        content: Content of the file, as :func:`run_to_bytes` writes it.
        path: Path of the file, for errors.
    """
    require_intact(path, content)
    stored: dict[str, Any] = {}
    try:
        stored |= metadata_of(content)
        del stored["checksum"]
        run = run_of(stored, pl.read_parquet(BytesIO(content)))
        _require_table(run)
    except ValidationError as error:
        raise _unreadable(path, stored, field_errors(error)) from error
    except INVALID_FILE_ERRORS as error:
        raise _unreadable(path, stored, str(error)) from error
    return run


def _unreadable(path: Path, stored: Mapping[str, Any], reason: str) -> ArgumentError:
    """Return the error of a file that cannot be read: it is of a newer version, or not a result."""
    # The file may lack a valid version.
    with suppress(KeyError, TypeError, ValueError):
        if Version(stored["version"]) > Version(__version__):
            which = f"of cbo-gym {stored['version']}, which this one, {__version__}, cannot read"
            return NewerError(f"{path} is {which}; install the newer one: {reason}")
    return ArgumentError(f"{path} is not a result of cbo-gym: {reason}")


def content_of(path: Path) -> bytes:
    """Read a file of results; raise ArgumentError if it cannot be read, or is too large."""
    try:
        # A device or a pipe might never end.
        if path.exists() and not path.is_file():
            raise ArgumentError(f"cannot read {path}: it is not a file")
        if (size := path.stat().st_size) > MAX_FILE_BYTES:
            raise ArgumentError(f"{path} is not read: it has {_mib(size)}; at most {_mib(MAX_FILE_BYTES)} are")
        return path.read_bytes()
    except OSError as error:
        raise ArgumentError(f"cannot read {path}: {error.strerror}") from error


def metadata_of(source: Path | bytes) -> dict[str, Any]:
    """Return the metadata that :func:`encode_table` wrote; raise one of :data:`INVALID_FILE_ERRORS` without any."""
    metadata = pl.read_parquet_metadata(BytesIO(source) if isinstance(source, bytes) else source)
    return dict(from_json(metadata[METADATA_KEY]))


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


def from_json(string: str) -> Any:
    """Read an untrusted JSON string; raise ValueError if it is invalid, too long or nested, or has surrogates."""
    if len(string) > MAX_METADATA_LENGTH:
        raise ArgumentError(f"its description has {len(string)} characters; at most {MAX_METADATA_LENGTH} are read")
    try:
        value = json.loads(string)
        if "\\u" in string:
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except RecursionError as error:
        raise ArgumentError("its description is nested too deep") from error


def run_of(stored: Mapping[str, Any], table: pl.DataFrame) -> Run:
    """Return the run with some fields and table; raise an error of :data:`INVALID_FILE_ERRORS` if a field is wrong."""
    # These calls raise an error for an invalid value.
    Version(stored["version"])
    Mode(stored["mode"])
    datetime.fromisoformat(stored["date"])
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
    }
    # A field of older versions.
    values.pop("restamps", None)
    run = Run(**values, table=table)
    for noun, size, limit in (
        ("rounds", run.horizon, MAX_ROUNDS),
        ("characters of its agent", len(run.agent), MAX_LABEL_LENGTH),
        ("characters of its environment", len(run.env), MAX_LABEL_LENGTH),
    ):
        if size > limit:
            raise ArgumentError(f"it has {size} {noun}; at most {limit} are read")
    if run.seed > MAX_SEED:
        raise ArgumentError(f"its seed is {run.seed}; at most {MAX_SEED} is read")
    if run.status == "finished" and not np.isfinite([run.optimum, run.random_value]).all():
        raise ArgumentError(f"its optimum {run.optimum} and random value {run.random_value} must be finite numbers")
    return run


def require_intact(path: Path, content: bytes) -> None:
    """Raise ArgumentError unless the content of a file has the checksum that :func:`encode_table` gave it."""
    matches = list(islice(CHECKSUM.finditer(content), 2))
    if len(matches) != 1:
        raise ArgumentError(f"{path} is not a result of cbo-gym, or is damaged: it has no checksum")
    start, end = matches[0].span(1)
    # A view avoids a copy of the content.
    view, digest = memoryview(content), hashlib.sha256()
    for section in (view[:start], NO_CHECKSUM.encode(), view[end:]):
        digest.update(section)
    if digest.hexdigest().encode() != matches[0][1]:
        raise ArgumentError(f"{path} is damaged: its content does not fit its checksum")


def _require_table(run: Run) -> None:
    """Check that a run has no unknown columns, and that a finished run has all columns without missing numbers."""
    schema, is_finished = run.table.schema, run.status == "finished"
    needed = [name for name in COLUMNS if name not in OPTIONAL_COLUMNS] if is_finished else []
    if wrong := [name for name in dict.fromkeys([*needed, *schema]) if schema.get(name) != COLUMNS.get(name)]:
        raise ArgumentError(f"its table is wrong: columns {wrong}")
    if not is_finished:
        return
    if run.table.height != run.horizon:
        raise ArgumentError(f"its table is wrong: {run.table.height} rows for {run.horizon} rounds")
    finite = {name: run.table[name] for name in FINITE_COLUMNS if name in schema}
    if wrong := [name for name, column in finite.items() if not all_finite(column)]:
        raise ArgumentError(f"its table is wrong: there must be a finite number in every round of {wrong[0]}")
    if not all_finite(run.table["simple_regret"].tail(1)):
        raise ArgumentError("its table is wrong: there must be a finite simple_regret after the last round")
    if (finite["round"].to_numpy() != np.arange(1, run.horizon + 1)).any():
        raise ArgumentError("its table is wrong: its rounds must be counted from 1")
    require_choices(finite.get("choice"), len(run.choices))


def require_choices(chosen: pl.Series | np.ndarray | None, count: int) -> None:
    """Raise ArgumentError unless all indices of chosen sets are below ``count``, the number of names."""
    # Runs created by hand may have choices without names.
    if chosen is None or not count:
        return
    low, high = int(chosen.min()), int(chosen.max())  # type: ignore[arg-type]
    if low < 0 or high >= count:
        raise ArgumentError(f"it chose {low if low < 0 else high}; there are {count} choices, counted from 0")


def all_finite(column: pl.Series) -> bool:
    """Return whether no value is null, NaN or infinite."""
    return not column.null_count() and (not column.dtype.is_float() or bool(column.is_finite().all()))


def recommendation_rounds(recommend: Recommend, horizon: int, batch: int = 1) -> frozenset[int]:
    """Return the rounds after which an agent is asked for its recommendation, which are last rounds of batches."""
    require_word("recommend", recommend, get_args(Recommend))
    rounds = [horizon]
    if recommend == "every":
        rounds = list(range(1, horizon + 1))
    elif recommend == "powers":
        rounds += [2**k for k in range(horizon.bit_length())]
    # A round counts as the last round of its batch.
    return frozenset(min(horizon, math.ceil(number / batch) * batch) for number in rounds)
