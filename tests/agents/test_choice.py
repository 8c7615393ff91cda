"""Auto: which agent it chooses, that this plays as by itself, and the reasons that it gives."""

import pickle
import sys
from dataclasses import replace
from functools import cache

import gymnasium as gym
import numpy as np
import pytest

from cbo_gym import agents, make_task
from cbo_gym.agent_registry.finding import modes_of
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.agents.choice import auto
from cbo_gym.agents.choice.rules import LAST, RULES, SECONDS, ranking
from cbo_gym.envs.making import make_env
from cbo_gym.errors import MissingExtraError, UnsupportedModeError
from cbo_gym.task import Mode
from tests import record
from tests.support.environments import FIRST_OF_MODE, IDS
from tests.support.loop import begin_agent, flat, play, reset

pytestmark = pytest.mark.usefixtures("coarse_search")

#: the first environment of each mode, which is made for each rule besides
SHOW_THE_GRAPH = (Mode.DYNAMIC, Mode.PARTIAL)
DEFAULT = (*FIRST_OF_MODE.values(), "CBO/ConfoundedBandit-v0")
CHOSEN = {
    "CBO/Alpine2-v0": "MCBO",
    "CBO/Dropwave-NoisyPublished-v0": "MCBO",
    "CBO/Dropwave-v0(graph='hidden')": "GP-UCB",
    "CBO/PSAGraph-v0": "MCBO",
    "CBO/CompleteGraph-v0": "MCBO",
    "CBO/CCBOSynthetic1-v0": "MCBO",
    "CBO/CCBOSynthetic1-v0(graph='hidden')": "ConstrainedEI",
    "CBO/PSAGraph-v0(graph='hidden')": "CBO-U",
    "CBO/CoCaFig1-v0": "CoCaBO",
    "CBO/CoCaFig1-v0(graph='hidden')": "CoBO",
    "CBO/GPBandit1-v0": "GPOO",
    "CBO/SSEMPeriodic-v1": "SSEM-UCB-JO",
    "CBO/TrainDelay-v0(super_arm_size=1)": "SSEM-UCB-JO",
    "CBO/Alpine2-Masked-v0": "SGB",
    "CBO/ParallelBandit-v0": "ParallelBandit",
    "CBO/ConfoundedBandit-v0": "SuccessiveRejects",
    "CBO/IVBandit-v0": "POMIS-TS",
    "CBO/IVBandit-v0(graph='hidden')": "TS",
    "CBO/Dropwave-Penny-v0": "CBO-MW",
    "CBO/Dropwave-Penny-v0(graph='hidden')": "GP-MW",
    "CBO/MOCBO1-v0": "qNEHVI-Network",
    "CBO/MOCBO1-v0(graph='hidden')": "qNEHVI",
    "CBO/Alpine2-Cost-v0(graph='hidden')": "CausalParetoSelect",
    "CBO/DCBOStat-v0": "ABO",
    "CBO/DCBOMultiv-v0": "DCBO",
    "CBO/GPs1-v0": "FastPKGFN",
}


@cache
def task_of(label):
    return make_task(reset(make_env(Spec.parse(label)), 100), 100)


def chosen(label, **parameters):
    return begin_agent(agents.Auto(**parameters), replace(task_of(label), initial_data=())).chosen


@pytest.mark.parametrize(("label", "name"), CHOSEN.items())
def test_the_task_decides(label, name):
    who, why = chosen(label)
    assert who == name
    assert why.startswith(f"{name} plays, since ")
    assert why.endswith(".")


@pytest.mark.parametrize("env_id", [pytest.param(one, marks=[] if one in DEFAULT else pytest.mark.slow) for one in IDS])
@pytest.mark.filterwarnings("ignore:.*out of date")
def test_the_first_choice_plays_every_environment_but_one(env_id):
    """POMIS agents look at the arms: see CBO/ConfoundedBandit-v0."""
    task = replace(task_of(env_id), initial_data=())
    first = next(ranking(task)).agent
    agent = begin_agent(agents.Auto(), task)
    assert agent.chosen.agent == first or env_id == "CBO/ConfoundedBandit-v0"
    assert first != LAST.agent


@pytest.mark.parametrize("env_id", [env_id for mode, env_id in FIRST_OF_MODE.items() if mode not in SHOW_THE_GRAPH])
@pytest.mark.parametrize("graph", ["hidden", "partial"])
@pytest.mark.filterwarnings("ignore:.*out of date")
def test_it_plays_without_a_diagram(env_id, graph):
    who, _ = chosen(f"{env_id}(graph={graph!r})")
    assert who not in ("MCBO", "EXCBO", "CoCaBO", "POMIS-TS", "CBO-MW", LAST.agent)


@pytest.mark.parametrize("env_id", ["CBO/Dropwave-Hard-v0", FIRST_OF_MODE[Mode.AGGREGATED], FIRST_OF_MODE[Mode.SUBSET]])
def test_a_run_is_that_of_the_chosen_agent(env_id):
    runs = []
    for agent in (agents.Auto(), auto.make_default(chosen(env_id).agent)):
        env = make_env(Spec.parse(env_id))
        task = make_task(env, 100, horizon=2)
        task = replace(task, initial_data=task.initial_data[-8:])
        runs.append((agent, task, *play(agent, env, task, 100)))
    (one, task, actions, _), (other, _, theirs, _) = runs
    assert [flat(action).tolist() for action in actions] == [flat(action).tolist() for action in theirs]
    assert flat(one.recommend()).tolist() == flat(other.recommend()).tolist()
    for method in ("estimated_rewards", "estimated_violations"):
        np.testing.assert_array_equal(getattr(one, method)(), getattr(other, method)())
    assert one.task is task
    assert one.history is one.player.history
    assert len(one.history) == len(other.history)


def test_the_record_has_the_same_of_both():
    kept = record.load()["agents"]
    for env in record.PLAYED_BY_AGENTS:
        who = chosen(env).agent
        auto, same = (dict(kept[f"{name} on {env}"], revisions=None) for name in ("Auto", who))
        # Records of other processors differ in the last digits.
        assert auto == same or auto["platform"] != same["platform"]


def test_seconds_choose_something_quicker():
    assert chosen("CBO/Alpine2-v0", seconds=10).agent == "MCBO"
    who, why = chosen("CBO/Alpine2-v0", seconds=0.2)
    assert who == "GP-UCB"
    assert "MCBO may take 1.4 s a round" in why
    assert chosen("CBO/Alpine2-v0", seconds=1e-3).agent == "Random"
    for mode, env_id in FIRST_OF_MODE.items():
        task = task_of(env_id)
        for limit in (1.0, 0.1, 0.01):
            who = chosen(env_id, seconds=limit).agent
            assert SECONDS[mode].get(who, 0.0) <= limit
            assert who in {rule.agent for rule in ranking(task)}


def test_agents_that_refuse_are_named_and_if_all_do_random_plays(monkeypatch):
    assert "POMIS-TS refuses (CBO/ConfoundedBandit-v0 has no arms" in chosen("CBO/ConfoundedBandit-v0").why

    def refuse(self, task, seed):
        raise UnsupportedModeError("not this one")

    for build in (agents.GPOO, agents.GPTree, agents.AVEStoOO):
        monkeypatch.setattr(build, "reset", refuse)
    who, why = chosen("CBO/GPBandit1-v0")
    assert who == "Random"
    assert "GPTree refuses (not this one)" in why


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gpytorch", None)
    monkeypatch.setattr(auto, "zoo", lambda: {"MCBO": "gpytorch.methods:MCBO"})
    with pytest.raises(MissingExtraError, match=r"the agent MCBO, which Auto chose, needs .*\.\[agents\]"):
        auto.make_default("MCBO")


def test_rules_are_of_agents_that_play_the_mode_and_have_their_seconds():
    assert set(RULES) == set(SECONDS) == set(Mode)
    for mode, rules in RULES.items():
        for rule in rules:
            assert mode.value in modes_of(type(auto.make_default(rule.agent)))
        assert {rule.agent for rule in rules} == set(SECONDS[mode])
        assert {rule.agent for rule in rules} <= set(zoo()) - {"Auto"}


def test_it_is_pickled_before_and_after_a_choice():
    agent = pickle.loads(pickle.dumps(agents.Auto(seconds=2.0)))
    task = make_task(gym.make("CBO/GPBandit1-v0"), 100)
    agent.reset(task, 0)
    again = pickle.loads(pickle.dumps(agent))
    assert again.chosen == agent.chosen
    assert again.seconds == 2.0
    assert flat(again.act({})).tolist() == flat(agent.act({})).tolist()
