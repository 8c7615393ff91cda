"""Studies whose trials measure one variable: batches, prices, past rounds, and what cannot be done."""

import pytest
from typer.testing import CliRunner

from cbo_gym.cli import app
from cbo_gym.errors import ArgumentError
from cbo_gym.study import create_study, load_study

FIELDS = {
    "mode": "partial",
    "diagram": "dag { biomass -> titre }",
    "reward": "titre",
    "parameters": {"feed": {"node": "biomass", "bounds": (0.0, 5.0)}, "ph": {"node": "titre", "bounds": (5.5, 7.5)}},
    "costs": {"biomass": 1, "titre": 9},
}


def laboratory(path, agent="Random", **changes):
    return create_study("laboratory", storage=path, agent=agent, **{**FIELDS, **changes})


def test_a_trial_uses_the_batch_of_an_earlier_one_and_does_not_pay_for_it(tmp_path):
    study = laboratory(tmp_path / "s.db", budget=50)
    first = study.register({"measure": "biomass", "feed": 2.0})
    study.tell(first, {"biomass": 3.0})
    assert study.best_trial is None
    whole = study.register({"measure": "titre", "feed": 1.0, "ph": 6.0})
    study.tell(whole, {"biomass": 2.0, "titre": 1.75})
    again = study.register({"measure": "titre", "feed": 2.0, "ph": 6.5})
    assert (first.batches, whole.batches, again.batches) == ({}, {}, {"biomass": 1})
    assert study.pending == [again]
    assert again.why == "measure titre, with the biomass of trial 1; your own choice"
    assert study.stopping().spending == (1.0 + 10.0, 9.0, 50.0)
    study.tell(again, {"titre": 3.0})
    assert study.best_trial.number == 3
    assert load_study(storage=tmp_path / "s.db").recommendation() == {"feed": 2.0, "ph": 6.5}
    assert study.data()["biomass"].to_list() == [3.0, 2.0, None]


def test_an_outcome_needs_the_measured_variable(tmp_path):
    study = laboratory(tmp_path / "s.db")
    trial = study.register({"measure": "biomass", "feed": 2.0})
    with pytest.raises(ArgumentError, match=r"^biomass is missing; if it follows later"):
        study.tell(trial, {"titre": 3.0})
    whole = study.register({"measure": "titre", "feed": 2.0})
    assert whole.do == {"measure": "titre", "feed": 2.0, "ph": 5.5}
    study.tell(whole, {"biomass": 3.0}, final=False)
    with pytest.raises(ArgumentError, match="the reward titre is missing"):
        study.tell(whole, {})
    study.close(whole, "the assay failed")
    study.tell(trial, {"biomass": 3.0}, did={"feed": 2.5})
    assert [entry.status for entry in study.trials] == ["measured", "closed"]
    assert study.register({"measure": "titre", "feed": 2.5}).batches == {"biomass": 1}
    study.fail(trial, "contaminated")
    assert study.register({"measure": "titre", "feed": 2.5}).batches == {}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"diagram": None, "variables": ["biomass", "titre"]}, "partial mode needs a diagram"),
        ({"parameters": {"measure": FIELDS["parameters"]["feed"]}}, "rename the parameter"),
        ({"options": {"budget": 9}}, "the budget of a study is its field budget"),
        ({"options": {"upstream": False}}, "upstream must be True"),
        ({"costs": {"bimass": 1}}, "bimass"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, changes, words):
    with pytest.raises(ArgumentError, match=words):
        laboratory(tmp_path / "s.db", **changes)


@pytest.mark.parametrize(
    ("do", "words"),
    [
        ({"measure": "biomas"}, "measure must be one of .* did you mean 'biomass'"),
        ({"measure": "biomass", "ph": 6.0}, r"ph does not enter biomass; its inputs are \['feed'\]"),
        ({"feeed": 1.0}, "'feeed' cannot be set"),
    ],
)
def test_an_action_that_cannot_be_done_is_refused(tmp_path, do, words):
    with pytest.raises(ArgumentError, match=words):
        laboratory(tmp_path / "s.db").register(do)


def test_past_rounds_measured_their_last_variable_and_are_no_batches(tmp_path):
    study = laboratory(tmp_path / "s.db")
    table = {"do(feed)": [2.0, 1.0], "do(ph)": [None, 6.0], "biomass": [3.0, 2.0], "titre": [None, 1.75]}
    assert study.add_data(table) == 2
    assert study.data()["do(measure)"].to_list() == ["biomass", "titre"]
    assert study.register({"measure": "titre", "feed": 2.0, "ph": 6.5}).batches == {}
    other = laboratory(tmp_path / "t.db")
    assert other.add_data(study) == 2


def test_the_command_line_takes_the_variable_to_measure(tmp_path):
    database = str(tmp_path / "s.db")
    laboratory(database)

    def run(*words):
        result = CliRunner().invoke(app, ["study", *words])
        assert result.exit_code == 0, result.output
        return result.output

    assert "measure = biomass, feed = 2" in run("register", database, "measure=biomass", "feed=2")
    run("tell", database, "1", "biomass=3")
    assert "measure = titre, feed = 2, ph = 6.5" in run("register", database, "measure=titre", "feed=2", "ph=6.5")
    assert load_study(storage=database).pending[0].batches == {"biomass": 1}
