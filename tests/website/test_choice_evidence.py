"""The table that holds the rules of Auto against single agents."""

import polars as pl
import pytest

from cbo_gym.evaluation.report.markdown import with_part
from tests.support.score_tables import runs_with
from website.pages import choice_evidence
from website.pages.choice_evidence import compare, comparison_table, rivals, rules_table

SCORES = {
    ("CBO/A-v0", 50): {"X": {0: 1.0, 1: 0.8}, "Y": {0: 0.5, 1: 0.7, 2: 0.0}},
    ("CBO/A-v0(instance=1)", 50): {"X": {0: 0.5}, "Y": {0: 0.2}},
    ("CBO/B-v0", 100): {"Y": {0: 0.6}, "Z": {0: 1.0}},
}
CHOICES = pl.DataFrame([("soft", *task, name) for task, name in zip(SCORES, "XXY", strict=True)],
                       schema=["mode", "env", "rounds", "agent"], orient="row")  # fmt: skip


@pytest.fixture
def found(monkeypatch):
    assert compare(runs_with(SCORES), CHOICES).is_empty(), "no environment has five runs of both"
    monkeypatch.setattr(choice_evidence, "MIN_SEEDS", 1)
    return compare(runs_with(SCORES), CHOICES)


def test_seeds_and_environments_are_those_that_both_played(found):
    of_y = found.row(by_predicate=pl.col("agent") == "Y", named=True)
    assert (of_y["environments"], of_y["of"], of_y["seeds"]) == (2, 2, 1)
    assert (of_y["auto"], of_y["other"]) == (pytest.approx((0.7 + 0.6) / 2), pytest.approx((0.4 + 0.6) / 2))
    assert found.row(by_predicate=pl.col("agent") == "Z", named=True)["ahead"] == pytest.approx(-0.4)


def test_the_closest_is_of_those_that_played_enough(found, monkeypatch):
    assert rivals(found)["agent"].to_list() == ["Z"]
    monkeypatch.setattr(choice_evidence, "LEAST_SHARE", 1.0)
    of_y = found.filter(pl.col("agent") != "X")
    assert rivals(of_y)["agent"].to_list() == ["Y"]
    assert comparison_table(rivals(of_y)).endswith("| soft | Y | 2 of 2 | 0.6500 | 0.5000 | +0.1500 | 1 |")


def test_the_page_has_the_rules_as_they_are():
    text = choice_evidence.PAGE.read_text()
    assert with_part(choice_evidence.PAGE, "rules", rules_table() + "\n") == text, "run make choice"
    assert "| masked | " in text.partition("<!-- judged: begin -->")[2]


@pytest.mark.parametrize(("label", "name"), [("CBO/IVBandit-v0", "POMIS-TS"), ("CBO/GPBandit1-v0", "GPOO")])
def test_choices_are_asked_for(label, name):
    assert choice_evidence.choice_on(label, 50) == name
