"""Constraints of studies: how they are written, in each mode, and what counts as the best."""

import pytest

from cbo_gym.errors import ArgumentError
from cbo_gym.study import create_study
from cbo_gym.task import Constraint

NAMES = ["x", "acid level", "acid", "a<b", "x=1"]
MODES = {
    "hard": {"settable": {"x": (0, 1)}},
    "soft": {"parameters": {"dose": {"node": "x", "bounds": (0, 1)}}},
    "discrete": {"arms": [{}, {"x": 1.0}], "reward_range": (0, 1)},
}


def study_of(path, constraints, mode="hard", **more):
    about = {"mode": mode, "reward": "y", "variables": [*NAMES, "y"], "agent": "Random", **MODES[mode], **more}
    return create_study("s", storage=path, constraints=constraints, **about)


READ = {
    "x<=2": [("x", "<=", 2.0)],
    "  acid level   <=2 ": [("acid level", "<=", 2.0)],
    "acid ≥ -1e3": [("acid", ">=", -1000.0)],
    "acid > .5": [("acid", ">=", 0.5)],
    "a<b<2": [("a<b", "<=", 2.0)],
    "x=1 >= 2": [("x=1", ">=", 2.0)],
    "2 <= x": [("x", ">=", 2.0)],
    "0 <= acid level <= 2": [("acid level", ">=", 0.0), ("acid level", "<=", 2.0)],
    "2 > x ≥ 0": [("x", ">=", 0.0), ("x", "<=", 2.0)],
}


def test_constraints_are_read_alike_in_every_mode(tmp_path):
    expected = tuple(Constraint(*one) for one in dict.fromkeys(one for found in READ.values() for one in found))
    for mode in MODES:
        assert constraints_of(tmp_path / f"{mode}.db", list(READ), mode) == expected
    for index, given in enumerate((None, [], ())):
        assert constraints_of(tmp_path / f"{index}.db", given) == ()


def constraints_of(*arguments):
    return study_of(*arguments).interface.problem.outcomes.constraints


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "cannot read the constraint ''; write 'NODE <= NUMBER'"),
        (["x <= 1", " "], "cannot read the constraint ' '"),
        ("x", "cannot read the constraint 'x'"),
        ("x == 2", "cannot read the constraint 'x == 2'.*for an equality, write a narrow interval"),
        ("x => 2", "cannot read the constraint 'x => 2'"),
        ("x <= 2, acid <= 3", "cannot read"),
        ("x <= 1_000", "threshold of the constraint .* on 'x' is not a number: '1_000'"),
        ("x <= 2,5", "not a number: '2,5'"),
        ("x <= acid", "the threshold of .* is not a number"),
        ("x <= inf", "finite threshold"),
        ("2 <= x <= 1", "the smaller number on the smaller side"),
        ("0 <= x >= 1", "both signs in one direction"),
        ("acid-level <= 2", "'acid-level' is unknown; choose from .*did you mean 'acid level'"),
        ("y >= 2", "'y' is the reward, which is optimised"),
        (["x <= 2", "x >= 3"], "no value meets both x >= 3 and x <= 2; change one of the two constraints"),
        (["x <= 1"] * 101, "a list of at most 100 strings"),
        ({"x": 1}, "constraints"),
        ([1], "constraints"),
    ],
)
def test_what_is_no_constraint_is_refused_with_the_remedy(tmp_path, given, message):
    with pytest.raises(ArgumentError, match=message):
        study_of(tmp_path / "s.db", given)
    assert not (tmp_path / "s.db").exists()


def test_the_best_trial_breaks_no_constraint(tmp_path):
    study = study_of(tmp_path / "s.db", ["acid<=2"], direction="minimize")
    assert study.best_trial is None
    others = {"acid level": 0, "a<b": 0, "x=1": 0}
    study.tell(study.ask(), {**others, "acid": 3, "y": 1.0})
    assert study.best_trial is None
    why = study.ask().why
    assert why.startswith("expected y 1, no round meets the constraints yet; one of 2 sets; Random ignores the")
    assert why.endswith("constraints, which are kept by MCBO, cCBO, ConstrainedEI")
    study.tell(2, {**others, "acid": 1, "y": 7.0})
    study.tell(study.ask(), {**others, "acid": 2, "y": 5.0})
    assert study.best_trial.number == 3
    assert "best so far 5; one of 2 sets" in study.ask().why
