"""Access to the page of studies, the headers of its answers, and the content that answers must not have."""

import os
import re
import socket
import threading
from contextlib import ExitStack, suppress
from queue import SimpleQueue
from typing import get_args

import pytest
import uvicorn
from fastapi.routing import APIRoute
from starlette.datastructures import URL

from cbo_gym.errors import ArgumentError, OperationError
from cbo_gym.study import create_study, load_study, studies_in
from cbo_gym.study.page import serve
from cbo_gym.study.page.application import TrialAction, routes
from cbo_gym.study.page.guard import HEADERS
from tests.support.studies import FERMENTER, events_of, fermenter
from tests.support.study_visitor import ADDRESS, YAML, Visitor, said

TOKEN = "sixteen letters!"
FORMS = sorted(
    route.path.format(index=1, trial=1, action=action)
    for route in routes.routes
    if isinstance(route, APIRoute) and "POST" in route.methods
    for action in (get_args(TrialAction) if "{action}" in route.path else ("",))
)


@pytest.fixture
def visitor(tmp_path):
    fermenter(tmp_path / "f.db", agent="Random").ask()
    return Visitor(tmp_path / "f.db")


def test_every_form_has_the_token_against_forgery(tmp_path, visitor):
    assert len(FORMS) == 11
    before = events_of(tmp_path / "f.db")
    for path in FORMS:
        if path == "/login":
            continue
        for forged in ({}, {"forgery": ""}, {"forgery": "x" * 32}, {"forgery": "é"}):
            answer = visitor.client.post(path, data={"value:titre": "1", "reason": "", "yaml": YAML, **forged})
            assert answer.status_code == 403, path
            assert "another run of the server" in answer.text
        answer = visitor.client.post(path, json={"forgery": visitor.access.forgery})
        assert answer.status_code == 403
    assert events_of(tmp_path / "f.db") == before
    assert studies_in(tmp_path / "f.db") == ["fermenter"]
    for path in ("/new", "/studies/1", "/studies/1/trials/1"):
        html = visitor.get(path)
        assert html.count('<form method="post"') == html.count(f'name="forgery" value="{visitor.access.forgery}"') > 0


def test_a_form_of_another_site_does_nothing(tmp_path, visitor):
    before = events_of(tmp_path / "f.db")
    for path in FORMS:
        for origin in ("https://evil.example", "null", "http://127.0.0.1:1", "http://localhost:8400", "?"):
            visitor.post(path, {"value:titre": "1"}, 403, headers={"origin": origin})
            assert "sent from another site" in visitor.html
    visitor.post("/studies/1/trials/1/fail", {}, 403, headers={"sec-fetch-site": "cross-site"})
    visitor.post("/studies/1/trials/1/fail", {}, 403, headers={"sec-fetch-site": "same-site"})
    assert events_of(tmp_path / "f.db") == before
    visitor.post("/studies/1/trials/1/fail", headers={"origin": ADDRESS, "sec-fetch-site": "same-origin"})
    other = {"sec-fetch-site": "cross-site"}  # which may link, but not load
    visitor.get("/studies/1/what-if?do%3Aph=7", 403, headers={**other, "sec-fetch-mode": "no-cors"})
    visitor.get("/studies/1", headers={**other, "sec-fetch-mode": "navigate"})


def test_on_the_loopback_address_only_the_names_of_this_machine_are_taken(visitor):
    for host in ("evil.example", "evil.example:8400", "127.0.0.1.evil.example", "", "[::1", "10.0.0.1"):
        assert "answers to localhost only" in visitor.get("/studies/1", 403, headers={"host": host})
        visitor.post("/studies/1/ask", {}, 403, headers={"host": host})
    for host in ("localhost", "localhost:9000", "127.0.0.1:1", "[::1]:8400"):
        visitor.get("/studies/1", headers={"host": host})


def test_a_visitor_without_the_token_sees_nothing(tmp_path):
    fermenter(tmp_path / "f.db", agent="Random")
    visitor = Visitor(tmp_path / "f.db", token=TOKEN, host="0.0.0.0", address="http://plant.example:8400")
    for path in ("/", "/studies/1", "/studies/1/trials.csv", "/studies/1/state", "/new", "/nothing", "/report.css"):
        assert visitor.get(path, 303) == ""
        assert visitor.answer.headers["location"] == "/login"
    assert "Log in first" in visitor.post("/studies/1/ask", {}, 401)
    visitor.client.cookies.set("cbo-gym-study", "forged")
    visitor.get("/studies/1", 303)
    visitor.client.cookies.clear()
    assert visitor.access.forgery not in visitor.get("/login")
    for wrong in ("", "sixteen letters?", TOKEN[:-1], "é", TOKEN.upper()):
        assert said(visitor.send("form", {"token": wrong}, 403)) == ["This is not the token of this server."]
        assert "set-cookie" not in visitor.answer.headers
    visitor.get("/login")
    answer = visitor.client.post("/login", data={"token": TOKEN})
    assert answer.headers["location"] == "/"
    assert answer.headers["set-cookie"].lower() == (
        f"cbo-gym-study={visitor.access.session}; httponly; path=/; samesite=strict".lower()
    )
    assert TOKEN not in visitor.access.session
    visitor.get("/studies/1")
    assert said(visitor.send("ask")) == ["Trial 1 is next."]
    assert Visitor(tmp_path / "f.db", token=TOKEN).access.session != visitor.access.session


@pytest.mark.parametrize("listens", ["0.0.0.0", "127.0.0.1"])
def test_a_forged_host_is_refused_and_no_path_is_made_of_it(tmp_path, monkeypatch, listens):
    fermenter(tmp_path / "f.db", agent="Random")
    visitor = Visitor(tmp_path / "f.db", token=TOKEN, host=listens, address="http://plant.example:8400")
    plant = "plant.example"
    for host in (f"{plant}/login?", f"{plant}:8400/login?", f"{plant}#", f"u@{plant}", "a b", "", "[x]"):
        for path in ("/studies/1", "/", "/new", "/studies/1/trials.csv", "/login"):
            assert "<h1>Refused</h1>" in visitor.get(path, 403, headers={"host": host})
        visitor.post("/studies/1/ask", {}, 403, headers={"host": host})
    assert load_study(storage=tmp_path / "f.db").trials == []
    # Starlette up to 1.0.0 makes the path of the host
    monkeypatch.setattr("starlette.requests.HTTPConnection.url", URL(f"http://{plant}/login?/studies/1"))
    own = {"host": f"{plant}:8400" if listens == "0.0.0.0" else "localhost"}
    visitor.get("/studies/1", 303, headers=own)
    visitor.post("/studies/1/ask", {}, 401, headers=own)


def test_every_answer_has_the_headers_and_needs_nothing_from_elsewhere(visitor):
    for path, status in {
        "/studies/1": 200, "/studies/1/trials/1": 200, "/new": 200, "/login": 200, "/nothing": 404, "/new/yaml": 405,
        "/static/page.css": 200, "/static/nothing": 404, "/": 303, "/studies/1/trials.csv": 200,
    }.items():  # fmt: skip
        html = visitor.get(path, status)
        assert {name: visitor.answer.headers[name] for name in HEADERS} == HEADERS
        assert re.findall(r'(?:src|href|action)="(?!/[a-z]|/"|#)[^"]*"', html) == []
        other_scripts = r"<script(?! src=\"/static/page.js\" defer></script>)|<style|\son\w+=|javascript:"
        assert re.findall(other_scripts, html) == []
        assert html.startswith('<!doctype html>\n<html lang="en">') == ("<body" in html)
    visitor.post("/studies/1", {}, 405)
    assert visitor.answer.headers["content-security-policy"] == HEADERS["Content-Security-Policy"]
    assert "unsafe-inline" not in re.sub("style-src-attr [^;]*", "", HEADERS["Content-Security-Policy"])


def test_a_missing_page_is_404_and_no_other_file_is_served(visitor):
    for path in ("/docs", "/openapi.json", "/redoc", "/studies/2", "/studies/0", "/studies/x", "/studies/1/trials/9"):
        assert "<h1>No such" in visitor.get(path, 404)
    for path in ("/static/../access.py", "/static/%2e%2e/access.py", "/static/..%2fdoor.py", "/static//etc/passwd"):
        visitor.get(path, 404)


@pytest.mark.parametrize("length", [4_000_001, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_long_input_is_refused(tmp_path, visitor, length):
    before = events_of(tmp_path / "f.db")
    cell = "1" * length
    for path, typed, files in (
        ("/studies/1/trials/1/tell", {"value:titre": cell}, None),
        ("/studies/1/import", {}, {"file": ("past.csv", f"titre\n{cell}\n")}),
        ("/new/yaml", {"yaml": f"name: {cell}"}, None),
        ("/studies/1/trials/1/fail", {"reason": cell}, None),
    ):
        assert "larger than 4 MB" in visitor.post(path, typed, 413, files=files)
    answer = visitor.client.post("/studies/1/ask", content=(b"x" * 1_000_000 for _ in range(5)))  # of unknown length
    assert answer.status_code == 413
    assert events_of(tmp_path / "f.db") == before


def test_a_table_that_is_too_large_is_refused(tmp_path, visitor):
    rows = "feed,ph,biomass,titre\n" + "1.5,6.25,1.75,0.5\n" * 60_000
    before = events_of(tmp_path / "f.db")
    visitor.get("/studies/1")
    assert "more than 50000 rows" in said(visitor.send("import", {}, 422, {"file": ("past.csv", rows)}))[0]
    assert events_of(tmp_path / "f.db") == before


def test_no_code_is_run_that_a_study_names(tmp_path):
    path = tmp_path / "f.db"
    fermenter(path, agent="tests.support.agents:Centre")
    visitor = Visitor(path)
    assert "an import path, whose code would be run; if you trust it" in visitor.get("/studies/1", 422)
    visitor.get("/new")
    for agent in ("tests.support.agents:Centre", "os:system", "no.module:Agent"):
        html = visitor.send("yaml", {"yaml": YAML.replace("Random", agent)}, 422)
        assert f"it names the agent &#39;{agent}&#39;, an import path" in said(html)[0]
    visitor.send("yaml", {"yaml": YAML.replace("fermenter", "other")})
    html = visitor.get("/")
    assert "an import path, whose code would be run" in html
    assert 'href="/studies/2"' in html
    trusting = Visitor(path, trusted=["tests.support.agents:Centre"])
    trusting.get("/studies/1")
    assert said(trusting.send("ask")) == ["Trial 1 is next."]


NO_DATABASE = b"no database at all, but long enough to look at" * 100


def moved(tmp_path):
    for path in tmp_path.glob("f.db*"):
        # A connection that closes meanwhile removes the files beside the database.
        with suppress(FileNotFoundError):
            path.rename(tmp_path / f"moved-{path.name}")


def emptied(tmp_path):
    moved(tmp_path)
    (tmp_path / "f.db").touch()


@pytest.mark.parametrize("mishap", [lambda folder: (folder / "f.db").write_bytes(NO_DATABASE), moved, emptied])
def test_a_database_that_goes_away_is_said_without_its_path(tmp_path, visitor, mishap):
    visitor.get("/studies/1")
    mishap(tmp_path)
    for path in ("/", "/studies/1", "/new", "/studies/1/state", "/studies/1/trials.csv"):
        answer = visitor.client.get(path)
        assert answer.status_code in (200, 303, 404, 503)
        assert str(tmp_path) not in answer.text
    for path in FORMS:
        answer = visitor.client.post(path, data={"forgery": visitor.access.forgery, "value:titre": "1"})
        assert answer.status_code in (303, 400, 404, 422, 503)
        assert str(tmp_path) not in answer.text


@pytest.mark.parametrize("name", ["other", "fermenter"])
def test_a_form_of_a_database_that_was_replaced_records_nothing(tmp_path, visitor, name):
    visitor.get("/studies/1")
    create_study(name, storage=tmp_path / "other.db", agent="Random", **FERMENTER).ask()
    (tmp_path / "other.db").replace(tmp_path / "f.db")
    before = events_of(tmp_path / "f.db")
    assert "was replaced" in visitor.send("tell-1", {"value:titre": "1"}, 503)
    assert events_of(tmp_path / "f.db") == before
    visitor.get("/studies/1")
    visitor.send("tell-1", {"value:titre": "1"})
    assert len(events_of(tmp_path / "f.db")) == 2


def test_a_database_that_is_gone_is_not_made_again(tmp_path, visitor):
    visitor.get("/studies/1")
    (tmp_path / "f.db").unlink()
    assert "was replaced or deleted" in visitor.send("ask", {}, 503)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_database_that_may_not_be_written_is_said_without_its_path(tmp_path, visitor):
    for path in tmp_path.glob("f.db*"):
        path.chmod(0o400)
    tmp_path.chmod(0o500)
    html = visitor.post("/studies/1/trials/1/fail", {}, 503)
    tmp_path.chmod(0o700)
    assert str(tmp_path) not in html
    assert "f.db" in html


def test_a_failure_of_the_server_tells_nothing(visitor, monkeypatch, tmp_path):
    monkeypatch.setattr("cbo_gym.study.page.service.StudyService.names", lambda _: 1 / 0)
    html = visitor.get("/", 500)
    assert "The server failed" in html
    assert "Traceback" not in html
    assert "division" not in html


@pytest.fixture
def server(tmp_path, monkeypatch):
    """The port of a page that is served in a thread."""
    monkeypatch.setattr("cbo_gym.study.page.serving.SILENCE_SECONDS", 0.3)
    monkeypatch.setattr("cbo_gym.study.page.guard.BODY_SECONDS", 0.3)
    fermenter(tmp_path / "f.db", agent="Random")
    lines, servers, run = SimpleQueue(), [], uvicorn.Server.run
    monkeypatch.setattr("uvicorn.Server.run", lambda self, **how: (servers.append(self), run(self, **how)))
    thread = threading.Thread(target=serve, args=[tmp_path / "f.db"], kwargs={"port": 0, "say": lines.put})
    thread.start()
    yield int(re.search(r":(\d+);", lines.get(timeout=20))[1])
    servers[0].should_exit = True
    thread.join()


def answer_of(connection):
    """All that comes until the server closes the connection."""
    parts = []
    while part := connection.recv(4096):
        parts.append(part)
    return b"".join(parts)


def connect(stack, port):
    return stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))


def test_silent_connections_are_closed(server):
    head = f"Host: localhost:{server}\r\n\r\n".encode()
    with ExitStack() as stack:
        silent = [connect(stack, server) for _ in range(3)]
        silent[0].sendall(b"GET / HTTP/1.1\r\nHost: loc")
        silent[2].sendall(b"POST /studies/1/ask HTTP/1.1\r\nContent-Length: 10\r\n" + head + b"x")
        silent[1].sendall(b"GET /report.css HTTP/1.1\r\n" + head + b"GET /report.css HTTP/1.1\r\nHost: loc")
        begun = silent[1].recv(12)  # the others connect after this answer, because more than 100 are refused
        silent += [connect(stack, server) for _ in range(117)]
        answers = [answer_of(connection) for connection in silent]
    assert answers[0] == b""
    assert begun == b"HTTP/1.1 200"
    assert answers[2].startswith(b"HTTP/1.1 408")
    assert b"content-security-policy" in answers[2]
    assert set(answers[3:]) == {b""}
    with socket.create_connection(("127.0.0.1", server), timeout=10) as visitor:
        visitor.sendall(b"GET /studies/1 HTTP/1.1\r\n" + head)
        assert answer_of(visitor).startswith(b"HTTP/1.1 200")


def test_how_it_is_served_is_checked_first(tmp_path, monkeypatch):
    fermenter(tmp_path / "f.db", agent="Random")
    with pytest.raises(ArgumentError, match="the token must have at least 16 characters; given 3"):
        serve(tmp_path / "f.db", token="abc")
    with pytest.raises(
        OperationError, match=r"cannot listen on 203\.0\.113\.1 port 8400: .*choose another with --port"
    ):
        serve(tmp_path / "f.db", host="203.0.113.1")
    (tmp_path / "bad.db").write_bytes(NO_DATABASE)
    with pytest.raises(OperationError, match="file is not a database"):
        serve(tmp_path / "bad.db", port=0)
    served = []
    monkeypatch.setattr(
        "uvicorn.Server.run", lambda self, sockets: served.append((self.config, sockets[0].getsockname()))
    )
    lines = []
    serve(tmp_path / "f.db", port=0, say=lines.append)
    assert lines == [f"f.db is served at http://127.0.0.1:{served[0][1][1]}; Ctrl-C stops it"]
    serve(tmp_path / "f.db", host="0.0.0.0", port=0, say=lines.append)
    assert re.fullmatch(r"log in with the token [\w-]{32}", lines[-1])
    serve(tmp_path / "f.db", host="0.0.0.0", port=0, token=TOKEN, say=lines.append)
    assert len(lines) == 4
    assert all(not config.access_log and not config.server_header for config, _ in served)
