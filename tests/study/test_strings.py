"""Strings that no database stores: refused by name when they are written, and read from where they are already."""

import getpass
import sqlite3
from contextlib import closing

import pytest
from typer.testing import CliRunner

from cbo_gym.cli import app
from cbo_gym.errors import ArgumentError, CBOGymError, OperationError
from cbo_gym.study import create_study, load_study, studies_in
from cbo_gym.study.schema import digest
from tests.support.studies import DOSING, FERMENTER, events_of, fermenter, simulate
from tests.support.study_visitor import Visitor

LATIN_1, HALF, NUL = "M\udcfcller", "\ud83d", "a\0b"
BAD = [LATIN_1, HALF, NUL]
REFUSED = "(bytes that could not be decoded|has a NUL character)"
GOOD = ["Müller", "日本語", "😀", "\u2028", "\ufffd", "a\nb\tc", "é e\u0301", "'; DROP TABLE events; --", "=1+1"]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize(
    ("name", "about"),
    [
        ("name", lambda bad: {"name": bad}),
        ("agent", lambda bad: {"agent": bad}),
        ("reward", lambda bad: {"reward": bad}),
        ("units.titre", lambda bad: {"units": {"titre": bad}}),
        ("the name in units", lambda bad: {"units": {bad: "g"}}),
        ("the name in settable", lambda bad: {"settable": {bad: (0.0, 1.0)}}),
        ("costs.ph", lambda bad: {"costs": {"ph": bad}}),
        ("constraints", lambda bad: {"constraints": [f"biomass{bad} >= 2"]}),
        ("targets", lambda bad: {"targets": [["ph"], [bad]]}),
        ("variables", lambda bad: {"variables": ("feed", "ph", "titre", bad), "diagram": None}),
        ("composition", lambda bad: {"composition": f"biomass + {bad}"}),
        ("the name in arms", lambda bad: {"arms": [{bad: 1.0}]}),
        ("parameters.dose.node", lambda bad: {"parameters": {"dose": {"node": bad, "bounds": (0, 1)}}}),
    ],
)
def test_a_description_with_such_a_string_is_refused_by_its_name(tmp_path, name, about, bad):
    with pytest.raises(ArgumentError, match=f"^{name} .*{REFUSED}") as found:
        create_study(**{"name": "s", "storage": tmp_path / "f.db", "agent": "Random", **FERMENTER, **about(bad)})
    found.value.args[0].encode()  # and a terminal can show it
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bad", BAD)
def test_bad_strings_of_a_trial_are_refused(tmp_path, bad):
    study = fermenter(tmp_path / "f.db", agent="Random")
    study.tell(study.ask(), simulate({}))
    study.ask()
    before = (tmp_path / "f.db").read_bytes()
    with pytest.raises(ArgumentError, match=f"^reason .*{REFUSED}"):
        study.fail(2, f"the pump {bad}")
    for call in (
        lambda: study.tell(2, {"titre": 1.0, bad: 1.0}),
        lambda: study.tell(2, {"titre": 1.0}, did={bad: 1.0}),
        lambda: study.correct(1, {"titre": bad}),
        lambda: study.add_data([simulate({}) | {f"do({bad})": 1.0}]),
        lambda: study.add_data([simulate({}) | {bad: 1.0}]),
        lambda: study.ask(context={bad: 1.0}),
        lambda: study.what_if({bad: 1.0}),
        lambda: load_study(bad, storage=tmp_path / "f.db"),
        lambda: load_study(storage=tmp_path / f"{bad}.db"),
        lambda: create_study("s", storage=tmp_path / NUL, agent="Random", **FERMENTER),
    ):
        with pytest.raises(CBOGymError) as found:
            call()
        found.value.args[0].encode()
    assert (tmp_path / "f.db").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["f.db"]
    dosing = create_study("dosing", storage=tmp_path / "f.db", agent="Random", **DOSING)
    with pytest.raises(ArgumentError, match="the context must give a number"):
        dosing.ask(context={"age": 1.0, bad: 1.0})


def test_letters_of_all_languages_are_kept(tmp_path):
    name = " ".join(filter(str.isprintable, GOOD))
    study = create_study(name, storage=tmp_path / "f.db", agent="Random", **{**FERMENTER, "units": {"titre": name}})
    for trial, reason in zip(study.ask(len(GOOD)), GOOD, strict=True):
        study.fail(trial, reason)
    again = load_study(name, storage=tmp_path / "f.db")
    assert again.to_frame()["reason"].to_list() == GOOD
    assert again.description.units == {"titre": name}
    assert studies_in(tmp_path / "f.db") == [name]
    with pytest.raises(ArgumentError, match=r"^the name must be one line of .* printable characters.*given '<b>'"):
        create_study("<b>", storage=tmp_path / "f.db", agent="Random", **FERMENTER)


@pytest.mark.parametrize("user", [LATIN_1, "\udcff" * 300, "Müller"])
def test_the_name_of_the_user_is_kept_as_far_as_it_can_be_decoded(tmp_path, monkeypatch, user):
    monkeypatch.setattr(getpass, "getuser", lambda: user)
    fermenter(tmp_path / "f.db", agent="Random").ask()
    [event] = events_of(tmp_path / "f.db")
    assert event.who == user.replace("\udcfc", "\ufffd").replace("\udcff", "\ufffd")[:200]


def test_the_command_line_and_the_page_refuse_it_with_a_message(tmp_path):
    path = str(tmp_path / "f.db")
    fermenter(path, agent="Random").ask(2)
    for words in (
        ["fail", path, "1", LATIN_1],
        ["tell", path, "1", f"{LATIN_1}=1"],
        ["show", path, "--study", LATIN_1],
        ["show", str(tmp_path / f"{LATIN_1}.db")],
        ["ask", path, "--context", f"{LATIN_1}=1"],
        ["ask", path, "--agent", LATIN_1],
        ["report", path, str(tmp_path / f"{LATIN_1}.pdf")],
    ):
        done = CliRunner().invoke(app, ["study", *words])
        assert done.exit_code == 2, words
        assert done.stderr.startswith("Error: "), words
    visitor = Visitor(path)
    fields = {"forgery": visitor.access.forgery} | dict.fromkeys(
        ("reason", "value:titre", "name", "yaml", "csv"), "\\ud83d"
    )
    parts = [
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()
    ]
    headers = {"content-type": "multipart/form-data; boundary=x; charset=unicode_escape"}
    for address in ("/studies/1/trials/1/fail", "/studies/1/trials/1/tell", "/new", "/new/yaml", "/studies/1/import"):
        answer = visitor.client.post(address, content="".join([*parts, "--x--\r\n"]).encode(), headers=headers)
        # A form in another charset than UTF-8 is refused before it is read.
        assert answer.status_code == 415, (address, answer.text)
    assert load_study(storage=path).events == 1


# What is stored already --------------------------------------------------------------------------------------


def store(path, number, **columns):
    """Write into the columns of an event, with its digest, as a version without these checks did."""
    names = ("study", "number", "kind", "payload", "time", "who")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.text_factory = lambda content: content.decode(errors="surrogateescape")
        chosen = f"SELECT {', '.join(names)} FROM cbo_gym_events WHERE number = {number}"
        row = dict(zip(names, connection.execute(chosen).fetchone(), strict=True))
        row |= columns
        stored = {name: value.encode(errors="surrogateescape") for name, value in columns.items()}
        for name, value in {**stored, "digest": digest(*row.values()).encode()}.items():
            connection.execute(f"UPDATE cbo_gym_events SET {name} = CAST(? AS TEXT) WHERE number = {number}", (value,))


def test_a_string_that_an_older_version_stored_is_read(tmp_path):
    path = tmp_path / "f.db"
    study = fermenter(path, agent="Random")
    study.fail(study.ask(), "the pump broke")
    store(path, 2, payload='{"trial": 1, "reason": "M\\udcfcller \\ud83d\\ude00 \\ud83d"}', who=LATIN_1)
    study = load_study(storage=path)
    assert study.to_frame()["reason"].to_list() == ["M\ufffdller 😀 \ufffd"]
    assert study.ask().number == 2
    assert "M\ufffdller" in study.report(tmp_path / "r.html").read_text(encoding="utf-8")
    for words in (["show", str(path)], ["show", str(path), "--json"], ["export", str(path)]):
        assert CliRunner().invoke(app, ["study", *words]).exit_code == 0
    visitor = Visitor(path)
    for page in ("/studies/1", "/studies/1/trials/1", "/studies/1/trials.csv"):
        assert "M\ufffdller" in visitor.get(page)


def test_a_damaged_row_is_named_even_if_it_cannot_be_decoded(tmp_path):
    path = tmp_path / "f.db"
    fermenter(path, agent="Random").ask()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE cbo_gym_events SET who = CAST(x'fc' AS TEXT)")
    with pytest.raises(OperationError, match=r"f\.db: event 1 is not as it was written"):
        load_study(storage=path).to_frame()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE cbo_gym_studies SET name = CAST(x'66fc' AS TEXT)")
    assert studies_in(path) == ["f\ufffd"]
    with pytest.raises(OperationError, match="the description of 'f\ufffd' is not as it was written"):
        load_study(storage=path)
