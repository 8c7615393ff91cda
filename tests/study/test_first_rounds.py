"""A study begins with whatever data there are: none, a row, rows in which everything was set, constant columns."""

import numpy as np
import pytest

from cbo_gym.errors import ArgumentError
from cbo_gym.study import create_study, load_study
from tests.support.families import one_mode_each
from tests.support.studies import lose_caches
from tests.support.study_laboratory import PAIRS, bounds, context, description, everything_set, outcome, rows

NAMES = {"variables": ["x", "z", "y"]}
CANDIDATES = {"candidates": ["dag { x -> y; z -> y }", "dag { x -> z -> y }"]}
OUTSIDE = [pair for pair in PAIRS if pair[1] != "discrete"]
SOME = [("GP-UCB", "soft"), ("GPOO", "aggregated")]


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


def ask_everything(study, mode, rng):
    """Call all that a study answers without a report."""
    seen = context(mode, rng)
    first, second = study.ask(2, context=seen)
    assert second.number == first.number + 1
    recommended = study.recommendation(context=seen)
    assert_inside(mode, recommended)
    assert np.isfinite(study.what_if(recommended, context=seen)["y"])


@pytest.mark.parametrize(("agent", "mode"), one_mode_each(PAIRS))
def test_every_agent_begins_without_data(agent, mode, tmp_path):
    rng = np.random.default_rng(100)
    path = tmp_path / "s.db"
    study = create_study("s", storage=path, agent=agent, horizon=12, **description(mode))
    seen = context(mode, rng)
    with pytest.raises(ArgumentError, match="nothing"):
        study.what_if(everything_set(mode, rng), context=seen)
    play(study, mode, 2, rng)
    ask_everything(study, mode, rng)
    assert "Recommended now" in study.report(tmp_path / "s.html").read_text(encoding="utf-8")
    lose_caches(path)
    assert load_study(storage=path).recommendation(context=seen) == study.recommendation(context=seen)


@pytest.mark.parametrize(
    ("agent", "mode", "kind", "count", "rounds"),
    [
        ("CBO", "hard", "set", 3, 1),
        ("MCBO", "soft", "constant", 2, 1),
        *(
            pytest.param(*pair, *data, 6, marks=pytest.mark.slow)
            for pair in PAIRS
            for data in (("observed", 0), ("observed", 1), ("observed", 2), ("set", 3), ("constant", 3))
        ),
    ],
)
def test_agents_begin_with_any_data(agent, mode, kind, count, rounds, tmp_path):
    """Play a study that begins with rows of one kind."""
    rng = np.random.default_rng(101)
    study = create_study("s", storage=tmp_path / "s.db", agent=agent, horizon=12, **description(mode))
    values, done = rows(mode, kind, count, rng)
    if count:
        study.add_data(values, do=done)
    play(study, mode, rounds, rng)
    ask_everything(study, mode, rng)


@pytest.mark.parametrize(
    ("agent", "graph", "rounds"),
    [
        ("CBO-U", NAMES, 1),
        ("CEO", CANDIDATES, 1),
        *(
            pytest.param(agent, graph, 4, marks=pytest.mark.slow)
            for agent in ("Auto", "CEO", "CBO-U", "GP-UCB", "LearnedGraph")
            for graph in (NAMES, CANDIDATES)
        ),
    ],
)
def test_studies_without_a_known_diagram_begin_without_data(agent, graph, rounds, tmp_path):
    rng = np.random.default_rng(103)
    settable = {"x": (0.0, 2.0), "z": (0.0, 2.0)}
    study = create_study("s", storage=tmp_path / "s.db", agent=agent, reward="y", settable=settable, **graph)
    assert study.diagram is None
    for _ in range(rounds):
        trial = study.ask()
        values = outcome("hard", trial.do, rng)
        study.tell(trial, {name: values[name] for name in ("x", "z", "y")})
    study.ask(2)
    study.what_if(study.recommendation())
    study.report(tmp_path / "s.html")


@pytest.mark.parametrize(
    ("agent", "mode", "rounds", "excess"),
    [
        ("CBO", "hard", 2, 1e-7),
        *((*pair, 2, 3.0) for pair in SOME),
        *(pytest.param(*pair, 5, excess, marks=pytest.mark.slow) for pair in OUTSIDE for excess in (1e-7, 3.0)),
    ],
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
    ask_everything(study, mode, rng)


@pytest.mark.parametrize("agent", ["MCBO", "EIFN"])
def test_a_system_may_be_the_reward_alone(agent, tmp_path):
    alone = {"diagram": "dag { y }", "parameters": {"a": {"node": "y", "bounds": (0.0, 2.0)}}}
    study = create_study("s", storage=tmp_path / "s.db", agent=agent, reward="y", mode="soft", **alone)
    for _ in range(3):
        trial = study.ask()
        study.tell(trial, {"y": trial.do["a"] ** 2})
    ask_everything(study, "soft", None)


@pytest.mark.parametrize("agent", ["cCBO", *(pytest.param(name, marks=pytest.mark.slow) for name in ("CEO", "CBO-U"))])
def test_rewards_may_be_tiny(agent, tmp_path):
    rng = np.random.default_rng(100)
    study = create_study("s", storage=tmp_path / "s.db", agent=agent, horizon=12, **description("hard"))
    for _ in range(3):
        trial = study.ask()
        values = outcome("hard", trial.do, rng)
        study.tell(trial, values | {"y": 1e-9 * values["y"]})
    ask_everything(study, "hard", rng)
    study.report(tmp_path / "s.html")
