"""A study begins with whatever data there are: none, a row, rows in which everything was set, constant columns."""

import numpy as np
import pytest

from cbo_gym.errors import ArgumentError
from cbo_gym.study import create_study, load_study
from tests.study.helpers import lose_caches
from tests.study.laboratory import PAIRS, bounds, context, description, everything_set, outcome, rows
from tests.study.visitor import Visitor
from tests.together import by_family

GRAPHS = [{"variables": ["x", "z", "y"]}, {"candidates": ["dag { x -> y; z -> y }", "dag { x -> z -> y }"]}]
OUTSIDE = [pair for pair in PAIRS if pair[1] != "discrete"]
SOME = [(agent, mode) for agent, mode in OUTSIDE if agent in ("GP-UCB", "CBO", "CoCaBO", "GPOO")]


def assert_inside(mode, action):
    for name, value in action.items():
        low, high = bounds(mode).get(name, (-np.inf, np.inf))
        assert low <= np.min(value) <= np.max(value) <= high


def play(study, mode, rounds, rng):
    for _ in range(rounds):
        seen = context(mode, rng)
        trial = study.ask(context=seen)
        assert_inside(mode, trial.do)
        study.tell(trial, outcome(mode, trial.do, rng, seen))


def ask_everything(study, mode, rng, path):
    """Call all that a study answers once."""
    seen = context(mode, rng)
    first, second = study.ask(2, context=seen)
    assert second.number == first.number + 1
    recommended = study.recommendation(context=seen)
    assert_inside(mode, recommended)
    assert np.isfinite(study.what_if(recommended, context=seen)["y"])
    study.report(path)


@pytest.mark.parametrize(("agent", "mode"), by_family(PAIRS, lambda pair: pair[0]))
def test_every_agent_begins_without_data(agent, mode, tmp_path):
    rng = np.random.default_rng(100)
    path = tmp_path / "s.db"
    study = create_study("s", storage=path, agent=agent, horizon=12, **description(mode))
    seen = context(mode, rng)
    with pytest.raises(ArgumentError, match="nothing"):
        study.what_if(everything_set(mode, rng), context=seen)
    play(study, mode, 2, rng)
    ask_everything(study, mode, rng, tmp_path / "s.html")
    lose_caches(path)
    assert load_study(storage=path).recommendation(context=seen) == study.recommendation(context=seen)


@pytest.mark.parametrize(
    ("agent", "mode", "kind", "count", "rounds"),
    [
        ("Auto", "hard", "set", 3, 2),
        ("Auto", "soft", "constant", 2, 2),
        *(
            pytest.param(*pair, *data, 6, marks=pytest.mark.slow)
            for pair in PAIRS
            for data in (("observed", 0), ("observed", 1), ("observed", 2), ("set", 3), ("constant", 3))
        ),
    ],
)
def test_agents_begin_with_any_data(agent, mode, kind, count, rounds, tmp_path):
    """Play a study that begins with rows of one kind, and look at its page."""
    rng = np.random.default_rng(101)
    study = create_study("s", storage=tmp_path / "s.db", agent=agent, horizon=12, **description(mode))
    values, done = rows(mode, kind, count, rng)
    if count:
        study.add_data(values, do=done)
    play(study, mode, rounds, rng)
    ask_everything(study, mode, rng, tmp_path / "s.html")
    assert "Recommended now" in Visitor(tmp_path / "s.db").get("/studies/1/report")


@pytest.mark.parametrize("graph", GRAPHS, ids=["names", "candidates"])
@pytest.mark.parametrize(
    "agent",
    ["Auto", *(pytest.param(one, marks=pytest.mark.slow) for one in ("CEO", "CBO-U", "GP-UCB", "LearnedGraph"))],
)
def test_studies_without_a_known_diagram_begin_without_data(agent, graph, tmp_path):
    rng = np.random.default_rng(103)
    settable = {"x": (0.0, 2.0), "z": (0.0, 2.0)}
    study = create_study("s", storage=tmp_path / "s.db", agent=agent, reward="y", settable=settable, **graph)
    for _ in range(2 if agent == "Auto" else 4):
        trial = study.ask()
        values = outcome("hard", trial.do, rng)
        study.tell(trial, {name: values[name] for name in ("x", "z", "y")})
    study.ask(2)
    study.what_if(study.recommendation())
    study.report(tmp_path / "s.html")


@pytest.mark.parametrize("excess", [1e-7, 3.0], ids=["rounding", "far"])
@pytest.mark.parametrize(
    ("agent", "mode", "rounds"),
    [*((*pair, 2) for pair in SOME), *(pytest.param(*pair, 5, marks=pytest.mark.slow) for pair in OUTSIDE)],
)
def test_what_was_done_may_lie_outside_the_bounds(agent, mode, rounds, excess, tmp_path):
    """Play trials of which every second was done beyond the upper bounds, with the best outcomes."""
    rng = np.random.default_rng(104)
    study = create_study("s", storage=tmp_path / "s.db", agent=agent, horizon=12, **description(mode))
    for number in range(rounds):
        seen = context(mode, rng)
        trial = study.ask(context=seen)
        if number % 2:
            study.tell(trial, outcome(mode, trial.do, rng, seen))
            continue
        ends = {name: high for name, (_, high) in bounds(mode).items()}
        did = {
            name: (high - 0.5, high + excess) if mode == "aggregated" else high + excess for name, high in ends.items()
        }
        study.tell(trial, outcome(mode, did, rng, seen) | {"y": 15.0}, did=did)
        assert_inside(mode, study.recommendation(context=seen))
    ask_everything(study, mode, rng, tmp_path / "s.html")
