"""Studies from a shell: one file of description, one database, one command a step."""

import json
import re
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cbo_gym.cli import app
from cbo_gym.study import create_study
from tests.support.studies import simulate

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


@pytest.mark.filterwarnings("always:.*learns nothing from trial 5")
def test_a_study_by_hand(tmp_path):
    database, past = tmp_path / "f.db", tmp_path / "past.csv"
    Path(tmp_path, "study.yaml").write_text(YAML, encoding="utf-8")
    assert "next: cbo-gym study ask" in call("create", tmp_path / "study.yaml", database).stdout
    rows = [simulate({}) | {"do(ph)": ""}, simulate({"ph": 7.0}) | {"do(ph)": 7.0}]
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    past.write_text("\n".join(lines), encoding="utf-8")
    assert "2 rounds were added" in call("import", database, past).stdout
    trials = json.loads(call("ask", database, "-n", 2, "--json").stdout)
    assert [trial["number"] for trial in trials] == [1, 2]
    call("tell", database, 1, *pairs(simulate(trials[0]["do"])))
    call("fail", database, 2, "the pump broke")
    call("correct", database, 1, *pairs(simulate(trials[0]["do"]) | {"titre": 1.25}))
    assert "trial" in call("ask", database).stdout
    shown = json.loads(call("show", database, "--json").stdout)
    assert [row["status"] for row in shown] == ["measured", "failed", "pending"]
    assert shown[0]["titre"] == 1.25
    assert "Best: trial 1, titre = 1.25" in call("show", database).stdout
    advised = json.loads(call("recommend", database, "--json").stdout)
    assert re.search(
        r"of the mean +of a new outcome\s+titre +[\d.e-]+( +[\d.e-]+ to [\d.e-]+){2}$",
        call("recommend", database).stdout.strip(),
    )
    low, high = advised["interval"]
    assert low < advised["expected"]["titre"] < high
    assert set(advised) <= {"feed", "ph", "expected", "interval", "outcomes", "probabilities"}
    supposed = json.loads(call("what-if", database, "ph=7", "--json").stdout)
    assert supposed["interval"][0] < supposed["titre"] < supposed["interval"][1]
    assert supposed["assumed"] == {}
    assert "95 % interval" in call("what-if", database).stdout  # of observing
    call("report", database, tmp_path / "page.html")
    page = Path(tmp_path, "page.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 7  # the curve, four target sets, the left-out predictions and the diagram
    assert "the pump broke" in page
    assert not re.search("<(script|link|img)", page)  # it needs no network
    exported = call("export", database).stdout.splitlines()
    assert exported[0].startswith("number,status,do(feed),do(ph),")
    assert len(exported) == 4
    assert "the pump broke" in call("show", database).stdout
    assert "Trial 3 is recorded as rejected" in call("reject", database, 3, "too hot").stdout
    assert "Trial 4 is pending: ph = 6.6." in call("register", database, "ph=6.6").stdout
    assert "A part of trial 4 was recorded" in call("tell", database, 4, "biomass=2.1", "--partial").stdout
    assert "Trial 4 is recorded as closed" in call("close", database, 4, "the sample was lost").stdout
    shown = json.loads(call("show", database, "--json").stdout)
    assert [row["status"] for row in shown][2:] == ["rejected", "closed"]
    assert (shown[3]["biomass"], shown[3]["titre"]) == (2.1, None)
    call("register", database, "ph=6.7")
    call("tell", database, 5, "titre=1")
    # The recommendation and its forecast warn of the same.
    assert call("recommend", database, "--agent", "CBO").stderr.count("learns nothing from trial") == 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a study without trials, and descriptions that are right and wrong."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "study.yaml").write_text(YAML, encoding="utf-8")
    (folder / "broken.yaml").write_text(YAML.replace("reward: titre", "reward: titer"), encoding="utf-8")
    (folder / "path.yaml").write_text(YAML.replace("GP-UCB", "tests.support.agents:Centre"), encoding="utf-8")
    call("create", folder / "study.yaml", folder / "f.db")
    return folder


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tell", "f.db", 1, "titre"], "cannot read 'titre'; write NAME=NUMBER"),
        (["tell", "f.db", 1, "titre=high"], "cannot read 'titre=high'"),
        (["tell", "f.db", 1, "titre=1_000"], "cannot read 'titre=1_000'; write NAME=NUMBER with a decimal point"),
        (["tell", "f.db", 1, "titre=0,5"], "cannot read 'titre=0,5'; write NAME=NUMBER with a decimal point"),
        (["tell", "f.db", 1, "titre=1", " titre =2"], "'titre' is given twice, in ' titre =2' again"),
        (["tell", "f.db", 1, "titre=1", "--did", "ph=6", "--did", "ph=7"], "'ph' is given twice"),
        (["ask", "f.db", "--context", "age=6", "--context", "age=6"], "'age' is given twice"),
        (["what-if", "f.db", "ph=6", "ph=6"], "'ph' is given twice"),
        (["what-if", "f.db"], "nothing is known yet; record the outcome of a trial, or add data"),
        (["recommend", "f.db"], "nothing is known yet; record the outcome of a trial, or add data"),
        (["what-if", "f.db", "ph=[6, 7]"], "the value of ph must be a finite number"),
        (["tell", "f.db", 1, "titre=1"], "there is no trial 1; there are 0"),
        (["ask", "nowhere.db"], "there is no file nowhere.db"),
        (["create", "broken.yaml", "g.db"], "broken.yaml"),
        (["serve", "f.db", "--token", "abc"], "the token must have at least 16 characters; given 3"),
        (["serve", "study.yaml"], "file is not a database"),
        (["import", "f.db", "missing.csv"], "cannot read missing.csv"),
        (["create", "path.yaml", "g.db"], "an import path, whose code would be run; if you trust it, pass --agent"),
    ],
)
def test_mistakes_are_one_line(folder, monkeypatch, words, message):
    monkeypatch.chdir(folder)
    said = " ".join(call(*words, status=2).stderr.split())
    assert said.startswith("Error:")
    assert message in said


def test_names_may_hold_the_equals_sign_and_what_is_not_named_is_said(tmp_path):
    soft = {"a=b": {"node": "x=1", "bounds": [0, 1]}, "c": {"node": "y", "bounds": [1, 3], "null": 2}}
    about = {"reward": "y", "variables": ["x=1", "y"], "mode": "soft", "parameters": soft, "agent": "GP-UCB"}
    Path(tmp_path, "s.yaml").write_text(yaml.safe_dump(about), encoding="utf-8")
    database = tmp_path / "s.db"
    call("create", tmp_path / "s.yaml", database)
    call("ask", database)
    call("tell", database, 1, "x=1=0.5", "y = 2", "--did", "a=b=0.25")
    row = json.loads(call("show", database, "--json").stdout)[0]
    assert (row["do(a=b)"], row["x=1"], row["y"]) == (0.25, 0.5, 2.0)
    assert "Not named, so assumed: c = 2" in call("what-if", database, "a=b=0.3").stdout
    assert json.loads(call("what-if", database, "--json").stdout)["assumed"] == {"a=b": 0.0, "c": 2.0}
    assert "assumed" not in call("recommend", database).stdout


def test_no_name_is_lost_in_json(tmp_path):
    about = {"reward": "interval", "variables": ["assumed", "interval"], "mode": "soft", "agent": "GP-UCB"}
    dose = {"expected": {"node": "assumed", "bounds": (0, 1)}}
    study = create_study("a", storage=tmp_path / "a.db", parameters=dose, **about)
    study.tell(study.ask(), {"assumed": 1.0, "interval": 2.0})
    found = json.loads(call("what-if", tmp_path / "a.db", "--json").stdout)
    assert found["assumed"] == {"expected": 0.0}
    assert found["interval"][0] < found["expected"]["interval"] < found["interval"][1]
    advised = json.loads(call("recommend", tmp_path / "a.db", "--json").stdout)
    assert advised["do"] == study.recommendation()
    assert advised["expected"]["interval"] == pytest.approx(2.0, abs=1.0)


def test_intervals_of_the_aggregated_mode_are_written_in_brackets(tmp_path):
    dose = {"dose": {"node": "y", "bounds": [0, 2]}}
    about = {"mode": "aggregated", "diagram": "dag { x -> y }", "reward": "y", "parameters": dose}
    study = create_study("a", storage=tmp_path / "a.db", **about)
    study.tell(study.ask(), {"x": 1.0, "y": 2.0}, did={"dose": (0.5, 1.0)})
    found = json.loads(call("what-if", tmp_path / "a.db", "dose=[0.5, 1]", "--json").stdout)
    assert found["y"] == pytest.approx(study.what_if({"dose": (0.5, 1.0)})["y"])
    for wrong in ("dose=1", "dose=[1, 0.5]"):
        said = call("what-if", tmp_path / "a.db", wrong, status=2).stderr
        assert "dose needs an interval, two numbers in ascending order" in said


LONG = """\
name: fermenter
reward: titre
diagram: "dag { feed -> biomass -> titre; ph -> titre; feed <-> titre }"
settable:
  feed: [0, 5]
  ph: [5.5, 7.5]
constraints:
- biomass >= 1
- biomass >= 2
costs: {feed: 5, ph: 10}
units:
  feed: g/h
agent: Random
horizon: 40
"""
DISCRETE = """\
reward: titre
diagram: "dag { feed -> titre }"
mode: discrete
arms:
- {}
- {feed: 1.0}
reward_range: [0, 1]
agent: Random
"""
SOFT = """\
reward: titre
diagram: "dag { feed -> titre }"
mode: soft
parameters:
  dose: {node: feed, bounds: [0, 1]}
agent: Random
"""


@pytest.mark.parametrize(
    ("string", "old", "new", "message"),
    [
        (LONG, "horizon: 40", "horizn: 40", "line 14: field horizn: .* did you mean 'horizon'"),
        (LONG, "horizon: 40", "horizon: many", "line 14: field horizon: Input should be a valid integer"),
        (LONG, "[0, 5]", "[5, 0]", r"line 5: field settable.feed: .*bounds must be low < high.*, as \[0, 5\]"),
        (LONG, "[0, 5]", "[0, many]", "line 5: field settable.feed.1: Input should be a valid number"),
        (LONG, "  ph: [", "  pH: [", r"line 6: settable names \['pH'\]; did you mean 'ph'\?"),
        (LONG, "  ph: [", "  titre: [", "line 6: the reward titre is .* it cannot be set"),
        (LONG, "reward: titre", "reward: titer", r"line 2: reward names \['titer'\]; did you mean 'titre'\?"),
        (LONG, "ph -> titre;", "ph - titre;", "line 3: .*DAGitty"),
        (LONG, "ph -> titre;", "titre -> ph -> titre;", "line 3: the diagram must be acyclic"),
        (LONG, "biomass >= 2", "biomas >= 2", "line 9: .*'biomas' is unknown; .* did you mean 'biomass'"),
        (LONG, "biomass >= 1", "biomass => 1", "line 8: cannot read the constraint 'biomass => 1'"),
        (LONG, "5, ph: 10", "5, pH: 10", r"line 10: .*\['pH'\] cannot be priced.*did you mean 'ph'"),
        (LONG, "  feed: g/h", "  fed: g/h", r"line 12: units names \['fed'\]; did you mean 'feed'"),
        (LONG, "Random", "Randum", "line 13: no agent is called 'Randum'; did you mean 'Random'"),
        (
            LONG,
            "Random",
            "GPOO",
            "line 13: GPOO plays aggregated; fermenter is hard; choose an agent of this mode: Auto, CBO, .*cCBO$",
        ),
        (LONG, "Random", "[Random]", "line 13: .*agent"),
        (LONG, "horizon: 40", "3: 40", "line 14: field 3: there is no such field among agent, arms,"),
        (LONG, "horizon: 40", "storage: f.db", "line 14: the database is not a field of the description"),
        (LONG, "horizon: 40", "candidates: 40", "line 14: candidates must be a list of diagrams; given 40"),
        (LONG, "horizon: 40", "horizon: 40\nhorizon: 41", "line 15: the key 'horizon' comes twice, first in line 14"),
        (LONG, "reward: titre\n", "", "field reward: Field required"),
        (LONG, "horizon: 40", "horizon: 0\nseed: -1", "line 14: field horizon: .*; line 15: field seed: "),
        (DISCRETE, "feed: 1.0", "fed: 1.0", "line 6: 'fed' cannot be set"),
        (DISCRETE, "- {}", "- {feed: 1.0}", "line 5: the arms must be different interventions"),
        (DISCRETE, "[0, 1]", "[1, 0]", "line 7: field reward_range: .*bounds must be low < high"),
        (SOFT, "node: feed", "node: fed", r"line 5: parameters names \['fed'\]"),
        (SOFT, "node: feed", "nod: feed", "line 5: field parameters.dose.node: Field required; line 5: .* mean 'node'"),
        (SOFT, "[0, 1]", "[0, 1], null: 3", "line 5: the null value of dose must lie in"),
    ],
)
def test_a_mistake_in_a_description_names_its_line(tmp_path, monkeypatch, string, old, new, message):
    monkeypatch.chdir(tmp_path)
    assert string.count(old) == 1
    Path("study.yaml").write_text(string.replace(old, new), encoding="utf-8")
    said = " ".join(call("create", "study.yaml", "g.db", status=2).stderr.split())
    assert re.match(f"Error: study.yaml: {message}", said), said
    assert not Path("g.db").exists()


@pytest.mark.parametrize("string", [LONG, DISCRETE, SOFT])
def test_the_description_without_the_mistake_is_accepted(tmp_path, string):
    path = tmp_path / "study.yaml"
    path.write_text(string, encoding="utf-8")
    call("create", path, tmp_path / "g.db")
