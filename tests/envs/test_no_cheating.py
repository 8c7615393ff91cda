"""Agents see the Task, the observations and the rewards; never mechanisms, environments or optima."""

import sys
import types

import gymnasium as gym
import pytest
from gymnasium.envs.registration import EnvSpec

from cbo_gym import evaluate
from cbo_gym.envs import CausalBanditEnv
from cbo_gym.envs.wrappers import OracleInfo
from cbo_gym.errors import ArgumentError
from tests.support.agents import Recorder
from tests.support.environments import FIRST_OF_MODE, IDS
from tests.support.leaks import FORBIDDEN, reachable

FIRST = FIRST_OF_MODE.values()
OF_EACH_MODE = [pytest.param(env_id, marks=[] if env_id in FIRST else [pytest.mark.slow]) for env_id in IDS]


@pytest.mark.parametrize("env_id", OF_EACH_MODE)
def test_nothing_that_an_agent_receives_leads_to_the_mechanisms(env_id):
    recorder = Recorder()
    evaluate(recorder, env_id, seed=0, horizon=3)
    found = reachable(recorder.received)
    assert len(found) > 20
    leaks = [item for item in found if isinstance(item, FORBIDDEN)]
    assert leaks == []
    infos = [item for item in recorder.received if isinstance(item, dict) and "round" in item]
    assert infos
    assert all(set(info) - {"cost"} == {"round", "intervention"} for info in infos)


def test_a_known_composition_leaks_no_more_than_itself():
    recorder = Recorder()
    evaluate(recorder, "CBO/Ackley-v0(known_composition=True)", seed=0, horizon=1)
    assert recorder.received[0].composition is not None
    assert not [item for item in reachable(recorder.received) if isinstance(item, FORBIDDEN)]


@pytest.mark.parametrize("make", [gym.make, gym.make_vec], ids=["scalar", "vector"])
@pytest.mark.parametrize("env_id", ["CBO/Dropwave-v0", "CBO/ToyGraph-v0"])
def test_no_keyword_makes_an_environment_tell_the_truth(make, env_id):
    how = {"vectorization_mode": "vector_entry_point"} if make is gym.make_vec else {}
    with pytest.raises(ArgumentError, match="has no parameter oracle"):
        make(env_id, oracle=True, **how)


def test_the_evaluator_plays_nothing_that_tells_the_truth(monkeypatch):
    with pytest.raises(ArgumentError, match="has no parameter oracle"):
        evaluate(Recorder(), "CBO/Dropwave-v0(oracle=True)", seed=0, horizon=1)
    with pytest.raises(ArgumentError, match="has no parameter oracle"):
        evaluate(Recorder(), "CBO/Dropwave-v0", seed=0, horizon=1, oracle=True)
    told = (OracleInfo.wrapper_spec(),)
    kwargs = gym.spec("CBO/Dropwave-v0").kwargs
    telling = EnvSpec("CBO/Telling-v0", CausalBanditEnv, max_episode_steps=5, kwargs=kwargs, additional_wrappers=told)
    monkeypatch.setitem(gym.registry, telling.id, telling)
    assert isinstance(gym.make(telling.id), OracleInfo)
    recorder = Recorder()
    with pytest.raises(ArgumentError, match="shows expected rewards, which agents that are evaluated may not see"):
        evaluate(recorder, telling.id, seed=0, horizon=1)
    assert recorder.received == []


def test_the_search_would_find_a_leak():
    env = gym.make("CBO/Dropwave-v0")
    assert [item for item in reachable([lambda: env]) if isinstance(item, FORBIDDEN)]


@pytest.mark.parametrize("env_id", ["CBO/PooledTesting-v0", "CBO/Epidemic-v0", "CBO/Ackley-v0(known_composition=True)"])
def test_a_composition_stands_apart_from_the_mechanisms(env_id):
    """A function leads to all that its module holds."""
    recorder = Recorder()
    evaluate(recorder, env_id, seed=0, horizon=1)
    told = recorder.received[0].composition
    module = sys.modules[getattr(told, "func", told).__module__]
    assert not [thing for thing in vars(module).values() if getattr(thing, "__module__", "").startswith("cbo_gym.scm")]
    assert {thing.__module__ for thing in vars(module).values() if isinstance(thing, types.FunctionType)} == {
        "cbo_gym.problems.systems.compositions",
        "cbo_gym._util.summation",
    }
