"""Requests that are wrong in some way: each is an error that says so, the log stays as it was, and HTML is escaped."""

import math
import random
from typing import get_args
from urllib.parse import quote, urlencode

import pytest
from fastapi.routing import APIRoute

from cbo_gym.study import load_study, studies_in
from cbo_gym.study.page.application import TrialAction, routes
from cbo_gym.study.page.guard import HEADERS
from tests.support.studies import events_of, fermenter, simulate
from tests.support.study_visitor import FIELDS, HTML, SQL, YAML, Visitor

NO_NUMBERS = [
    "nan", "inf", "-inf", "7 g", "1,5", "1_0", "0x1", "--1", "\0", "\x1b[31m", "\ud7ff", "日本語", "x" * 5000, SQL,
    HTML,
]  # fmt: skip
STRANGE_NAMES = ["Titre", "feed ", "", "__class__", SQL, HTML, "x" * 500]
PLACES = ["0", "-1", "1.5", "one", "99", "9" * 40, "%00", "..", SQL, HTML, "\u0661"]
CSVS = [
    b"", b"\n", b"titre\n", b"titre\n7 g\n", b"titer\n1\n", b"titre\n1\n1,2,3\n", b"titre,do(pH)\n1,7\n",
    b"\xff\xfe\x00", b"\x00" * 100, b"PK\x03\x04" + bytes(range(256)), f"titre\n{HTML}\n".encode(),
    f"{SQL}\n1\n".encode(), b"titre\n" + b"1" * 5000, b",".join([b"titre"] * 3000),
]  # fmt: skip
YAMLS = [
    "", "3", "[]", "name: {", "1: 2", "? [a]\n: 1", "name: *a", "&a [*a]", "!!python/object:os.system {}", "[" * 2000,
    YAML + "reward: y\n", YAML + "storage: x.db\n", YAML + f"{HTML!r}: 1\n", YAML + f'x: "{SQL}"\n',
    YAML.replace("[0, 5]", "[.nan, 5]"), YAML.replace("Random", "Random(x=1)"), YAML.replace("Random", HTML),
    YAML + "noise: {titre: -1}\n", "name: " + "9" * 5000, YAML.replace("name: fermenter", f"name: {'x' * 300}"),
]  # fmt: skip


ROUTES = [(route.path, sorted(route.methods)) for route in routes.routes if isinstance(route, APIRoute)]
DIGITS = [
    "9" * 4301, "1" * 4300, "9" * 19, "-1", "0", "1", "2", "", "\u0661", "\u00b2", "1e9", "0x1", "+1", "1_0", " 1",
]  # fmt: skip
CHARSETS = [
    "utf-8", "UTF-8", '"utf-8"', "undefined", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7",
    "utf-16", "latin-1", "ascii", "zlib", "rot13", "base64", "hex", "\xff", "", "x" * 500, "utf-8; charset=idna",
]  # fmt: skip
KINDS = [
    "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "multipart/form-data", "text/plain",
    "application/json", "multipart/form-data; boundary=", "multipart/form-data; boundary=b; boundary=c", ";", "a/b/c",
]  # fmt: skip
ORIGINS = ["http://[", "http://[::1", "null", "", "http://localhost:99999", "//", "http://\xff", "[]", "http://a b"]
HOSTS = ["localhost", "127.0.0.1:8400", "[::1]", "[", "localhost:99999999", "localhost/login?", "", "\xff", "a,b"]
TEXTS = [*DIGITS, *NO_NUMBERS, *STRANGE_NAMES, *PLACES, "\ud800", "\u0000", "=cmd()", "{", "[]"]


def mutated(draw, forgery):
    """Arguments of a request of some route, wrong in some places."""
    path, methods = draw.choice(ROUTES)
    method = draw.choice([*methods, *methods, *methods, "GET", "POST", "HEAD", "PUT", "OPTIONS", "DELETE"])
    index, trial = (draw.choice(["1", "1", draw.choice(TEXTS)]) for _ in range(2))
    action = draw.choice([*get_args(TrialAction), "unknown"])
    path = path.format(index=quote(index, errors="replace"), trial=quote(trial, errors="replace"), action=action)
    names = ["trial", "count", "done", "do:ph", "do:feed", "context:x", "value:titre", "did:ph", "reason", "yaml",
             "csv", "token", "name", "setting", "low", "mode", "diagram", "agent"]  # fmt: skip
    fields = [(draw.choice(names), draw.choice([*TEXTS, *YAMLS])) for _ in range(draw.randrange(4))]
    query = urlencode(fields, errors="replace") if draw.random() < 0.5 else draw.choice(["%", "&&=&", "a=%ff"])
    headers = {}
    for name, values in (("origin", ORIGINS), ("host", HOSTS), ("cookie", [*ORIGINS, "cbo-gym-study=\xff", "=;="]),
                         ("sec-fetch-site", ["none", "cross-site", "\xff"]), ("upgrade", ["websocket"]),
                         ("accept-encoding", ["\xff"]), ("range", ["bytes=0-1", "bytes=9-0"])):  # fmt: skip
        if draw.random() < 0.15:
            headers[name] = draw.choice(values).encode("latin-1")
    kind = draw.choice(KINDS[:2] if draw.random() < 0.7 else KINDS)
    if draw.random() < 0.5:
        kind += f"; charset={draw.choice(CHARSETS)}"
    headers["content-type"] = kind.encode("latin-1")
    fields.append(("forgery", forgery))
    body = urlencode(fields, errors="replace").encode()
    if "multipart" in kind:
        parts = [f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields]
        parts += [
            '--b\r\nContent-Disposition: form-data; name="file"; filename="\xe9"\r\n\r\ntitre\n1\r\n',
            "--b--\r\n",
        ]
        body = "".join(parts).encode("utf-8", "surrogatepass")
    if draw.random() < 0.1:
        body = bytes(draw.randrange(256) for _ in range(50))
    return method, f"{path}?{query}", {"content": body if method == "POST" else b"", "headers": headers}


@pytest.mark.parametrize("requests", [20, pytest.param(2000, marks=pytest.mark.slow)])
def test_no_request_of_any_route_fails_in_the_server(tmp_path, requests):
    draw = random.Random(requests)
    study = fermenter(tmp_path / "f.db", agent="Random")
    study.tell(study.ask().number, simulate({}))
    visitor = Visitor(tmp_path / "f.db")
    given = [mutated(draw, visitor.access.forgery) for _ in range(requests)]
    given += [
        ("GET", f"/studies/1?done=asked&trial={'1' * 4301}", {}),
        ("GET", "/studies/1?done=asked&count=\u00b2", {}),
        *(("POST", "/new", {"headers": {"origin": origin.encode("latin-1")}}) for origin in ORIGINS),
        *(
            ("POST", path, {"content": b"forgery=1&token=1", "headers": {"content-type": kind.encode("latin-1")}})
            for path in ("/login", "/new")
            for kind in (f"{kind}; charset={charset}" for kind in KINDS[:2] for charset in CHARSETS)
        ),
    ]
    for method, path, more in given:
        answer = visitor.client.request(method, path, **more)
        assert answer.status_code < 500, (method, path, more, answer.text[:300])
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS, (method, path, more)
        assert str(tmp_path) not in answer.text


def require_error(answer, tmp_path, sent):
    """Words in a page, for people: no traceback, no path, none of what was sent as HTML."""
    assert 400 <= answer.status_code < 500, (sent, answer.status_code)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert 'role="alert"' in answer.text or "<h1>" in answer.text
    assert HTML not in answer.text
    assert str(tmp_path) not in answer.text
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("first", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_wrong_files_change_nothing(tmp_path, first):
    """Upload every second file, and paste the others."""
    fermenter(tmp_path / "f.db", agent="Random")
    before = events_of(tmp_path / "f.db")
    visitor = Visitor(tmp_path / "f.db")
    secret = {"forgery": visitor.access.forgery}
    for path, field, contents in (
        ("/studies/1/import", "csv", CSVS),
        ("/new/yaml", "yaml", [string.encode() for string in YAMLS]),
    ):
        for index, content in enumerate(contents, start=first):
            files = {"file": (HTML, content)} if index % 2 else None
            data = secret if files else {**secret, field: content.decode("utf-8", "replace")}
            require_error(visitor.client.post(path, data=data, files=files), tmp_path, content)
    assert events_of(tmp_path / "f.db") == before
    assert studies_in(tmp_path / "f.db") == ["fermenter"]


def test_a_body_that_is_no_form_is_refused(tmp_path):
    fermenter(tmp_path / "f.db", agent="Random")
    visitor = Visitor(tmp_path / "f.db")
    bodies = [b"", b"forgery", b"%", b"&&&", b"=" * 1000, b"a=1&" * 4000, b"\xff" * 100, b"--x\r\n\r\n", b"{}"]
    for kind in (KINDS[0], "multipart/form-data; boundary=x", ""):
        for content in bodies:
            answer = visitor.client.post("/studies/1/ask", content=content, headers={"content-type": kind})
            require_error(answer, tmp_path, content)
    assert load_study(storage=tmp_path / "f.db").trials == []


def test_html_and_sql_are_shown_as_they_were_typed(tmp_path):
    visitor = Visitor(tmp_path / "f.db", reports=True)
    visitor.get("/new")
    names = {name: f"{name}{HTML}" for name in ("feed", "ph", "titre")}
    strange = {"name": SQL, "diagram": "", "variables": ", ".join(names.values()), "reward": names["titre"]}
    strange |= {"setting": [names["feed"], names["ph"], "", ""], "unit": [HTML, SQL, "", ""]}
    visitor.send("create", {**FIELDS, **strange, "units": f"{names['titre']} = {HTML}"})
    for _ in range(2):
        visitor.send("ask")
    visitor.send("tell-1", {f"value:{names['titre']}": "1"})
    visitor.send("fail-2", {"reason": HTML + SQL})
    escaped = HTML.replace("<", "&lt;").replace(">", "&gt;")
    for path in ("/studies/1/trials/1", "/studies/1/trials/2", "/studies/1/report", "/new"):
        html = visitor.get(path)
        assert HTML not in html
        assert escaped in html or path == "/new"
    visitor.get("/new")
    visitor.send("yaml", {"yaml": YAML})
    assert escaped in visitor.get("/")
    assert load_study(SQL, storage=tmp_path / "f.db").trials[1].reason == HTML + SQL
    assert math.isclose(load_study(SQL, storage=tmp_path / "f.db").trials[0].values[names["titre"]], 1.0)
