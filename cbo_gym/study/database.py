"""Opening a database, and what its errors mean: which database, what went wrong, and what to do about it."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from cbo_gym.errors import ArgumentError, MissingExtraError, OperationError

BUSY_SECONDS = 60  # for which a process waits for another's transaction
CONNECT_SECONDS = 15  # for which it waits for a server
SECRETS = ("pass", "secret", "token", "key")  # parts of the names of options that nobody is shown
HIDDEN = "..."
IN_MEMORY = (None, "", ":memory:")

DAMAGED = (
    "the file is damaged, or no SQLite database; restore a copy, or save what can be read with "
    "'sqlite3 FILE .recover | sqlite3 NEW'"
)
ADVICE = {  # what to do, by SQLite's result codes
    sqlite3.SQLITE_FULL: "make room on the disk, then repeat the call",
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written, or is full; check it, then repeat the call",
    sqlite3.SQLITE_READONLY: "neither the file nor its folder may be read-only; change that, or work on a copy",
    sqlite3.SQLITE_CANTOPEN: "the folder must exist, and SQLite must be allowed to write files beside the database",
    sqlite3.SQLITE_BUSY: f"another process has been writing for {BUSY_SECONDS} s; repeat the call",
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
    sqlite3.SQLITE_ERROR: DAMAGED,  # of statements that never change: their tables are not what was made
}


class Database:
    """A SQLite file, or a database on a server.

    Args:
        storage: the path of a SQLite file, or a URL of SQLAlchemy.

    Raises:
        ArgumentError: if it is neither, or in memory alone.
        MissingExtraError: if the library for PostgreSQL is not installed.
    """

    def __init__(self, storage: Path | str) -> None:
        url = _url(str(storage))
        self.shown = str(storage) if "://" not in str(storage) else without_secrets(url)
        try:
            self._engine = sql.create_engine(url, connect_args=_waiting(url), **_pool(url))
        except ModuleNotFoundError as error:
            if error.name == "psycopg":
                raise MissingExtraError("A study on PostgreSQL", "postgresql") from error
            raise ArgumentError(f"{self.shown}: its driver {error.name} is not installed") from error
        except (SQLAlchemyError, TypeError) as error:
            raise ArgumentError(f"{self.shown}: there is no such kind of database") from error
        if self._engine.dialect.is_async:
            raise ArgumentError(f"{self.shown}: the driver must be a synchronous one, as of postgresql+psycopg://")
        self.is_sqlite = self._engine.dialect.name == "sqlite"
        if self.is_sqlite and url.database in IN_MEMORY:
            raise ArgumentError("a study in memory would be forgotten at once; give the path of a file")
        if self.is_sqlite:
            sql.event.listen(self._engine, "connect", _set_up_sqlite)
            sql.event.listen(self._engine, "begin", _begin_sqlite)
        self._process = os.getpid()
        weakref.finalize(self, self._engine.dispose)

    def is_there(self) -> bool:
        """Whether there is something to look into; to connect to a SQLite file that is missing would make one."""
        path = self._engine.url.database or ""
        return not self.is_sqlite or path.startswith("file:") or Path(path).exists()

    @contextmanager
    def transaction(self, *, writes: bool = False) -> Iterator[sql.Connection]:
        """One transaction, which is taken back as a whole where anything in it fails.

        Args:
            writes: whether it may write. Only one at a time may, on SQLite.

        Raises:
            IntegrityError: if a row is there already.
            OperationError: for all else that the database refuses, naming it and what to do.
        """
        if self._process != os.getpid():  # this is a fork, and the connections are its parent's
            self._engine.dispose(close=False)
            self._process = os.getpid()
        try:
            with self._engine.execution_options(writes=writes).begin() as connection:
                yield connection
        except IntegrityError:
            raise
        except (SQLAlchemyError, OSError, UnicodeDecodeError) as error:  # the last of damaged texts
            raise self._named(error) from error

    def require_whole(self, connection: sql.Connection) -> None:
        """Look through a SQLite file, for a damaged index hides rows that are there. A server sees to that itself.

        Raises:
            OperationError: naming what is wrong.
        """
        if self.is_sqlite:
            found = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
            if found != "ok":
                raise self.damaged(" ".join(str(found).split()))

    def write_ahead(self) -> None:
        """Let readers of a SQLite file not wait for writers, from now on; it cannot be said within a transaction."""
        if self.is_sqlite:
            try:
                connection = self._engine.raw_connection()
                try:
                    connection.cursor().execute("PRAGMA journal_mode=WAL").close()
                finally:
                    connection.close()
            except (SQLAlchemyError, sqlite3.Error) as error:
                raise self._named(error) from error

    def damaged(self, what: str) -> OperationError:
        """The error of a part that is not as it was written."""
        return OperationError(f"{self.shown}: {what}; {DAMAGED if self.is_sqlite else 'restore a copy'}")

    def _named(self, error: Exception) -> OperationError:
        cause = getattr(error, "orig", None) or error
        said = " ".join(str(cause).split())
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            return OperationError(
                f"{self.shown}: the connection was lost ({said}); whether this call was written is not known: look at "
                "the trials, then repeat it if it is not there"
            )
        code = getattr(cause, "sqlite_errorcode", None)
        advice = None if code is None else ADVICE.get(code & 0xFF)  # without what SQLite adds to tell cases apart
        return OperationError(
            f"{self.shown}: {said}; nothing was changed by this call{f'; {advice}' if advice else ''}"
        )


def without_secrets(url: sql.URL) -> str:
    """A URL as it may be shown to anybody."""
    hidden = {name: HIDDEN for name in url.query if any(part in name.lower() for part in SECRETS)}
    return url.update_query_dict(hidden).render_as_string(hide_password=True)


def _url(text: str) -> sql.URL:
    if "://" not in text:
        return sql.URL.create("sqlite", database=text if text in IN_MEMORY else str(Path(text).absolute()))
    try:
        url = sql.make_url(text)
    except (SQLAlchemyError, ValueError):  # whose texts may repeat a password
        raise ArgumentError(
            f"the storage that begins with {text.partition('://')[0]!r} is no URL of a database, as in "
            "postgresql://user:password@host:5432/database; in user and password, write @ as %40 and / as %2F"
        ) from None
    return url.set(drivername="postgresql+psycopg") if url.drivername in ("postgresql", "postgres") else url


def _waiting(url: sql.URL) -> dict[str, Any]:
    kind = url.get_backend_name()
    if kind == "sqlite":
        return {"timeout": BUSY_SECONDS}
    return {"connect_timeout": CONNECT_SECONDS} if kind == "postgresql" and "connect_timeout" not in url.query else {}


def _pool(url: sql.URL) -> dict[str, Any]:
    """How connections are treated after a transaction.

    To connect to a server takes longer than to write there, so one connection is kept, and tried before it is used
    again. That of a SQLite file is closed, so that all that was written is in the one file and no process holds it.
    """
    if url.get_backend_name() == "sqlite":
        return {"poolclass": sql.NullPool}
    return {"poolclass": sql.QueuePool, "pool_size": 1, "pool_pre_ping": True}


def _set_up_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # else Python begins transactions late, and not for a change of tables
    for pragma in ("foreign_keys=ON", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: sql.Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")  # a reader that turns writer cannot wait
