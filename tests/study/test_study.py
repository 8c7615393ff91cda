"""Studies: ask, tell, fail and correct, by one process or several."""

import math
import re
import shutil
from itertools import product
from threading import Lock

import polars as pl
import pytest

from cbo_gym.agents import GPUCB
from cbo_gym.agents.baselines.random import Random
from cbo_gym.errors import ArgumentError, ArgumentTypeError, OperationError
from cbo_gym.scm import CausalDiagram
from cbo_gym.study import UnusedDataWarning, create_study, load_study, studies_in
from cbo_gym.study.log import Log
from tests.support.studies import DOSING, FERMENTER, fermenter, lose_caches, play, simulate


def test_a_round_of_a_study(tmp_path):
    study = fermenter(tmp_path / "f.db")
    assert re.fullmatch(r"Study\('.*', storage='.*f.db', mode='hard', agent='.*'\)", repr(study))
    study.add_data(pl.DataFrame([simulate({}) | {"do(ph)": None}, simulate({"ph": 7.0}) | {"do(ph)": 7.0}]))
    trial = study.ask()
    assert trial.number == 1
    assert set(trial.do) <= {"feed", "ph"}
    assert "titre" in trial.why
    study.tell(trial, simulate(trial.do))
    others = study.ask(3)
    assert [other.number for other in others] == [2, 3, 4]
    study.fail(others[0], "the pump broke")
    study.tell(others[1], simulate({"ph": 6.9}), did={"ph": 6.9} if "ph" in others[1].do else None)
    frame = study.to_frame()
    assert frame["status"].to_list() == ["measured", "failed", "measured", "pending"]
    assert frame["reason"].to_list()[1] == "the pump broke"
    assert repr(study.trials[1]).startswith("Entry(number=2, status='failed', do={")
    assert repr(study.trials[1]).endswith("}, values={}, reason='the pump broke')")
    assert study.trials[0].do == trial.do
    assert study.best_trial.do == study.trials[study.best_trial.number - 1].do
    assert set(study.recommendation()) <= {"feed", "ph"}
    assert study.what_if({"ph": 6.8})["titre"] == pytest.approx(1.5, abs=1.5)
    assert studies_in(tmp_path / "f.db") == ["fermenter"]
    assert load_study(storage=tmp_path / "f.db").to_frame().equals(frame)


def test_another_agent_plays_under_its_own_name(tmp_path):
    study = play(fermenter(tmp_path / "f.db", agent="GP-UCB", constraints=["biomass >= 2"]), 2)
    study.ask()
    for folder in ("kept", "lost"):
        (tmp_path / folder).mkdir()
        shutil.copy(tmp_path / "f.db", tmp_path / folder)
    lose_caches(tmp_path / "lost" / "f.db")
    agent = "GP-UCB(beta=50)"
    kept, lost = (load_study(storage=tmp_path / folder / "f.db", agent=agent) for folder in ("kept", "lost"))
    suggested = kept.ask()
    assert suggested == lost.ask()
    assert f"{kept.description.agent} ignores the constraints" in suggested.why
    assert kept.description.agent == agent


def test_a_reward_is_minimised(tmp_path):
    study = fermenter(tmp_path / "f.db", agent="GP-UCB", direction="minimize")
    done = [{"feed": feed, "ph": ph} for feed in (0.0, 2.5, 5.0) for ph in (5.5, 6.2, 6.8, 7.5)]
    study.add_data(list(map(simulate, done)), do=done)
    best = study.recommendation()
    assert simulate(best)["titre"] < 0.5
    assert study.what_if(best)["titre"] < 0.8


def test_a_correction_is_learned_from_and_what_was_asked_stays(tmp_path):
    study = fermenter(tmp_path / "f.db", agent="GP-UCB")
    play(study, 3)
    asked = [entry.flat for entry in study.trials]
    study.correct(2, simulate({}) | {"titre": 50.0})
    assert [entry.flat for entry in study.trials] == asked
    expected = load_study(storage=tmp_path / "f.db").ask()
    assert study.trials[1].values["titre"] == 50.0
    study.tell(expected, simulate(expected.do))
    other = load_study(storage=tmp_path / "f.db")
    second = study.to_frame().row(1, named=True)
    done = {name: second[f"do({name})"] for name in ("feed", "ph") if second[f"do({name})"] is not None}
    assert other.what_if(done)["titre"] > 5.0


def test_a_correction_replaces_what_it_names(tmp_path):
    study = fermenter(tmp_path / "f.db", agent="MCBO")
    one, other = study.register({"ph": 6.0}), study.register({"feed": 2.0})
    study.tell(one, {"feed": 2.0, "biomass": 2.5, "titre": 1.0}, did={"ph": 6.5}, std={"biomass": 0.1, "titre": 0.2})
    study.tell(other, [{"biomass": 2.0, "titre": 0.8}, {"biomass": 2.2, "titre": 0.8}])
    study.correct(one, {"titre": 1.5})
    entry = study.trials[0]
    assert entry.values == {"feed": 2.0, "biomass": 2.5, "ph": 6.5, "titre": 1.5}
    assert (dict(entry.std), study.to_frame()["do(ph)"][0]) == ({"biomass": 0.1}, pytest.approx(6.5))
    study.correct(one, {"biomass": None}, did={"ph": 7.0})
    assert study.trials[0].values == {"feed": 2.0, "biomass": None, "ph": pytest.approx(7.0), "titre": 1.5}
    study.correct(other, [{"biomass": 2.1}, {"biomass": 2.3}], did={"feed": None})
    assert study.trials[1].values == {"feed": None, "biomass": pytest.approx(2.2), "ph": None, "titre": 0.8}
    assert study.data().row(1, named=True)["do(feed)"] is None


def test_an_outcome_is_withdrawn_and_recorded_after_all(tmp_path):
    study = play(fermenter(tmp_path / "f.db", agent="GP-UCB"), 3)
    best, before = study.best_trial, study.data()
    study.fail(best.number, "contaminated")
    assert study.best_trial.number != best.number
    assert [entry.status for entry in study.trials].count("failed") == 1
    assert len(study.data()) == 2
    lose_caches(tmp_path / "f.db")
    assert load_study(storage=tmp_path / "f.db").recommendation() == study.recommendation()
    study.correct(best.number, {})
    assert study.data().equals(before)
    failed = study.ask()
    study.fail(failed, "lost")
    with pytest.raises(ArgumentError, match=r"trial 4 is failed, not pending; correct\(\) records an outcome"):
        study.tell(failed, {"titre": 1.0})
    study.correct(failed, simulate(failed.do) | {"titre": 9.0})
    assert study.best_trial.number == 4
    lose_caches(tmp_path / "f.db")
    assert load_study(storage=tmp_path / "f.db").recommendation() == study.recommendation()


def test_an_agent_that_samples_from_its_space_suggests_the_same_after_a_restart(tmp_path):
    agent = "tests.support.agents:Sampler"
    first, _ = (play(fermenter(tmp_path / name, agent=agent), 2) for name in ("a.db", "b.db"))
    lose_caches(tmp_path / "b.db")
    assert load_study(storage=tmp_path / "b.db", agent=agent).ask().do == first.ask().do


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """A study of two trials, of which the first has an outcome."""
    study = play(fermenter(tmp_path_factory.mktemp("refusing") / "f.db", agent="Random"))
    study.ask()
    return study


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.tell(9, {"titre": 1.0}), "there is no trial 9; there are 2"),
        (lambda s: s.tell(2, {"titre": 1.0}, did=3), "an action must be a mapping from names to values; given 3"),
        (lambda s: s.ask("2"), "count must be a whole number"),
        (lambda s: s.tell(1, {"titre": 1.0}), r"trial 1 is measured, not pending; correct\(\) changes its outcome"),
        (lambda s: s.tell(2, {"biomass": 1.0}), "the reward titre is missing; if it follows later"),
        (lambda s: s.tell(2, {"titre": math.nan}), "the value of titre must be a finite number"),
        (lambda s: s.tell(2, {"titer": 1.0}), "no variable is called 'titer'; did you mean 'titre'"),
        (lambda s: s.tell(2, {"titre": "7 g"}), "must be a finite number; given '7 g'"),
        (lambda s: s.tell(2, {"titre": -1e150}), r"value of titre must lie between -1e\+30 and 1e\+30; given -1e\+150"),
        (lambda s: s.tell(2, {"titre": 1.0}, did={"ph": 1e31}), "value of ph must lie between"),
        (lambda s: s.correct(1, {"titre": 1e300}), "value of titre must lie between"),
        (lambda s: s.what_if({"ph": 1e300}), "value of ph must lie between"),
        (lambda s: s.ask(context=3), "the study has no contexts; given 3; leave out context"),
        (lambda s: s.tell(2, {"titre": 1.0}, did={"pH": 6.0}), "'pH' cannot be set; did you mean 'ph'"),
        (lambda s: s.reject(1), "trial 1 is measured, not pending"),
        (lambda s: s.fail(2, "x" * 20_000), "at most 10000 characters"),
        (lambda s: s.correct(2, {"titre": 1.0}), r"trial 2 is pending, not measured; tell\(\) records its outcome"),
        (lambda s: s.add_data([{"titre": 1.0}, {"titre": "?"}]), "row 2: the value of titre"),
        (lambda s: s.add_data([{"titre": 1.0}], do={"biomass": 1.0}), "row 1: 'biomass' cannot be set"),
        (lambda s: s.add_data([]), "there are no rows of data"),
        (lambda s: s.ask(0), "count must be at least 1"),
        (lambda s: s.ask(context={"age": 3}), "the study has no contexts"),
    ],
)
def test_a_wrong_call_is_refused_and_stores_nothing(refusing, call, message):
    with pytest.raises(ArgumentError, match=message):
        call(refusing)
    assert refusing.events == 3


def test_values_of_other_types_are_refused(refusing):
    for trial in (True, -1, 1.5, "1", None):
        with pytest.raises(ArgumentError, match="trial must be"):
            refusing.tell(trial, {"titre": 1.0})
    for values in (None, math.nan, object()):
        with pytest.raises(ArgumentError, match="values must be a mapping"):
            refusing.tell(2, values)
    for value in ([1.0], True, b"1", {}):
        with pytest.raises(ArgumentError, match="the value of titre must be a finite number"):
            refusing.tell(2, {"titre": value})
    assert refusing.events == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settable": {"feed": (1, 1)}}, "field settable.feed.*two finite numbers, given"),
        (
            {"settable": {"feed": [0, 1, 2]}},
            r"field settable.feed: a list has two bounds.* write even steps as Range\(",
        ),
        ({"settable": {"feed": (0, math.nan)}}, "field settable.feed.*a finite number .*, given nan"),
        ({"settable": {"feed": (math.inf, 0)}}, "field settable.feed.*a finite number .*, given inf"),
        ({"diagram": "dag { feed -> titre; titre -> ph }"}, "titre"),
        ({"mode": "sof"}, "mode: .*given 'sof'; did you mean 'soft'"),
        ({"direction": "maximise"}, "did you mean 'maximize'"),
        ({"horizon": "1_0"}, "horizon: Input should be a valid integer"),
        ({"seed": 2**63}, "seed must be a whole number from 0 to 9223372036854775807; given 9223372036854775808"),
        ({"seed": "1"}, "seed must be a whole number from 0 to"),
        ({"settable": {"feed": (0, 1e31)}}, r"must be a finite number between -1e\+30 and 1e\+30"),
        ({"settable": {"feed": (0, "1_0")}}, "Input should be a valid number"),
        ({"diagram": "dag { feed -> titre; ph -> titre; why -> titre }"}, "variables cannot be called"),
        ({"mode": "contextual"}, "has no contexts"),
        ({"diagram": None}, "give a diagram, or the names of the variables"),
    ],
)
def test_a_contradictory_study_is_not_created(tmp_path, changes, message):
    with pytest.raises(ArgumentError, match=message):
        fermenter(tmp_path / "f.db", **changes)
    assert not (tmp_path / "f.db").exists()


def test_effects_of_the_reward_are_ignored(tmp_path):
    about = {
        "diagram": "digraph { feed -> titre -> price; feed -> price; price -> fee }",
        "reward": "titre",
        "settable": {"feed": (0.0, 1.0)},
        "units": {"titre": "g", "fee": "EUR"},
        "agent": "Random",
    }
    study = create_study("a", storage=tmp_path / "a.db", **about)
    assert study.description.ignored == ["fee", "price"]
    assert study.diagram == CausalDiagram(["feed", "titre"], [("feed", "titre")])
    study.add_data([{"feed": 0.5, "titre": 1.0, "price": 3.0, "fee": "none"}])
    study.tell(study.ask(), {"feed": 0.2, "titre": 1.0, "price": 2.0})
    assert load_study(storage=tmp_path / "a.db").data().columns == ["do(feed)", "feed", "titre"]
    assert "price" in study.report(tmp_path / "a.html").read_text(encoding="utf-8")
    for changes, message in (
        ({"settable": {"price": (0.0, 1.0)}}, "settable names price, an effect of the reward titre; .* leave it out"),
        ({"constraints": ["price <= 2"]}, "constraints names price, an effect of the reward titre"),
        ({"mode": "contextual", "contexts": ["fee"]}, "contexts names fee, an effect of the reward titre"),
        ({"ignored": ["feed"]}, r"\['feed'\] are both variables and ignored"),
        (
            {"diagram": None, "candidates": ["dag { feed -> titre -> price }", "dag { feed -> price -> titre }"]},
            r"\['price'\] are effects of the reward titre in one candidate and not in another",
        ),
    ):
        with pytest.raises(ArgumentError, match=message):
            create_study("b", storage=tmp_path / "a.db", **{**about, "units": {}, **changes})


def test_a_diagram_may_have_any_form(tmp_path):
    about = {"storage": tmp_path / "a.db", "reward": "titre", "agent": "Random", "settable": {"feed": (0, 1)}}
    for diagram in ("digraph { 0 [label=feed] 1 [label=titre] 1 -> 0 [dir=back] }", [("feed", "titre")]):
        study = create_study(type(diagram).__name__, diagram=diagram, **about)
        assert study.diagram == CausalDiagram(["feed", "titre"], [("feed", "titre")])


def test_a_storage_is_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for storage in (None, 3, b"f.db"):
        with pytest.raises(ArgumentTypeError, match="the storage must be the path of a file, or a URL; given"):
            fermenter(storage)
    assert not list(tmp_path.iterdir())
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (home / "past.csv").write_text("titre\n0.5\n", encoding="utf-8")
    study = fermenter("~/f.db", agent="Random")
    assert study.add_data("~/past.csv") == 1
    assert study.report("~/f.html") == home / "f.html"
    assert load_study(storage="~/f.db").data()["titre"].to_list() == [0.5]
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_an_agent_that_cannot_be_copied_is_refused(tmp_path):
    agent = Failing()
    agent.lock = Lock()
    with pytest.raises(ArgumentTypeError, match="the agent, an object of type Failing, cannot be copied"):
        fermenter(tmp_path / "f.db", agent)


def test_names_are_taken_once_and_studies_are_found(tmp_path):
    path = tmp_path / "f.db"
    fermenter(path)
    with pytest.raises(ArgumentError, match="has a study 'fermenter' already"):
        fermenter(path)
    create_study("other", storage=path, agent="Random", **FERMENTER)
    with pytest.raises(ArgumentError, match="name the study; it has fermenter, other"):
        load_study(storage=path)
    with pytest.raises(ArgumentError, match="no study is called 'othr'; did you mean 'other'"):
        load_study("othr", storage=path)
    with pytest.raises(ArgumentError, match="there is no file"):
        load_study(storage=tmp_path / "nowhere.db")


def test_an_unmeasured_variable_is_missing_unless_it_was_set(tmp_path):
    study = fermenter(tmp_path / "f.db", agent="MCBO(samples=4, restarts=2)")
    study.add_data([{"feed": 2.0, "biomass": 2.0, "titre": 0.7}, simulate({})], do=[{"ph": 6.5}, {}])
    assert study.data()["ph"].to_list()[0] == pytest.approx(6.5)
    for place in range(2):
        trial = study.ask()
        study.tell(trial, {name: value for name, value in simulate(trial.do).items() if place or name != "biomass"})
    assert study.to_frame()["biomass"].null_count() == 1
    study.tell(study.ask(), {"biomass": 2.0, "titre": 0.8}, did={"ph": 6.5})
    assert study.trials[-1].values["ph"] == pytest.approx(6.5)
    study.ask()
    other = create_study("other", storage=tmp_path / "f.db", agent="CBO", **FERMENTER)
    trial = other.ask()
    other.tell(trial, {"feed": 1.0, "ph": 6.0, "titre": 1.0})
    left_out = r"CBO learns nothing from trial 1 without biomass; correct\(\) adds what was measured"
    with pytest.raises(ArgumentError, match=left_out), pytest.warns(UnusedDataWarning):
        other.recommendation()
    second = other.ask()
    assert re.search(left_out, second.why)
    other.tell(second, simulate(second.do))
    with pytest.warns(UnusedDataWarning, match=left_out):
        assert load_study("other", storage=tmp_path / "f.db").recommendation() == other.recommendation()
    other.correct(trial, simulate(trial.do))
    assert "learns nothing" not in other.ask().why


def test_data_that_the_agent_does_not_take_are_refused(tmp_path):
    rows = [simulate({}), {"feed": 1.0, "ph": 6.0, "titre": 1.0}]
    with pytest.raises(ArgumentError, match="row 2: biomass is missing, and CBO needs all variables"):
        fermenter(tmp_path / "a.db").add_data(rows)
    unconfounded = "dag { feed -> biomass -> titre; ph -> titre }"
    study = fermenter(tmp_path / "b.db", agent="Auto", diagram=unconfounded)  # it plays MCBO, who can
    assert study.add_data(rows) == 2


def test_a_reward_may_be_known_from_other_variables(tmp_path):
    about = {
        "diagram": "dag { yeast -> cost; yeast -> titre; titre -> profit; cost -> profit }",
        "reward": "profit",
        "mode": "soft",
        "parameters": {"dose": {"node": "yeast", "bounds": (0.0, 2.0)}},
        "composition": "3 * titre - cost ** 2",
        "agent": "EICF",
        "horizon": 20,
    }
    study = create_study("known", storage=tmp_path / "f.db", **about)
    for _ in range(8):
        trial = study.ask()
        dose = trial.do["dose"]
        study.tell(trial, {"yeast": dose, "titre": dose, "cost": dose, "profit": 3 * dose - dose**2})
    assert study.recommendation()["dose"] == pytest.approx(1.5, abs=0.05)
    for changes, message in [
        ({"composition": "exp(titre)"}, "calls a function; write it with"),
        ({"composition": "titer"}, r"names \['titer'\]; it can name"),
        ({"mode": "aggregated", "agent": "Random"}, "a composition belongs to the soft mode"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            create_study("wrong", storage=tmp_path / "f.db", **{**about, **changes})


# Contexts ----------------------------------------------------------------------------------------------------


def answered(trial):
    age, dose = trial.context["age"], trial.do.get("dose", 0.5)
    return {"age": age, "dose": dose, "answer": -((dose - age) ** 2)}


@pytest.mark.parametrize("agent", ["CoCaBO", pytest.param("GP-UCB", marks=pytest.mark.slow)])
def test_rounds_in_contexts_are_recorded_in_any_order(tmp_path, agent):
    study = create_study("dosing", storage=tmp_path / "f.db", agent=agent, **DOSING)
    past = [{"age": age, "dose": age / 2, "answer": -((age / 2) ** 2)} for age in (0.1, 0.3, 0.9)]
    study.add_data(past, do=[{"dose": one["dose"]} for one in past])
    for visit in range(5):
        patients = [study.ask(context={"age": (0.37 * (3 * visit + index)) % 1.0}) for index in range(3)]
        assert [trial.number for trial in study.pending] == [trial.number for trial in patients]
        for trial in reversed(patients):
            study.tell(trial, answered(trial))
    for age in (0.2, 0.7):
        assert study.recommendation(context={"age": age})["dose"] == pytest.approx(age, abs=0.2)
    expected = [study.what_if({"dose": 0.2}, context={"age": age})["answer"] for age in (0.2, 0.8)]
    assert expected[0] > expected[1]
    shutil.copy(tmp_path / "f.db", tmp_path / "copy.db")
    again = load_study(storage=tmp_path / "copy.db")
    lose_caches(tmp_path / "copy.db")
    assert again.ask(context={"age": 0.5}).do == study.ask(context={"age": 0.5}).do
    with pytest.raises(ArgumentError, match="the context must give a number"):
        study.recommendation(context={"agge": 1.0})


def test_a_context_need_not_be_measured_again(tmp_path):
    study = create_study("dosing", storage=tmp_path / "f.db", agent="Auto", **DOSING)
    trial = study.ask(context={"age": 0.3})
    study.tell(trial, {"dose": 0.4, "answer": 1.0})
    study.ask(context={"age": 0.6})
    assert study.to_frame()["age"].to_list()[0] == 0.3
    study.correct(trial, {"age": 0.31, "dose": 0.4, "answer": 1.0})
    assert study.to_frame()["age"].to_list() == [0.31, 0.6]
    assert (study.trials[0].context, study.data()["age"].to_list()) == ({"age": 0.31}, [0.31])
    for context in ([], ""):
        with pytest.raises(ArgumentError, match="the context must give a number"):
            study.ask(context=context)


# What a stranger's file cannot do ----------------------------------------------------------------------------


def test_no_code_is_run_that_a_database_names(tmp_path):
    path = tmp_path / "f.db"
    fermenter(path, agent="tests.support.agents:Centre")
    with pytest.raises(ArgumentError, match="an import path, whose code would be run; if you trust it, pass"):
        load_study(storage=path)
    assert load_study(storage=path, agent="tests.support.agents:Centre").ask().number == 1


def test_a_forged_cache_is_not_used(tmp_path, monkeypatch):
    for index in range(2):
        study = fermenter(tmp_path / f"{index}.db", agent="GP-UCB")
        for _ in range(3):
            trial = study.ask()
            study.tell(trial, simulate(trial.do) | {"titre": index + trial.number})
    honest, other = (tmp_path / f"{index}.db" for index in range(2))
    number, stamp, content = Log(other).read_snapshot(1)  # it has learned something else
    wanted = load_study(storage=honest).recommendation()

    Log(honest).write_snapshot(1, number, stamp.partition("\n")[0] + "\nforged", content)
    found = load_study(storage=honest)
    assert found.recommendation() == wanted
    assert found.ask().number == 4
    monkeypatch.setenv("CBO_GYM_KEY", str(tmp_path / "another key"))
    Log(honest).write_snapshot(1, number, stamp, content)
    assert load_study(storage=honest).recommendation() == wanted


@pytest.mark.parametrize("size", [1e29, 1e-320])
def test_values_of_every_allowed_size_can_be_learned_from(tmp_path, size):
    study = fermenter(tmp_path / "f.db", agent="EIFN")
    rounds = [{name: size * (row + column) for column, name in enumerate(simulate({}))} for row in range(4)]
    study.add_data(rounds, do=[{}, {}, {"ph": 6.0}, {"feed": 1.0}])
    study.ask()
    assert math.isfinite(study.what_if({})["titre"])


class Failing(Random):
    def act(self, observation):
        raise KeyError("no\nluck")

    def fantasize(self, action):
        raise KeyError("no luck")


def test_a_cause_that_is_never_measured_is_named(tmp_path):
    study = fermenter(tmp_path / "f.db", agent="MCBO")
    study.tell(study.register({"ph": 6.5}), {"feed": 2.0, "titre": 1.0})
    message = "MCBO cannot learn the effects of biomass, which no round measured; .* diagram says biomass .latent."
    assert re.search(message, study.ask().why)
    with pytest.warns(UnusedDataWarning, match=message):
        study.recommendation()
    study.correct(1, {"biomass": 2.0})
    assert "cannot learn" not in study.ask().why


def test_an_object_of_an_installed_agent_is_refused(tmp_path):
    """Other processes would play its label, without its settings."""
    with pytest.raises(ArgumentError, match=r"give its label with the settings, as in 'GP-UCB\(name=value\)'"):
        fermenter(tmp_path / "f.db", agent=GPUCB(beta=3.0))
    fermenter(tmp_path / "f.db", agent=GPUCB)
    assert load_study(storage=tmp_path / "f.db").description.agent == "GP-UCB"


def test_an_error_of_an_agent_names_the_agent(tmp_path):
    fermenter(tmp_path / "f.db", agent="Random").add_data([simulate({})])
    study = load_study(storage=tmp_path / "f.db", agent=Failing())
    for call in (study.ask, lambda: study.what_if({})):
        with pytest.raises(OperationError, match=r"the agent Failing fails with KeyError: .+; nothing was recorded"):
            call()
    assert study.events == 1


def test_a_parameter_may_enter_several_nodes(tmp_path):
    """The temperature acts on growth and on acid, with or without the key's plural."""
    fields = {
        "diagram": "dag { growth -> titre; acid -> titre }",
        "reward": "titre",
        "mode": "soft",
        "agent": "MCBO",
    }
    parameters = {
        "temperature": {"nodes": ["growth", "acid"], "bounds": (20.0, 40.0)},
        "feed": {"node": "growth", "bounds": (0.0, 5.0)},
    }
    study = create_study("s", storage=tmp_path / "s.db", parameters=parameters, **fields)
    network = study.interface.scm.action_nodes
    assert network == {"growth": (0, 1), "acid": (0,)}
    for temperature, feed in product((20.0, 30.0, 40.0), (0.0, 2.0, 5.0)):
        heat = (temperature - 20) / 20
        growth, acid = feed / 5 + heat, (heat - 0.3) ** 2
        outcome = {"growth": growth, "acid": acid, "titre": growth - 3 * acid}
        study.add_data(outcome, do={"temperature": temperature, "feed": feed})
    assert set(study.what_if({"temperature": 30.0, "feed": 2.0})) == {"growth", "acid", "titre"}
    assert not any("temperature" in (one.first, one.second) for one in study.check_diagram().refused)
    assert load_study(storage=tmp_path / "s.db").description == study.description
    wrong = {"temperature": {"node": ["growth", "acids"], "bounds": (20.0, 40.0)}}
    with pytest.raises(ArgumentError, match=r"parameters names .'acids'.; did you mean 'acid'"):
        create_study("t", storage=tmp_path / "t.db", parameters=wrong, **fields)
    with pytest.raises(ArgumentError, match="must be different names"):
        create_study(
            "t", storage=tmp_path / "t.db", parameters={"x": {"node": ["acid"] * 2, "bounds": (0, 1)}}, **fields
        )
