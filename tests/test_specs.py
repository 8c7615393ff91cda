import sys

import pytest

from cbo_gym.specs import create_agent, expand, matches


@pytest.mark.parametrize("pattern", ["CBO/X-v0(depth=3)", "CBO/X-v0", "CBO/X*", "*depth=?)"])
def test_a_label_matches_with_its_parameters_or_without(pattern):
    assert matches("CBO/X-v0(depth=3)", ["other", pattern])


@pytest.mark.parametrize("pattern", ["CBO/X", "X-v0", "CBO/X-v0(depth=4)", "cbo/x*", ""])
def test_a_label_does_not_match(pattern):
    assert not matches("CBO/X-v0(depth=3)", [pattern])


def test_patterns_are_replaced_in_their_place():
    def known():
        return ["A", "AB", "C"]

    assert expand(["C", "A*", "X(q='*')", "?", "m:Z"], known) == ["C", "A", "AB", "X(q='*')", "m:Z"]
    with pytest.raises(ValueError, match="nothing fits 'D\\*'; there are A, AB, C"):
        expand(["D*"], known)


def test_a_library_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ValueError, match=r"cannot create Optuna: .*optuna"):
        create_agent("Optuna")
