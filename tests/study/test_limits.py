"""Studies with limits of settings: nothing outside is suggested, recommended or called the best."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from cbo_gym.errors import ArgumentError
from cbo_gym.study import Study, create_study, load_study
from tests.support.studies import lose_caches

SYSTEM: dict[str, Any] = {"diagram": "dag { a -> m -> y; b -> y; c -> m; d -> y; a <-> y }", "reward": "y"}
BOUNDS = {"a": (0.0, 5.0), "b": (0.0, 5.0), "c": (0.0, 1.0), "d": (-1.0, 3.0)}
HARD = SYSTEM | {"settable": BOUNDS}
SOFT = {
    "diagram": "dag { m -> y }",
    "reward": "y",
    "mode": "soft",
    "parameters": {
        name: {"node": "m" if name in "ac" else "y", "bounds": bounds, "null": max(0.0, bounds[0])}
        for name, bounds in BOUNDS.items()
    },
}
LIMITS = (
    ["a + b <= 4", "d >= a - 2"],
    ["a / 5 + b / 5 + c == 1"],
    ["at most 2 of a, b, d", "a + b + d <= 3"],
)
AGENTS = ("GP-UCB", "CBO", "MCBO", "EIFN", "ConstrainedEI", "cCBO", "Random", "Auto", "Optuna")
USUAL = [("GP-UCB", "soft", 0), ("CBO", "hard", 1), ("Random", "hard", 2)]
CASES = [
    pytest.param(agent, mode, index, marks=[] if (agent, mode, index) in USUAL else [pytest.mark.slow])
    for mode in ("hard", "soft")
    for agent in AGENTS
    for index in range(len(LIMITS))
    if mode == "hard" or agent not in ("CBO", "cCBO")
]


def outcome(mode: str, do: dict[str, float], bonus: float = 0.0) -> dict[str, float]:
    a, b, c, d = (do.get(name, 0.5) for name in BOUNDS)
    m = math.sin(a) + c + 0.3 * a
    measured = {"m": m, "y": m * b - 0.1 * b**2 - (d - 1.0) ** 2 + bonus}
    return measured | ({"a": a, "b": b, "c": c, "d": d} if mode == "hard" else {})


def created(path: Path, system: str, **fields: Any) -> Study:
    return create_study("s", storage=path, horizon=20, seed=100, **(HARD if system == "hard" else SOFT) | fields)


@pytest.mark.parametrize(("agent", "mode", "index"), CASES)
def test_nothing_outside_is_suggested_recommended_or_called_the_best(
    agent: str, mode: str, index: int, tmp_path: Path
) -> None:
    study = created(tmp_path / "s.db", mode, agent=agent, limits=LIMITS[index])
    limits = study.interface.codec.limits
    assert limits is not None
    for count in (1, 2, 1):
        for trial in study.ask(count):
            assert limits.broken_by(dict(trial.do)) == []
            study.tell(trial, outcome(mode, dict(trial.do)))
    # Somebody sets something else, outside, which turns out to be splendid.
    trial = study.register(dict.fromkeys(trial.do, 2.0) if mode == "hard" else {"a": 3.0, "b": 3.0, "d": 3.0})
    done = {name: BOUNDS[name][1] for name in trial.do}
    study.tell(trial, outcome(mode, done, bonus=100.0), did=done)
    if limits.broken_by(done):
        assert study.best_trial is not None
        assert study.best_trial.number != trial.number
    assert limits.broken_by(dict(study.ask().do)) == []
    recommended = study.recommendation()
    assert limits.broken_by(recommended) == []
    lose_caches(tmp_path / "s.db")
    assert load_study(storage=tmp_path / "s.db").recommendation() == recommended


def test_data_outside_are_learned_and_reported(tmp_path: Path) -> None:
    study = created(tmp_path / "s.db", "soft", agent="GP-UCB", limits=["a + b <= 4"])
    rows = [{"a": 4.0, "b": 4.0}, {"a": 1.0, "b": 1.0}]
    assert study.add_data([outcome("soft", row) for row in rows], do=[row | {"c": 0.5, "d": 1.0} for row in rows]) == 2
    assert study.best_trial is None
    assert f", best so far {outcome('soft', rows[1])['y']:.4g}; " in study.ask().why
    assert study.what_if({"a": 4.0, "b": 4.0, "c": 0.5, "d": 1.0})["y"] == pytest.approx(
        outcome("soft", rows[0])["y"], abs=0.5
    )
    report = study.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "a + b &lt;= 4" in report
    assert "1 of 2" in report


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"limits": ["a + x <= 4"]}, "'x' cannot be set"),
        ({"limits": ["a + b >= 8", "a <= 2"]}, "'a \\+ b >= 8' and 'a <= 2' leave no room"),
        ({"limits": ["a + b <= 4"], "agent": "CEO"}, "CEO does not keep limits, and s has 'a \\+ b <= 4'; choose Auto"),
        ({"limits": ["at most 1 of a, b"], "targets": [["a", "b"]]}, "do not allow to set {a, b}"),
        (
            {"limits": ["b <= d"], "mode": "contextual", "contexts": ["c"], "settable": {"b": (0, 1), "d": (0, 1)}},
            "in soft and hard mode alone",
        ),
    ],
)
def test_wrong_limits_are_refused(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=message):
        created(tmp_path / "s.db", "hard", **fields)


def test_sets_that_count_too_many_variables_are_not_offered(tmp_path: Path) -> None:
    study = created(tmp_path / "s.db", "hard", limits=["at most 2 of a, b, d"])
    assert max(len(target & {"a", "b", "d"}) for target in study.interface.codec.sets) == 2  # type: ignore[attr-defined]
