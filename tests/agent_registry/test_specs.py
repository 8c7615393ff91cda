import sys

import gymnasium as gym
import pytest

from cbo_gym.agent_registry import finding
from cbo_gym.agent_registry.finding import create_agent, known_agents
from cbo_gym.agent_registry.labels import Spec, expand, matches
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.envs.making import make_env
from cbo_gym.errors import ArgumentError, short_repr


def test_a_label_matches_with_its_parameters_or_without():
    for pattern in ("CBO/X-v0(depth=3)", "CBO/X-v0", "CBO/X*", "*depth=?)"):
        assert matches("CBO/X-v0(depth=3)", ["other", pattern]), pattern
    for pattern in ("CBO/X", "X-v0", "CBO/X-v0(depth=4)", "cbo/x*", ""):
        assert not matches("CBO/X-v0(depth=3)", [pattern]), pattern


def test_patterns_are_replaced_where_they_stand():
    known = ["A", "AB", "C"]
    found = expand(["C", "A*", "X(q='*')", "?", "m:Z", "C"], known, "a command")
    assert found == ["C", "A", "AB", "X(q='*')", "m:Z"]
    with pytest.raises(ValueError, match="nothing fits 'D\\*'; there are A, AB, C"):
        expand(["D*"], known, "a command")


def test_make_env_takes_parameters_and_a_horizon():
    env = make_env(Spec.parse("CBO/BinaryTree-v0(depth=1)"), horizon=7)
    assert env.action_space.shape == (2,)
    assert env.spec.max_episode_steps == 7
    assert make_env(Spec("CBO/BinaryTree-v0")).spec == gym.make("CBO/BinaryTree-v0").spec


@pytest.mark.parametrize(
    ("string", "horizon", "message"),
    [
        ("CBO/BinaryTree-v0", 0, "horizon must be at least 1; given 0"),
        *(
            ("CBO/BinaryTree-v0", x, "horizon must be a whole number of at least 1; given")
            for x in ("3", 2.5, True, [3])
        ),
        ("CBO/BinaryTree-v0(depth=0)", 5, r"cannot make the environment CBO/BinaryTree-v0\(depth=0\): depth must be"),
        ("CBO/BinaryTree-v3", 5, "cannot make the environment CBO/BinaryTree-v3: .*see cbo-gym list"),
        ("no id", 5, "cannot make the environment no id: Malformed"),
        ("CBO/Custom-v0", 5, "cannot make the environment CBO/Custom-v0: give the problem to play, problem="),
        ("CBO/Custom-v0(problem=a.yaml)", 5, r"with literal values \(strings in quotation marks\)"),
    ],
)
def test_make_env_names_the_environment_and_what_is_wrong(string, horizon, message):
    with pytest.raises(ArgumentError, match=message):
        make_env(Spec.parse(string), horizon)


def test_an_agent_that_cannot_be_imported_is_named(monkeypatch):
    own = zoo()
    assert set(own) <= set(known_agents())
    monkeypatch.setattr(finding, "zoo", lambda: {**own, "Gone": "cbo_gym.agents.gone:Gone"})
    assert "Gone" in known_agents()
    with pytest.raises(ArgumentError, match=r"cannot import the agent 'Gone' from 'cbo_gym\.agents\.gone:Gone'"):
        create_agent("Gone")
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ValueError, match=r"cannot create Optuna: .*optuna"):
        create_agent("Optuna")


@pytest.mark.parametrize(
    "string",
    [
        "A(b=1)(b=2)",
        "A(**{'b': 1})",
        "A(1)",
        "A(b=c)",
        "(b=1)",
        "A(b=1",
        "A(b={[]: 1})",
        "A(b=0x" + "f" * 4500 + ")",
        "A(b=" + "-" * 50_000 + "1)",
    ],
    ids=short_repr,
)
def test_what_is_no_list_of_keywords_is_refused(string):
    with pytest.raises(ArgumentError, match="write NAME or NAME"):
        Spec.parse(string)


def test_parameters_may_be_lists():
    spec = Spec.parse("CBO/Dropwave-GMM-v0(radius_noise=[[0.5, -0.2, 1.4], [0.5, 0.4, 1.0]])")
    assert {spec: 1}[Spec.parse(str(spec))] == 1


@pytest.mark.parametrize(
    ("string", "message"),
    [
        ("CBO/Custom-v0(problem='os:getcwd')", "os:getcwd must return a Problem; it returned a str"),
        ("CBO/Custom-v0(problem=3)", "a problem is a Problem, an import path"),
        ("CBO/CoCaLarge-v0(scopes='a')", "scopes must be a list of mappings"),
        ("CBO/Alpine2-v0(render_mode='human')", "render_mode must be None or one of"),
        ("CBO/GPBandit1-v0(points=True)", "S must be a whole number"),
        ("CBO/GPBandit1-v0(integral='no')", "integral must be True or False; given 'no'"),
        ("CBO/Alpine2-v0(max_interventions=True)", "whole number from 1 to 6; given True"),
    ],
)
def test_bad_parameters_of_environments_are_named(string, message):
    with pytest.raises(ArgumentError, match=message):
        make_env(Spec.parse(string))


def test_an_agent_that_cannot_be_made_is_named(monkeypatch):
    def broken(self):
        raise KeyError("boom")

    monkeypatch.setattr("tests.support.agents.Centre.__init__", broken)
    with pytest.raises(ArgumentError, match=r"cannot create tests.support.agents:Centre: KeyError: 'boom'"):
        create_agent("tests.support.agents:Centre")


@pytest.mark.parametrize(
    "string", ["raise SystemExit(0)", "class Mine:\n    def __init__(self):\n        raise SystemExit(0)"]
)
def test_an_agents_module_cannot_end_the_process_that_imports_it(tmp_path, monkeypatch, string):
    (tmp_path / "leaving.py").write_text(string)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "leaving", raising=False)
    with pytest.raises(ArgumentError, match=r"cannot (import|create) .*leaving:Mine.*SystemExit"):
        create_agent("leaving:Mine")
