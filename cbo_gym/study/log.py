"""The log of studies: a database in which each change of a study is an event, appended and never overwritten.

The state of a study follows from its events. Another table holds copies of agents, a cache that may be lost.
"""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sql
from sqlalchemy.exc import IntegrityError

from cbo_gym.errors import ArgumentError, OperationError, did_you_mean
from cbo_gym.study import schema
from cbo_gym.study.database import Database
from cbo_gym.study.schema import SCHEMA, digest, events, snapshots, studies
from cbo_gym.study.strings import replace_surrogates, require_storable

# Number of attempts to write while other processes write too.
TRIES = 100
# Largest number of characters of an event's payload.
MAX_PAYLOAD = 1_000_000
# Kinds of events that add past rounds. Versions that do not know campaigns would misread some rounds; these have the
# kind "past", which such versions refuse.
DATA_KINDS = ("data", "past")
# Most kinds are named after a method of the study; "partial" is a part of an outcome, which is not final yet.
KINDS = (*DATA_KINDS, "asked", "registered", "told", "partial", "closed", "failed", "rejected", "corrected")
# Kind and payload of an event that is to be written.
NewEvent = tuple[str, Mapping[str, Any]]


class Position(NamedTuple):
    """Number and digest of the last event that a reader knows; before the first event, 0 and the description's."""

    number: int
    digest: str


class StudyRow(NamedTuple):
    """A study in a database: its number there, its description, and the digest of the description."""

    number: int
    description: str
    digest: str


class ReplacedError(OperationError):
    """The database was replaced by another one after a study was loaded from it."""


@dataclass(frozen=True)
class Event:
    """One change of a study.

    Attributes:
        number: its number in the study, from 1.
        kind: one of :data:`KINDS`.
        payload: its content, which depends on the kind.
        time: when it was written, in UTC.
        who: name of the user; empty if it is not known.
        digest: digest of the other fields.
    """

    number: int
    kind: str
    payload: Mapping[str, Any]
    time: str
    who: str
    digest: str

    @property
    def position(self) -> Position:
        return Position(self.number, self.digest)


class Log:
    """The logs of all studies in a database. Each method is one transaction.

    Arguments, attributes and errors are those of :class:`~cbo_gym.study.database.Database`. Tables of an older version
    are upgraded.
    """

    def __init__(self, storage: Path | str, *, create: bool = False) -> None:
        self._database = Database(storage, create=create)
        self.shown, self.address = self._database.shown, self._database.address
        self._has_tables = False
        if not create and self._database.is_missing():
            raise ArgumentError(f"there is no file {self.shown}; create_study creates one")
        self._upgrade()

    def _upgrade(self) -> bool:
        """Upgrade tables of an older version; return whether there are tables."""
        if not self._has_tables and not self._database.is_missing():
            with self._database.transaction() as connection:
                self._database.require_whole(connection)
                version = schema.version_of(connection)
            if version is None:
                return False
            if version < 1:
                raise self._database.damage_error(f"the version of its tables is {version}")
            if version > SCHEMA:
                raise OperationError(
                    f"{self.shown} is of a newer version of cbo-gym (schema {version}, here {SCHEMA}); upgrade: pip "
                    "install --upgrade cbo-gym"
                )
            if version < SCHEMA:
                with self._database.transaction(writes=True) as connection:
                    schema.create_or_upgrade(connection)
            self._has_tables = True
        return self._has_tables

    def names(self) -> list[str]:
        """Return the names of the studies, in the order of their creation."""
        if not self._upgrade():
            return []
        with self._database.transaction() as connection:
            names = connection.execute(sql.select(studies.c.name).order_by(studies.c.id)).scalars()
            return list(map(replace_surrogates, names))

    def create(self, name: str, description: str, new_events: Sequence[NewEvent] = ()) -> None:
        """Create a study with its first events; create nothing if one of them cannot be written.

        Raises:
            ArgumentError: if there is a study of this name, or as :meth:`append`.
        """
        if not self._upgrade():
            self._database.write_ahead()
        row = {"name": name, "description": description, "created": _now()}
        try:
            with self._database.transaction(writes=True) as connection:
                schema.create_or_upgrade(connection)
                inserted = connection.execute(studies.insert().values(**row, digest=digest(*row.values())))
                number = int(inserted.inserted_primary_key[0])  # type: ignore[index]
                if new_events:
                    connection.execute(events.insert(), _rows(number, 0, new_events)[0])
        except IntegrityError as error:
            raise ArgumentError(
                f"{self.shown} has a study {name!r} already; load it, or choose another name"
            ) from error

    def find(self, name: str | None) -> StudyRow:
        """Return a study; the only one if no name is given.

        Raises:
            ArgumentError: if no study has this name, or no name is given and there are several.
            OperationError: if its description is damaged.
        """
        rows: Sequence[Any] = []
        if self._upgrade():
            with self._database.transaction() as connection:
                rows = connection.execute(sql.select(studies)).all()
        by_name = {replace_surrogates(row.name): row for row in rows}
        if name is None and len(rows) == 1:
            name = next(iter(by_name))
        if name not in by_name:
            names = f"it has {', '.join(map(str, by_name))}" if by_name else "it has none"
            problem = "name the study" if name is None else f"no study is called {name!r}{did_you_mean(name, by_name)}"
            raise ArgumentError(f"{self.shown}: {problem}; {names}")
        row = by_name[name]
        if row.digest != digest(row.name, row.description, row.created):
            raise self._database.damage_error(f"the description of {name!r} is not as it was written")
        return StudyRow(row.id, row.description, row.digest)

    def events(self, study: int, known: Position | None = None) -> list[Event]:
        """Return the events of a study in their order.

        Args:
            study: number of the study.
            known: position after which events are read; None for all events.

        Raises:
            OperationError: if an event is missing, damaged, or of a kind that this version does not know; or if the
                event at the known position is gone or has changed.
        """
        with self._database.transaction() as connection:
            rows = self._successors(connection, study, known)
        checked = []
        for number, row in enumerate(rows, start=1 if known is None else known.number + 1):
            if row.number != number:
                raise self._database.damage_error(f"event {number} is missing")
            if row.digest != digest(row.study, number, row.kind, row.payload, row.time, row.who):
                raise self._database.damage_error(f"event {number} is not as it was written")
            if row.kind not in KINDS:
                raise OperationError(
                    f"{self.shown}: event {number} has the kind {row.kind!r}, unknown to this version; upgrade"
                )
            payload, who = _loads(row.payload), replace_surrogates(row.who)
            checked.append(Event(number, row.kind, payload, row.time, who, row.digest))
        return checked

    def _successors(self, connection: sql.Connection, study: int, known: Position | None) -> list[Any]:
        """Return the rows of the events after the known position, at which the event must be unchanged."""
        start = 0 if known is None else known.number
        query = sql.select(events).where(events.c.study == study, events.c.number >= start).order_by(events.c.number)
        rows = list(connection.execute(query).all())
        if known is None:
            return rows
        if start == 0:
            stored = connection.execute(sql.select(studies.c.digest).where(studies.c.id == study)).scalar()
        else:
            stored = rows.pop(0).digest if rows and rows[0].number == start else None
        if stored != known.digest:
            raise self.replaced_error(f"its event {start}" if start else "its description")
        return rows

    def replaced_error(self, change: str) -> ReplacedError:
        """Return the error for a database that lacks a row that was read from it before."""
        return ReplacedError(
            f"{self.shown}: the database was replaced after the study was loaded, {change} is gone or has changed; "
            "nothing was changed by this call; load the study again, or put the database back"
        )

    def append(self, study: int, known: Position, new_events: Sequence[NewEvent]) -> list[Event] | None:
        """Append events after the position that the writer knows, and return them.

        If another process has written events after this position, write nothing and return None.

        Raises:
            ArgumentError: if they are too long, or hold a string that cannot be stored.
            OperationError: if they cannot be written, or the event at the known position is gone or has changed.
        """
        rows, written = _rows(study, known.number, new_events)
        try:
            with self._database.transaction(writes=True) as connection:
                if self._successors(connection, study, known):
                    return None
                connection.execute(events.insert(), rows)
        # On a server other processes may write between these two statements.
        except IntegrityError:
            return None
        return written

    def read_snapshot(self, study: int) -> tuple[int, str, bytes] | None:
        """Return the saved agent: number of the event after which it was saved, stamp of its code, state; or None."""
        with self._database.transaction() as connection:
            row = connection.execute(sql.select(snapshots).where(snapshots.c.study == study)).first()
        return None if row is None else (row.number, row.stamp, bytes(row.state))

    def write_snapshot(self, study: int, number: int, stamp: str, state: bytes) -> None:
        """Save an agent after event ``number``, in place of the one that was saved after an earlier event.

        Nothing is lost if this fails or another process is faster, because snapshots are a cache. The transaction is
        separate, because a failure must not undo the event before it.
        """
        with suppress(IntegrityError, OperationError), self._database.transaction(writes=True) as connection:
            connection.execute(snapshots.delete().where(snapshots.c.study == study, snapshots.c.number <= number))
            newer = connection.execute(sql.select(snapshots.c.number).where(snapshots.c.study == study)).scalar()
            if newer is None:
                connection.execute(snapshots.insert().values(study=study, number=number, stamp=stamp, state=state))


def _rows(study: int, last: int, new_events: Sequence[NewEvent]) -> tuple[list[dict[str, Any]], list[Event]]:
    """Return the rows of new events, which follow event number ``last``, and the events."""
    rows, written = [], []
    for number, (kind, payload) in enumerate(new_events, start=last + 1):
        require_storable(payload)
        content = json.dumps(payload, allow_nan=False)
        if len(content) > MAX_PAYLOAD:
            raise ArgumentError(f"an event has {len(content)} characters; at most {MAX_PAYLOAD} can be stored")
        time, who = _now(), _user_name()
        event = Event(number, kind, json.loads(content), time, who, digest(study, number, kind, content, time, who))
        rows.append({**vars(event), "study": study, "payload": content})
        written.append(event)
    return rows, written


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _user_name() -> str:
    # A user may have no name.
    with suppress(OSError, KeyError):
        return replace_surrogates(getpass.getuser())[:200]
    return ""


def _loads(string: str) -> Any:
    payload = json.loads(string)
    if "\\ud" not in string:
        return payload
    # Older versions stored halves of surrogate pairs as escapes, which cannot be shown or written.
    return json.loads(replace_surrogates(json.dumps(payload, ensure_ascii=False)))
