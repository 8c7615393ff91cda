"""Studies on PostgreSQL: the same as on SQLite, by one process or several, and what a server's faults give."""

import getpass
import multiprocessing
import os
import pickle
import re
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sql
from typer.testing import CliRunner

from cbo_gym.cli import app
from cbo_gym.errors import CBOGymError, OperationError
from cbo_gym.study import create_study, load_study, studies_in
from cbo_gym.study.database import Database
from cbo_gym.study.log import Log
from tests.support.old_studies import tables, write_schema_1
from tests.support.studies import FERMENTER, events_of, fermenter, play, simulate
from tests.support.study_kills import check, states
from tests.support.study_kills import play as kill
from tests.support.study_postgresql import ESCAPED, PASSWORD, Server, binaries

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="the server is started as other users are on POSIX systems"),
    pytest.mark.skipif(binaries() is None, reason="PostgreSQL is not installed (Debian: apt-get install postgresql)"),
]


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("psycopg", reason="the extra postgresql is not installed")
    started = Server()
    started.start()
    yield started
    started.stop()
    started.remove()


@pytest.fixture
def url(server, request):
    """Of a new database."""
    return made(server, re.sub(r"\W", "_", request.node.name.lower())[-60:], "UTF8")


def made(server, name, encoding):
    engine = sql.create_engine(
        server.url().replace("postgresql", "postgresql+psycopg", 1),
        isolation_level="AUTOCOMMIT",
        poolclass=sql.NullPool,
    )
    with engine.connect() as connection:
        connection.execute(sql.text(f"CREATE DATABASE \"{name}\" ENCODING '{encoding}' TEMPLATE template0"))
    return server.url(name)


def scenario(storage):
    study = fermenter(storage, agent="GP-UCB")
    study.add_data([simulate({}), simulate({"ph": 7.0})], do=[{}, {"ph": 7.0}])
    study.tell(trial := study.ask(), simulate(trial.do))
    others = study.ask(3)
    study.fail(others[0], "the pump broke: 日本語")
    study.tell(others[1], simulate({"ph": 6.9}), did={"ph": 6.9} if "ph" in others[1].do else None)
    study.correct(trial, simulate(trial.do) | {"titre": 1.25})
    study = load_study(storage=storage)
    study.tell(trial := study.ask(), simulate(trial.do))
    return study


@pytest.mark.parametrize("encoding", ["UTF8", "SQL_ASCII", "LATIN1", "EUC_JP"])
def test_it_says_what_sqlite_says_in_every_encoding(server, tmp_path, encoding):
    url = made(server, encoding.lower(), encoding)
    here, there = scenario(tmp_path / "f.db"), scenario(url)
    assert states(here) == states(there)
    assert here.recommendation() == there.recommendation()
    study = create_study("other", storage=url, agent="Random", **{**FERMENTER, "units": {"titre": "µg"}})
    assert study.description.units == {"titre": "µg"}
    assert studies_in(url) == ["fermenter", "other"]
    with pytest.raises(CBOGymError, match="has a study 'other' already"):
        create_study("other", storage=url, agent="Random", **FERMENTER)


def test_a_user_of_any_name_on_a_database_in_sql_ascii(server, monkeypatch):
    monkeypatch.setattr(getpass, "getuser", lambda: "Müller \udcfc")
    url = made(server, "users", "SQL_ASCII")
    study = fermenter(url, agent="Random")
    study.fail(study.ask(), "M\u00fcller")
    assert [event.who for event in events_of(url)] == ["Müller \ufffd"] * 2


def test_threads_share_a_study_and_an_older_dump_in_its_place_is_noticed(url):
    study = fermenter(url, agent="Random")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: play(study), range(16)))
    assert [entry.number for entry in load_study(storage=url).trials] == list(range(1, 17))
    play(pickle.loads(pickle.dumps(study)))
    assert {entry.status for entry in study.trials} == {"measured"}
    with Database(url).transaction(writes=True) as connection:
        connection.execute(sql.text("DELETE FROM cbo_gym_events WHERE number = 34"))
    for call in (study.ask, lambda: study.trials, lambda: study.correct(1, simulate({}))):
        with pytest.raises(OperationError, match=r"the database was replaced .* its event 34 is gone"):
            call()
    assert load_study(storage=url).pending[0].number == 17


def test_nothing_is_lost_by_kills_and_no_number_is_used_twice(url, tmp_path):
    fermenter(url, agent="Random")
    said = kill(url, tmp_path, kills=40, seed=101, pause=0.6)
    _, recorded = check(url, tmp_path, said)
    assert recorded > 20  # there was work to be disturbed


def ask_once(study, numbers):
    numbers.put(study.ask().number)


def test_a_fork_has_connections_of_its_own(url):
    study = fermenter(url, agent="Random")
    study.ask()
    context = multiprocessing.get_context("fork")
    numbers = context.SimpleQueue()
    children = [context.Process(target=ask_once, args=(study, numbers)) for _ in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads
        for child in children:
            child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
    assert {numbers.get(), numbers.get(), study.ask().number} == {2, 3, 4}


def at_once(function, calls):
    """What processes answer that begin at one time; they are called with an event and a queue besides."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    ready, results = context.Barrier(len(calls)), context.Queue()
    processes = [context.Process(target=function, args=(*call, ready, results)) for call in calls]
    for process in processes:
        process.start()
    answers = [results.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    return answers


def make(url, name, ready, results):
    ready.wait()
    try:
        create_study(name, storage=url, agent="Random", **FERMENTER)
        results.put("made")
    except CBOGymError as error:
        results.put(str(error))


def open_it(url, ready, results):
    ready.wait()
    results.put(Log(url).names())


def test_processes_that_make_the_tables_at_once(url):
    said = at_once(make, [(url, name) for name in ("one", "two", "three", "one")])
    assert said.count("made") == 3
    assert any("has a study 'one' already" in one for one in said)
    assert set(studies_in(url)) == {"one", "two", "three"}


def test_tables_of_version_1_become_those_of_today_once(url, tmp_path):
    study = scenario(tmp_path / "f.db")
    write_schema_1(url, tmp_path / "f.db")
    assert at_once(open_it, [(url,)] * 4) == [["fermenter"]] * 4
    upgraded = load_study(storage=url)
    assert states(upgraded) == states(study)
    assert upgraded.ask().do == study.ask().do
    create_study("other", storage=url, agent="Random", **FERMENTER)  # its number follows
    found = tables(url)
    with Database(url).transaction(writes=True) as connection:
        for name in ("events", "snapshots", "studies", "schema"):
            connection.execute(sql.text(f"DROP TABLE cbo_gym_{name}"))
    fermenter(url, agent="Random")
    assert tables(url) == found


def test_tables_of_another_program_do_not_interfere(url):
    with Database(url).transaction(writes=True) as connection:
        connection.execute(sql.text("CREATE TABLE studies (study_id INTEGER PRIMARY KEY)"))  # as Optuna calls its own
    assert fermenter(url, agent="Random").ask().number == 1


def secret_free(string):
    return PASSWORD not in string and ESCAPED not in string and "wr0ng" not in string


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"password": "wr0ng"}, "password authentication failed"),
        ({"database": "nowhere"}, 'database "nowhere" does not exist'),
        ({"user": "nobody"}, "password authentication failed"),
    ],
)
def test_what_a_server_refuses_is_said_without_the_password(server, change, message):
    with pytest.raises(OperationError, match=message) as found:
        load_study(storage=server.url(**change))
    assert "***@127.0.0.1" in str(found.value)
    assert secret_free("".join(traceback.format_exception(found.value)))
    done = CliRunner().invoke(app, ["study", "show", server.url(**change)])
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
    assert secret_free(done.output)


def test_a_database_that_may_only_be_read(url):
    study = fermenter(url, agent="Random")
    play(study)
    with Database(url).transaction(writes=True) as connection:
        connection.execute(
            sql.text(f'ALTER DATABASE "{url.rpartition("/")[2]}" SET default_transaction_read_only = on')
        )
    study = load_study(storage=url)
    before = states(study)
    with pytest.raises(OperationError, match="read-only transaction; nothing was changed by this call"):
        study.ask()
    assert states(load_study(storage=url)) == before


def test_a_server_that_falls_and_gets_up_again(url, server):
    study = fermenter(url, agent="Random")
    play(study)
    before = states(study)
    server.stop()
    try:
        with pytest.raises(OperationError, match=r"\*\*\*@127.0.0.1.*[Cc]onnection refused"):
            study.ask()
        with pytest.raises(OperationError, match=r"[Cc]onnection refused"):
            load_study(storage=url)
    finally:
        server.start()
    assert states(study) == before
    assert study.ask().number == 2


def test_a_connection_that_is_lost_while_writing(url):
    study = fermenter(url, agent="Random")
    database = Database(url)
    message = r"the connection was lost .* whether this call was written is unknown"
    with pytest.raises(OperationError, match=message), database.transaction(writes=True) as connection:
        connection.execute(sql.text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert study.ask().number == 1
