"""A study begins with whatever data there are: none, a row, rows in which everything was set, constant columns."""

import numpy as np
import pytest

from cbo_gym.agents.zoo import zoo
from cbo_gym.errors import ArgumentError
from cbo_gym.specs import find_agent, modes_of
from cbo_gym.study import create_study, load_study
from tests.study.helpers import lose_caches
from tests.study.laboratory import MODES, PAIRS, bounds, context, description, outcome, rows
from tests.study.visitor import Visitor
from tests.together import by_room

QUICK = {"EIFN": "EIFN(samples=8)", "EICF": "EICF(samples=8)", "ConstrainedEI": "ConstrainedEI(samples=8)"}


def assert_inside(mode, action):
    for name, value in action.items():
        low, high = bounds(mode).get(name, (-np.inf, np.inf))
        assert low <= np.min(value)
        assert np.max(value) <= high


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


@pytest.mark.parametrize(("agent", "mode"), by_room(PAIRS, lambda pair: pair[0]))
def test_every_agent_begins_without_data(agent, mode, tmp_path):
    rng = np.random.default_rng(100)
    path = tmp_path / "s.db"
    study = create_study("s", storage=path, agent=QUICK.get(agent, agent), horizon=12, **description(mode))
    seen = context(mode, rng)
    with pytest.raises(ArgumentError, match="nothing"):
        study.what_if({} if mode in ("hard", "discrete") else {name: low for name, (low, _) in bounds(mode).items()}
                      if mode != "aggregated" else bounds(mode), context=seen)  # fmt: skip
    play(study, mode, 3, rng)
    ask_everything(study, mode, rng, tmp_path / "s.html")
    lose_caches(path)
    assert load_study(storage=path).recommendation(context=seen) == study.recommendation(context=seen)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "count"), [("observed", 0), ("observed", 1), ("observed", 2), ("set", 3), ("constant", 3)]
)
@pytest.mark.parametrize(("agent", "mode"), PAIRS)
def test_every_agent_begins_with_any_data(agent, mode, kind, count, tmp_path):
    rng = np.random.default_rng(101)
    study = create_study("s", storage=tmp_path / "s.db", agent=agent, horizon=12, **description(mode))
    values, done = rows(mode, kind, count, rng)
    if count:
        study.add_data(values, do=done)
    play(study, mode, 6, rng)
    ask_everything(study, mode, rng, tmp_path / "s.html")
    page = Visitor(tmp_path / "s.db").get("/studies/1/report")
    assert "Recommended now" in page


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "count"), [("observed", 1), ("observed", 2), ("set", 3), ("constant", 3)])
def test_the_default_agent_begins_with_any_data(kind, count, mode, tmp_path):
    rng = np.random.default_rng(102)
    study = create_study("s", storage=tmp_path / "s.db", horizon=12, **description(mode))
    values, done = rows(mode, kind, count, rng)
    study.add_data(values, do=done)
    play(study, mode, 2, rng)
    ask_everything(study, mode, rng, tmp_path / "s.html")
    assert "Recommended now" in Visitor(tmp_path / "s.db").get("/studies/1/report")


HIDDEN = [agent for agent in ("Auto", "CEO", "CBO-U", "GP-UCB", "ConstrainedEI", "LearnedGraph", "Optuna", "Random")]


@pytest.mark.parametrize("agent", HIDDEN)
@pytest.mark.parametrize(
    "graph", [{"variables": ["x", "z", "y"]}, {"candidates": ["dag{x -> y; z -> y}", "dag{x -> z -> y}"]}]
)
def test_studies_without_a_known_diagram_begin_without_data(agent, graph, tmp_path):
    rng = np.random.default_rng(103)
    settable = {"x": (0.0, 2.0), "z": (0.0, 2.0)}
    study = create_study("s", storage=tmp_path / "s.db", agent=agent, reward="y", settable=settable, **graph)
    for _ in range(5):
        trial = study.ask()
        values = outcome("hard", trial.do, rng)
        study.tell(trial, {name: values[name] for name in ("x", "z", "y")})
    study.ask(2)
    study.what_if(study.recommendation())
    study.report(tmp_path / "s.html")


OUTSIDE = [pair for pair in PAIRS if pair[1] != "discrete"]


@pytest.mark.parametrize("excess", [1e-7, 3.0], ids=["rounding", "far"])
@pytest.mark.parametrize(
    ("agent", "mode"),
    by_room(
        [pair for pair in OUTSIDE if pair[0] in ("Auto", "GP-UCB", "EIFN", "EXCBO", "CBO", "CoCaBO")],
        lambda pair: pair[0],
    ),
)
def test_what_was_done_may_lie_outside_the_bounds(agent, mode, excess, tmp_path):
    beyond(QUICK.get(agent, agent), mode, excess, tmp_path, rounds=2)


@pytest.mark.slow
@pytest.mark.parametrize("excess", [1e-7, 3.0], ids=["rounding", "far"])
@pytest.mark.parametrize(("agent", "mode"), OUTSIDE)
def test_every_agent_learns_from_outside_the_bounds(agent, mode, excess, tmp_path):
    beyond(agent, mode, excess, tmp_path, rounds=5)


def beyond(agent, mode, excess, tmp_path, rounds):
    """Play trials that were done beyond the upper bounds, with the best outcomes."""
    rng = np.random.default_rng(104)
    study = create_study("s", storage=tmp_path / "s.db", agent=agent, horizon=12, **description(mode))
    interval = mode == "aggregated"
    for number in range(rounds):
        seen = context(mode, rng)
        trial = study.ask(context=seen)
        did = {
            name: (high - 0.5, high + excess) if interval else high + excess for name, (_, high) in bounds(mode).items()
        }
        values = outcome(mode, did if number % 2 == 0 else trial.do, rng, seen)
        study.tell(trial, values | ({"y": 15.0} if number % 2 == 0 else {}), did=did if number % 2 == 0 else None)
        assert_inside(mode, study.recommendation(context=seen))
    ask_everything(study, mode, rng, tmp_path / "s.html")


def test_the_whole_zoo_is_tested():
    assert {agent for agent, _ in PAIRS} >= {name for name in zoo() if "hard" in modes_of(find_agent(name))} - {
        "StableBaselines3", "CausalParetoSelect", "qNEHVI", "qNEHVI-Sets", "qNEHVI-Network"
    }  # fmt: skip
