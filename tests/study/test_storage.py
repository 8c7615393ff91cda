"""What becomes of a study's database: older and newer versions, damage, files that are none."""

import random
import sqlite3
import sys
from collections import Counter
from contextlib import closing

import pytest
from typer.testing import CliRunner

from cbo_gym.cli import app
from cbo_gym.errors import ArgumentError, CBOGymError, MissingExtraError, OperationError
from cbo_gym.study import create_study, load_study, schema, studies_in
from cbo_gym.study.log import Log
from tests.support.old_studies import tables, write_schema_1
from tests.support.studies import FERMENTER, append, events_of, fermenter, lose_caches, play, simulate
from tests.support.study_kills import states


@pytest.fixture
def study(tmp_path):
    """With a trial of each kind."""
    made = fermenter(tmp_path / "f.db", agent="Random")
    made.add_data([simulate({})])
    for trial in made.ask(3):
        made.tell(trial, simulate(trial.do))
    made.correct(2, simulate({}) | {"titre": 1.25})
    made.fail(made.ask(), "the pump broke")
    made.ask()
    return made


def content(path):
    """All that a file says, by the way on which a study reads it."""
    log = Log(path)
    found = log.find(None)
    return log.names(), found.description, log.events(found.number)


def edit(path, string):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(string)
    connection.close()


# Versions ----------------------------------------------------------------------------------------------------


def test_a_file_of_version_1_is_upgraded_and_says_the_same(study, tmp_path):
    path = tmp_path / "old.db"
    write_schema_1(path, tmp_path / "f.db")
    old = load_study(storage=path)
    assert states(old) == states(study)
    assert events_of(path) == events_of(tmp_path / "f.db")
    assert old.ask().do == study.ask().do
    assert tables(path) == tables(tmp_path / "f.db")


def test_an_upgrade_that_fails_changes_nothing(study, tmp_path, monkeypatch):
    path = tmp_path / "old.db"
    write_schema_1(path, tmp_path / "f.db")
    before = tables(path)

    upgrade = schema.STEPS[1]

    def half(connection):
        upgrade(connection)
        raise OSError("the power failed")

    with monkeypatch.context() as failing:
        failing.setattr(schema, "STEPS", {1: half})
        with pytest.raises(OperationError, match=r"old\.db: the power failed; nothing was changed by this call"):
            load_study(storage=path)
    assert tables(path) == before
    assert states(load_study(storage=path)) == states(study)


def test_a_newer_version_is_refused(study, tmp_path):
    path = tmp_path / "f.db"
    edit(path, "UPDATE cbo_gym_schema SET version = 99")
    before = path.read_bytes()
    for call in (lambda: load_study(storage=path), lambda: fermenter(path), lambda: studies_in(path)):
        with pytest.raises(OperationError, match=r"newer version of cbo-gym \(schema 99, here 2\); upgrade"):
            call()
    assert path.read_bytes() == before


# Damage ------------------------------------------------------------------------------------------------------


def outcome(path, data, whole):
    """``"named"`` for an error that can be mended, ``"same"`` where nothing was lost."""
    for beside in ("-wal", "-shm"):
        path.with_name(path.name + beside).unlink(missing_ok=True)
    path.write_bytes(data)
    try:
        found = content(path)
    except CBOGymError as error:
        return "named" if str(path) in str(error) else f"of no file: {error}"
    assert found == whole
    return "same"


@pytest.mark.parametrize(
    "mask", [None, *(pytest.param(one, marks=pytest.mark.slow) for one in (0x01, 0x10, 0x80, 0xFF))]
)
def test_a_flipped_byte_is_noticed_or_does_no_harm(study, tmp_path, mask):
    """Some bytes, or with a mask each byte of the header and a seventh of the others."""
    data, whole = (tmp_path / "f.db").read_bytes(), content(tmp_path / "f.db")
    # Much of a small database is empty.
    filled, draw = [index for index, byte in enumerate(data) if byte and index >= 100], random.Random(100)
    chosen = [*range(0, 100, 4), *draw.sample(filled, 25)] if mask is None else [*range(100), *filled[mask % 7 :: 7]]
    flips = [(index, mask or 1 << draw.randrange(8)) for index in chosen]
    found = Counter()
    for index, bits in flips:
        flipped = data[:index] + bytes([data[index] ^ bits]) + data[index + 1 :]
        found[outcome(tmp_path / "copy.db", flipped, whole)] += 1
    # The rest is of no use to SQLite.
    assert found["named"] > (20 if mask is None else 0)
    assert set(found) <= {"named", "same"}


def test_a_cut_file_is_noticed(study, tmp_path):
    data, whole = (tmp_path / "f.db").read_bytes(), content(tmp_path / "f.db")
    for length in [0, 1, 15, 16, 99, 100, 101, 4095, 4096, 4097, *range(5000, len(data) - 4096, 4096)]:
        assert outcome(tmp_path / "copy.db", data[:length], whole) == "named"
    outcome(tmp_path / "copy.db", data[:-1], whole)  # of the last page SQLite may need the beginning alone


@pytest.mark.parametrize("data", [b"SQLite format 3\0" + b"?" * 5000, b"titre,ph\n1,2\n" * 400, bytes(5000)])
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path, data):
    path = tmp_path / "f.db"
    path.write_bytes(data)
    for call in (lambda: load_study(storage=path), lambda: fermenter(path, agent="Random")):
        with pytest.raises(
            OperationError, match=r"f\.db: .*; the file is damaged, or is not a SQLite database; restore"
        ):
            call()
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("string", "message"),
    [
        ("UPDATE cbo_gym_events SET payload = replace(payload, '1.25', '7.25')", "event 6 is not as it was written"),
        ("UPDATE cbo_gym_events SET who = 'nobody' WHERE number = 2", "event 2 is not as it was written"),
        ("DELETE FROM cbo_gym_events WHERE number = 3", "event 3 is missing"),
        (
            "UPDATE cbo_gym_studies SET description = replace(description, '7.5', '9.5')",
            "the description of 'fermenter'",
        ),
        ("UPDATE cbo_gym_schema SET version = -1", "the version of its tables is -1"),
        ("DROP TABLE cbo_gym_events", "no such table: cbo_gym_events"),
    ],
)
def test_what_others_changed_in_the_log_is_noticed(study, tmp_path, string, message):
    edit(tmp_path / "f.db", string)
    done = CliRunner().invoke(app, ["study", "show", str(tmp_path / "f.db")])
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
    assert "restore a copy" in " ".join(done.stderr.split())


def test_an_event_of_a_kind_that_is_not_known_asks_for_an_upgrade(study, tmp_path):
    append(tmp_path / "f.db", [("photographed", {"trial": 1})])
    with pytest.raises(
        OperationError, match=r"event \d+ has the kind 'photographed', unknown to this version; upgrade"
    ):
        load_study(storage=tmp_path / "f.db").to_frame()


# What is a database ------------------------------------------------------------------------------------------


def test_opening_makes_no_file_and_creating_makes_a_file_of_any_name(tmp_path):
    other = tmp_path / "bookmarks.db"
    edit(other, "CREATE TABLE studies (study_id INTEGER PRIMARY KEY)")  # as Optuna calls its own
    before = other.read_bytes()
    with pytest.raises(ArgumentError, match=r"bookmarks\.db: name the study; it has none"):
        load_study(storage=other)
    assert studies_in(other) == []
    assert other.read_bytes() == before
    with pytest.raises(ArgumentError, match=r"there is no file sqlite:.*nowhere\.db; create_study creates one"):
        load_study(storage=f"sqlite:///{tmp_path / 'nowhere.db'}")
    assert [path.name for path in tmp_path.iterdir()] == ["bookmarks.db"]
    create_study("beside", storage=other, agent="Random", **FERMENTER)
    assert load_study(storage=other).ask().number == 1
    strange = tmp_path / "ph?=7 #2 100%.db"
    fermenter(strange, agent="Random")
    assert {path.name for path in tmp_path.iterdir()} == {"bookmarks.db", strange.name}
    assert load_study(storage=strange).ask().number == 1


@pytest.mark.parametrize(
    ("storage", "kind", "message"),
    [
        (":memory:", ArgumentError, "in-memory database would lose the study at once; give the path of a file"),
        ("sqlite://", ArgumentError, "in-memory database would lose the study at once"),
        ("oracle_of_delphi://u:s3cret@host/db", ArgumentError, "this type of database is not supported"),
        ("postgresql://u:s3cret@host:port/db", ArgumentError, "begins with 'postgresql' is not the URL of a database"),
        ("postgresql://u@127.0.0.1:1/db?password=s3cret", OperationError, "password=...: connection"),
        ("postgresql://u:s3cret@127.0.0.1:1/db", OperationError, r"u:\*\*\*@127.0.0.1:1/db: connection"),
        ("postgresql+asyncpg://u:s3cret@h/db", ArgumentError, "driver asyncpg is not installed"),
    ],
)
def test_urls_that_lead_nowhere_are_refused_and_show_no_password(storage, kind, message):
    if kind is OperationError:
        pytest.importorskip("psycopg", reason="the extra postgresql is not installed")
    with pytest.raises(kind, match=message) as found:
        fermenter(storage, agent="Random")
    assert "s3cret" not in str(found.value)


def test_the_extra_for_postgresql_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[postgresql\]'"):
        fermenter("postgresql://localhost/db", agent="Random")


# What is kept of an agent ------------------------------------------------------------------------------------


def test_an_agent_that_was_kept_after_another_event_or_in_another_study_is_not_used(tmp_path):
    path = tmp_path / "f.db"
    play(fermenter(path, agent="GP-UCB"), 4)
    log = Log(path)
    number, stamp, content = log.read_snapshot(1)
    lose_caches(path)
    wanted = load_study(storage=path).recommendation()
    log.write_snapshot(1, number - 3, stamp, content)  # it would learn a round twice
    assert load_study(storage=path).recommendation() == wanted
    other = create_study("other", storage=path, agent="GP-UCB", **{**FERMENTER, "direction": "minimize"})
    other.add_data([simulate({"ph": 5.6}), simulate({"ph": 7.0})], do=[{"ph": 5.6}, {"ph": 7.0}])
    other.ask()
    wanted = other.recommendation()
    lose_caches(path)
    log.write_snapshot(2, 1, stamp, content)
    assert load_study("other", storage=path).recommendation() == wanted
