"""Studies from a shell: one file of description, one database, one command a step."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cbo_gym.cli import app
from tests.study.test_study import grown

YAML = """\
name: fermenter
reward: titre
diagram: "dag { feed -> biomass -> titre; ph -> titre; feed <-> titre }"
settable: {feed: [0, 5], ph: [5.5, 7.5]}
units: {feed: g/h}
agent: GP-UCB
horizon: 40
"""


def call(*words, status=0):
    done = CliRunner().invoke(app, ["study", *map(str, words)])
    assert done.exit_code == status, done.output
    return done


def pairs(values):
    return [f"{name}={value}" for name, value in values.items()]


def test_a_study_by_hand(tmp_path):
    database, past = tmp_path / "f.db", tmp_path / "past.csv"
    Path(tmp_path, "study.yaml").write_text(YAML, encoding="utf-8")
    assert "next: cbo-gym study ask" in call("create", tmp_path / "study.yaml", database).stdout
    rows = [grown({}) | {"do(ph)": ""}, grown({"ph": 7.0}) | {"do(ph)": 7.0}]
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    past.write_text("\n".join(lines), encoding="utf-8")
    assert "2 rounds were added" in call("import", database, past).stdout
    trials = json.loads(call("ask", database, "-n", 2, "--json").stdout)
    assert [trial["number"] for trial in trials] == [1, 2]
    call("tell", database, 1, *pairs(grown(trials[0]["do"])))
    call("fail", database, 2, "the pump broke")
    call("correct", database, 1, *pairs(grown(trials[0]["do"]) | {"titre": 1.25}))
    assert "trial" in call("ask", database).stdout
    shown = json.loads(call("show", database, "--json").stdout)
    assert [row["status"] for row in shown] == ["told", "failed", "pending"]
    assert shown[0]["titre"] == 1.25
    assert "fermenter" not in call("recommend", database).stdout
    assert "titre" in json.loads(call("what-if", database, "ph=7", "--json").stdout)
    call("report", database, tmp_path / "page.html")
    page = Path(tmp_path, "page.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert "the pump broke" in page
    assert not re.search("<(script|link|img)", page)  # it needs no network
    exported = call("export", database).stdout.splitlines()
    assert exported[0].startswith("number,status,do(feed),do(ph),")
    assert len(exported) == 4
    assert "the pump broke" in call("show", database).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tell", "f.db", 1, "titre"], "cannot read 'titre'; write NAME=NUMBER"),
        (["tell", "f.db", 1, "titre=high"], "cannot read 'titre=high'"),
        (["tell", "f.db", 1, "titre=1"], "there is no trial 1; there are 0"),
        (["ask", "nowhere.db"], "there is no file nowhere.db"),
        (["create", "broken.yaml", "g.db"], "broken.yaml"),
        (["serve", "f.db", "--token", "abc"], "the token must have at least 16 characters; given 3"),
        (["serve", "study.yaml"], "file is not a database"),
        (["import", "f.db", "missing.csv"], "cannot read missing.csv"),
        (["create", "path.yaml", "g.db"], "an import path, whose code would be run; if you trust it, say so: --agent"),
    ],
)
def test_mistakes_are_one_line(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    Path("study.yaml").write_text(YAML, encoding="utf-8")
    Path("broken.yaml").write_text(YAML.replace("reward: titre", "reward: titer"), encoding="utf-8")
    Path("path.yaml").write_text(YAML.replace("GP-UCB", "tests.helpers:Centre"), encoding="utf-8")
    call("create", "study.yaml", "f.db")
    said = " ".join(call(*words, status=2).stderr.split())
    assert said.startswith("Error:")
    assert message in said
