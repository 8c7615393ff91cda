"""Opening a database, and what its errors mean: which database, what went wrong, and what to do about it."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit
from urllib.request import url2pathname

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from cbo_gym.errors import ArgumentError, ArgumentTypeError, MissingExtraError, OperationError, printable, shown

BUSY_SECONDS = 60  # for which a process waits for another's transaction
CONNECT_SECONDS = 15  # for which it waits for a server
SECRETS = ("pass", "secret", "token", "key")  # parts of the names of options that nobody is shown
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
        create: whether connecting makes a SQLite file that is missing; else it fails.

    Attributes:
        storage: the same database for another process, with the password of a URL.
        shown: the database as messages show it, without secrets.

    Raises:
        ArgumentError: if it is neither, in memory alone, or a folder.
        ArgumentTypeError: if it is no path at all.
        MissingExtraError: if the library for PostgreSQL is not installed.
    """

    def __init__(self, storage: Path | str, *, create: bool = False) -> None:
        if not isinstance(storage, str | Path):
            raise ArgumentTypeError(f"the storage must be the path of a file, or a URL; given {shown(storage)}")
        self._create = create
        url = _url(str(storage))
        is_path = "://" not in str(storage)
        self.storage = str(url.database) if is_path else url.render_as_string(hide_password=False)
        secret = [name for name in url.query if any(part in name.lower() for part in SECRETS)]
        without = url.update_query_dict(dict.fromkeys(secret, "..."))
        self.shown = printable(str(storage)) if is_path else without.render_as_string(hide_password=True)
        try:
            self._engine = sql.create_engine(url, **_options(url))
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
            sql.event.listen(self._engine, "do_connect", partial(_open_sqlite, "rwc" if create else "rw"))
            sql.event.listen(self._engine, "connect", _set_up_sqlite)
            sql.event.listen(self._engine, "begin", _begin_sqlite)
        self._process = os.getpid()
        weakref.finalize(self, self._engine.dispose)

    def is_missing(self) -> bool:
        """Whether this is a SQLite file that does not exist."""
        path = self._engine.url.database or ""
        return self.is_sqlite and not Path(url2pathname(urlsplit(path).path) if _is_uri(path) else path).exists()

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
        # PostgreSQL's library refuses bytes that are not UTF-8, which a database in SQL_ASCII may hold
        except (SQLAlchemyError, OSError, UnicodeDecodeError) as error:
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
                with closing(self._engine.raw_connection()) as connection:
                    connection.cursor().execute("PRAGMA journal_mode=WAL").close()
            except (SQLAlchemyError, sqlite3.Error) as error:
                raise self._named(error) from error

    def damaged(self, what: str) -> OperationError:
        """The error of a part that is not as it was written."""
        return OperationError(f"{self.shown}: {what}; {DAMAGED if self.is_sqlite else 'restore a copy'}")

    def _named(self, error: Exception) -> OperationError:
        cause = getattr(error, "orig", None) or error
        said = " ".join(str(cause).split())
        if self.is_missing() and not self._create:
            return OperationError(
                f"{self.shown}: the file is gone, moved or deleted; put it back, or load the study from its new path; "
                "nothing was changed by this call"
            )
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


def _is_uri(path: str) -> bool:
    """Whether SQLite would read this path of a URL as a URI of its own."""
    return path.startswith("file:")


def _url(text: str) -> sql.URL:
    if "\0" in text:
        raise ArgumentError(f"the storage {text!r} has a NUL character; give the path of a file, or a URL")
    if "://" not in text:
        if text and Path(text).is_dir():
            raise ArgumentError(f"{printable(text)} is a folder; give a file in it, such as study.db")
        return sql.URL.create("sqlite", database=text if text in IN_MEMORY else str(Path(text).absolute()))
    try:
        url = sql.make_url(text)
    except (SQLAlchemyError, ValueError):  # whose texts may repeat a password
        raise ArgumentError(
            f"the storage that begins with {text.partition('://')[0]!r} is no URL of a database, as in "
            "postgresql://user:password@host:5432/database; in user and password, write @ as %40 and / as %2F"
        ) from None
    if url.drivername in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite" and url.database not in IN_MEMORY and not _is_uri(str(url.database)):
        return url.set(database=str(Path(str(url.database)).absolute()))
    return url


def _options(url: sql.URL) -> dict[str, Any]:
    """Arguments of the engine: how it connects, and how connections are treated after a transaction.

    To connect to a server takes longer than to write there, so one connection is kept, and tried before it is used
    again. That of a SQLite file is closed, so that all that was written is in the one file and no process holds it.
    """
    kind, arguments = url.get_backend_name(), {}
    if kind == "sqlite":
        return {"connect_args": {"timeout": BUSY_SECONDS}, "poolclass": sql.NullPool}
    if kind == "postgresql":
        # Without an encoding, the strings of a database in SQL_ASCII come as bytes.
        waiting = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_SECONDS}
        arguments = {"client_encoding": "utf8", **waiting}
    return {"connect_args": arguments, "poolclass": sql.QueuePool, "pool_size": 1, "pool_pre_ping": True}


def _open_sqlite(mode: str, _: object, __: object, arguments: list[Any], options: dict[str, Any]) -> None:
    """Say in the URI of a file whether SQLite may make it; by default it does."""
    address, _, query = arguments[0].partition("?") if _is_uri(arguments[0]) else (Path(arguments[0]).as_uri(), "", "")
    fields = dict(parse_qsl(query))
    if fields.get("mode", "rwc") == "rwc":
        fields["mode"] = mode
    arguments[0] = f"{address}?{urlencode(fields)}"
    options["uri"] = True


def _set_up_sqlite(connection: Any, _: object) -> None:
    # strings that are not UTF-8 are read too, so that a damaged row can be named
    connection.text_factory = lambda content: content.decode(errors="surrogateescape")
    connection.isolation_level = None  # else Python begins transactions late, and not for a change of tables
    for pragma in ("foreign_keys=ON", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: sql.Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")  # a reader that turns writer cannot wait
