"""Whether the rounds of a study contradict its diagram."""

import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cbo_gym.cli import app
from cbo_gym.errors import ArgumentError
from cbo_gym.study import DiagramWarning, create_study

STUDIES = Path(__file__).parents[2] / "examples" / "studies"
RIGHT = "dag { growth -> biomass -> titre; growth -> acid -> titre; biomass -> acid }"
HARD = "dag { x -> m -> y; z -> y; x <-> y }"


@pytest.fixture(scope="module")
def fermenter():
    """Return a function that makes a study of the fermenter with rounds of random parameters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(STUDIES)
        example = runpy.run_path(str(STUDIES / "fermenter.py"))

    def make(path, seed, count=25, **changes):
        study = create_study(storage=path, **example["STUDY"] | {"agent": "Random", "seed": seed} | changes)
        rng, plant = np.random.default_rng(seed), example["Plant"](seed)
        bounds = {name: parameter.bounds for name, parameter in study.description.parameters.items()}
        done = [{name: rng.uniform(*ends) for name, ends in bounds.items()} for _ in range(count)]
        study.add_data([plant.run(**do) for do in done], do=done)
        return study

    return make


def hard_study(path, seed, count=80, diagram=HARD):
    """Return a study with latent causes of x and y, and rounds that observe, set x, set z or set both."""
    rng = np.random.default_rng(seed)
    study = create_study(
        "s", storage=path, diagram=diagram, reward="y", agent="Random", settable={"x": (-2, 2), "z": (-2, 2)}
    )
    values, done = [], []
    for index in range(count):
        latent = rng.normal()
        do = {name: rng.uniform(-2, 2) for name in ((), ("x",), ("z",), ("x", "z"))[index % 4]}
        x = do.get("x", latent + 0.3 * rng.normal())
        z = do.get("z", rng.normal())
        m = np.tanh(x) + rng.normal()
        values.append({"x": x, "z": z, "m": m, "y": m + z**2 + latent + 0.2 * rng.normal()})
        done.append(do)
    study.add_data(values, do=done)
    return study


@pytest.mark.parametrize(
    "missing",
    ["growth -> acid", *(pytest.param(m, marks=pytest.mark.slow) for m in ("biomass -> titre", "growth -> biomass"))],
)
def test_a_missing_arrow_is_found(missing, fermenter, tmp_path):
    study = fermenter(tmp_path / "f.db", 100)
    assert not study.check_diagram().refused
    cause, effect = missing.split(" -> ")
    arrows = [arrow for arrow in study.diagram.directed if arrow != (cause, effect)]
    check = study.check_diagram(arrows)
    assert check.arrows == ((cause, effect),)
    assert f"an arrow {missing}, or a latent cause of both, would explain it" in check.summary
    worst = check.refused[0]
    assert (worst.first, worst.second) == (effect, cause)
    assert str(worst).startswith(f"{effect} does not depend on {cause}")
    frame = check.to_frame()
    assert frame["p_value"].is_sorted()
    assert frame["refused"].sum() == len(check.refused)


def test_latent_causes_and_set_variables_count(tmp_path):
    study = hard_study(tmp_path / "s.db", 100)
    right = study.check_diagram()
    assert not right.refused
    # Both have latent causes in common, and z is an effect of nothing, so little more can be tested.
    assert {(one.first, one.second) for one in right.tested} >= {("m", "z"), ("z", "x"), ("z", "m"), ("x", "z")}
    assert ("z", "y") in study.check_diagram("dag { x -> m -> y; z; x <-> y }").arrows
    assert ("x", "y") in study.check_diagram("dag { x -> m -> y; z -> y }").arrows


@pytest.mark.slow
def test_a_false_alarm_is_rare(fermenter, tmp_path):
    """A rate of 0.05 gives at most five refusals in forty with a probability of 0.98."""
    refused = [bool(fermenter(tmp_path / f"{seed}.db", seed, 20).check_diagram().refused) for seed in range(100, 140)]
    assert sum(refused) <= 5


def test_a_study_warns_reports_and_says_it_at_the_command_line(fermenter, tmp_path):
    path = tmp_path / "f.db"
    study = fermenter(path, 100, diagram=RIGHT.replace("growth -> acid -> titre", "acid -> titre"))
    said = []
    for trial in (*study.ask(4), None, None):
        if trial is None:
            with warnings.catch_warnings(record=True, action="always") as caught:
                trial = study.ask()
            said.append([w for w in caught if w.category is DiagramWarning])
        study.tell(trial, {"growth": 0.4, "biomass": 1.5, "acid": 0.25, "titre": 0.9})
    assert [len(warned) for warned in said] == [0, 1]
    assert "fermenter: the rounds contradict the diagram" in str(said[-1][0].message)
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["study", "check-diagram", str(path)])
    assert done.exit_code == 1
    assert "acid does not depend on growth once biomass is known" in done.stdout
    report = study.report(tmp_path / "f.html").read_text()
    assert "an arrow growth -&gt; acid, or a latent cause of both, would explain it" in report


def test_what_cannot_be_tested(fermenter, tmp_path):
    few = fermenter(tmp_path / "f.db", 100, 5)
    check = few.check_diagram()
    assert not check.tested
    assert check.untested > 0
    assert "nothing can be tested yet" in check.summary
    assert "nothing can be tested yet" in few.report(tmp_path / "f.html").read_text().lower()
    done = CliRunner().invoke(app, ["study", "check-diagram", str(tmp_path / "f.db")])
    assert done.stdout.startswith("Nothing can be tested yet: ")
    with pytest.raises(ArgumentError, match="the diagram has"):
        few.check_diagram("dag { growth -> titre }")
    unknown = create_study("u", storage=tmp_path / "u.db", variables=["x", "y"], reward="y", settable={"x": (0, 1)})
    with pytest.raises(ArgumentError, match="no single diagram"):
        unknown.check_diagram()
