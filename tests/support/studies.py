"""Studies of simulated plants: an environment gives the outcomes that a robot would measure."""

import math
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from time import sleep

import gymnasium as gym
import numpy as np

from cbo_gym import evaluate, make_task
from cbo_gym.agent_registry.finding import agent_of, find_agent, modes_of
from cbo_gym.agent_registry.labels import Spec
from cbo_gym.agent_registry.zoo import zoo
from cbo_gym.agents.baselines.random import Random
from cbo_gym.envs.making import make_env
from cbo_gym.envs.registration import custom_id
from cbo_gym.study import create_study, load_study
from cbo_gym.study.log import Log, Position
from cbo_gym.study.units import Units
from cbo_gym.task import Mode
from tests.support.loop import begin_agent

ROUNDS = 4
SEED = 100

#: a system of each mode that studies have, as an environment whose noise and composition are hidden
SYSTEMS = {
    "soft": "CBO/Alpine2-Noisy-v0",
    "hard": "CBO/ToyGraph-v0",
    "contextual": "CBO/CoCaFig1-v0",
    "discrete": "CBO/XYZWSTBandit-v0",
    "aggregated": "CBO/GPBandit1-v0",
    "partial": "CBO/GPs1-v0",
}
#: systems with several objectives, in some of which the cost of a round is an objective
SEVERAL = {
    "hard, several": "CBO/MOCBO1-v0",
    "hard, paid": "CBO/PSAGraph-Cost-v0",
    "soft, paid": "CBO/Alpine2-Cost-v0",
}
#: agents that need another graph or several objectives
FOR_SEVERAL = ("CausalParetoSelect", "qNEHVI", "qNEHVI-Sets", "qNEHVI-Network")
NOT_HERE = ("ParallelBandit", *FOR_SEVERAL)
PAIRS = [
    (name, mode) for name in zoo() for mode in modes_of(find_agent(name)) if mode in SYSTEMS and name not in NOT_HERE
]
SEVERAL_PAIRS = [(name, system) for name in (*FOR_SEVERAL, "Auto", "Random") for system in SEVERAL]

FERMENTER = {
    "diagram": "dag { feed -> biomass -> titre; ph -> titre; feed <-> titre }",
    "reward": "titre",
    "settable": {"feed": (0.0, 5.0), "ph": (5.5, 7.5)},
    "horizon": 40,
}


def fermenter(path, agent="CBO", **more):
    return create_study("fermenter", storage=path, agent=agent, **{**FERMENTER, **more})


def simulate(do):
    feed, ph = do.get("feed", 2.0), do.get("ph", 6.0)
    biomass = 1.0 + math.tanh(feed)
    return {"feed": feed, "ph": ph, "biomass": biomass, "titre": biomass * math.exp(-((ph - 6.8) ** 2))}


def play(study, rounds=1, outcome=simulate):
    """Ask and tell; return the study."""
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, outcome(trial.do))
    return study


SOFT = {
    "settable": {},
    "mode": "soft",
    "diagram": "dag { growth -> titre }",
    "reward": "titre",
    "parameters": {
        "feed": {"node": "growth", "bounds": (0.0, 5.0)},
        "ph": {"node": "titre", "bounds": (5.5, 7.5)},
    },
}


def soft(do):
    growth = 0.2 * do["feed"]
    return {"growth": growth, "titre": growth * math.exp(-((do["ph"] - 6.8) ** 2))}


DOSING = {
    "diagram": "dag { age -> dose; age -> answer; dose -> answer; age <-> dose }",
    "reward": "answer",
    "mode": "contextual",
    "settable": {"dose": (0.0, 1.0)},
    "contexts": ["age"],
    "scopes": [{"dose": ["age"]}],
    "horizon": 60,
}


def hide_facts(env_id):
    """Return the problem of an environment, with its noise, kernel and composition hidden from agents."""
    dynamics = make_env(Spec.parse(env_id)).unwrapped.dynamics
    return replace(dynamics.problem, noise_known=False, composition=None, kernel=None, name="plant")


def plant(system):
    """Return the id of the environment of a system, a key of ``SYSTEMS`` or ``SEVERAL``, and its problem."""
    mode, _, _ = system.partition(",")
    return custom_id(Mode(mode)), hide_facts((SYSTEMS | SEVERAL)[system])


def train_agent(agent, env_id, mode, rounds=4):
    """Return an agent after some rounds on the hidden problem of an environment, the last observation and the env."""
    env = gym.make(custom_id(Mode(mode)), problem=hide_facts(env_id), max_episode_steps=40)
    learner = begin_agent(agent_of(agent), make_task(env, 100), 100)
    observation, _ = env.reset(seed=100)
    for _ in range(rounds):
        action = learner.act(observation)
        observation, reward, *_, info = env.step(action)
        learner.update(action, observation, reward, info)
    return learner, observation, env


def describe_task(task):
    """Return the description of a study that gives agents the same task."""
    fields = {"variables": list(task.nodes), "diagram": task.diagram, "mode": str(task.mode)}
    if task.objectives:
        fields["objectives"] = {objective.name: objective.direction for objective in task.objectives}
    else:
        fields["reward"] = task.reward
    if task.mode in (Mode.SOFT, Mode.AGGREGATED, Mode.PARTIAL):
        entering = {index: node for node, indices in task.action_nodes.items() for index in indices}
        fields["parameters"] = {
            name: {"node": entering[index], "bounds": task.action_domains[index]}
            for index, name in enumerate(task.action_names)
        }
    if task.mode == Mode.SOFT:
        for name, null in task.codec.to_native(np.array(task.null_action)).items():
            fields["parameters"][name]["null"] = null
    if task.mode in (Mode.HARD, Mode.CONTEXTUAL):
        fields["settable"] = dict(task.manipulable)
    if task.mode == Mode.HARD:
        fields["targets"] = [sorted(target) for target in task.targets]
    if task.mode == Mode.CONTEXTUAL:
        fields["contexts"] = list(task.contexts)
        fields["scopes"] = [{name: sorted(given) for name, given in scope} for scope in task.scopes]
    if task.mode == Mode.DISCRETE:
        fields |= {"arms": [dict(arm) for arm in task.arms], "reward_range": (0.0, 1.0)}
    return fields


def lose_caches(path):
    """Delete the agents that a database caches, so that the study is restored from its log alone."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM cbo_gym_snapshots")


def open_log(path):
    """Return the log of a database, and the row of its only study."""
    log = Log(path)
    return log, log.find(None)


def events_of(path):
    """Return the events of the only study in a database."""
    log, row = open_log(path)
    return log.events(row.number)


def append(path, entries):
    """Append events, as pairs of kind and payload, to the only study in a database."""
    log, row = open_log(path)
    position = [Position(0, row.digest), *(event.position for event in log.events(row.number))][-1]
    assert log.append(row.number, position, entries)


class Robot:
    """Plays the trials of a study in an environment.

    Args:
        mode: key of the system, see :func:`plant`.
        agent: label of the agent that suggests trials.
        storage: database of the study.
        rounds: planned number of rounds.
        seeds: seeds of the noise, the initial data and the agent.
    """

    def __init__(self, mode, agent, storage, rounds, seeds):
        env_id, problem = plant(mode)
        self.env = gym.make(env_id, problem=problem, max_episode_steps=rounds, disable_env_checker=True)
        self.storage, self.agent, self.mode = storage, agent, mode
        task = make_task(self.env, seeds.data)
        self.observation, _ = self.env.reset(seed=seeds.noise)
        fields = describe_task(task)
        if (costs := problem.outcomes.costs) is not None:
            fields["costs"] = {name: prices for name, prices in vars(costs).items() if prices}
        study = create_study("plant", storage=storage, agent=agent, horizon=rounds, seed=seeds.agent, **fields)
        self.units = Units(study.description, study.interface)
        # Values of the initial data in the study's units would differ in the last digits.
        rounds = [
            {
                "action": self.units.to_flat(past.action),
                "values": dict(zip(task.nodes, past.observation["nodes"].tolist(), strict=True)),
                "context": None,
            }
            for past in task.initial_data
        ]
        if rounds:
            append(storage, [("data", {"rounds": rounds})])
        self.names = task.nodes
        self.study = study

    def restart(self):
        self.study = load_study(storage=self.storage)

    def ask(self):
        context = None
        if self.mode == "contextual":
            context = dict(zip(self.study.description.contexts, self.observation["context"].tolist(), strict=True))
        return self.study.ask(context=context)

    def play(self, trial):
        """Play a trial; return the values that are measured."""
        action = self.units.from_flat(self.study.trials[trial.number - 1].flat)
        self.observation, *_ = self.env.step(action)
        values = dict(zip(self.names, np.asarray(self.observation["nodes"]).tolist(), strict=True))
        is_made = self.observation.get("bought", np.ones(len(self.names)))
        return {name: value for (name, value), flag in zip(values.items(), is_made, strict=True) if flag}

    def round(self):
        trial = self.ask()
        self.study.tell(trial, self.play(trial))
        return trial

    def actions(self):
        return [entry.flat for entry in self.study.trials]


class Delayed(Random):
    """Writes a file ``asked`` to a folder when it must act, and acts when the folder has a file ``go``."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.folder = folder

    def act(self, observation):
        (Path(self.folder) / "asked").touch()
        while not (Path(self.folder) / "go").exists():
            sleep(0.01)
        return super().act(observation)


class Broken(Random):
    """Fails, as ``how`` says, once its folder has a file ``broken``; its state has changed by then."""

    def __init__(self, folder: str, how: str) -> None:
        super().__init__()
        self.folder, self.how = folder, how
        if how == "make" and (Path(folder) / "broken").exists():
            sleep(600)

    def act(self, observation):
        action = super().act(observation)
        if (Path(self.folder) / "broken").exists():
            if self.how == "hang":
                sleep(600)
            if self.how == "exit":
                os._exit(3)
            raise {"raise": RuntimeError, "interrupt": KeyboardInterrupt}[self.how](f"a traceback from {self.folder}")
        return action


def play_run(agent, mode, rounds=ROUNDS):
    """Return the table of a run of ``evaluate`` on the system of a mode."""
    env_id, problem = plant(mode)
    return evaluate(agent, env_id, SEED, horizon=rounds, recommend="end", problem=problem).table
