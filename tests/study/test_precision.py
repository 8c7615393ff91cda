"""Precision of outcomes: standard errors, repeated measurements, counts."""

from shutil import copyfile

import numpy as np
import pytest

from cbo_gym.errors import ArgumentError
from cbo_gym.study import create_study, load_study
from cbo_gym.study.precision import wilson
from tests.support.cli import run
from tests.support.studies import fermenter, lose_caches, play, simulate

TRIAL = {
    "reward": "cured",
    "variables": ["drug", "cured"],
    "diagram": "dag { drug -> cured }",
    "mode": "discrete",
    "arms": [{"drug": 0.0}, {"drug": 1.0}],
    "reward_range": (0, 1),
}


def trial(path, agent="UCB"):
    return create_study("trial", storage=path, agent=agent, **TRIAL)


@pytest.mark.parametrize(
    "agent", ["GP-UCB", *(pytest.param(a, marks=pytest.mark.slow) for a in ("MCBO", "CBO", "cCBO", "ConstrainedEI"))]
)
def test_a_rough_outlier_moves_the_agent_less(agent, tmp_path):
    """And the agent that is rebuilt from the log knows the precision."""
    expected = []
    before = play(fermenter(tmp_path / "f.db", agent=agent), 6).what_if({"ph": 6.8})["titre"]
    for number, std in enumerate((None, {"titre": 5.0})):
        path = copyfile(tmp_path / "f.db", tmp_path / f"{number}.db")
        study = load_study(storage=path)
        study.tell(study.register({"ph": 6.8}), simulate({"ph": 6.8}) | {"titre": 9.0}, std=std)
        lose_caches(path)
        after = load_study(storage=path).what_if({"ph": 6.8})["titre"]
        assert after == study.what_if({"ph": 6.8})["titre"]
        expected.append(abs(after - before))
    assert expected[1] < 0.5 * expected[0]


def test_forms_of_precision(tmp_path):
    study = play(fermenter(tmp_path / "f.db", agent="GP-UCB"), 1)
    study.tell(study.register({"ph": 6.0}), {"titre": 0.8, "biomass": 2.0}, std={"titre": 0.02})
    study.tell(study.register({"ph": 6.0}), [{"titre": 0.8, "biomass": 2.0}, {"titre": 0.9}, {"titre": 1.0}])
    study.tell(study.register({"ph": 6.0}), {"titre": "37 of 1000"})
    other = study.register({"ph": 6.0})
    study.tell(other, {"biomass": 2.0}, std={"biomass": 0.1}, final=False)
    with pytest.raises(ArgumentError, match=r"standard error of biomass of trial 5 was recorded as 0.1; given 0.2"):
        study.tell(other, {"biomass": 2.0, "titre": 1.0}, std={"biomass": 0.2})
    study.tell(other, {"titre": 1.0})
    stated = [dict(entry.std) for entry in study.trials[1:]]
    assert stated[0] == {"titre": 0.02}
    assert stated[1] == {"titre": pytest.approx(0.1 / np.sqrt(3))}
    assert study.trials[2].values["titre"] == pytest.approx(0.9)
    assert stated[2]["titre"] == pytest.approx(0.006, abs=2e-4)
    assert stated[3] == {"biomass": 0.1}
    frame = study.to_frame()
    assert frame["std(titre)"].to_list()[:2] == [None, 0.02]
    assert frame["count(titre)"].to_list() == [None, None, None, 1000, None]
    copied = fermenter(tmp_path / "g.db", agent="GP-UCB")
    copied.add_data(study.data())
    assert copied.data().equals(study.data())
    shown = run("study", "show", tmp_path / "f.db").stdout
    assert "0.8 ± 0.02" in shown
    assert "0.037 (37 of 1000: 0.027 to 0.0506)" in shown
    report = study.report(tmp_path / "f.html").read_text(encoding="utf-8")
    assert "0.8 ± 0.02" in report
    for told, std, message in (
        ({"titre": 1.0}, {"titre": -1.0}, "the standard error of titre must be at least 0; given -1"),
        ({"titre": 1.0}, {"titer": 1.0}, "std names 'titer'; did you mean 'titre'"),
        ({"titre": 1.0}, {"biomass": 1.0}, r"std names 'biomass'; numbers are given for \['titre'\]"),
        ({"titre": 1.0}, 0.1, "std must be a mapping"),
        ({"titre": "38 of 37"}, None, "must be counts, as in '37 of 1000', at least 1 in all; given '38 of 37'"),
        ([{"titre": 1.0}], {"titre": 1.0}, "repeats give the standard errors themselves"),
        ([], None, "there are no rows"),
    ):
        with pytest.raises(ArgumentError, match=message):
            study.tell(study.register({"ph": 6.0}), told, std=std)


def test_agents_that_ignore_the_precision_say_so(tmp_path):
    study = play(fermenter(tmp_path / "f.db", agent="Random"), 2)
    assert "ignores" not in study.ask().why
    study.tell(3, simulate({}), std={"titre": 0.1})
    assert study.ask().why.endswith("Random ignores the stated precision")
    assert "Random ignores the stated precision." in run("study", "show", tmp_path / "f.db").stdout
    run("study", "tell", tmp_path / "f.db", 4, "titre=0.5", "--std", "titre=0.25")
    run("study", "correct", tmp_path / "f.db", 4, "titre=37 of 1000")
    assert load_study(storage=tmp_path / "f.db").trials[3].counts == {"titre": 1000}
    # A corrected outcome states no precision any more, whoever has seen it before.
    study.correct(3, simulate({}))
    study.correct(4, simulate({}))
    assert "ignores" not in study.ask().why


@pytest.mark.parametrize("agent", ["UCB", "TS"])
def test_counts_are_as_many_rounds(agent, tmp_path):
    """By their sufficient statistics, told as counts, as repeats, or imported from a table."""
    single, counted = trial(tmp_path / "a.db", agent), trial(tmp_path / "b.db", agent)
    rows = [
        {"cured": float(number < hits), "do(drug)": drug} for drug, hits in ((0, 7), (1, 12)) for number in range(40)
    ]
    single.add_data(rows)
    counted.add_data(b"cured,do(drug)\n7 of 40,0\n")
    counted.tell(counted.register({"drug": 1.0}), [{"cured": float(number < 12)} for number in range(40)])
    assert counted.trials[0].counts == {"cured": 40}
    for drug in (0.0, 1.0):
        assert counted.what_if({"drug": drug}) == pytest.approx(single.what_if({"drug": drug}))
        assert counted.what_if({"drug": drug}).interval == pytest.approx(single.what_if({"drug": drug}).interval)
    copied = trial(tmp_path / "c.db", agent)
    copied.add_data(counted.data())
    assert copied.data().equals(counted.data())
    if agent == "UCB":
        assert counted.ask().do == single.ask().do
    for share, count in ((0.5, 3), (1.5, 2)):
        with pytest.raises(ArgumentError, match=r"row 1: cured must be a share of count\(cured\), .* in std\(cured\)"):
            counted.add_data([{"cured": share, "count(cured)": count, "do(drug)": 1}])


def test_the_interval_of_a_share_is_wilsons():
    """Against the equation that defines it: the normal test of the share at the ends just refuses."""
    for share, total in ((0.037, 1000), (0.0, 5), (1.0, 8)):
        for end in wilson(share, total):
            if 0.0 < end < 1.0:
                assert abs(share - end) == pytest.approx(1.959964 * np.sqrt(end * (1.0 - end) / total), rel=1e-6)
