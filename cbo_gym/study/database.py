"""Access to a database of studies, with errors that name the database, the problem and the remedy."""

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

from cbo_gym._util.files import expand_home
from cbo_gym.errors import ArgumentError, ArgumentTypeError, MissingExtraError, OperationError, printable, short_repr

# Seconds to wait for the transaction of another process, and for a server.
BUSY_SECONDS = 60
CONNECT_SECONDS = 15
# Substrings of the names of a URL's options that are secret, so that messages must not show their values.
SECRETS = ("pass", "secret", "token", "key")
IN_MEMORY = (None, "", ":memory:")

DAMAGED = (
    "the file is damaged, or is not a SQLite database; restore a copy, or save what can be read with "
    "'sqlite3 FILE .recover | sqlite3 NEW'"
)
# Remedies by SQLite's result codes.
ADVICE = {
    sqlite3.SQLITE_FULL: "free space on the disk, then repeat the call",
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written, or is full; check it, then repeat the call",
    sqlite3.SQLITE_READONLY: "neither the file nor its folder may be read-only; change that, or work on a copy",
    sqlite3.SQLITE_CANTOPEN: "the folder must exist, and SQLite must be allowed to write files next to the database",
    sqlite3.SQLITE_BUSY: f"another process has been writing for {BUSY_SECONDS} s; repeat the call",
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
    # The statements never change, so the tables were changed by another program.
    sqlite3.SQLITE_ERROR: DAMAGED,
}


class Database:
    """A SQLite file, or a database on a server.

    Args:
        storage: the path of a SQLite file, or a URL of SQLAlchemy.
        create: whether connecting creates a missing SQLite file; otherwise it fails.

    Attributes:
        address: path or URL by which another process opens the database, with the password of a URL.
        shown: path or URL for messages, without secrets.

    Raises:
        ArgumentError: if the storage is a folder, an in-memory database, or a URL that is not supported.
        ArgumentTypeError: if the storage is neither a string nor a path.
        MissingExtraError: if the library for PostgreSQL is not installed.
    """

    def __init__(self, storage: Path | str, *, create: bool = False) -> None:
        if not isinstance(storage, str | Path):
            raise ArgumentTypeError(f"the storage must be the path of a file, or a URL; given {short_repr(storage)}")
        self._create = create
        url = _url(str(storage))
        is_path = "://" not in str(storage)
        self.address = str(url.database) if is_path else url.render_as_string(hide_password=False)
        hidden = [name for name in url.query if any(secret in name.lower() for secret in SECRETS)]
        redacted = url.update_query_dict(dict.fromkeys(hidden, "..."))
        self.shown = printable(str(storage)) if is_path else redacted.render_as_string(hide_password=True)
        try:
            self._engine = sql.create_engine(url, **_options(url))
        except ModuleNotFoundError as error:
            if error.name == "psycopg":
                raise MissingExtraError("A study on PostgreSQL", "postgresql") from error
            raise ArgumentError(f"{self.shown}: its driver {error.name} is not installed") from error
        except (SQLAlchemyError, TypeError) as error:
            raise ArgumentError(f"{self.shown}: this type of database is not supported") from error
        if self._engine.dialect.is_async:
            raise ArgumentError(f"{self.shown}: the driver must be synchronous, as postgresql+psycopg:// is")
        self.is_sqlite = self._engine.dialect.name == "sqlite"
        if self.is_sqlite and url.database in IN_MEMORY:
            raise ArgumentError("an in-memory database would lose the study at once; give the path of a file")
        if self.is_sqlite:
            sql.event.listen(self._engine, "do_connect", partial(_open_sqlite, "rwc" if create else "rw"))
            sql.event.listen(self._engine, "connect", _set_up_sqlite)
            sql.event.listen(self._engine, "begin", _begin_sqlite)
        self._process = os.getpid()
        weakref.finalize(self, self._engine.dispose)

    def is_missing(self) -> bool:
        """Return whether this is a SQLite file that does not exist."""
        path = self._engine.url.database or ""
        return self.is_sqlite and not Path(url2pathname(urlsplit(path).path) if _is_uri(path) else path).exists()

    @contextmanager
    def transaction(self, *, writes: bool = False) -> Iterator[sql.Connection]:
        """Run one transaction, which is rolled back if anything in it fails.

        Args:
            writes: whether it may write; on SQLite only one transaction at a time may do so.

        Raises:
            IntegrityError: if a row that it inserts already exists.
            OperationError: for any other error of the database, naming it and the remedy.
        """
        # After a fork, the connections belong to the parent process.
        if self._process != os.getpid():
            self._engine.dispose(close=False)
            self._process = os.getpid()
        try:
            with self._engine.execution_options(writes=writes).begin() as connection:
                yield connection
        except IntegrityError:
            raise
        # PostgreSQL's library refuses bytes that are not UTF-8, which a database in SQL_ASCII may hold.
        except (SQLAlchemyError, OSError, UnicodeDecodeError) as error:
            raise self._translate(error) from error

    def require_whole(self, connection: sql.Connection) -> None:
        """Check that a SQLite file is intact, because a damaged index hides rows. A server checks its own files."""
        if self.is_sqlite:
            result = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar()
            if result != "ok":
                raise self.damage_error(" ".join(str(result).split()))

    def write_ahead(self) -> None:
        """Turn on SQLite's write-ahead log, so that readers do not wait for writers. No transaction may be open."""
        if self.is_sqlite:
            try:
                with closing(self._engine.raw_connection()) as connection:
                    connection.cursor().execute("PRAGMA journal_mode=WAL").close()
            except (SQLAlchemyError, sqlite3.Error) as error:
                raise self._translate(error) from error

    def damage_error(self, damage: str) -> OperationError:
        """Return the error for damaged content."""
        return OperationError(f"{self.shown}: {damage}; {DAMAGED if self.is_sqlite else 'restore a copy'}")

    def _translate(self, error: Exception) -> OperationError:
        cause = getattr(error, "orig", None) or error
        message = " ".join(str(cause).split())
        if self.is_missing() and not self._create:
            return OperationError(
                f"{self.shown}: the file was moved or deleted; put it back, or load the study from its new path; "
                "nothing was changed by this call"
            )
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            return OperationError(
                f"{self.shown}: the connection was lost ({message}); whether this call was written is unknown: look "
                "at the trials, and repeat the call if it is missing there"
            )
        code = getattr(cause, "sqlite_errorcode", None)
        # The lower byte is the primary result code.
        advice = None if code is None else ADVICE.get(code & 0xFF)
        return OperationError(
            f"{self.shown}: {message}; nothing was changed by this call{f'; {advice}' if advice else ''}"
        )


def _is_uri(path: str) -> bool:
    """Return whether SQLite would read this path of a URL as another URI."""
    return path.startswith("file:")


def _url(storage: str) -> sql.URL:
    if "\0" in storage:
        raise ArgumentError(f"the storage {storage!r} has a NUL character; give the path of a file, or a URL")
    if "://" not in storage:
        path = expand_home(storage)
        if storage and path.is_dir():
            raise ArgumentError(f"{printable(storage)} is a folder; give a file in it, such as study.db")
        return sql.URL.create("sqlite", database=storage if storage in IN_MEMORY else str(path.absolute()))
    try:
        url = sql.make_url(storage)
    # Messages of these errors may repeat a password.
    except (SQLAlchemyError, ValueError):
        raise ArgumentError(
            f"the storage that begins with {storage.partition('://')[0]!r} is not the URL of a database, such as "
            "postgresql://user:password@host:5432/database; in user and password, write @ as %40 and / as %2F"
        ) from None
    if url.drivername in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() == "sqlite" and url.database not in IN_MEMORY and not _is_uri(str(url.database)):
        return url.set(database=str(Path(str(url.database)).absolute()))
    return url


def _options(url: sql.URL) -> dict[str, Any]:
    """Return the engine's arguments: how it connects, and how it treats connections after a transaction.

    One connection to a server is kept, and tested before it is used again, because connecting takes longer than
    writing. The connection to a SQLite file is closed, so that all content is in one file that no process keeps open.
    """
    backend, arguments = url.get_backend_name(), dict[str, Any]()
    if backend == "sqlite":
        return {"connect_args": {"timeout": BUSY_SECONDS}, "poolclass": sql.NullPool}
    if backend == "postgresql":
        # Without an encoding, the strings of a database in SQL_ASCII come as bytes.
        arguments["client_encoding"] = "utf8"
        if "connect_timeout" not in url.query:
            arguments["connect_timeout"] = CONNECT_SECONDS
    return {"connect_args": arguments, "poolclass": sql.QueuePool, "pool_size": 1, "pool_pre_ping": True}


def _open_sqlite(mode: str, _: object, __: object, arguments: list[Any], options: dict[str, Any]) -> None:
    """Add the mode to the URI of a file: ``rwc`` if SQLite may create the file, else ``rw``."""
    uri = arguments[0] if _is_uri(arguments[0]) else Path(arguments[0]).as_uri()
    address, _, query = uri.partition("?")
    fields = dict(parse_qsl(query))
    if fields.get("mode", "rwc") == "rwc":
        fields["mode"] = mode
    arguments[0] = f"{address}?{urlencode(fields)}"
    options["uri"] = True


def _set_up_sqlite(connection: Any, _: object) -> None:
    # Strings that are not UTF-8 are read too, so that a damaged row can be named.
    connection.text_factory = lambda content: content.decode(errors="surrogateescape")
    # By default Python begins transactions late, and begins none for a change of tables.
    connection.isolation_level = None
    for pragma in ("foreign_keys=ON", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(connection: sql.Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    # A transaction that begins as a reader fails at its first write, instead of waiting, if another one writes.
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
