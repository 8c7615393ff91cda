"""Somebody else's agent in a separate process: it is told plain data, and plays as it does in one process."""

import json
import os
import pickle
import pickletools
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym import evaluate, make_task
from cbo_gym._util.plain import read_plain, write_plain
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.errors import ArgumentError, CBOGymError, UnsupportedModeError
from cbo_gym.evaluation import AgentError
from cbo_gym.evaluation.play.runner import HIDDEN_ID
from cbo_gym.evaluation.play.seeds import draw_instance, seeds_of
from cbo_gym.referee.import_guard import ISOLATION_VARIABLE
from cbo_gym.referee.isolated import IsolatedAgent
from cbo_gym.referee.serialization import pack
from cbo_gym.scm.expression import trace
from tests.support.agents import Centre
from tests.support.environments import KINDS, LAST_OF_MODE, SEVERAL_OBJECTIVES
from tests.support.runs import rounds_alike


def isolated(label, env, **how):
    with closing(IsolatedAgent(Spec.parse(label))) as agent:
        return evaluate(agent, env, 100, label=label, **how)


@pytest.mark.parametrize("label", ["Random", pytest.param("tests.support.agents:Centre", marks=pytest.mark.slow)])
def test_it_plays_as_in_one_process(label):
    """In all modes, one after the other, as an agent does that is reset."""
    with closing(IsolatedAgent(Spec.parse(label))) as agent:
        for env in (*LAST_OF_MODE.values(), SEVERAL_OBJECTIVES[0]):
            run = evaluate(agent, env, 100, label=label, horizon=2)
            assert run.isolated
            assert rounds_alike(run, evaluate(label, env, 100, horizon=2)), env


@pytest.mark.parametrize("what", ["list", pytest.param("tensor", marks=pytest.mark.slow), "print"])
def test_actions_come_in_any_form_that_an_environment_takes(what):
    run = isolated(f"tests.support.agents:Odd(what={what!r})", "CBO/Dropwave-v0", horizon=2)
    assert rounds_alike(run, evaluate(Centre(), "CBO/Dropwave-v0", 100, horizon=2))


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("raise", "KeyError: 'nothing'"),
        ("kill", "status 3"),
        pytest.param("text", "InvalidAction", marks=pytest.mark.slow),
        pytest.param("leave", "SystemExit: 3", marks=pytest.mark.slow),
    ],
)
def test_what_it_does_wrong_is_named(what, message):
    with pytest.raises(AgentError, match=f"round 1: .*{message}"):
        isolated(f"tests.support.agents:Odd(what={what!r})", "CBO/Dropwave-v0", horizon=2)


def test_an_agent_that_cannot_be_made_or_does_not_play_is_named():
    with pytest.raises(ArgumentError, match="cannot import the agent 'nowhere:Agent': ModuleNotFoundError"):
        IsolatedAgent(Spec.parse("nowhere:Agent"))
    with pytest.raises(ArgumentError, match=r"takes no arguments"):
        IsolatedAgent(Spec.parse("tests.support.agents:Centre(bad=1)"))
    with pytest.raises(UnsupportedModeError, match="SoftOnly plays soft"):
        isolated("tests.support.agents:SoftOnly", "CBO/ToyGraph-v0", horizon=2)


CLOSED = """
import sys
import gymnasium
import cbo_gym
from cbo_gym import evaluate
from cbo_gym.evaluation import sweep
from cbo_gym.envs import oracle_of
from cbo_gym.problems.base import Problem
from cbo_gym.referee.import_guard import ClosedError
refused = 0
for call in (evaluate, sweep, oracle_of, Problem, cbo_gym.make_task):
    try:
        call()
    except ClosedError:
        refused += 1
registered = [name for name in gymnasium.registry if name.startswith("CBO/")]
print(refused, registered, sorted(n for n in sys.modules if n.startswith("cbo_gym.envs.registry")))
"""


def test_what_leads_to_the_truth_is_closed_there():
    words = [sys.executable, "-c", CLOSED]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, ISOLATION_VARIABLE: "1"})
    assert done.stdout.strip() == "5 [] []", done.stderr


@pytest.mark.parametrize("env_id", KINDS)
def test_a_task_arrives_whole(env_id):
    task = make_task(gym.make(env_id), 100, horizon=2)
    told = pickle.loads(pack(task))
    assert type(told) is type(task)
    assert told.codec.space is told.action_space
    assert (told.action_space, told.observation_space) == (task.action_space, task.observation_space)
    assert (told.graph, told.noise, told.constraints, told.costs) == (
        task.graph, task.noise, task.constraints, task.costs
    )  # fmt: skip
    point = np.random.default_rng(3).random(task.codec.dim)
    assert str(told.codec.to_action(point)) == str(task.codec.to_action(point))
    if (known := getattr(task, "composition", None)) is not None:
        nodes = dict(zip(task.nodes, np.random.default_rng(4).random((len(task.nodes), 5)), strict=True))
        assert np.array_equal(told.composition(nodes), known(nodes))


def test_a_composition_that_is_no_arithmetic_is_refused():
    nodes = {"X": np.array([0.5, 2.0])}
    assert np.array_equal(trace(lambda n: np.tanh(n["X"]) ** 2 - 1, ["X"])(nodes), np.tanh(nodes["X"]) ** 2 - 1)
    assert np.array_equal(trace(lambda n: n["X"], ["X", "B"])({**nodes, "B": 5.0}), nodes["X"]), "not the last step"
    with np.errstate(divide="ignore", invalid="ignore"):
        assert trace(lambda n: np.float64(1.0) / n["X"], ["X"])({"X": 0.0}) == np.inf
        assert np.isnan(trace(lambda n: np.power(n["X"], 0.5), ["X"])({"X": -1.0}))
    for wrong in (
        lambda n: 1.0 if n["X"] == 2 else 0.0,
        lambda n: n["X"] if n["X"] > 0 else 0.0,
        lambda n: float(n["X"]),
        lambda n: "text",
    ):
        with pytest.raises(ArgumentError, match="cannot be traced"):
            trace(wrong, ["X"])


@pytest.mark.parametrize("env_id", LAST_OF_MODE.values())
def test_what_is_sent_names_only_a_closed_list_of_classes(env_id):
    task = make_task(gym.make(env_id), 100, horizon=2)
    task.action_space.sample()
    task.codec.hidden = task.action_space.hidden = gym.make(env_id)
    sent = pack(("reset", (task, 100)))
    strings = {string for _, string, _ in pickletools.genops(sent) if isinstance(string, str)}
    modules = {string for string in strings if string.startswith("cbo_gym")}
    assert {name.removeprefix("cbo_gym.").partition(".")[0] for name in modules} <= {
        "task", "actions", "scm", "referee"
    }  # fmt: skip
    assert not strings & {"hidden", "_np_random", "PCG64"}


@pytest.mark.parametrize(
    "value", [object(), lambda: 0, os.system, gym.make, gym.Env, np.random.default_rng(3), np.array([object()])]
)
def test_nothing_else_is_sent(value):
    with pytest.raises(ArgumentError, match="cannot be sent to an agent in a separate process"):
        pack(("act", ({"nodes": value},)))


def test_answers_that_were_tampered_with_are_refused():
    answer = {"a": np.linspace(0, 1, 5), 3: (1, [None, True, "text"], np.float64(0.5)), "nan": float("nan")}
    written = write_plain(answer)
    assert repr(read_plain(written)) == repr(answer)
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(300):
        start, end = sorted(rng.integers(len(written), size=2))
        try:
            read_plain(written[:start] + written[end:])
        except ArgumentError:
            refused += 1
    assert refused > 200
    for wrong in (
        {"kind": "os.system", "of": {}}, {}, {"eval": "1"}, {"array": ["O", [1], "AAAA"]}, {"map": [[[1], 2]]},
        {"array": ["<f8", [10**30], ""]}, {"array": [{}, [1], ""]}, {"number": ["<f8", [2], ""]}, {"map": 3},
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match="not plain data"):
            read_plain(json.dumps(wrong).encode())
    for value in (object(), {1: {2}}, np.array([object()]), np.datetime64(1, "s")):
        with pytest.raises(ArgumentError, match="not plain data"):
            write_plain(value)


def test_blind_play_tells_neither_the_environment_nor_the_seed():
    """Nor that it is blind."""
    assert seeds_of(7, "")[:2] == (7, 7)
    spec = Spec.parse("CBO/Dropwave-v0")
    instance, secret = draw_instance("the referee's words", spec, 7)
    hidden = seeds_of(7, secret)
    assert hidden == seeds_of(7, secret) != seeds_of(8, secret)
    assert 7 not in hidden
    assert draw_instance("the referee's words", spec, 7) == (instance, secret)
    assert instance != draw_instance("other words", spec, 7)[0] != draw_instance("other words", spec, 8)[0]
    with pytest.raises(ArgumentError, match="at least 8 characters"):
        draw_instance("short", spec, 7)
    task = replace(make_task(gym.make("CBO/Dropwave-v0", instance=3), 100), env_id=HIDDEN_ID)
    assert b"Dropwave" not in pack(task)
    run = isolated("tests.support.agents:Centre", str(instance), horizon=2, secret=secret)
    assert (run.secret, run.isolated) == (secret, True)
    for env, more in ((spec, {}), (instance, {"secret": secret})):
        with pytest.raises(CBOGymError, match=r"called 'the environment'$"):
            isolated("tests.support.agents:Names", str(env), horizon=2, **more)
