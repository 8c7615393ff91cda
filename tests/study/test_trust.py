"""When to stop, the budget, forecasts of new outcomes, and predictions of each value from the others."""

import json
import re
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from typer.testing import CliRunner

from cbo_gym.cli import app
from cbo_gym.errors import ArgumentError
from cbo_gym.study import Range, create_study, load_study
from cbo_gym.study.report import sections
from tests.support.studies import events_of, fermenter, play, simulate

slow = pytest.mark.slow
PAID = {"costs": {"ph": 10.0}, "budget": 30.0}


def parts(study):
    """Return the words of each section of the report, by id."""
    words = {re.search('id="([^"]+)"', html)[1]: re.sub("<[^>]*>", " ", html) for html in sections(study)}
    return {name: " ".join(own.split()) for name, own in words.items()}


@pytest.mark.parametrize("agent", ["GP-UCB", pytest.param("CBO", marks=slow), pytest.param("EIFN", marks=slow)])
def test_a_better_action_is_less_probable_the_better_it_must_be(tmp_path, agent):
    study = play(fermenter(tmp_path / "f.db", agent=agent), 4)
    events = events_of(tmp_path / "f.db")
    few, many = study.stopping(1e-6), study.stopping(5.0)
    assert 0.0 <= many.probability < few.probability <= 1.0
    assert few.gain == many.gain >= 0.0
    assert study.stopping() == study.stopping(study.stopping().delta)
    rewards = [entry.values["titre"] for entry in study.trials]
    assert study.stopping().delta == pytest.approx(0.05 * np.ptp(rewards))
    assert repr(few).startswith("Stopping(probability of an action better by 1e-06: ")
    with pytest.raises(FrozenInstanceError):
        few.gain = 1.0
    assert events_of(tmp_path / "f.db") == events
    assert study.ask().number == 5


def test_a_study_in_the_other_direction_states_the_same(tmp_path):
    found = []
    for direction, sign in (("maximize", 1.0), ("minimize", -1.0)):
        path = tmp_path / f"{direction}.db"
        study = fermenter(path, agent="GP-UCB", direction=direction, delta=0.1)
        for ph in (5.6, 6.2, 7.0, 7.4):
            study.tell(
                study.register({"ph": ph}),
                simulate({"ph": ph}) | {"titre": sign * simulate({"ph": ph})["titre"]},
            )
        found.append((study.stopping(), study.what_if({"ph": 6.6}).outcomes["titre"]))
    (first, ends), (second, mirrored) = found
    assert first.delta == second.delta == 0.1
    assert first.probability == second.probability
    assert first.gain == pytest.approx(second.gain)
    assert ends == pytest.approx((-mirrored[1], -mirrored[0]))
    assert ends[0] < ends[1]


@pytest.mark.parametrize("agent", ["Random", "Optuna"])
def test_agents_without_a_posterior_say_so(tmp_path, agent):
    study = play(fermenter(tmp_path / "f.db", agent=agent, **PAID), 2)
    found = study.stopping(0.1)
    assert found.probability is None
    assert agent in found.reason
    if agent == "Random":
        assert found.reason.endswith("for a new study with prior= this one: MCBO, CBO, GP-UCB")
    assert found.spending.budget == 30.0
    shown = parts(study)
    assert agent in shown["stopping"]
    assert "has no models" in shown["trust"] or "cannot be asked" in shown["trust"]


def test_before_the_first_outcome_nothing_is_known(tmp_path):
    study = fermenter(tmp_path / "f.db", agent="GP-UCB")
    assert study.stopping().reason == "Nothing is known yet"
    study.tell(study.ask(), simulate({}))
    assert "all rewards are equal" in study.stopping().reason
    assert study.stopping(0.1).probability is not None
    for delta in (0.0, -1.0, float("nan"), "much"):
        with pytest.raises(ArgumentError, match="delta must be a finite number above 0"):
            study.stopping(delta)


def test_the_budget_is_shown_and_never_enforced(tmp_path):
    study = fermenter(tmp_path / "f.db", agent="Random", **PAID)
    study.add_data([simulate({"ph": 7.0})], do={"ph": 7.0})
    study.tell(study.register({"ph": 6.0}), simulate({"ph": 6.0}))
    study.fail(study.register({"ph": 6.1, "feed": 1.0}), "the pump broke")
    study.reject(study.register({"ph": 6.2}))
    study.register({"feed": 2.0})
    spending = study.stopping().spending
    assert spending == (21.0, 1.0, 30.0)
    assert spending.remaining == 8.0
    for _ in range(3):
        trial = study.ask(fixed={"ph": 6.5})
    assert re.search("beyond the budget: 0 of 30 is left, and the trial costs 1[01]", trial.why)
    assert study.stopping().spending.remaining < 0.0
    assert "exceeded by" in parts(study)["stopping"]
    first, second = fermenter(tmp_path / "g.db", agent="Random", costs={"ph": 10.0}, budget=15.0).ask(
        2, fixed={"ph": 6.5}
    )
    assert "beyond the budget" not in first.why
    assert "beyond the budget" in second.why


def test_a_trial_outside_the_bounds_costs_what_was_done(tmp_path):
    costs = {"base": 1.0, "per_unit": {"feed": 2.0}}
    study = fermenter(tmp_path / "f.db", agent="Random", costs=costs, budget=30.0)
    study.tell(study.register({"feed": 7.0}), simulate({"feed": 7.0}))
    assert study.stopping().spending.spent == 15.0
    about = {"mode": "aggregated", "diagram": "dag { titre }", "reward": "titre", "agent": "Random", "budget": 30.0}
    dose = {"dose": {"node": "titre", "bounds": (0.0, 10.0)}}
    cells = create_study("cells", storage=tmp_path / "c.db", **about, parameters=dose, costs={"dose": 2.0})
    cells.tell(cells.ask(), {"titre": 1.0}, did={"dose": (2.0, 4.0)})
    assert cells.stopping().spending.spent == 2.0


def test_a_budget_needs_costs(tmp_path):
    with pytest.raises(ArgumentError, match="a budget is in the units of costs, and there are none; give"):
        fermenter(tmp_path / "f.db", budget=10.0)
    for name in ("budget", "delta"):
        with pytest.raises(ArgumentError, match=name):
            fermenter(tmp_path / "f.db", costs={"ph": 1.0}, **{name: -1.0})


def fed(path):
    """Return a study with six trials, and a constraint that the first of them misses."""
    study = fermenter(path, agent="EIFN", constraints=["biomass >= 1.5", "ph >= 6"])
    for feed in (0.1, 0.5, 1.0, 2.0, 3.0, 4.0):
        study.tell(study.register({"feed": feed}), simulate({"feed": feed}))
    return study


def test_every_modelled_variable_has_an_interval_and_constraints_a_probability(tmp_path):
    study = fed(tmp_path / "f.db")
    little, much = study.what_if({"feed": 0.1}), study.what_if({"feed": 4.0, "ph": 6.5})
    assert set(little.outcomes) == {"titre", "biomass", "ph"}
    assert set(much.outcomes) == {"titre", "biomass"}
    assert much.interval[0] > much.outcomes["titre"][0]
    assert little.probabilities["biomass >= 1.5"] < 0.5 < much.probabilities["biomass >= 1.5"]
    assert much.probabilities["ph >= 6"] == 1.0
    assert re.search("biomass >= 1.5 with .+ %", study.ask().why)
    assert "95 % of outcomes: titre" in study.pending[0].why


def test_candidates_keep_kinds_limits_and_target_sets(tmp_path):
    study = create_study(
        "kinds",
        storage=tmp_path / "k.db",
        agent="GP-UCB",
        reward="y",
        diagram="dag { a -> y; b -> y; c -> y }",
        settable={"a": Range(0.0, 1.0, step=0.25), "b": (0.0, 1.0), "c": Range(0.1, 10.0, digits=1)},
        targets=[["a", "b"], ["c"]],
        limits=["a + b <= 1"],
    )
    for do in ({"a": 0.25, "b": 0.3}, {"c": 1.0}, {"a": 0.5, "b": 0.1}, {"c": 5.0}):
        study.tell(study.register(do), {"a": 0.0, "b": 0.0, "c": 1.0} | do | {"y": sum(do.values(), 0.0)})
    do = study.stopping().do
    assert set(do) in ({"a", "b"}, {"c"})
    assert do.get("a", 0.0) in (0.0, 0.25, 0.5, 0.75, 1.0)
    assert do.get("a", 0.0) + do.get("b", 0.0) <= 1.0 + 1e-9


def test_the_command_line_shows_when_to_stop(tmp_path):
    path = tmp_path / "f.db"
    study = play(fermenter(path, agent="GP-UCB", delta=0.2, **PAID), 3)
    shown = CliRunner().invoke(app, ["study", "stopping", str(path)]).stdout
    assert "Probability of an action better by 0.2: " in shown
    assert "of 30" in shown
    found = json.loads(CliRunner().invoke(app, ["study", "stopping", str(path), "--delta", "0.1", "--json"]).stdout)
    assert found["delta"] == 0.1
    assert found["probability"] == study.stopping(0.1).probability
    assert found["spending"]["remaining"] == study.stopping().spending.remaining
    assert load_study(storage=path).description.budget == 30.0
