"""Earlier campaigns: which rounds teach what, where they are kept and shown, and what is refused."""

import shutil
import warnings
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from cbo_gym.agents.baselines.random import Random
from cbo_gym.errors import ArgumentError, CBOGymError, OperationError
from cbo_gym.study import Campaign, UnusedDataWarning, create_study, load_study, log, studies_in
from cbo_gym.study.suggesting import Suggester
from tests.support.cli import run
from tests.support.studies import events_of, fermenter, lose_caches, play

SOFT = {
    "mode": "soft",
    "diagram": "dag { growth -> acid -> titre; growth -> titre }",
    "reward": "titre",
    "parameters": {"feed": {"node": "growth", "bounds": (0, 5)}, "alkali": {"node": "acid", "bounds": (0, 1)}},
    "agent": "Random",
}
ROW = {"growth": 1.0, "acid": 0.5, "titre": 0.8, "do(feed)": 2.0, "do(alkali)": 0.2}
HARD_ROW = {"feed": 2.0, "ph": 6.0, "biomass": 2.0, "titre": 0.5}


class Recorder(Random):
    """Keeps what it is taught, as pairs of the method and the observation."""

    def __init__(self, **takes):
        super().__init__()
        vars(self).update({"takes_missing": False, **takes})

    def setup(self, seed):
        self.taught = []

    def update(self, action, observation, reward, info):
        super().update(action, observation, reward, info)
        self.taught.append(("update", observation))

    def update_partial(self, action, observation, info):
        self.taught.append(("update_partial", observation))


def agent_of(study):
    """The agent after all data."""
    with patch.object(Suggester, "snapshot", lambda suggester, context: (suggester.peek(), "")):
        return study.agent_snapshot()[1]


def soft(path, **more):
    return create_study("plant", storage=path, **{**SOFT, **more})


def values(seed, done):
    """A batch, whose noise the seed gives."""
    noise = np.random.default_rng(seed).normal(0, 0.02, 3)
    growth = np.sin(done["feed"]) + noise[0]
    acid = growth - done["alkali"] + noise[1]
    return {"growth": growth, "acid": acid, "titre": growth - acid**2 + noise[2]}


@pytest.fixture
def pilot(tmp_path):
    study = create_study("pilot", storage=tmp_path / "pilot.db", **SOFT)
    for seed in range(100, 104):
        trial = study.ask()
        study.tell(trial, values(seed, trial.do))
    return study


# What agents learn -------------------------------------------------------------------------------------------


def test_agents_of_mechanisms_get_the_nodes_that_differ(tmp_path):
    study = soft(tmp_path / "a.db", agent=Recorder(learns_mechanisms=True))
    study.add_data([ROW], campaign="pilot", differs=["acid"])
    study.add_data([ROW], campaign="pilot")
    ((whole, plain), (part, observation)) = agent_of(study).taught
    assert (whole, part) == ("update", "update_partial")
    assert "differs" not in plain
    assert observation["differs"].tolist() == [False, True, False]
    assert observation["nodes"].tolist() == [1.0, 0.5, 0.8]


def test_agents_of_variables_get_what_the_difference_cannot_change(tmp_path):
    study = soft(tmp_path / "a.db", agent=Recorder(takes_missing=True, takes_partial=True))
    study.add_data([ROW], campaign="pilot", differs=["acid"])
    ((method, observation),) = agent_of(study).taught
    assert method == "update_partial"
    np.testing.assert_array_equal(observation["nodes"], [1.0, np.nan, np.nan])


@pytest.mark.parametrize(
    ("done", "differs", "learned"),
    [
        ({}, "biomass", False),
        ({"ph": 6.0}, "biomass", False),
        # The reward has a latent cause in common with the feed, unless it was set.
        ({}, "feed", False),
        ({"feed": 2.0}, "feed", True),
        ({"ph": 6.0}, "ph", True),
        ({"ph": 6.0}, "titre", False),
    ],
)
def test_agents_of_the_reward_get_rounds_in_which_it_is_the_same(tmp_path, done, differs, learned):
    study = fermenter(tmp_path / "a.db", agent=Recorder(takes_missing=True), targets=[[], ["feed"], ["ph"]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        study.add_data([HARD_ROW | done], do=done, campaign="pilot", differs=differs)
    assert [one.category for one in caught] == [UnusedDataWarning] * (not learned)
    assert len(agent_of(study).taught) == learned
    assert study.campaigns == [Campaign("pilot", (differs,), 1, int(learned), 0)]


def test_without_a_diagram_a_difference_may_be_anywhere(tmp_path):
    said = {"variables": ["feed", "ph", "biomass", "titre"], "diagram": None, "targets": [[], ["ph"]]}
    study = fermenter(tmp_path / "a.db", agent=Recorder(takes_missing=True), **said)
    with pytest.warns(UnusedDataWarning, match="learns nothing from 1 of 2 past rounds: another mechanism of ph may"):
        study.add_data([HARD_ROW, HARD_ROW], do=[{}, {"ph": 6.0}], campaign="pilot", differs="ph")
    assert len(agent_of(study).taught) == 1


def lengths(network):
    return {node: len(gp) for node, gp in network.surrogates.items()}


def test_models_of_mechanisms_learn_the_same_ones_alone(tmp_path):
    study = soft(tmp_path / "a.db", agent="MCBO")
    study.add_data([ROW, ROW | {"growth": 1.2}], campaign="pilot", differs=["acid"])
    assert lengths(agent_of(study).network) == {"growth": 2, "acid": 0, "titre": 2}
    assert not len(agent_of(study).network.inputs)
    study = fermenter(tmp_path / "b.db", agent="CBO", diagram="dag { feed -> biomass -> titre; ph -> titre }")
    study.add_data([HARD_ROW, HARD_ROW | {"ph": 7.0}], do=[{}, {"ph": 7.0}], campaign="pilot", differs=["biomass"])
    assert lengths(agent_of(study).effects.network) == {"feed": 2, "ph": 1, "biomass": 0, "titre": 2}
    assert study.campaigns[0].partial == 2
    play(study)
    study = soft(tmp_path / "c.db", agent="MCBO", diagram="dag { growth -> titre; acid -> titre; growth <-> titre }")
    study.add_data([ROW | {"growth": 0.9}])
    study.add_data([ROW, ROW | {"growth": 1.2}], campaign="pilot", differs=["growth"])
    # The titre's noise comes from the latent cause of the growth.
    assert lengths(agent_of(study).network) == {"growth": 1, "acid": 3, "titre": 1}


# The log -----------------------------------------------------------------------------------------------------


def test_a_study_rebuilt_from_its_log_needs_no_earlier_one(tmp_path, pilot):
    path = tmp_path / "plant.db"
    study = soft(path, agent="ConstrainedEI", prior=pilot, differs=["acid"])
    for seed in (110, 111):
        trial = study.ask()
        study.tell(trial, values(seed, trial.do))
    study.add_data([ROW], campaign="another", differs=["growth"])
    (tmp_path / "pilot.db").unlink()
    copied = shutil.copy(path, tmp_path / "copied.db")
    lose_caches(copied)
    again = load_study(storage=copied)
    assert again.data().equals(study.data())
    assert again.ask().do == study.ask().do


def test_prior_rounds_and_the_study_are_written_together(tmp_path, pilot, monkeypatch):
    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(log, "_rows", die)
    with pytest.raises(KeyboardInterrupt):
        soft(tmp_path / "plant.db", prior=pilot)
    assert studies_in(tmp_path / "plant.db") == []


def test_the_prior_may_be_a_database_with_several_studies(tmp_path, pilot):
    create_study("second", storage=tmp_path / "pilot.db", **SOFT)
    study = soft(tmp_path / "pilot.db", prior={"storage": tmp_path / "pilot.db", "study": "pilot"})
    assert [str(one) for one in study.campaigns] == [
        "pilot: 4 rounds; all mechanisms are the same; learned: 4 as a whole"
    ]


def test_differences_of_several_campaigns_add_up(tmp_path, pilot):
    second = create_study(
        "second", storage=tmp_path / "b.db", prior=pilot, differs=["acid"], **SOFT | {"agent": "EIFN"}
    )
    second.add_data([ROW])
    third = soft(tmp_path / "c.db", agent="EIFN")
    third.add_data(second, differs="growth")
    assert [(one.name, one.differs, one.rounds) for one in third.campaigns] == [
        ("pilot", ("growth", "acid"), 4),
        ("second", ("growth",), 1),
    ]


def test_the_table_of_rounds_can_be_imported_again(tmp_path, pilot):
    study = soft(tmp_path / "a.db", agent="EIFN", prior=pilot, differs=["acid", "growth"])
    study.add_data([ROW])
    again = soft(tmp_path / "b.db", agent="EIFN")
    again.add_data(study.data())
    assert_frame_equal(again.data(), study.data())
    assert study.data()["differs"].to_list() == ["growth, acid"] * 4 + [None]
    assert soft(tmp_path / "c.db").data().columns == pilot.data().columns


def test_a_spreadsheet_names_campaigns_in_columns(tmp_path):
    study = soft(tmp_path / "a.db", agent="EIFN")
    study.add_data(
        b"campaign;differs;growth;acid;titre;do(feed);do(alkali)\n"
        b";;g/l;g/l;g/l;;\n2024;acid, growth;1,5;0,5;1;2;0\n2024;;1,5;0,5;1;2;0\n;;1,5;0,5;1;2;0\n"
    )
    assert [(one.name, one.differs) for one in study.campaigns] == [("2024", ("growth", "acid")), ("2024", ())]
    assert len(study.data()) == 3


def test_older_versions_refuse_what_they_would_misread(tmp_path, monkeypatch):
    study = soft(tmp_path / "a.db", agent="EIFN")
    study.add_data([ROW], campaign="pilot")
    study.add_data([ROW], campaign="pilot", differs=["acid"])
    assert [event.kind for event in events_of(tmp_path / "a.db")] == ["data", "past"]
    monkeypatch.setattr(log, "KINDS", tuple(kind for kind in log.KINDS if kind != "past"))
    with pytest.raises(OperationError, match="upgrade"):
        _ = load_study(storage=tmp_path / "a.db").trials


# Refusals ----------------------------------------------------------------------------------------------------


def test_mistakes_are_refused(tmp_path):
    study = soft(tmp_path / "a.db")
    for rows, arguments, message in (
        ([ROW], {"campaign": "pilot", "differs": ["acids"]}, r"differs names 'acids'; did you mean 'acid'\?"),
        ([ROW], {"differs": ["acid"]}, "no campaign; give its name"),
        ([ROW], {"campaign": ""}, "campaign must be a name of 1 to 200 characters; given ''"),
        ([ROW], {"campaign": "pilot", "differs": 3}, "differs must be a list of names"),
        (
            [ROW | {"campaign": "pilot"}, ROW | {"differs": "acid"}],
            {},
            "row 2: acid differs in an earlier campaign",
        ),
    ):
        with pytest.raises(ArgumentError, match=message):
            study.add_data(rows, **arguments)
    assert study.events == 0


def test_studies_that_do_not_fit_are_refused_before_anything_is_stored(tmp_path):
    pilot = create_study("pilot", storage=tmp_path / "pilot.db", units={"feed": "g/h"}, **SOFT)
    trial = pilot.ask()
    pilot.tell(trial, values(100, trial.do))
    for changes, message in (
        ({"units": {"feed": "l/h"}}, "the unit of feed is 'l/h', and in pilot it is 'g/h'"),
        ({"parameters": {"alkali": SOFT["parameters"]["alkali"]}}, "'feed' cannot be set"),
        ({"differs": ["ph"]}, "differs names 'ph'"),
        ({"prior": 3}, "prior must be a study"),
        ({"prior": "none.db"}, "no file"),
    ):
        with pytest.raises(CBOGymError, match=message):
            soft(tmp_path / "plant.db", **{"prior": pilot, **changes})
    assert not (tmp_path / "plant.db").exists()


def test_variables_of_the_earlier_study_alone_are_left_out(tmp_path, pilot):
    smaller = {"diagram": "dag { acid -> titre }", "parameters": {"feed": {"node": "acid", "bounds": (0, 5)}}}
    with pytest.raises(ArgumentError, match="'alkali' cannot be set"):
        soft(tmp_path / "a.db", prior=pilot, **smaller)
    smaller["parameters"] |= {"alkali": {"node": "acid", "bounds": (0, 1)}}
    assert soft(tmp_path / "a.db", prior=pilot, **smaller).data()["acid"].len() == 4


# Where it is shown -------------------------------------------------------------------------------------------


def test_other_rewards_are_not_the_best(tmp_path):
    study = soft(tmp_path / "a.db", agent="ConstrainedEI")
    study.add_data([ROW | {"titre": 50.0}], campaign="pilot", differs=["acid"])
    assert study.ask().why == "no reward of this campaign is known yet"
    study.tell(1, values(100, {"feed": 1.0, "alkali": 0.0}))
    assert "best so far 50" not in study.ask().why
    page = study.report(tmp_path / "a.html").read_text(encoding="utf-8")
    assert "Earlier campaigns" in page
    assert "1 in part" in page
    assert "imported data, with" not in page


def test_the_diagram_is_tested_on_this_system_alone(tmp_path):
    study = fermenter(tmp_path / "a.db", agent="Random", diagram="dag { feed -> titre; ph -> titre; biomass -> titre }")
    rng = np.random.default_rng(100)
    rows = pl.DataFrame(rng.normal(size=(40, 4)), schema=list(HARD_ROW))
    with pytest.warns(UnusedDataWarning):
        study.add_data(rows.with_columns(biomass="feed"), campaign="pilot", differs=["biomass"])
    assert not study.check_diagram().tested
    study.add_data(rows, campaign="2024")
    assert study.check_diagram().tested
    assert not study.check_diagram().refused


@pytest.mark.filterwarnings("default:4 of 4 rounds equal rounds")
def test_the_command_line_takes_and_shows_campaigns(tmp_path, pilot, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yaml = (
        "name: plant\nmode: soft\nreward: titre\ndiagram: 'dag { growth -> acid -> titre; growth -> titre }'\n"
        "parameters: {feed: {node: growth, bounds: [0, 5]}, alkali: {node: acid, bounds: [0, 1]}}\nagent: EIFN\n"
    )
    (tmp_path / "plant.yaml").write_text(yaml)
    (tmp_path / "other.yaml").write_text(yaml + "prior: {storage: pilot.db, study: pilot}\ndiffers: [acid]\n")
    pilot.data().write_csv(tmp_path / "past.csv")
    line = "pilot: 4 rounds; acid: another mechanism; learned: 4 in part"
    assert line in run("study", "create", "plant.yaml", "plant.db", "--prior", "pilot.db", "--differs", "acid").output
    assert line in run("study", "create", "other.yaml", "other.db").output
    added = run("study", "import", "plant.db", "past.csv", "--campaign", "2024").output
    assert "4 rounds were added" in added
    assert "Warning: 4 of 4 rounds equal rounds that the study had already" in added
    shown = run("study", "show", "plant.db").output
    assert line in shown
    assert "2024: 4 rounds; all mechanisms are the same; learned: 4 as a whole" in shown


# Rounds that only observed -----------------------------------------------------------------------------------

TARGETS = {"targets": [["feed"], ["ph"]], "diagram": "dag { feed -> biomass -> titre; ph -> titre }"}
OBSERVED = [HARD_ROW | {"feed": float(feed), "biomass": feed / 2.0 + 1.0} for feed in range(4)]


@pytest.mark.parametrize("agent", ["MCBO", "CBO"])
def test_observations_teach_mechanisms_if_each_trial_sets_something(tmp_path, agent):
    study = fermenter(tmp_path / "a.db", agent=agent, **TARGETS)
    study.add_data(OBSERVED)
    learner = agent_of(study)
    network = learner.network if agent == "MCBO" else learner.effects.network
    assert set(lengths(network).values()) == {4}
    play(study)
    study.add_data(OBSERVED[:1])
    assert study.ask().do
    assert study.data()["do(feed)"].null_count() + study.data()["do(ph)"].null_count() > 5


@pytest.mark.parametrize("agent", ["GP-UCB", "Random"])
def test_observations_are_kept_for_agents_that_cannot_use_them(tmp_path, agent):
    study = fermenter(tmp_path / "a.db", agent=agent, **TARGETS)
    with pytest.warns(
        UnusedDataWarning, match="from 4 of 4 past rounds: they only observe, and no target is empty; if "
    ):
        study.add_data(OBSERVED)
    assert len(study.data()) == 4
    assert play(study, 2).trials[0].action[0] >= 0.0
    assert study.check_diagram().summary
    with pytest.raises(ArgumentError, match="not one of the study's sets"):
        study.register({})
