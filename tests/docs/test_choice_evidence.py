"""The table that holds the rules of Auto against single agents."""

import choice_evidence
import pytest
from choice_evidence import against, lines, rivals, rules

from cbo_gym.evaluation.report.markdown import with_part

SCORES = {
    ("CBO/A-v0", 50): {"X": {0: 1.0, 1: 0.8}, "Y": {0: 0.5, 1: 0.7, 2: 0.0}},
    ("CBO/A-v0(instance=1)", 50): {"X": {0: 0.5}, "Y": {0: 0.2}},
    ("CBO/B-v0", 100): {"Y": {0: 0.6}, "Z": {0: 1.0}},
}
CHOICES = dict(zip(SCORES, ["X", "X", "Y"], strict=True))


def test_seeds_and_environments_are_those_that_both_played():
    found = against("soft", "Y", SCORES, CHOICES)
    assert (found.environments, found.of, found.seeds) == (2, 2, 1)
    assert (found.auto, found.other) == (pytest.approx((0.7 + 0.6) / 2), pytest.approx((0.4 + 0.6) / 2))
    assert against("soft", "Z", SCORES, CHOICES).ahead == pytest.approx(-0.4)
    assert against("soft", "Nobody", SCORES, CHOICES) is None


def test_the_closest_is_of_those_that_played_enough(monkeypatch):
    found = [against("soft", name, SCORES, CHOICES) for name in "XYZ"]
    assert [one.agent for one in rivals(found)] == ["Z"]
    monkeypatch.setattr(choice_evidence, "LEAST_SHARE", 1.0)
    assert [one.agent for one in rivals(found)] == ["Y"]
    assert lines(rivals(found)).endswith("| soft | Y | 2 of 2 | 0.6500 | 0.5000 | +0.1500 | 1 |")


def test_the_page_has_the_rules_as_they_are():
    text = choice_evidence.PAGE.read_text()
    assert with_part(choice_evidence.PAGE, "rules", rules() + "\n") == text, "run docs/choice_evidence.py --write"
    assert "| masked | " in text.partition("<!-- judged: begin -->")[2]


@pytest.mark.parametrize(("label", "name"), [("CBO/IVBandit-v0", "POMIS-TS"), ("CBO/GPBandit1-v0", "GPOO")])
def test_choices_are_asked_for(label, name):
    assert choice_evidence.choice_on((label, 50)) == name
