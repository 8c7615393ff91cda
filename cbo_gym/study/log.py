"""The log of studies: a database to which rows are appended, and in which nothing is overwritten."""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import DatabaseError, IntegrityError, SQLAlchemyError

from cbo_gym.errors import ArgumentError, OperationError, did_you_mean

SCHEMA = 1
BUSY_SECONDS = 60  # for which a process waits for another's transaction
TRIES = 100  # of a write that others were before
LONGEST_TEXT = 1_000_000  # characters of what one call stores

_tables = sql.MetaData()
_meta = sql.Table("cbo_gym_schema", _tables, sql.Column("version", sql.Integer, primary_key=True))
_studies = sql.Table(
    "studies",
    _tables,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("name", sql.String(200), nullable=False, unique=True),
    sql.Column("description", sql.Text, nullable=False),
    sql.Column("created", sql.String(40), nullable=False),
)
_events = sql.Table(
    "events",
    _tables,
    sql.Column("study", sql.ForeignKey("studies.id"), primary_key=True),
    sql.Column("number", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("kind", sql.String(20), nullable=False),
    sql.Column("payload", sql.Text, nullable=False),
    sql.Column("time", sql.String(40), nullable=False),
    sql.Column("who", sql.String(200), nullable=False),
)
_snapshots = sql.Table(  # a cache: it may be lost at any time
    "snapshots",
    _tables,
    sql.Column("study", sql.ForeignKey("studies.id"), primary_key=True),
    sql.Column("number", sql.Integer, nullable=False),
    sql.Column("stamp", sql.Text, nullable=False),
    sql.Column("state", sql.LargeBinary, nullable=False),
)


@dataclass(frozen=True)
class Event:
    """One row: its number in the study, from 1, what happened, and who wrote it when."""

    number: int
    kind: str
    payload: Mapping[str, Any]
    time: str
    who: str


class Log:
    """A database of studies.

    Args:
        storage: the path of a SQLite file, which is made where it is missing, or any URL of SQLAlchemy.

    Raises:
        OperationError: if the database cannot be opened, is damaged, or of a newer version.
    """

    def __init__(self, storage: Path | str) -> None:
        text = str(storage)
        self.storage = text
        url = text if "://" in text else f"sqlite:///{Path(text).absolute()}"
        try:
            waiting = {"timeout": BUSY_SECONDS} if url.startswith("sqlite") else {}
            self._engine = sql.create_engine(url, connect_args=waiting, poolclass=sql.NullPool)  # nothing stays open
        except (SQLAlchemyError, ImportError) as error:
            raise ArgumentError(f"{text!r} is neither a file nor a database's URL: {error}") from error
        if self._engine.dialect.name == "sqlite":
            sql.event.listen(self._engine, "connect", _set_up_sqlite)
        with self._transaction() as connection:
            _tables.create_all(connection)
            found = connection.execute(sql.select(_meta.c.version)).scalar()
            if found is None:
                connection.execute(_meta.insert().values(version=SCHEMA))
            elif found > SCHEMA:
                raise OperationError(
                    f"{text} is of a newer version of cbo-gym (schema {found}, here {SCHEMA}); upgrade"
                )

    def _transaction(self) -> _Transaction:
        return _Transaction(self._engine, self.storage)

    def names(self) -> list[str]:
        """Of the studies, in the order of their creation."""
        with self._transaction() as connection:
            return list(connection.execute(sql.select(_studies.c.name).order_by(_studies.c.id)).scalars())

    def create(self, name: str, description: str) -> int:
        """A new study; its number.

        Raises:
            ArgumentError: if there is one of this name.
        """
        try:
            with self._transaction() as connection:
                made = connection.execute(_studies.insert().values(name=name, description=description, created=_now()))
                return int(made.inserted_primary_key[0])  # type: ignore[index]
        except IntegrityError as error:
            raise ArgumentError(
                f"{self.storage} has a study {name!r} already; load it, or choose another name"
            ) from error

    def find(self, name: str | None) -> tuple[int, str]:
        """The number and the description of a study; of the only one where no name is given.

        Raises:
            ArgumentError: if there is none, or no name for one of several.
        """
        with self._transaction() as connection:
            rows = connection.execute(sql.select(_studies.c.id, _studies.c.name, _studies.c.description)).all()
        by_name = {row.name: row for row in rows}
        if name is None and len(rows) == 1:
            return rows[0].id, rows[0].description
        if name not in by_name:
            there = f"it has {', '.join(by_name)}" if by_name else "it has none"
            asked = "name the study" if name is None else f"no study is called {name!r}{did_you_mean(name, by_name)}"
            raise ArgumentError(f"{self.storage}: {asked}; {there}")
        return by_name[name].id, by_name[name].description

    def events(self, study: int, after: int = 0) -> list[Event]:
        """Those of a study behind one, in their order."""
        chosen = (
            sql.select(_events).where(_events.c.study == study, _events.c.number > after).order_by(_events.c.number)
        )
        with self._transaction() as connection:
            rows = connection.execute(chosen).all()
        return [Event(row.number, row.kind, json.loads(row.payload), row.time, row.who) for row in rows]

    def append(self, study: int, after: int, entries: Sequence[tuple[str, Mapping[str, Any]]]) -> bool:
        """Append events behind the last one that the writer knows, all or none; False where others were before.

        Raises:
            ArgumentError: if they are too long.
            OperationError: if they cannot be written.
        """
        rows = []
        for place, (kind, payload) in enumerate(entries, start=1):
            text = json.dumps(payload, allow_nan=False)
            if len(text) > LONGEST_TEXT:
                raise ArgumentError(f"what is to be stored has {len(text)} characters; at most {LONGEST_TEXT} are")
            rows.append(
                {"study": study, "number": after + place, "kind": kind, "payload": text, "time": _now(), "who": _who()}
            )
        try:
            with self._transaction() as connection:
                connection.execute(_events.insert(), rows)
        except IntegrityError:
            return False
        return True

    def snapshot(self, study: int) -> tuple[int, str, bytes] | None:
        """The number of the event after which an agent was kept, what it was played with, and the agent."""
        with self._transaction() as connection:
            row = connection.execute(sql.select(_snapshots).where(_snapshots.c.study == study)).first()
        return None if row is None else (row.number, row.stamp, bytes(row.state))

    def keep(self, study: int, number: int, stamp: str, state: bytes) -> None:
        """Put an agent in the place of one that was kept after an earlier event."""
        with self._transaction() as connection:
            connection.execute(_snapshots.delete().where(_snapshots.c.study == study, _snapshots.c.number <= number))
            there = connection.execute(sql.select(_snapshots.c.number).where(_snapshots.c.study == study)).scalar()
            if there is None:
                connection.execute(_snapshots.insert().values(study=study, number=number, stamp=stamp, state=state))

    def forget(self, study: int) -> None:
        """Drop what was kept of an agent."""
        with self._transaction() as connection:
            connection.execute(_snapshots.delete().where(_snapshots.c.study == study))


class _Transaction:
    """A transaction whose errors say which database they are of; two writers of one row are told apart from those."""

    def __init__(self, engine: sql.Engine, storage: str) -> None:
        self._begun, self._storage = engine.begin(), storage

    def __enter__(self) -> sql.Connection:
        try:
            return self._begun.__enter__()
        except (DatabaseError, OSError) as error:
            raise self._blame(error) from error

    def __exit__(self, *raised: Any) -> None:
        try:
            self._begun.__exit__(*raised)
        except (DatabaseError, OSError) as error:
            if not isinstance(error, IntegrityError):
                raise self._blame(error) from error
            raise
        inside = raised[1]
        if isinstance(inside, DatabaseError) and not isinstance(inside, IntegrityError):
            raise self._blame(inside) from inside

    def _blame(self, error: Exception) -> OperationError:
        said = str(getattr(error, "orig", None) or error)
        return OperationError(f"{self._storage}: {said}; nothing was changed by this call")


def _set_up_sqlite(connection: Any, _: object) -> None:
    for pragma in ("journal_mode=WAL", "foreign_keys=ON", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}").close()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _who() -> str:
    try:
        return getpass.getuser()[:200]
    except (OSError, KeyError):  # a user without a name
        return ""
