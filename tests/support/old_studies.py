"""Databases as older versions of this package made them."""

import json

import sqlalchemy as sql

from cbo_gym.study import load_study
from cbo_gym.study.database import Database
from tests.support.studies import events_of, open_log

SCHEMA_1 = (
    "CREATE TABLE cbo_gym_schema (version INTEGER NOT NULL, PRIMARY KEY (version))",
    "CREATE TABLE studies (id {serial} NOT NULL, name VARCHAR(200) NOT NULL, description TEXT NOT NULL, "
    "created VARCHAR(40) NOT NULL, PRIMARY KEY (id), UNIQUE (name))",
    "CREATE TABLE events (study INTEGER NOT NULL, number INTEGER NOT NULL, kind VARCHAR(20) NOT NULL, "
    "payload TEXT NOT NULL, time VARCHAR(40) NOT NULL, who VARCHAR(200) NOT NULL, PRIMARY KEY (study, number), "
    "FOREIGN KEY(study) REFERENCES studies (id))",
    "CREATE TABLE snapshots (study INTEGER NOT NULL, number INTEGER NOT NULL, stamp TEXT NOT NULL, "
    "state {blob} NOT NULL, PRIMARY KEY (study), FOREIGN KEY(study) REFERENCES studies (id))",
    "INSERT INTO cbo_gym_schema (version) VALUES (1)",
)


def write_schema_1(storage, source):
    """Write the only study of a database as version 1 kept it."""
    database, name = Database(storage, create=True), load_study(storage=source).name
    _, study = open_log(source)
    types = {"serial": "INTEGER", "blob": "BLOB"} if database.is_sqlite else {"serial": "SERIAL", "blob": "BYTEA"}
    database.write_ahead()
    with database.transaction(writes=True) as connection:
        for string in SCHEMA_1:
            connection.execute(sql.text(string.format(**types)))
        added = sql.text("INSERT INTO studies (name, description, created) VALUES (:name, :description, :created)")
        connection.execute(added, {"name": name, "description": study.description, "created": "2026-01-01T00:00:00"})
        for event in events_of(source):
            row = {**vars(event), "payload": json.dumps(event.payload), "study": 1}
            connection.execute(
                sql.text(
                    "INSERT INTO events (study, number, kind, payload, time, who) "
                    "VALUES (:study, :number, :kind, :payload, :time, :who)"
                ),
                row,
            )


def tables(storage):
    """Return the names of tables, with their columns and keys."""
    with Database(storage).transaction() as connection:
        inspector = sql.inspect(connection)
        return {
            name: (
                [(c["name"], str(c["type"]), c["nullable"]) for c in inspector.get_columns(name)],
                inspector.get_pk_constraint(name)["constrained_columns"],
                [(key["constrained_columns"], key["referred_table"]) for key in inspector.get_foreign_keys(name)],
                [unique["column_names"] for unique in inspector.get_unique_constraints(name)],
            )
            for name in inspector.get_table_names()
        }
