"""The page of studies: each action of its forms, as a browser sends them."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import polars as pl
import pytest

from cbo_gym.errors import MissingExtraError
from cbo_gym.study import create_study, load_study
from cbo_gym.study.page import AgentPool
from tests.support.studies import FERMENTER, fermenter, play, simulate
from tests.support.study_visitor import FIELDS, YAML, Visitor, said


def measured(values, *but):
    return {f"value:{name}": str(value) for name, value in values.items() if name not in but}


@pytest.fixture
def visitor(tmp_path):
    fermenter(tmp_path / "f.db", agent="Random", units={"feed": "g/h", "titre": "g/L"})
    return Visitor(tmp_path / "f.db")


def stored(tmp_path):
    return load_study(storage=tmp_path / "f.db")


def done(study, row):
    """What was set in a trial, by name."""
    found = study.to_frame().row(row, named=True)
    return {name: found[f"do({name})"] for name in study.settable if found[f"do({name})"] is not None}


def test_a_study_is_created_from_fields(tmp_path):
    visitor = Visitor(tmp_path / "f.db")
    visitor.get("/", 303)
    assert visitor.answer.headers["location"] == "/new"
    assert not (tmp_path / "f.db").exists()
    assert "f.db has no study yet" in visitor.get("/new")
    html = visitor.send("create", {**FIELDS, "more": "1"}, 200)
    assert html.count('name="setting"') == 8
    assert 'value="5.5"' in html
    assert said(html) == []
    visitor.get("/new")
    html = visitor.send("create", {**FIELDS, "reward": "titer"}, 422)
    assert said(html)[0].startswith("reward names [&#39;titer&#39;]; did you mean")
    assert 'value="10"' in html
    assert FERMENTER["diagram"].replace(">", "&gt;").replace("<", "&lt;") in html
    assert not (tmp_path / "f.db").exists()
    html = visitor.send("create", {"reward": "titre"})
    assert "The study was created" in said(html)[0]
    about = stored(tmp_path).description
    assert about.settable == {"feed": (0, 5), "ph": (5.5, 7.5)}
    assert (about.costs, about.horizon) == ({"feed": 1, "ph": 10}, 12)
    assert about.units == {"feed": "g/h", "titre": "g/L"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"mode": "soft", "setting": ["a", "b", "", ""], "node": ["feed", "ph", "", ""]},
            {"parameters": {"a": {"node": "feed", "bounds": [0, 5]}, "b": {"node": "ph", "bounds": [5.5, 7.5]}}},
        ),
        (
            {
                "mode": "partial",
                "setting": ["a", "b", "", ""],
                "node": ["feed", "titre", "", ""],
                "prices": "titre = 9\nfeed = 0.5",
                "diagram": "dag { feed -> titre }",
                "agent": "Random",
            },
            {"costs": {"feed": 0.5, "titre": 9}},
        ),
        (
            {
                "mode": "discrete",
                "arms": "ph = 6, feed = 1\nobserve\nph = 7",
                "reward_range": ["0", "2"],
                "agent": "UCB",
            }
            | dict.fromkeys(("setting", "low", "high", "step", "unit", "cost"), [""] * 4),
            {"arms": [{"ph": 6, "feed": 1}, {}, {"ph": 7}], "reward_range": [0, 2]},
        ),
        ({"mode": "contextual", "contexts": "biomass", "cost": [""] * 4}, {"contexts": ["biomass"]}),
        (
            {"low": ["0.01", "5.5", "", ""], "step": ["log, 2 digits", "3 digits", "", ""]},
            {
                "settable": {
                    "feed": {"low": 0.01, "high": 5, "scale": "log", "digits": 2},
                    "ph": {"low": 5.5, "high": 7.5, "digits": 3},
                }
            },
        ),
        ({"diagram": "", "variables": "feed, ph\nbiomass, titre"}, {"variables": ["feed", "ph", "biomass", "titre"]}),
    ],
)
def test_each_mode_has_its_fields(tmp_path, fields, expected):
    visitor = Visitor(tmp_path / "f.db")
    visitor.get("/new")
    visitor.send("create", {**FIELDS, **({"cost": [""] * 4} if fields.get("mode") else {}), **fields})
    about = stored(tmp_path).description.model_dump(mode="json")
    for name, value in expected.items():
        found = about[name]
        if name == "parameters":
            found = {key: {part: one[part] for part in ("node", "bounds")} for key, one in found.items()}
        assert found == value


def test_a_study_is_created_from_yaml_pasted_or_uploaded(tmp_path):
    visitor = Visitor(tmp_path / "f.db")
    visitor.get("/new")
    assert "neither was given" in said(visitor.send("yaml", {}, 422))[0]
    html = visitor.send("yaml", {"yaml": YAML.replace("horizon", "x") + "settable: 3\n"}, 422)
    assert "line 7: the key &#39;settable&#39; comes twice, first in line 4" in said(html)[0]
    assert "settable: {feed: [0, 5]" in html
    assert "fermenter" in visitor.send("yaml", {"yaml": YAML})
    visitor.get("/new")
    other = YAML.replace("name: fermenter", "name: other").encode()
    visitor.send("yaml", {"yaml": ""}, files={"file": ("other.yaml", other)})
    html = visitor.get("/")
    assert html.index(">fermenter<") < html.index(">other<")
    visitor.get("/new")
    assert "has a study &#39;other&#39; already" in said(visitor.send("yaml", {}, 422, {"file": ("o.yaml", other)}))[0]


def test_a_round_through_the_forms(tmp_path, visitor):
    visitor.get("/studies/1")
    past = pl.DataFrame([simulate({}) | {"do(ph)": None}, simulate({"ph": 7.0}) | {"do(ph)": 7.0}]).write_csv()
    assert said(visitor.send("import", {}, files={"file": ("past.csv", past)})) == ["2 rounds were added."]
    assert said(visitor.send("import", {"csv": past.partition("\n")[0] + "\n2,6,1,1,\n"})) == ["1 round was added."]
    earlier = {"campaign": "pilot 2025", "differs": "ph, biomass"}
    imported, repeated = said(visitor.send("import", {"csv": past, **earlier}))
    assert imported == "2 rounds were added."
    assert repeated.startswith("2 of them equal rounds that the study had already")
    assert 'value="pilot 2025"' in visitor.send("import", {"csv": past, **earlier, "differs": "oxygen"}, 422)
    visitor.get("/studies/1")
    html = visitor.send("ask", {"count": "3"})
    assert said(html) == ["Trials 1 to 3 are next, all at once."]
    trial = stored(tmp_path).trials[0]
    assert html.count("Record the outcome") >= 3
    assert trial.why in html
    set_to = done(stored(tmp_path), 0)
    html = visitor.send("tell-1", {**measured(simulate(set_to), *set_to), "value:biomass": ""})
    assert said(html) == ["The outcome of trial 1 was recorded."]
    first = stored(tmp_path).trials[0]
    assert first.done is None  # a rounded number that comes back is no deviation
    assert {name: first.values[name] for name in set_to} == set_to
    assert first.values["biomass"] is None
    assert said(visitor.send("fail-2", {"reason": "the <b>pump</b> broke"})) == ["Trial 2 is recorded as failed."]
    assert "the &lt;b&gt;pump&lt;/b&gt; broke" in visitor.html
    assert said(visitor.send("reject-3", {"reason": "too hot"})) == ["Trial 3 is recorded as rejected."]
    assert said(visitor.send("register", {"do:ph": "acid"}, 422)) == [
        "the value of ph must be a finite number; given &#39;acid&#39;"
    ]
    assert said(visitor.send("register", {"do:ph": "6.6"})) == ["Trial 4, your own choice, is pending."]
    assert done(stored(tmp_path), 3) == pytest.approx({"ph": 6.6})
    assert [entry.status for entry in stored(tmp_path).trials] == ["measured", "failed", "rejected", "pending"]
    visitor.get("/studies/1/trials/1")
    html = visitor.send("correct-1", {"value:titre": "0.123456789012345"})
    assert said(html) == ["The outcome of trial 1 was corrected."]
    assert stored(tmp_path).trials[0].values["titre"] == 0.123456789012345
    visitor.get("/studies/1/trials/1")
    assert 'value="0.123456789012345"' in visitor.html
    assert visitor.client.get("/studies/1/state").json() == {"event": 9}


def test_deviations_are_recorded(tmp_path, visitor):
    visitor.get("/studies/1")
    number = 0
    while not number or set(done(stored(tmp_path), number - 1)) != {"ph"}:
        visitor.send("ask")
        number += 1
    html = visitor.send(f"tell-{number}", {"did:ph": "7,9", "value:titre": "1", "value:feed": "1.5"}, 422)
    assert said(html) == ["the value of ph must be a finite number; given &#39;7,9&#39;"]
    assert 'value="7,9"' in html
    assert 'value="1.5"' in html
    visitor.send(f"tell-{number}", {"did:ph": "7.9", "did:feed": "2"})
    recorded = stored(tmp_path).trials[-1]
    assert recorded.done is not None
    assert (recorded.values["ph"], recorded.values["titre"], recorded.values["biomass"]) == (7.9, 1.0, None)
    assert "not as suggested" in visitor.html
    assert done(stored(tmp_path), -1) == pytest.approx({"ph": 7.9, "feed": 2.0})
    visitor.get(f"/studies/1/trials/{number}")
    visitor.send(f"correct-{number}", {"value:biomass": "1.9"})  # and what was set stays
    assert done(stored(tmp_path), -1) == pytest.approx({"ph": 7.9, "feed": 2.0})
    assert stored(tmp_path).trials[-1].values["biomass"] == 1.9
    visitor.get(f"/studies/1/trials/{number}")
    visitor.send(f"correct-{number}", {"value:biomass": "", "did:feed": ""})
    assert done(stored(tmp_path), -1) == pytest.approx({"ph": 7.9})
    assert stored(tmp_path).trials[-1].values == {"feed": None, "biomass": None, "ph": 7.9, "titre": 1.0}
    visitor.get(f"/studies/1/trials/{number}")
    assert said(visitor.send(f"fail-{number}", {"reason": "contaminated"})) == [
        f"Trial {number} is recorded as failed."
    ]
    visitor.get(f"/studies/1/trials/{number}")
    visitor.send(f"correct-{number}", {"value:titre": "0.5"})
    assert stored(tmp_path).best_trial.number == number


def test_a_part_is_recorded_and_the_rest_or_the_end(tmp_path, visitor):
    visitor.get("/studies/1")
    visitor.send("ask", {"count": "2"})
    html = visitor.send("tell-1", {"value:biomass": "2.125", "partial": "yes"})
    assert said(html) == ["A part of trial 1 was recorded."]
    assert '<span class="status partial">partial</span>' in html
    assert 'value="2.125"' in html
    html = visitor.send("tell-1", {"value:biomass": "2.5", "partial": "yes"}, 422)
    assert "biomass of trial 1 was recorded as 2.125; given 2.5" in said(html)[0]
    visitor.get("/studies/1/trials/1")
    visitor.send("correct-1", {"value:biomass": "2.5"})
    visitor.get("/studies/1")
    visitor.send("tell-1", {"value:titre": "0.5", "std:titre": "0.05"})
    assert "0.5 ± 0.05" in visitor.html
    visitor.send("tell-2", {"value:biomass": "2", "partial": "yes"})
    assert said(visitor.send("close-2", {"reason": "lost"})) == ["Trial 2 is recorded as closed."]
    first, second = stored(tmp_path).trials
    assert (first.status, first.values["biomass"], first.values["titre"]) == ("measured", 2.5, 0.5)
    assert (second.status, second.reason, second.values["titre"]) == ("closed", "lost", None)
    visitor.get("/studies/1/trials/2")
    visitor.send("correct-2", {"value:titre": "0.75"})
    assert stored(tmp_path).trials[1].status == "measured"
    visitor.get("/studies/1/trials/1")
    visitor.send("correct-1", {"value:titre": "37 of 1000", "std:titre": ""})
    assert "37 of 1000: 0.027 to 0.0506" in visitor.html
    visitor.get("/studies/1/trials/1")
    assert 'value="37 of 1000"' in visitor.html


def test_a_trial_that_ended_meanwhile_is_shown_with_what_was_typed(tmp_path, visitor):
    visitor.get("/studies/1")
    visitor.send("ask")
    stored(tmp_path).tell(1, simulate({}))
    html = visitor.send("tell-1", {"value:titre": "7.25"}, 422)
    assert "trial 1 is measured, not pending" in said(html)[0]
    assert 'action="/studies/1/trials/1/correct"' in html
    assert 'value="7.25"' in html


def test_what_the_agent_expects_and_recommends(tmp_path):
    study = fermenter(tmp_path / "f.db", agent="GP-UCB", units={"titre": "g/L"})
    visitor = Visitor(tmp_path / "f.db", reports=True)
    visitor.get("/studies/1")
    html = visitor.get("/studies/1/what-if?do%3Aph=7", 422)
    assert len(said(html)) == 1
    play(study, 3)
    html = visitor.get("/studies/1/what-if?do%3Aph=7&do%3Afeed=")
    found = dict(re.findall(r'<th scope="row">(\w+)</th><td>([^<]*)</td>', html))
    assert found["titre"] == f"{load_study(storage=tmp_path / 'f.db').what_if({'ph': 7.0})['titre']:.6g} g/L"
    assert 'value="7"' in html
    low, high = load_study(storage=tmp_path / "f.db").what_if({"ph": 7.0}).interval
    assert f"95 % interval {low:.6g} to {high:.6g}" in html
    assert 'id="expected"' in visitor.get("/studies/1/what-if?do%3Aph=&do%3Afeed=")  # of observing
    assert "must be a finite number; given [6.0, 7.0]" in visitor.get("/studies/1/what-if?do%3Aph=6&do%3Aph=7", 422)
    html = visitor.get("/studies/1/report")
    assert html.count("<svg") >= 2
    assert "<style" not in html
    assert "data-report" not in visitor.get("/studies/1")


def test_contexts_are_asked_for_and_intervals_have_two_ends(tmp_path):
    about = {"diagram": "dag { age -> dose -> effect; age -> effect }", "reward": "effect", "mode": "contextual"}
    about |= {"contexts": ["age"], "settable": {"dose": (0.0, 1.0)}, "agent": "Random"}
    create_study("dosing", storage=tmp_path / "f.db", **about)
    visitor = Visitor(tmp_path / "f.db")
    visitor.get("/studies/1")
    assert "the context must give a number" in said(visitor.send("ask", {}, 422))[0]
    assert "age = 51.25" in visitor.send("ask", {"context:age": "51.25"})
    visitor.send("tell-1", {"value:effect": "1"})
    assert stored(tmp_path).trials[0].values["age"] == 51.25
    about = {"diagram": "dag { a -> y }", "reward": "y", "mode": "aggregated", "agent": "Random"}
    parameters = {"p": {"node": "a", "bounds": (0.0, 10.0)}}
    cells = create_study("cells", storage=tmp_path / "f.db", parameters=parameters, **about)
    visitor.get("/studies/2")
    visitor.send("ask")
    visitor.send("tell-1", {"value:a": "1", "value:y": "2", "did:p": ["2.5", "3.5"]})
    assert cells.to_frame()["do(p)"].to_list()[0] == pytest.approx([2.5, 3.5])


def test_the_export_is_the_command_lines(tmp_path, visitor):
    visitor.get("/studies/1")
    visitor.send("ask")
    visitor.send("fail-1", {"reason": "=1+1"})
    string = visitor.get("/studies/1/trials.csv")
    assert visitor.answer.headers["content-disposition"] == 'attachment; filename="study-1-trials.csv"'
    assert "'=1+1" in string
    assert string.splitlines()[0].startswith("number,status,do(feed),do(ph),")
    visitor.get("/studies/1")
    visitor.send("import", {"csv": "feed,ph,biomass,titre,do(ph)\n1,7,1,0.5,7\n"})
    string = visitor.get("/studies/1/data.csv")
    assert string == "do(feed),do(ph),feed,biomass,ph,titre\n,7.0,1.0,1.0,7.0,0.5\n"
    visitor.get("/studies/1")
    assert said(visitor.send("import", {"csv": string})) == ["1 round was added."]


def test_four_requests_at_once_get_four_trials_while_the_page_answers(tmp_path):
    agent = f"tests.support.studies:Delayed(folder={str(tmp_path)!r})"
    asked, go_on = tmp_path / "asked", tmp_path / "go"
    other = fermenter(tmp_path / "g.db", agent="Random")
    for one in (fermenter(tmp_path / "f.db", agent=agent), other):
        begin(one)
    create_study("another", storage=tmp_path / "f.db", agent="Random", **FERMENTER)
    visitor = Visitor(tmp_path / "f.db", trusted=["tests.support.studies:Delayed"], reports=True)
    with ThreadPoolExecutor(4) as pool:
        answers = [
            pool.submit(visitor.client.post, "/studies/1/ask", data={"forgery": visitor.access.forgery})
            for _ in range(4)
        ]
        try:
            wait_for(asked)
            html = visitor.client.get("/studies/1").text
            state = visitor.client.get("/studies/1/state").json()
            visitor.post("/studies/2/ask")
        finally:
            go_on.touch()
        indices = [answer.result().headers["location"] for answer in answers]
    assert "The agent is preparing the report" in html
    assert state == {"event": 1}
    assert sorted(indices) == [f"/studies/1?done=asked&trial={number}&count=1" for number in (1, 2, 3, 4)]
    pending = [entry.flat for entry in load_study("fermenter", storage=tmp_path / "f.db", agent=agent).trials]
    assert len(set(map(str, pending))) == 4
    assert pending == [load_study(storage=tmp_path / "g.db").ask() and other.trials[-1].flat for _ in range(4)]


def begin(study):
    past = [{"ph": ph} for ph in (6.0, 6.5, 7.0)]
    study.add_data(list(map(simulate, past)), do=past)


def wait_for(path):
    for _ in range(3000):
        if path.exists():
            return
        time.sleep(0.01)
    raise AssertionError(f"{path.name} does not come")


@pytest.mark.parametrize(
    ("how", "said_of_it"),
    [
        ("raise", "it raised an error, which the terminal of the server shows"),
        ("hang", "took longer than the time limit of 1 s"),
        pytest.param("make", "took longer than the time limit of 1 s", marks=pytest.mark.slow),
        pytest.param("interrupt", "it raised an error, which the terminal of the server shows", marks=pytest.mark.slow),
        pytest.param("exit", "its process ended with status 3", marks=pytest.mark.slow),
    ],
)
def test_an_agent_without_an_answer_is_rebuilt_from_the_log(tmp_path, caplog, how, said_of_it):
    agent = f"tests.support.studies:Broken(folder={str(tmp_path)!r}, how={how!r})"
    for name, label in (("f", agent), ("g", "Random")):
        begin(fermenter(tmp_path / f"{name}.db", agent=label))
    visitor = Visitor(tmp_path / "f.db", trusted=["tests.support.studies:Broken"])
    visitor.get("/studies/1")
    broken = tmp_path / "broken"
    broken.touch()
    usual, stops = visitor.service.pool, how in ("hang", "make")
    if stops:
        visitor.service.pool = AgentPool(1)
    if how == "make":
        html = visitor.send("import", {"csv": "feed,ph,biomass,titre\n1,7,,0.5\n"}, 503)
    else:
        html = visitor.send("ask", {"count": "1"}, 503)
    if stops:
        visitor.service.pool.close()
        visitor.service.pool = usual
    assert said(html)[0].startswith(f"the agent gave no answer: {said_of_it}. Recorded outcomes are safe.")
    assert "--think-seconds" in html
    assert "traceback from" not in html
    assert ("traceback from" in caplog.text) == (how in ("raise", "interrupt"))
    broken.unlink()
    visitor.send("ask", {"count": "1"})
    load_study(storage=tmp_path / "g.db").ask()
    flats = [load_study(storage=tmp_path / f"{name}.db", agent="Random").trials[-1].flat for name in ("f", "g")]
    assert flats[0] == flats[1]


def test_a_long_study_is_shown_in_part(tmp_path, visitor):
    study = stored(tmp_path)
    for trial in study.ask(140)[:105]:
        study.tell(trial, simulate(trial.do))
    html = visitor.get("/studies/1")
    assert "The latest 100 of 140; the CSV has all." in html
    assert "5 more are pending" in html
    assert html.count('<article class="card trial"') == 30


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    import sys

    for name in [name for name in sys.modules if name.startswith("cbo_gym.study.page")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(MissingExtraError, match=r"cbo-gym study serve needs .*\.\[serve\]"):
        import cbo_gym.study.page  # noqa: F401
