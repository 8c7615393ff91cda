"""The tables of the log of studies, their version, and the steps that upgrade each version to the next.

A change of a table is a new version: increase ``SCHEMA`` and add a step to ``STEPS`` that upgrades the tables of the
version before. A step is written in plain SQL and never edited later, because it changes tables of that version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b

import sqlalchemy as sql

SCHEMA = 2
# Advisory lock of PostgreSQL, with which one process at a time creates or changes tables.
LOCK = 0x63626F

_tables = sql.MetaData()
_version = sql.Table("cbo_gym_schema", _tables, sql.Column("version", sql.Integer, primary_key=True))
studies = sql.Table(
    "cbo_gym_studies",
    _tables,
    sql.Column("id", sql.Integer, primary_key=True),
    sql.Column("name", sql.String(200), nullable=False, unique=True),
    sql.Column("description", sql.Text, nullable=False),
    sql.Column("created", sql.String(40), nullable=False),
    sql.Column("digest", sql.String(32), nullable=False, server_default=""),
)
events = sql.Table(
    "cbo_gym_events",
    _tables,
    sql.Column("study", sql.ForeignKey(studies.c.id), primary_key=True),
    sql.Column("number", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("kind", sql.String(20), nullable=False),
    sql.Column("payload", sql.Text, nullable=False),
    sql.Column("time", sql.String(40), nullable=False),
    sql.Column("who", sql.String(200), nullable=False),
    sql.Column("digest", sql.String(32), nullable=False, server_default=""),
)
# States of agents: a cache, which may be lost at any time.
snapshots = sql.Table(
    "cbo_gym_snapshots",
    _tables,
    sql.Column("study", sql.ForeignKey(studies.c.id), primary_key=True),
    sql.Column("number", sql.Integer, nullable=False),
    sql.Column("stamp", sql.Text, nullable=False),
    sql.Column("state", sql.LargeBinary, nullable=False),
)


def digest(*fields: object) -> str:
    """Return the digest of a row's content, which shows damage."""
    content = "\0".join(map(str, fields)).encode(errors="backslashreplace")
    return blake2b(content, digest_size=16).hexdigest()


def version_of(connection: sql.Connection) -> int | None:
    """Return the version of the tables; None if there are none."""
    if not sql.inspect(connection).has_table(_version.name):
        return None
    return connection.execute(sql.select(_version.c.version)).scalar()


def create_or_upgrade(connection: sql.Connection) -> None:
    """Create the tables, or upgrade older ones, in the transaction of the connection.

    SQLite and PostgreSQL change tables within transactions, so a process that is killed here leaves the tables as they
    were. A second process waits until the first has finished.
    """
    # SQLite has one writer at a time anyway.
    if connection.dialect.name == "postgresql":
        connection.execute(sql.select(sql.func.pg_advisory_xact_lock(LOCK)))
    current = version_of(connection)
    if current is None:
        _tables.create_all(connection)
        connection.execute(_version.insert().values(version=SCHEMA))
    elif current < SCHEMA:
        for version in range(current, SCHEMA):
            STEPS[version](connection)
        connection.execute(_version.update().values(version=SCHEMA))


def _to_2(connection: sql.Connection) -> None:
    """Prefix the names, because Optuna has a table ``studies`` too, and add a digest to each row."""
    for name in ("studies", "events", "snapshots"):
        connection.execute(sql.text(f"ALTER TABLE {name} RENAME TO cbo_gym_{name}"))
    for name in ("studies", "events"):
        connection.execute(sql.text(f"ALTER TABLE cbo_gym_{name} ADD COLUMN digest VARCHAR(32) NOT NULL DEFAULT ''"))
    for name, key, fields in (
        ("studies", ("id",), ("name", "description", "created")),
        ("events", ("study", "number"), ("study", "number", "kind", "payload", "time", "who")),
    ):
        rows = connection.execute(sql.text(f"SELECT * FROM cbo_gym_{name}")).mappings().all()
        condition = " AND ".join(f"{column} = :{column}" for column in key)
        filled = [
            {**{column: row[column] for column in key}, "digest": digest(*(row[field] for field in fields))}
            for row in rows
        ]
        if filled:
            connection.execute(sql.text(f"UPDATE cbo_gym_{name} SET digest = :digest WHERE {condition}"), filled)


STEPS: Mapping[int, Callable[[sql.Connection], None]] = {1: _to_2}
