"""Studies with several objectives: their description, trials, recommendation, report, page and command line."""

import re

import numpy as np
import pytest

from cbo_gym.errors import ArgumentError
from cbo_gym.study import Categorical, Range, RecommendedSet, create_study
from cbo_gym.study.report import sections
from tests.support.cli import as_json, invoke, run
from tests.support.studies import play
from tests.support.study_laboratory import outcome
from tests.support.study_visitor import FIELDS, Visitor

DIAGRAM = "dag { feed -> biomass -> titre; ph -> titre; feed -> acid; biomass -> acid; feed <-> ph }"
PLANT = {
    "diagram": DIAGRAM,
    "objectives": {"titre": "maximize", "acid": "minimize"},
    "settable": {"feed": (0.0, 5.0), "ph": (5.5, 7.5)},
    "units": {"titre": "g/l"},
    "agent": "Random",
    "horizon": 30,
}
NETWORK = "qNEHVI-Network(draws=2)"


def plant(path, **changes):
    return create_study("plant", storage=path, **{**PLANT, **changes})


def grown(do):
    feed, ph = do.get("feed", 2.0), do.get("ph", 6.0)
    biomass = 1.0 + np.tanh(feed)
    return {
        "feed": feed,
        "ph": ph,
        "biomass": float(biomass),
        "titre": float(biomass * np.exp(-((ph - 6.8) ** 2))),
        "acid": float(0.2 * feed + 0.3 * biomass),
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reward": "titre"}, "give a reward, or objectives; both were given: leave out reward, and name titre among"),
        ({"direction": "maximize"}, "each objective has its own direction, such as .*; leave out direction"),
        ({"objectives": {}}, "field reward: Field required; or give several objectives, such as"),
        ({"objectives": {"titre": "minimize"}}, "one objective; write it as reward: titre, direction: minimize, or"),
        ({"objectives": {"titre": "maximize", "acids": "minimize"}}, "did you mean 'acid'"),
        ({"objectives": {"titre": "maximize", "acid": "minimise"}}, "objectives.acid: .*; did you mean 'minimize'"),
        ({"objectives": {"titre": "maximize", "feed": "minimize"}}, "the objective feed is the outcome of a trial; it"),
        ({"objectives": {"titre": "maximize", "cost": "minimize"}}, "the objective 'cost' needs costs"),
        ({"objectives": ["titre", "acid"]}, "field objectives: Input should be a valid dictionary"),
        ({"constraints": ["biomass >= 2"]}, "cannot have constraints; make them objectives"),
        ({"mode": "contextual", "contexts": ["feed"], "settable": {"ph": (0, 1)}}, "played in the modes soft, hard"),
        ({"agent": "CBO"}, "CBO maximises one reward; .* choose Auto, CausalParetoSelect, qNEHVI"),
        (
            {"agent": "CausalParetoSelect", "limits": ["feed + ph <= 9"]},
            "CausalParetoSelect does not keep limits, .*; choose Auto, qNEHVI, qNEHVI-Network",
        ),
        ({"diagram": DIAGRAM.replace("feed <->", "titre -> price; feed <->"), "settable": {"price": (0, 1)}},
         r"settable names price, an effect of the objectives \['titre', 'acid'\]"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_before_anything_is_stored(tmp_path, changes, message):
    with pytest.raises(ArgumentError, match=message):
        plant(tmp_path / "s.db", **changes)
    assert not (tmp_path / "s.db").exists()


def test_the_last_node_is_an_objective_that_causes_no_other_and_effects_are_ignored(tmp_path):
    diagram = "dag { feed -> titre -> yield -> price; ph -> acid; acid -> smell }"
    study = plant(
        tmp_path / "s.db", diagram=diagram, objectives={"acid": "minimize", "yield": "maximize", "titre": "maximize"}
    )
    assert study.interface.nodes[-1] == "yield"
    assert study.description.ignored == ["price", "smell"]
    assert study.interface.codec.choices == ("{}", "{feed}", "{ph}", "{feed, ph}")
    assert [str(goal) for goal in study.description.goals] == ["minimize acid", "maximize yield", "maximize titre"]


def test_outcomes_need_every_objective(tmp_path):
    study = plant(tmp_path / "s.db")
    study.add_data([grown({"feed": 1.0})], do={"feed": 1.0})
    with pytest.raises(
        ArgumentError, match="row 1: the objective acid is missing, and Random learns nothing without it"
    ):
        study.add_data([{"titre": 1.0, "feed": 1.0, "ph": 6.0, "biomass": 1.0}])
    with pytest.raises(ArgumentError, match="titre and acid are missing, and Random learns nothing without them"):
        study.add_data([{"feed": 1.0, "ph": 6.0, "biomass": 1.0}])
    first, second, third = study.ask(3)
    with pytest.raises(
        ArgumentError, match=r"the objectives titre and acid are missing; if they follow later, tell\(1"
    ):
        study.tell(first, {"biomass": 1.0})
    study.tell(first, {"titre": 1.5}, final=False)
    with pytest.raises(ArgumentError, match="the objective acid is missing"):
        study.tell(first, {})
    study.tell(first, {"acid": 0.4})
    study.tell(second, {"titre": 1.0}, final=False)
    study.close(second, "the sample was lost")
    study.fail(third)
    assert [entry.status for entry in study.trials] == ["measured", "closed", "failed"]
    study.correct(second, {"titre": 1.0, "acid": 0.2})
    assert [entry.number for entry in study.best_trials] == [1, 2]
    assert study.best_trial.number == 1
    frame = study.to_frame()
    assert frame["titre"].to_list()[:2] == [1.5, 1.0]
    assert frame["acid"].to_list()[:2] == [0.4, 0.2]
    copy = plant(tmp_path / "t.db")
    assert copy.add_data(study.data()) == 3


def test_a_network_learns_parts_and_forecasts_each_objective(tmp_path):
    study = plant(tmp_path / "s.db", agent=NETWORK)
    study.add_data([grown({"feed": feed}) for feed in (1.0, 2.0, 3.0)])
    study.add_data([{"biomass": 1.9, "feed": 2.0}])
    trial = study.register({"feed": 1.0, "ph": 6.5})
    study.tell(trial, {"biomass": 1.8, "acid": 0.75}, final=False)
    assert study.what_if({"feed": 1.0, "ph": 6.5})["acid"] == pytest.approx(0.75, abs=0.05)
    asked = study.ask()
    assert "expected titre" in asked.why
    assert "not dominated so far: " in asked.why
    expected = study.what_if({"ph": 6.8})
    assert set(expected) == {"feed", "ph", "biomass", "titre", "acid"}
    assert set(expected.intervals) == {"titre", "acid"}
    assert expected.interval is None
    for name, (low, high) in expected.intervals.items():
        assert low < expected[name] < high
        assert expected.outcomes[name][1] - expected.outcomes[name][0] > high - low
    assert "95 % of outcomes: titre " in asked.why
    (table,) = [html for html in sections(study) if 'id="trust"' in html]
    assert re.search(r"titre \[g/l\]</t[hd]>.*acid</t[hd]>.* of 4", table, re.DOTALL)


@pytest.mark.parametrize("agent", ["Random", NETWORK])
def test_the_recommendation_is_a_set_in_the_users_units(tmp_path, agent):
    study = plant(tmp_path / "s.db", agent=agent, costs={"ph": 3.0})
    with pytest.raises(ArgumentError, match="nothing is known yet; record the outcome"):
        study.recommendation()
    play(study, 4, grown)
    study.tell(study.register({}), grown({"ph": 6.8}), did={"feed": 9.0, "ph": 6.8})  # best titre, outside the bounds
    recommended = study.recommendation()
    assert isinstance(recommended, RecommendedSet)
    assert all(0.0 <= action.do.get("feed", 0.0) <= 5.0 for action in recommended)
    values = np.array([[action.expected["titre"], -action.expected["acid"]] for action in recommended])
    assert (values[:, 1] < 0).all(), "not negated"
    assert all((np.delete(values, row, 0) < own).any(axis=1).all() for row, own in enumerate(values))
    assert values[:, 0].tolist() == sorted(values[:, 0], reverse=True)
    frame = recommended.to_frame()
    assert frame.height == len(recommended) == len(str(recommended).splitlines())
    assert {"titre", "acid"} <= set(frame.columns)
    assert ("low(titre)" in frame.columns) == (agent == NETWORK)


def test_objectives_may_differ_in_size(tmp_path):
    rng = np.random.default_rng(100)
    objectives = {"titre": "maximize", "acid": "minimize"}
    described = {"diagram": "dag { x -> acid -> titre; z -> titre }", "settable": {"x": (0.0, 2.0), "z": (0.0, 2.0)}}
    study = create_study("s", storage=tmp_path / "s.db", agent="qNEHVI", objectives=objectives, **described)
    for _ in range(4):
        trial = study.ask()
        values = outcome("hard", trial.do, rng)
        study.tell(trial, {"x": values["x"], "z": values["z"], "acid": values["m"], "titre": 1e9 * values["y"]})
    assert study.ask().number == 5


def test_the_cost_of_a_trial_may_be_an_objective(tmp_path):
    study = plant(tmp_path / "s.db", objectives={"titre": "maximize", "cost": "minimize"}, costs={"ph": 3.0})
    play(study, 6, grown)
    costs = [sum({"feed": 1.0, "ph": 3.0}[name] for name in action.do) for action in study.recommendation()]
    assert [action.expected["cost"] for action in study.recommendation()] == costs
    outside = study.units.action({"feed": 7.0})
    assert study.units.cost(outside) == 1.0


@pytest.mark.parametrize("agent", [NETWORK, "Random"])
def test_kinds_limits_precision_fixed_and_missing_values(tmp_path, agent):
    settable = {"feed": Range(0.0, 5.0, step=0.5), "ph": (5.5, 7.5), "medium": Categorical(["A", "B"])}
    study = plant(
        tmp_path / "s.db",
        agent=agent,
        diagram=DIAGRAM.replace("dag {", "dag { medium -> titre;"),
        settable=settable,
        limits=["feed + ph <= 9"],
    )
    for number in range(3):
        trial = study.ask()
        values = grown(trial.do) | ({"biomass": None} if number else {})
        study.tell(trial, {"medium": "A"} | values | trial.do, std={"titre": 0.1})
    for trial in study.ask(2, fixed={"ph": 6.5}, shared=["medium"]):
        assert trial.do["ph"] == 6.5
        assert trial.do["medium"] in ("A", "B")
        assert trial.do.get("feed", 0.0) in np.arange(0.0, 2.6, 0.5)
    assert study.ignores_precision == (agent == "Random")


def test_auto_chooses_an_agent_for_the_objectives(tmp_path):
    study = plant(tmp_path / "s.db", agent=None, reward=None)
    study.tell(study.ask(), grown({}))
    assert study.agent_snapshot()[1].chosen.agent == "qNEHVI-Network"


def test_the_report_draws_the_front_of_each_pair_and_the_hypervolume(tmp_path):
    study = plant(tmp_path / "s.db", objectives={**PLANT["objectives"], "biomass": "maximize"})
    study.add_data([grown({"feed": 1.0})])
    play(study, 3, grown)
    html = study.report(tmp_path / "s.html").read_text(encoding="utf-8")
    for words in (
        "Goals", "maximise titre [g/l], minimise acid, maximise biomass", "acid against titre", "biomass against acid",
        "Hypervolume, titre x acid x biomass", "the reference point titre = ", "rounds are not dominated",
        "The trade-off",
    ):  # fmt: skip
        assert words in html


def test_the_hypervolume_is_that_of_the_rounds_so_far(tmp_path):
    from cbo_gym.study.report.curve import progress
    from cbo_gym.study.report.snapshot import Snapshot

    study = plant(tmp_path / "s.db", limits=["feed <= 4"])
    for titre, acid, feed in ((1.0, 1.0, 1.0), (2.0, 2.0, 1.0), (3.0, 0.5, 5.0), (0.0, 3.0, 1.0)):
        study.tell(study.register({"feed": feed}), {"titre": titre, "acid": acid, "ph": 6.0, "biomass": 1.0})
    # From the worst values, 0 and 3, and a tenth of the ranges more; the third round breaks the limit.
    figure, note = progress(Snapshot(study)).values()
    assert "the reference point titre = -0.3, acid = 3.25" in note
    assert "leaves out rounds whose settings break a limit" in note
    assert f"hypervolume so far now {1.3 * 2.25 + 1.0 * 1.25:.4g}" in figure


def test_the_command_line_and_yaml(tmp_path):
    path, yaml = tmp_path / "s.db", tmp_path / "plant.yaml"
    yaml.write_text(
        f'diagram: "{DIAGRAM}"\nobjectives: {{titre: maximize, acid: minimize}}\n'
        "settable: {feed: [0, 5], ph: [5.5, 7.5]}\nagent: Random\n"
    )
    run("study", "create", yaml, path)
    (tmp_path / "past.csv").write_text("feed,ph,biomass,titre,acid,do(feed)\n1,6,1.7,0.9,0.7,1\n2,6,1.9,1.0,1.0,\n")
    run("study", "import", path, tmp_path / "past.csv")
    run("study", "ask", path)
    run("study", "tell", path, 1, "titre=1.5", "acid=0.6", "feed=1", "ph=6", "biomass=1.5")
    assert "Not dominated: trial 1" in invoke("study", "show", path)
    assert re.search("set titre 95 % interval acid 95 % interval .* 1.5 0.6", invoke("study", "recommend", path))
    (first, *_) = as_json("study", "recommend", path)
    assert first["expected"] == {"titre": 1.5, "acid": 0.6}
    assert as_json("study", "what-if", path, "feed=1")["intervals"] == {}
    yaml.write_text(yaml.read_text().replace("acid: minimize", "acid: down"))
    assert "line 2: field objectives.acid" in invoke("study", "create", yaml, tmp_path / "t.db", code=2)


def test_the_page_creates_shows_and_records_a_study_of_several_objectives(tmp_path):
    visitor = Visitor(tmp_path / "s.db")
    visitor.get("/new")
    several = FIELDS | {"reward": "", "objectives": "titre = maximize\nbiomass = minimize"}
    assert "write it as in titre = maximize" in visitor.send("create", several | {"objectives": "titre"}, status=422)
    visitor.send("create", several)
    assert "maximise <strong>titre</strong> (g/L), minimise <strong>biomass</strong>" in visitor.html
    visitor.send("ask")
    visitor.send("tell-1", {"value:biomass": "1.5"}, status=422)
    visitor.send("tell-1", {"value:titre": "0.8", "value:biomass": "1.5"})
    assert re.search('Not dominated</dt><dd>1<small> in <a href="/studies/1/trials/1">trial 1</a>', visitor.html)
    assert "0.8" in visitor.get("/studies/1/what-if")
