"""Studies with steps, integers, categories and logarithmic scales."""

import polars as pl
import pytest

from cbo_gym._util.yaml import read_yaml_with_lines
from cbo_gym.errors import ArgumentError
from cbo_gym.study import Categorical, Integer, Range, create_study, load_study
from cbo_gym.study.files import read_arguments

SETTABLE = {
    "feed": (0, 5),
    "ph": Range(5.5, 7.5, step=0.1),
    "shots": Integer(1, 8),
    "dose": Range(1e-3, 1, scale="log"),
    "medium": Categorical(["A", "B", "250"]),
}
DIAGRAM = "dag { feed -> growth; ph -> growth; medium -> growth -> titre; medium -> ph; shots -> titre; dose -> titre }"
YAML = f"""
name: mixed
diagram: "{DIAGRAM}"
reward: titre
settable:
  feed: [0, 5]
  ph: {{low: 5.5, high: 7.5, step: 0.1}}
  shots: {{type: integer, low: 1, high: 8}}
  dose: {{low: 0.001, high: 1, scale: log}}
  medium: [A, B, "250"]
agent: Random
"""
MEASURED = {"feed": 1, "ph": 6.55, "shots": 3, "dose": 0.02, "medium": "B", "growth": 0.5, "titre": 0.7}
CSV = """feed,ph,medium,shots,dose,growth,titre,do(medium),do(shots)
1,6.55,250,2,0.01,0.4,0.2,250,2
2,6.5, B ,3,0.1,0.9,0.8,,
"""


def mixed(path, agent="Random", mode="hard"):
    described = {"settable": SETTABLE} if mode == "hard" else {"mode": "soft", "parameters": as_parameters()}
    return create_study("mixed", storage=path, diagram=DIAGRAM, reward="titre", agent=agent, **described)


def as_parameters():
    return {f"p_{name}": {"node": "growth", "bounds": domain} for name, domain in SETTABLE.items()}


def test_yaml_describes_the_same_study(tmp_path):
    (tmp_path / "mixed.yaml").write_text(YAML)
    written = read_arguments(lambda: read_yaml_with_lines(tmp_path / "mixed.yaml"))
    assert create_study(**written, storage=tmp_path / "a.db").description == mixed(tmp_path / "b.db").description
    for wrong, message in [
        ("shots: {type: integer, low: 1, high: 8.5}", "line 8: field settable.shots: .*whole numbers; given 1 and 8.5"),
        ("shots: {low: 1, high: 8, setp: 1}", "line 8: .*'setp'.*step"),
        ("shots: [A]", "line 8: .*2 to 100 categories"),
    ]:
        (tmp_path / "wrong.yaml").write_text(YAML.replace("shots: {type: integer, low: 1, high: 8}", wrong))
        with pytest.raises(ArgumentError, match=message):
            read_arguments(lambda: read_yaml_with_lines(tmp_path / "wrong.yaml"))


def test_a_category_has_no_threshold_and_no_price_per_unit(tmp_path):
    described = {"settable": SETTABLE, "diagram": DIAGRAM, "reward": "titre", "storage": tmp_path / "s.db"}
    with pytest.raises(ArgumentError, match="a constraint is on a number, and medium is a category"):
        create_study("mixed", **described, constraints=["medium <= 1"])
    with pytest.raises(ArgumentError, match="cannot have per_unit of medium, because it is a category"):
        create_study("mixed", **described, costs={"base": 1, "per_unit": {"medium": 2}})


@pytest.mark.parametrize(("agent", "mode"), [("Random", "hard"), ("Random", "soft"), ("Optuna", "hard")])
def test_values_have_their_kinds_from_the_suggestion_to_the_table(tmp_path, agent, mode):
    study = mixed(tmp_path / "s.db", agent, mode)
    names = {name if mode == "hard" else f"p_{name}": domain for name, domain in SETTABLE.items()}
    for _ in range(6):
        trial = study.ask()
        for name, value in trial.do.items():
            kind = names[name]
            if isinstance(kind, Categorical):
                assert value in kind.categories
            elif isinstance(kind, Integer):
                assert (type(value), kind.low <= value <= kind.high) == (int, True)
            elif isinstance(kind, Range):
                assert kind.low <= value <= kind.high * (1 + 1e-12)
                assert kind.step is None or value == round(value, 1)
        study.tell(trial, MEASURED | (dict(trial.do) if mode == "hard" else {"medium": 1.0}))
    assert load_study(storage=tmp_path / "s.db").recommendation() == study.recommendation()
    data = study.data()
    medium = "medium" if mode == "hard" else "p_medium"
    assert data.schema[f"do({medium})"] == pl.String
    other = mixed(tmp_path / "other.db", mode=mode)
    other.add_data(data)
    assert other.data().equals(data)
    stored = study.description.model_dump_json()
    assert type(study.description).model_validate_json(stored) == study.description


def test_what_was_done_may_be_off_a_step_but_not_of_another_kind(tmp_path):
    study = mixed(tmp_path / "s.db", agent="GP-UCB")
    assert study.add_data(CSV.encode()) == 2
    trial = study.ask()
    for did, message in [
        ({"medium": "C"}, "the value of medium must be one of 'A', 'B', '250'; given 'C'"),
        ({"shots": 2.5}, "the value of shots must be a whole number; given 2.5"),
        ({"dose": 0}, "the value of dose must be at least 1e-09, because its scale is logarithmic; given 0"),
        ({"ph": "low"}, "the value of ph must be a finite number; given 'low'"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            study.tell(trial, MEASURED, did=did)
    with pytest.raises(ArgumentError, match="the value of medium must be one of 'A', 'B', '250'; given 'b'"):
        study.tell(trial, MEASURED | {"medium": "b"})
    done = {"feed": 1.0, "ph": 6.57, "shots": 9, "dose": 0.02, "medium": 250}
    study.tell(trial, {"growth": 0.5, "titre": 0.7}, did=done)
    told = study.trials[0]
    assert study.units.native_values(study.units.from_flat(told.action)) == done | {"medium": "250"}
    assert told.values["medium"] == "250"
    message = "medium was set to 250; given the value A; if that was really set, give did={'medium': 'A'}"
    for call in (
        lambda: study.correct(1, {"medium": "A"}),
        lambda: study.tell(study.register({"medium": "250"}), MEASURED | {"medium": "A"}, final=False),
        lambda: study.add_data([MEASURED | {"medium": "A"}], do={"medium": "250"}),
    ):
        with pytest.raises(ArgumentError, match=message):
            call()
    assert study.what_if({"medium": "A"}).keys() == {"titre"}
    with pytest.raises(ArgumentError, match="line 2: the value of medium must be one of"):
        study.add_data(CSV.replace("250", "C").encode())
    next_trial = study.ask()
    assert next_trial.do.get("ph", 5.5) == round(next_trial.do.get("ph", 5.5), 1)


def test_a_category_that_no_target_sets_has_its_labels(tmp_path):
    fields = {"diagram": DIAGRAM, "reward": "titre", "settable": SETTABLE, "agent": "GP-UCB", "targets": [[], ["ph"]]}
    study = create_study("s", storage=tmp_path / "s.db", **fields)
    assert study.add_data([MEASURED, MEASURED | {"medium": 250, "growth": 0.7, "titre": 0.9}]) == 2
    study.tell(study.ask(), MEASURED)
    with pytest.raises(ArgumentError, match="the value of medium must be one of 'A', 'B', '250'; given 'C'"):
        study.tell(study.register({}), MEASURED | {"medium": "C"})
    assert study.data()["medium"].to_list() == ["B", "250", "B"]
    assert study.what_if({"ph": 6.0}).get("medium", "B") in ("A", "B", "250")
    assert not study.check_diagram().refused
    assert create_study("t", storage=tmp_path / "t.db", **fields).add_data(study.data()) == 3


def test_the_report_shows_categories(tmp_path):
    study = mixed(tmp_path / "s.db", agent="GP-UCB", mode="soft")
    for medium in ("A", "B", "250"):
        trial = study.register({"p_medium": medium, "p_shots": 3})
        study.tell(trial, dict.fromkeys(study.interface.nodes, 1.0) | {"titre": float(len(medium))})
    page = study.report(tmp_path / "s.html").read_text()
    assert "p_medium = 250" in page
    assert all(f">{label}</text>" in page for label in ("A", "B", "250"))
